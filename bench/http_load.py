# SPDX-License-Identifier: Apache-2.0
"""Requests to a web server on this machine, at fixed times, and how long they took. Used by
bench/attach and bench/always.
"""
import os
import pathlib
import subprocess
import tempfile


class Load:
    """attach_load at work: requests at fixed times. Once it is over it knows when each was due and
    how long it took.
    """

    def __init__(self, port, rate):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "attach_load")
            subprocess.run(
                [
                    "gcc",
                    "-O2",
                    "-D_GNU_SOURCE",
                    "-pthread",
                    "-o",
                    program,
                    pathlib.Path(__file__).with_name("attach_load.c"),
                ],
                check=True,
            )
            self.sender = subprocess.Popen(
                [program, str(port), str(rate)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def end(self):
        out, _ = self.sender.communicate()
        assert self.sender.returncode == 0
        requests = [tuple(map(int, line.split())) for line in out.splitlines()]
        self.answers = [(due / 1e9, ns / 1e6) for due, ns in requests if ns >= 0]
        self.failed = len(requests) - len(self.answers)

    def window(self, begin, end):
        return sorted(ms for due, ms in self.answers if begin <= due < end)


def preferred():
    """A session of its own, which the scheduler prefers to the others; for preexec_fn."""
    os.setsid()
    try:
        pathlib.Path("/proc/self/autogroup").write_text("-19")
    except OSError:
        pass


def ahead_of_all(pid):
    """The server's threads that answer or stop it, and those that collect, run ahead of all that
    is not ours: what else the machine does is not to count. The JIT's threads do not, for they
    would hold up the answers as they do on no machine.
    """
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = task.joinpath("comm").read_text()
        if any(part in name for part in ("HTTP", "pool", "VM Thread", "GC Thread", "G1")):
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(1))


def percentile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
