# SPDX-License-Identifier: Apache-2.0
"""Recordings that are always on: helpers that attach, read and query them."""
import json
import os
import pathlib
import time

import lab


def attach(pid, *args):
    done = lab.jvmscope("attach", *([] if "--always=memory" in args else ["--always"]), *args, pid)
    assert done.returncode == 0 and f"dump --last 5m -o FILE.jfr {pid}" in done.stderr, done.stderr
    return time.time_ns() // 10**6 + 1


def take(*args):
    done = lab.jvmscope("dump", *args)
    assert done.returncode == 0, done.stderr
    return done.stderr


def status(pid):
    return json.loads(lab.jvmscope("status", "--json", pid).stdout)


def memory_of(now):
    """The bytes that the agent has in memory according to status."""
    return now["memory.tables_bytes"] + now["names.bytes"] + now["ring.name_bytes"]


def cpu_of_agents_threads(pid):
    """CPU time in ns of the threads that have the agent's names, according to the kernel."""
    tasks = [
        t
        for t in pathlib.Path(f"/proc/{pid}/task").iterdir()
        if (t / "comm").read_text().startswith("jvmscope")
    ]
    assert tasks
    return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks)


def cpu_of(pid):
    """CPU time of a process in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
