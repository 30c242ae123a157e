# SPDX-License-Identifier: Apache-2.0
"""Finds what grows in recordings that are always on, when classes, loaders, threads and attaches
come and go for a long time. `make soak` takes SOAK_SECONDS (ten minutes) for each JDK. In an hour
100,000 loaders and a million threads come and go, and the commands attach 1,000 times, which gives
firm figures. The same program also runs without the agent, to find out what the VM itself needs.

While the soak runs, a file for each JDK, build/soak/always-17.txt, gets a row of figures in each
sixtieth of the time. Its last line says which of them were flat. The JDKs may run at the same time:
SOAK_SECONDS=3600 make soak ARGS='-k soak_always -n 3'.
"""
import json
import os
import statistics
import subprocess
import threading
import time

import pytest

import lab
from always_lab import memory_of

RATE, THREADS = 30, 10  # rounds per second, each with a loader, and threads of a round
LAST = 10  # the last seconds, from which the VM's figures are read
HOUR, MIB = 3600, 1 << 20
FLAT = {
    "own": MIB,
    "tables": MIB,
    "names": MIB,
    "ring_names": MIB,
    "metaspace_beyond_plain": MIB,
    "code": MIB,
    "beyond_plain": MIB,
    "methods": 1000,
    "files": 1,
    "threads": 1,
}  # how much a figure may grow in an hour


class Churn:
    """A program that creates and drops classes and threads; `rounds` is its progress."""

    def __init__(self, jdk, agent=None):
        self.rounds = 0
        # All of the heap is in memory from the start. Otherwise its growth would be attributed to
        # something else.
        jvm = [
            "-Xms64m",
            "-Xmx64m",
            "-XX:+AlwaysPreTouch",
            "-XX:MaxMetaspaceSize=64m",
            *([jdk.agent(agent)] if agent else []),
        ]
        self.jdk = jdk
        self.process = jdk.start_java("Churns", RATE, THREADS, jvm=jvm, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.rounds = int(line.split()[1])

    def metaspace(self):
        """The VM's own counters after a collection, which unloads unreachable classes. Before it,
        they say nothing about leaks.
        """
        for words in (("jcmd", self.pid, "GC.run"), ("jstat", "-gc", self.pid)):
            done = self.jdk.run(*words)
        names, values = (line.split() for line in done.stdout.splitlines()[:2])
        return round(float(values[names.index("MU")]) * 1024)

    def anonymous(self):
        with open(f"/proc/{self.pid}/status") as lines:
            return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1]) << 10


def vm_of(pid, out):
    """What the last seconds of the ring contain of the VM."""
    done = lab.jvmscope("dump", "--last", f"{LAST}s", "-o", out, pid)
    assert done.returncode == 0, done.stderr
    return lab.read_json("vm", "--json", out)


def figures(recorded, plain, folder):
    metaspace, plain_metaspace = recorded.metaspace(), plain.metaspace()
    status = lab.read_json("status", "--json", recorded.pid)
    pools = {p["pool"]: p["used_bytes"] for p in vm_of(recorded.pid, folder / "now.jfr")["memory"]}
    return {
        "rounds": recorded.rounds,
        "own": memory_of(status),
        "tables": status["memory.tables_bytes"],
        "names": status["names.bytes"],
        "ring_names": status["ring.name_bytes"],
        "methods": status["names.methods"],
        "metaspace": metaspace,
        "plain_metaspace": plain_metaspace,
        "metaspace_beyond_plain": metaspace - plain_metaspace,
        "code": sum(used for name, used in pools.items() if name.startswith("Code")),
        "files": len(os.listdir(f"/proc/{recorded.pid}/fd")),
        "threads": len(os.listdir(f"/proc/{recorded.pid}/task")),
        "anonymous": recorded.anonymous(),
        "plain": plain.anonymous(),
        "beyond_plain": recorded.anonymous() - plain.anonymous(),
    }


def growth(rows, name):
    """Returns how much a figure grows in an hour: from the median of the second third of the time
    to that of the last third. Returns None if it is flat: it grows by less than FLAT allows, or by
    less than the width of the middle half of its values in the second third.
    """
    thirds = rows[len(rows) // 3 : 2 * len(rows) // 3], rows[2 * len(rows) // 3 :]
    values, times = ([[r[of] for r in third] for third in thirds] for of in (name, "seconds"))
    grown, seconds = (statistics.median(x[1]) - statistics.median(x[0]) for x in (values, times))
    low, _, high = statistics.quantiles(values[0], n=4)
    most = FLAT[name] * seconds / HOUR
    return grown * HOUR / seconds if grown > max(most, high - low) else None


def churn(jdk, folder, seconds, log):
    """Runs both programs, writes a row of figures into the log each sixtieth of the time, and
    returns the rows, what the ring says of the VM in its last seconds, and how many rounds these
    had.
    """
    recorded, plain = Churn(jdk, f"always=y,keep=1m,maxsize=16m,file={folder}/r.ring"), Churn(jdk)
    began, attaches, rows = time.monotonic(), 0, []

    def over():  # this test is about time
        nonlocal attaches
        for p in (recorded, plain):
            assert p.process.poll() is None
        # A recording takes 64 triggers.
        done = lab.jvmscope(
            "attach", "--on", "every 10h" if attaches % 64 < 60 else "none", recorded.pid
        )
        assert done.returncode == 0, done.stderr
        attaches += 1
        passed = time.monotonic() - began
        if recorded.rounds and plain.rounds and passed >= (len(rows) + 1) * seconds / 60:
            row = {
                "seconds": round(passed),
                **figures(recorded, plain, folder),
                "attaches": attaches,
            }
            if not rows:
                print(*row, sep="\t", file=log)
            print(*row.values(), sep="\t", file=log, flush=True)
            rows.append(row)
        time.sleep(min(3, seconds / 60))
        return passed >= seconds and len(rows) >= 12

    lab.wait_for(over, 2 * seconds + 300, "a round of both programs")
    before = recorded.rounds
    time.sleep(LAST)
    vm, made = vm_of(recorded.pid, folder / "end.jfr"), recorded.rounds - before
    for p in (recorded, plain):
        p.process.kill()
    return rows, vm, made


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.soak
def test_soak_always(jdk, tmp_path):
    seconds = float(os.environ.get("SOAK_SECONDS", "600"))
    path = lab.BUILD / "soak" / f"always-{jdk.version}.txt"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as log:
        rows, vm, made = churn(jdk, tmp_path, seconds, log)
        last, grown = rows[-1], {name: growth(rows, name) for name in FLAT}
        steep = [
            f"{name} (+{g / MIB:.2f} MiB)" if FLAT[name] == MIB else f"{name} (+{g:.0f})"
            for name, g in grown.items()
            if g is not None
        ]
        printed = (
            f"JDK {jdk.version}: {last['rounds']} loaders, {THREADS * last['rounds']} threads and {last['attaches']} attaches in "
            f"{last['seconds']} s; flat: {', '.join(name for name, g in grown.items() if g is None)}; growing in an hour: {', '.join(steep) or 'none'}"
        )
        print(printed, file=log)
    print(printed)
    assert last["rounds"] > rows[len(rows) // 3]["rounds"] + 100
    assert 2 * MIB < last["own"] < 24 * MIB, last
    # Classes and their loaders are unloaded although the recorder has seen them, and so is their
    # metadata.
    own = next(c for c in vm["class_loaders"] if c["class"] == "Churns$Loader")
    assert 0 < made <= 2 * own["loaded"] and last["metaspace"] < 48 * MIB, (made, own, last)
    # In a shorter soak, growth per hour may come from the start of the VM, such as its compilers'
    # code.
    assert not {name for name, g in grown.items() if g is not None} & {
        "files",
        "threads",
        *(FLAT if seconds >= HOUR else ()),
    }, printed
