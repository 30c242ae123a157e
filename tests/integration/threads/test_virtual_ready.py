# SPDX-License-Identifier: Apache-2.0
"""A virtual thread that is ready and has no carrier waits for nothing else: neither a lock, a timer
nor a queue.
"""
import collections
import json
import re
import subprocess

import pytest

import lab

MS = 1_000_000
CARRIER = "-Djdk.virtualThreadScheduler.parallelism=1"
WAYS = {"parked", "taken", "locked", "slept", "timed", "yielded"}
AT_MONITORS = {"entered", "notified"}  # these keep their carrier before JDK 24


def ways(jdk):
    return WAYS | (AT_MONITORS if jdk.version >= 24 else set())


def states(out):
    """Returns by thread what it did last, for how many ns, what ended that, and the name of the
    other thread.
    """
    done = lab.jvmscope("threads", "timeline", "--json", out)
    assert done.returncode == 0, done.stderr
    found, end = json.loads(done.stdout), collections.defaultdict(list)
    for e in found["events"]:
        if e["type"] not in ("TRCThreadUnparkEvent", "TRCThreadDeadAndNotifyJoinedEvent"):
            end[e["thread"]].append(e)
    return found, end


def check_ready(jdk, tmp_path, to_the_ms):
    """to_the_ms: also checks since when they are ready. A thread of the VM makes a virtual thread
    ready when its timer has expired or it has been notified, and it is not ready before that. On a
    busy machine this came 98 ms late, which no program can see.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "VirtualReady", 300, jvm=[jdk.agent(f"threads=y,format=r,file={out}"), CARRIER], release=21
    )
    assert done.returncode == 0, done.stderr
    truth = {
        name: (int(least), int(most))
        for name, least, most in map(str.split, done.stdout.splitlines())
    }
    assert set(truth) == ways(jdk)
    found, by_thread = states(out)
    occupants = []
    for name, (least, most) in truth.items():
        own = by_thread[name]
        ready = {
            a["time"]: b["time"] - a["time"]
            for a, b in zip(own, own[1:])
            if a["type"] == "TRCThreadUnmountedEvent"
        }
        # Time in which the carrier lost its processor before it read the clock is not time without
        # a carrier.
        assert sum(ready.values()) >= to_the_ms * (0.95 * least - 10 * MS), (
            name,
            ready,
            least,
            most,
        )
        assert 0 < sum(ready.values()) <= most + MS, (name, ready, least, most)
        since, ns = max(ready.items(), key=lambda r: r[1])
        waited = [e for e in own if e["time"] in (since, since - 1) and e.get("cause")]
        causes = {
            "slept": "timer",
            "timed": "timer",
            "entered": "handoff",
            "notified": "notify",
            "yielded": None,
        }
        assert [e["cause"] for e in waited[-1:]] == [
            c for c in [causes.get(name, "unpark")] if c
        ], (name, own)
        mark = next(e for e in own if e["time"] == since and e["type"] == "TRCThreadUnmountedEvent")
        assert mark["frames"], mark
        occupants.append(mark["occupantThread"])
    # The JDK may start another carrier in place of one that is pinned for a moment. A thread that
    # runs on the new one has followed no other.
    assert occupants.count("occupant") > len(occupants) / 2, occupants
    assert set(occupants) <= {"occupant", None} or not to_the_ms, occupants
    # That time is reported as nothing else, neither on the path nor as a wait for the lock.
    path = json.loads(
        lab.jvmscope("threads", "critical-path", "--json", "--thread", "parked", out).stdout
    )
    taken = sum(
        s["ns"] for s in path["segments"] if s["thread"] == "parked" and s["state"] == "preempted"
    )
    assert taken >= 0.95 * truth["parked"][0] - 10 * MS, path["segments"]


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(21, 25, 27)
def test_ready_without_a_carrier_is_a_state_of_its_own(jdk, tmp_path):
    check_ready(jdk, tmp_path, False)


@pytest.mark.measured
@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(21, 25, 27)
def test_how_long_threads_are_ready_without_a_carrier(jdk, tmp_path):
    check_ready(jdk, tmp_path, True)


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(21, 25, 27)
def test_threads_that_have_no_carrier_when_the_recording_ends(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "VirtualReady",
        "open",
        jvm=[jdk.agent(f"threads=y,format=r,file={out}"), CARRIER],
        release=21,
    )
    assert done.returncode == 0, done.stderr
    found, by_thread = states(out)
    for name in WAYS:
        last = by_thread[name][-1]
        assert (
            last["type"] == "TRCThreadUnmountedEvent" and found["end_ns"] - last["time"] >= 250 * MS
        ), (name, by_thread[name])


def reported_ns(out):
    """Returns for how many ms --cpu=wall could not sample virtual threads, by view."""
    done = lab.jvmscope("report", "--json", out)
    found = [
        loss
        for loss in json.loads(done.stdout)["losses"]
        if loss["what"] == "milliseconds of virtual threads"
    ]
    ms = sum(loss["amount"] for loss in found)
    table = lab.jvmscope("report", out)
    assert (
        f"{ms} milliseconds of virtual threads were lost" in done.stderr + table.stderr or not ms
    ), (done.stderr, table.stderr)
    return ms


@pytest.mark.jdks(21, 25, 27)
def test_wall_clock_samples_report_threads_without_a_carrier(jdk, tmp_path):
    """100 threads that sleep for 1.5 s each are not sampled, which is reported: from the start, and
    for those that sleep already when the agent attaches.
    """
    out = tmp_path / "start.jfr"
    vm = jdk.start_java(
        "WallVirtual",
        100,
        1500,
        jvm=[jdk.agent(f"cpu=wall,format=r,file={out}")],
        release=21,
        stdout=subprocess.PIPE,
    )
    assert vm.stdout.readline() == "asleep\n"
    truth = int(vm.communicate(timeout=60)[0])
    # The time for which a processor was missing before and after the sleep was part of the sleep by
    # the program's clock.
    assert 150000 <= reported_ns(out) <= 1.02 * truth + 1000 and reported_ns(out) >= 0.9 * truth, (
        reported_ns(out),
        truth,
    )
    vm = jdk.start_java("WallVirtual", 100, 60000, release=21, stdout=subprocess.PIPE)
    try:
        assert vm.stdout.readline() == "asleep\n"
        out = tmp_path / "attach.jfr"
        done = lab.jvmscope("attach", "--cpu=wall", "-t", "1s", "-o", out, vm.pid)
        assert done.returncode == 0, done.stderr
    finally:
        vm.kill()
        vm.communicate()
    seconds = float(re.search(r", in ([\d.]+) s,", lab.jvmscope("report", out).stdout).group(1))
    assert 100000 <= reported_ns(out) <= 100000 * seconds, seconds


@pytest.mark.jdks(17, 25)
def test_wall_clock_samples_lose_nothing_without_virtual_threads(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    assert jdk.java("Conditions", jvm=[jdk.agent(f"cpu=wall,format=r,file={out}")]).returncode == 0
    assert reported_ns(out) == 0


@pytest.mark.jdks(21, 25, 27)
def test_a_request_whose_thread_has_no_carrier_is_in_no_queue(jdk, tmp_path):
    """A server that creates a virtual thread for each request has no queue: the thread is ready,
    and another one has the carrier.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "VirtualServed", jvm=[jdk.agent(f"requests=auto,format=r,file={out}"), CARRIER], release=21
    )
    assert done.returncode == 0, done.stderr
    shown = lab.jvmscope(
        "requests", "slow", "--json", "--over", "100ms", "--name", "GET /second", out
    )
    assert shown.returncode == 0, shown.stderr
    (group,) = json.loads(shown.stdout)["groups"]
    causes = {c["cause"]: c["slow_ns"] for c in group["causes"]}
    assert (
        causes["runnable"] >= 0.8 * int(done.stdout) - 10 * MS and causes.get("queue", 0) < 30 * MS
    ), (causes, done.stdout)
