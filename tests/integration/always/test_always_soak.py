# SPDX-License-Identifier: Apache-2.0
"""What grows in recordings that are always on, when classes, loaders and threads come and go for a long time? `make soak` takes
SOAK_SECONDS (ten minutes) for each JDK; an hour gives firm figures. The same program also runs without the agent, to find out
what the VM itself needs."""
import json
import os
import subprocess
import threading
import time

import pytest

import lab
from always_lab import memory_of


class Churn:
    """A program that creates and drops classes and threads; `rounds` is its progress."""

    def __init__(self, jdk, agent=None, rate=100):
        self.rounds, self.recorded = 0, agent is not None
        jvm = ["-Xmx64m", "-XX:MaxMetaspaceSize=64m", *([jdk.agent(agent)] if agent else [])]
        self.process = jdk.start_java("Churns", rate, jvm=jvm, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.rounds = int(line.split()[1])

    def figures(self):
        lines = dict(line.split(":", 1) for line in open(f"/proc/{self.pid}/status") if ":" in line)
        own = memory_of(json.loads(lab.jvmscope("status", "--json", self.pid).stdout)) if self.recorded else 0
        return {"own": own, "rss": int(lines["RssAnon"].split()[0]) << 10, "files": len(os.listdir(f"/proc/{self.pid}/fd")), "threads": int(lines["Threads"])}


def churn(jdk, folder, seconds, rate):
    """Runs both programs and returns the figures of both after a third of the time and at its end."""
    ring = folder / "r.ring"
    recorded, plain = Churn(jdk, f"always=y,keep=1m,maxsize=16m,file={ring}", rate), Churn(jdk, None, rate)
    began, attaches, early = time.monotonic(), 0, None

    def over():  # this test is about time
        nonlocal attaches, early
        for p in (recorded, plain):
            assert p.process.poll() is None
        # A recording takes 64 triggers.
        done = lab.jvmscope("attach", "--on", "every 10h" if attaches < 60 else "none", recorded.pid)
        assert done.returncode == 0, done.stderr
        attaches += 1
        now = time.monotonic()
        if not early and now > began + seconds / 3 and recorded.rounds and plain.rounds:
            early = (now, recorded.figures(), plain.figures(), recorded.rounds)
        time.sleep(min(1, seconds / 30))
        return early and now >= began + seconds
    lab.wait_for(over, 2 * seconds, "a round of both programs")
    late = (time.monotonic(), recorded.figures(), plain.figures(), recorded.rounds)
    out = folder / "end.jfr"
    assert lab.jvmscope("dump", "--last", "20s", "-o", out, recorded.pid).returncode == 0
    vm = json.loads(lab.jvmscope("vm", "--json", out).stdout)
    for p in (recorded, plain):
        p.process.kill()
    return early, late, attaches, vm


def check(jdk, folder, seconds, rate):
    early, late, attaches, vm = churn(jdk, folder, seconds, rate)
    hours = (late[0] - early[0]) / 3600
    grown = {name: late[1][name] - early[1][name] for name in early[1]}
    without = {name: late[2][name] - early[2][name] for name in early[2]}
    print(f"JDK {jdk.version}: {late[3]} loaders, {2 * late[3]} threads, {attaches} attaches in {seconds} s; "
          f"the agent has {late[1]['own'] / 2**20:.1f} MiB ({grown['own'] / 2**20:+.1f} MiB); anonymous memory {grown['rss'] / 2**20:+.1f} MiB, without the agent {without['rss'] / 2**20:+.1f} MiB, in {hours * 60:.0f} min")
    assert late[3] > early[3] + 100
    assert 2 << 20 < late[1]["own"] < 24 << 20, late
    assert abs(grown["files"]) <= 4 and abs(grown["threads"]) <= 4, (grown, without)
    # Classes and their loaders go although the recorder has seen them; so does their metadata.
    own = next(c for c in vm["class_loaders"] if c["class"] == "Churns$Loader")
    assert own["loaded"] > 50
    for pool in vm["memory"]:
        assert pool["pool"] != "Metaspace" or pool["used_bytes"] < 48 << 20, pool
    return grown["rss"] - without["rss"], hours, late[3] - early[3]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.soak
def test_soak_always(jdk, tmp_path):
    more, hours, rounds = check(jdk, tmp_path, float(os.environ.get("SOAK_SECONDS", "600")), 100)
    # A few MiB are the allocators' own; beyond them nothing may be kept for each class, thread or name.
    assert more < (4 << 20) + hours * (1 << 20), (more, rounds)
