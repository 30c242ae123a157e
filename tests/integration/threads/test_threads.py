# SPDX-License-Identifier: Apache-2.0
"""threads=y and `jvmscope threads`: the eighteen programs with known answers, each on every JDK
that has the feature.
"""
import collections
import functools
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import pytest

import lab
import workloads

MS = 1_000_000


# What each program takes when nothing delays it, in ms; some include the section that what-if
# scales with a factor. The scaled times are whole ms, to which JDKs before 21 round a sleep.
IDEAL = {
    "1": 120,
    "2": 90,
    "3": 200,
    "4": 610,
    "5": 300,
    "6": 400,
    "7": 313,
    "8": 100,
    "9": 130,
    "10": 600,
    "11": 400,
    "12": 80,
    "13": 90,
    "14": 130,
    "15": 80,
    "16": 90,
    "17": 110,
    "18": 500,
    "11 unfair": 400,
    "13 future": 60,
}
SCALED = {
    "1": (120, 96, 80, 80),
    "3": (200, 160, 120, 40),
    "4": (610, 490, 370, 166),
    "7": (313, 253, 193, 168),
    "14": (130, 116, 104, 90),
}
FACTORS = ("1.0", "0.8", "0.6", "0.2")


class Run:
    """A finished run of a program. Everything is by the program's own clock: its beginning and end
    in ns since 1970, by how many ms the machine woke a sleeper late, for how many ns its sections
    waited for their lock and held it, and how often a section waited for that of another thread.
    """

    def __init__(self, version, path, name, begin, end, late, blocked, inside, handed):
        self.version, self.path, self.name, self.begin, self.end, self.late = (
            version,
            path,
            name,
            begin,
            end,
            late / MS,
        )
        self.blocked, self.inside, self.handed = blocked, inside, handed
        program, *factor = name.split()
        scaled = factor and factor[0] in FACTORS
        self.ideal = (
            SCALED[program][FACTORS.index(factor[0])] if scaled else IDEAL.get(name, IDEAL[program])
        )

    @property
    def took(self):
        return (self.end - self.begin) / MS

    @property
    def delayed(self):
        """Returns whether, by its own clock, the program did not run as written, so that what-if
        may be further from the truth.
        """
        return self.late > 3 or self.took > self.ideal * (1 + WHAT_IF_LATE)

    @functools.cached_property
    def window(self):
        return (
            "--from",
            f"{self.begin - origin(self.path)}ns",
            "--to",
            f"{self.end - origin(self.path)}ns",
        )

    def threads(self, verb, *args):
        return threads(verb, self.path, *args, *self.window)

    @functools.cached_property
    def found(self):
        """Its critical path, which is as long as the program, without a gap, and known."""
        found = self.threads("critical-path")
        assert found["length_ns"] == found["makespan_ns"] == self.end - self.begin
        assert sum(s["ns"] for s in found["segments"]) == found["length_ns"]
        at = found["segments"][0]["start_ns"]
        for s in found["segments"]:
            assert s["start_ns"] == at
            at += s["ns"]
        unknown = sum(s["ns"] for s in found["segments"] if s["state"] == "unknown")
        assert unknown <= found["length_ns"] * 0.001, [
            s for s in found["segments"] if s["state"] == "unknown"
        ]
        found["late_ns"] = round(self.late * MS)
        return found


def run_programs(version, *args, options="threads=y"):
    """Records ThreadPrograms: {program: Run}."""
    jdk = lab.Jdk(version)
    out = f"{lab.SCRATCH}/threads-{version}-{args[0]}-{time.monotonic_ns()}.jfr"
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(
        time.CLOCK_MONOTONIC
    )
    done = jdk.java(
        "ThreadPrograms",
        *args,
        jvm=[jdk.agent(f"{options},format=r,file={out}"), "-Xmx128m"],
        timeout=60,
        preexec_fn=lab.on_time,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    runs = {}
    for line in done.stdout.splitlines():
        *name, begin, end, late, blocked, inside, handed = line.split()
        assert all(n.replace(".", "").isalnum() for n in name), done.stdout
        run = Run(
            version,
            out,
            " ".join(name),
            int(begin) + offset,
            int(end) + offset,
            *map(int, (late, blocked, inside, handed)),
        )
        assert run.name not in runs
        runs[run.name] = run
    return runs


recorded = functools.cache(run_programs)


def all_programs(version):
    return recorded(version, "all", "virtual" if version >= 21 else "platform")


def test_built_while_read(jdk):
    """Loaded like a large recording, the timeline is the same as when it is built from all events
    at once.
    """
    paths = {run.path for run in all_programs(jdk.version).values()}
    done = subprocess.run(
        [lab.BUILD / "tests/unit/timeline_twice", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and int(done.stdout.split()[0]) > 100, done.stdout


def program(name):
    """Turns a check of one of the programs into a test."""

    def decorate(judge):
        def test(jdk):
            judge(all_programs(jdk.version)[name])

        test.__name__, test.__doc__, test.pytestmark = (
            judge.__name__,
            judge.__doc__,
            getattr(judge, "pytestmark", []),
        )
        return test

    return decorate


def threads(verb, path, *args):
    done = lab.jvmscope("threads", verb, "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def origin(path):
    return threads("summary", path)["origin_ns"]


def on(found, *names, state=None):
    """Ms of the path on threads with these names (on all threads if there is none)."""
    return (
        sum(
            s["ns"]
            for s in found["segments"]
            if (not names or s["thread"] in names) and state in (None, s["state"])
        )
        / MS
    )


def launched(found):
    """The path without its beginning on main, which starts the threads one after the other. That is
    not part of the answer, and takes longer on a busy machine (25 ms of program 12's 110 were
    seen). Its end on main is left out as well if main came late from joining the last thread, but
    by no more than the program itself measured (46 ms were seen).
    """
    segments = list(
        itertools.dropwhile(
            lambda s: s["thread"] == "main" and s["state"] in ("run", "gc", "preempted"),
            found["segments"],
        )
    )
    joins = [s["edge"] == "join" for s in segments]
    last = len(joins) - 1 - joins[::-1].index(True) if True in joins else len(joins)
    end = segments[last:]
    if (
        all(s["thread"] == "main" for s in end)
        and sum(s["ns"] for s in end) <= found["late_ns"] + MS
    ):
        segments = segments[:last]
    return segments, sum(s["ns"] for s in segments)


def sequence(found, least=None):
    """The threads of the path in order, each once while the path stays on it. Stretches shorter
    than `least` are ignored, such as the time from a wake-up until the woken thread gets a
    processor (8 ms were seen).
    """
    segments, length = launched(found)
    stays = [
        s["thread"]
        for s in segments
        if s["ns"] >= (least or length * 0.08) and not (s["state"] == "lock" and s["edge"])
    ]
    return [name for name, _ in itertools.groupby(stays)]


def turns(found, name):
    """Ms of the path on a thread, without the time from its wake-ups to when it got a processor."""
    return (
        sum(
            s["ns"]
            for s in found["segments"]
            if s["thread"] == name and not (s["state"] in ("lock", "reacquire") and s["edge"])
        )
        / MS
    )


def share(found, name):
    return (
        sum(lock["ns"] for lock in found["locks"] if lock["class"].endswith(name))
        / launched(found)[1]
        * 100
    )


def share_of_sections(run):
    """The share of the path on which one section follows another: 100 % in program 3 and 98.4 % in
    program 4 if nothing is late. Without locks=, a section that no other thread wants, because the
    others are late, is not recorded.
    """
    return run.inside / launched(run.found)[1] * 100


def takes(run, value, expected):
    """Sleeps are never shorter than requested, and longer by no more than what the program itself
    measured.
    """
    return expected - 1 <= value <= expected + max(0, run.took - run.ideal) + 1


@program("1")
def test_program_1_joins(run):
    found = run.found
    assert takes(run, on(found), 120)
    assert sequence(found) == ["B"]
    assert on(found, "B") * MS / launched(found)[1] > 0.97
    assert found["edges"]["join"] == 1 and found["edges"]["start"] == 1


@program("2")
def test_program_2_start_and_join_within(run):
    found = run.found
    assert takes(run, on(found), 90)
    assert sequence(found) == ["A", "B", "A"]
    assert takes(run, on(found, "A"), 50) and takes(run, on(found, "B"), 40)
    assert found["edges"]["join"] == 2 and found["edges"]["start"] == 2


@program("3")
def test_program_3_one_lock(run):
    found = run.found
    assert takes(run, on(found), 200)
    assert share(found, "java.lang.Object") >= share_of_sections(run) - 3


@program("3")
def test_program_3_blocked_time(run):
    """Compared with the program itself, which reads its clock before and within each section."""
    blocked = sum(
        t["blocked_ns"]
        for t in run.threads("summary")["threads"]
        if t["name"] in ("T1", "T2", "T3", "T4")
    )
    assert blocked > 300 * MS
    # A thread may lose its processor between reading the clock and taking the lock; at its end it
    # may wait for the lock of its group.
    assert abs(blocked - run.blocked) < 0.05 * run.blocked + 10 * MS


@program("3")
def test_program_3_next_to_nothing_changed(run):
    """Hand-overs of a contended lock take longer on a busy machine; the order that what-if computes
    must not shorten them.
    """
    for factor in ("0.999", "1", "1.001"):
        (answer,) = run.threads("what-if", "--lock", "java.lang.Object", "--factor", factor)
        assert abs(answer["after_ns"] - answer["before_ns"]) <= 0.01 * answer["before_ns"], answer


@program("4")
def test_program_4_lock_and_outside(run):
    found = run.found
    assert takes(run, on(found), 610)
    # Before the first section a thread sleeps 10 ms.
    assert (
        share_of_sections(run) - 3
        < share(found, "java.lang.Object")
        < 100.5 - 10 * MS / launched(found)[1] * 100
    )
    # 19, unless a thread that was woken got no processor for 10 ms. The other one then takes the
    # lock again, as the program saw.
    assert found["edges"]["handoff"] == run.handed and 10 <= run.handed <= 19
    assert sequence(found, 20 * MS) in [
        (names * 10)[: run.handed + 1] for names in (["T1", "T2"], ["T2", "T1"])
    ]


@program("5")
def test_program_5_blocked_time_misleads(run):
    found = run.found
    assert takes(run, on(found), 300)
    assert sequence(found) == ["M"]
    assert share(found, "java.lang.Object") < 3


@program("6")
def test_program_6_ping_pong(run):
    found = run.found
    assert takes(run, on(found), 400)
    assert [name for name in sequence(found, 3 * MS) if name != "main"] == ["Ping", "Pong"] * 50
    # By its own clock, a half when nothing is late.
    assert (
        abs(
            turns(found, "Ping") / (turns(found, "Ping") + turns(found, "Pong"))
            - run.inside / (run.inside + run.blocked)
        )
        < 0.03
    )


@program("7")
def test_program_7_pipeline(run):
    found = run.found
    assert takes(run, on(found), 313)
    assert sequence(found, 4 * MS) == ["A", "B", "C"]
    assert abs(on(found, "B") / on(found) * 100 - 95.8) < 3


@program("8")
def test_program_8_notify_before_wait(run):
    found = run.found
    assert takes(run, on(found), 100)
    assert on(found, "main", state="timer") >= 99
    assert found["edges"]["notify"] == 0
    types = [e["type"] for e in run.threads("timeline")["events"]]
    assert (
        types.count("TRCThreadWaitTimeoutExceedEvent") == 1
        and types.count("TRCThreadNotifyEvent") == 1
    )


@program("9")
def test_program_9_notify_all(run):
    found = run.found
    assert takes(run, on(found), 130)
    # The first waiter continues because of the notification or, if it is awake before main releases
    # the lock, because of main's hand-over.
    assert (
        found["edges"]["handoff"] in (7, 8)
        and found["edges"]["notify-all"] == 8 - found["edges"]["handoff"]
    )
    assert len(sequence(found, 5 * MS)) == 9 and sequence(found, 5 * MS)[0] == "main"


def cycle_names(cycle):
    return {c["thread"] for c in cycle}


@pytest.mark.parametrize("which, threads_of", [("two", "AB"), ("three", "ABC")])
def test_program_10_deadlock(jdk, which, threads_of):
    run = recorded(jdk.version, "10", which)[f"10 {which}"]
    found = threads("deadlocks", run.path)["deadlocks"]
    assert len(found) == 1
    cycle = found[0]["cycle"]
    assert sorted(c["thread"] for c in cycle) == list(threads_of)
    for one, after in zip(cycle, cycle[1:] + cycle[:1]):
        assert one["owned_by"] == after["thread"]
        assert any("ThreadPrograms.inOrder" in f for f in one["frames"])
    # The state begins when the last thread of the cycle requests its lock, and lasts to the end of
    # the recording.
    events = [
        e for e in threads("timeline", run.path)["events"] if e["thread"] in cycle_names(cycle)
    ]
    deadlocked = [e for e in events if e["type"] == "TRCThreadDeadLockEvent"]
    assert sorted(e["thread"] for e in deadlocked) == list(threads_of)
    assert {e["time"] for e in deadlocked} == {found[0]["formed_ns"]}
    assert [e["type"] for e in events[-len(deadlocked) :]] == ["TRCThreadDeadLockEvent"] * len(
        deadlocked
    )
    formed = found[0]["formed_ns"] - (run.begin - origin(run.path))
    assert 50 * MS <= formed < 150 * MS


def run_deadlock(jdk, which, out, **kwargs):
    """Runs program 10 under deadlock=y; returns what it printed on standard error, and when its
    first line appeared.
    """
    with jdk.start_java(
        "ThreadPrograms",
        "10",
        which,
        jvm=[jdk.agent(f"deadlock=y,format=r,file={out}")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **kwargs,
    ) as program:
        text = program.stderr.readline()
        reported = time.time_ns()
        text += program.stderr.read()
        output = program.stdout.read()
    assert program.returncode == 0 and output.startswith(f"10 {which} ") and output.count("\n") == 1
    assert text.startswith("jvmscope: deadlock of ") and text.count("jvmscope: ") == 1, text
    return text, reported


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(8, 17, 21, 25, 27)
@pytest.mark.parametrize("which, names", [("three", "ABC"), ("mixed", "AB")])
def test_program_10_deadlock_is_reported_live(jdk, which, names, tmp_path):
    """Reported once, within 100 ms of forming, with the cycle and every stack; the recording
    contains the same.
    """
    out = str(tmp_path / "deadlock.jfr")
    text, reported = run_deadlock(jdk, which, out)
    assert text.startswith(f"jvmscope: deadlock of {len(names)} threads, formed ")
    waits = dict(re.findall(r'^  "(\w)" waits for \S+@[0-9a-f]+, owned by "(\w)"$', text, re.M))
    assert waits == {a: b for a, b in zip(names, names[1:] + names[0])}
    stacks = re.findall(
        r"^      at ThreadPrograms\.(?:inOrder|lambda\$p10\$\d+)\(ThreadPrograms\.java:\d+\)$",
        text,
        re.M,
    )
    assert len(stacks) >= len(names)
    formed = reported - threads("deadlocks", out)["deadlocks"][0]["formed_ns"] - origin(out)
    assert 0 < formed < 100 * MS


@pytest.mark.jdks(8, 17, 25)
def test_a_wall_clock_that_is_set_delays_no_search(jdk, tmp_path):
    """The agent's clock is two hours ahead of the kernel's, as when the clock is set back during
    each wait.
    """
    offset = tmp_path / "offset"
    offset.write_bytes((2 * 3600).to_bytes(8, "little"))
    env = {
        **os.environ,
        "LD_PRELOAD": str(lab.BUILD / "tests" / "agents" / "libclockstep.so"),
        "CLOCK_OFFSET": str(offset),
    }
    run_deadlock(jdk, "mixed", str(tmp_path / "deadlock.jfr"), env=env)


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(21, 25, 27)
def test_program_10_deadlock_of_virtual_threads_is_reported_live(jdk, tmp_path):
    test_program_10_deadlock_is_reported_live(jdk, "virtual", "AB", tmp_path)


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(8, 17, 25)
def test_program_10_deadlock_of_a_running_vm(jdk, tmp_path):
    """On request, in a VM that has no agent yet."""
    found, shown = deadlock_on_demand(jdk)
    assert len(found) == 1 and shown.returncode == 0
    cycle = {c["thread"]: c for c in found[0]["cycle"]}
    assert {name: c["owned_by"] for name, c in cycle.items()} == {"A": "B", "B": "A"}
    assert cycle["A"]["waits_for"].startswith(
        "java.util.concurrent.locks.ReentrantLock$NonfairSync@"
    )
    assert cycle["B"]["waits_for"].startswith("ThreadPrograms$L1@")
    assert all(any("ThreadPrograms" in f for f in c["frames"]) for c in cycle.values())
    assert shown.stdout.startswith("deadlock of 2 threads:\n")
    assert shown.stdout.endswith(
        "\nonly platform threads were examined (run --deadlocks reports deadlocks of virtual threads)\n"
    )
    assert found[0]["looked_at_virtual"] is False
    frames = re.findall(r"(?m)^ +at (.*)$", shown.stdout)
    assert frames == [f for c in found[0]["cycle"] for f in c["frames"]] and any(
        re.match(r"ThreadPrograms\S*:\d+$", f) for f in frames
    )
    assert all(
        re.fullmatch(r"[\w.$<>\[\]:]+?(:\d+)?", f) and "0x" not in f for f in frames
    ), "no modules, loaders and addresses"
    lambdas = [f for f in frames if "$$Lambda" in f]
    assert lambdas and all(
        re.fullmatch(r"ThreadPrograms\$\$Lambda\[lambda\$\w+\$\d+\]\.run", f) for f in lambdas
    ), lambdas


def deadlock_on_demand(jdk):
    with jdk.start_java(
        "ThreadPrograms", "10", "mixed", "3000", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:

        def deadlocks():
            assert program.poll() is None, "it ended before a deadlock was found"
            return json.loads(
                lab.jvmscope("threads", "deadlocks", "--json", program.pid).stdout or "[]"
            )

        found = lab.wait_for(deadlocks, 60, "a deadlock")
        shown = lab.jvmscope("threads", "deadlocks", program.pid)
        output, errors = program.communicate(timeout=60)
    errors = re.sub(
        r"^WARNING: .*\n", "", errors, flags=re.M
    )  # the VM's own, of an agent that is loaded late
    assert (
        program.returncode == 0
        and not errors
        and output.startswith("10 mixed ")
        and output.count("\n") == 1
    )
    return found, shown


@pytest.mark.parametrize("millions", [0.1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.jdks(8, 17, 25)
def test_no_deadlock_where_there_is_none(jdk, millions):
    """Contended hand-overs, with barging and fair ones, and cycles that a timeout breaks, which
    last longer than the watch waits.
    """
    out = f"/tmp/jvmscope-handoffs-{os.getpid()}-{jdk.version}.jfr"
    done = jdk.java(
        "HandOffs",
        int(millions * 1_000_000),
        jvm=[jdk.agent(f"deadlock=y,depth=4,format=r,file={out}"), "-Xmx256m"],
        timeout=1200,
    )
    os.unlink(out)
    assert done.returncode == 0 and not done.stderr, done.stderr
    counted, cycles = map(
        int, re.fullmatch(r"(\d+) hand-overs, (\d+) cycles with a timeout\n", done.stdout).groups()
    )
    assert counted >= millions * 1_000_000 and cycles >= 5


@program("11")
def test_program_11_fair_lock(run):
    found = run.found
    assert takes(run, on(found), 400)
    assert found["edges"]["unpark"] == 19
    assert share(found, "Sync") >= 90


@program("11 unfair")
def test_program_11_unfair_lock(run):
    found = run.found
    assert takes(run, on(found), 400)
    assert 1 <= found["edges"]["unpark"] <= 19


@program("12")
def test_program_12_latch(run):
    found = run.found
    assert takes(run, on(found), 80)
    assert sequence(found) == ["W8"]
    assert found["edges"]["unpark"] == 1


@program("13")
def test_program_13_pool(run):
    found = run.found
    assert takes(run, on(found), 90)
    assert on(found, state="sleep") >= 89


@program("13 future")
def test_program_13_future(run):
    found = run.found
    assert takes(run, on(found), 60)
    assert len(sequence(found, 10 * MS)) == 1 and sequence(found, 10 * MS) != ["main"]


@program("14")
def test_program_14_barrier(run):
    found = run.found
    assert takes(run, on(found), 130)
    assert sequence(found) == ["T3", "T1", "T2", "T1"]


@program("15")
def test_program_15_interrupt(run):
    found = run.found
    assert takes(run, on(found), 80)
    assert sequence(found) == ["main", "T"]
    assert found["edges"]["interrupt"] == 1


@program("16")
def test_program_16_semaphore(run):
    found = run.found
    assert takes(run, on(found), 90)
    assert on(found, state="sleep") >= 89
    # There are three waves. A thread that gets a permit wakes the next one in the queue itself
    # while permits are left.
    assert len(sequence(found)) == 3 and 2 <= found["edges"]["unpark"] <= 4


@program("17")
def test_program_17_readers_and_writer(run):
    found = run.found
    assert takes(run, on(found), 110)
    assert sequence(found) == ["R80", "W"]


# Without an agent the VM itself takes 0.2 ms (JDK 21) to 0.4 ms (25 and 27) to hand a monitor to
# the next virtual thread, and wakes virtual threads up to 2 ms late. Nothing below depends on
# either.
@pytest.mark.jdks(21, 25, 27)
@program("18")
def test_program_18_virtual_threads(run):
    found = run.found
    assert takes(run, on(found), 500)
    if run.version >= 24:
        assert share(found, "java.lang.Object") >= 97
        # Every section but the first is handed over. On a busy machine a thread may arrive just
        # when the monitor is free, and then what came before is not on the path.
        (lock,) = (lock for lock in found["locks"] if lock["class"] == "java.lang.Object")
        assert lock["contended_on_path"] == lock["sections_on_path"] - 1
        assert 95 <= lock["sections_on_path"] <= 100


@pytest.mark.jdks(21, 25, 27)
def test_waits_of_virtual_threads_have_a_cause(jdk, tmp_path):
    """Locks, semaphores, queues and latches of java.util.concurrent: which thread unparked which,
    and where; a timer if none did.
    """
    out = f"{lab.SCRATCH}/virtual-{jdk.version}.jfr"
    done = jdk.java("VirtualWaits", jvm=[jdk.agent(f"threads=y,format=r,file={out}")], release=21)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stderr
    events, ends = threads("timeline", out)["events"], {}
    os.unlink(out)
    for name in {e["thread"] for e in events if re.fullmatch(r"[LSQDT]\d*", e["thread"])}:
        own = [e for e in events if e["thread"] == name and e["type"] != "TRCThreadUnparkEvent"]
        for event, after in zip(own, own[1:]):
            if event["type"] == "TRCThreadParkedEvent":
                ends.setdefault(name, []).append(after.get("cause"))
    assert sum(map(len, ends.values())) >= 20
    assert all(
        cause == "unpark" or (cause == "timer" and name == "T")
        for name, causes in ends.items()
        for cause in causes
    ), ends
    unparks = [
        e
        for e in events
        if e["type"] == "TRCThreadUnparkEvent"
        and re.fullmatch(r"[LS]\d+", e["unparkedThread"] or "")
    ]
    by_virtual = [e for e in unparks if re.fullmatch(r"[LS]\d+", e["thread"])]
    assert len(by_virtual) >= 10  # how many waited depends on how fast they were started
    for e in by_virtual:
        assert e["frames"][0].startswith("java.util.concurrent.locks.LockSupport.unpark:")
        assert any(f.startswith("VirtualWaits.") for f in e["frames"])
    once = {(e["thread"], e["unparkedThread"], *e["frames"]) for e in by_virtual}
    assert len(once) == len(by_virtual)  # no thread reaches a place twice
    assert "timer" in ends["T"]


def test_nearly_every_wait_has_a_cause():
    """999 of 1,000, over the waits on all JDKs, because a single JDK has only about 900 of them."""
    if not lab.matrix_ready():
        pytest.skip("the JDKs of the matrix are not there (tools/jdks setup)")
    found = [threads("summary", all_programs(version)["1"].path) for version in lab.VERSIONS]
    waits = sum(f["waits_over_1ms"] for f in found)
    assert all(f["waits_over_1ms"] > 400 and f["lost"] == 0 for f in found)
    assert sum(f["with_cause"] for f in found) >= 0.999 * waits
    assert sum(f["inferred"] for f in found) <= 0.01 * waits


def exported(version, program, extension, tmp_path):
    path = recorded(version, program)[program].path
    out = tmp_path / f"out{extension}"
    done = lab.jvmscope("convert", path, "-o", out)
    assert done.returncode == 0, done.stderr
    return path, out


def steps(found):
    """The path's segments; the specification has no event for reads and writes, nor for a thread
    without a processor: both are running.
    """
    joined = []
    for s in found["segments"]:
        state = "run" if s["state"] in ("preempted", "io") else s["state"]
        if state == "run" and joined and joined[-1][:2] == [s["thread"], state] and not s["edge"]:
            joined[-1][2] += s["ns"]
        else:
            joined.append([s["thread"], state, s["ns"]])
    return joined


@pytest.mark.jdks(17, 25)
def test_export_trcxml_is_valid_and_reads_back(jdk, tmp_path):
    path, out = exported(jdk.version, "4", ".trcxml", tmp_path)
    done = subprocess.run(
        ["xmllint", "--noout", "--dtdvalid", lab.ROOT / "doc" / "trcxml.dtd", out],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    for element in (
        "threadStart",
        "threadEnd",
        "monContendedEnter",
        "monContendedEntered",
        "monWait",
        "monWaited",
        "callStart",
    ):
        assert f"<{element} " in text
    assert 'objIdRef="-1"' in text
    original, again = threads("critical-path", path), threads("critical-path", out)
    for key in ("length_ns", "edges", "locks", "inferred_edges"):
        assert again[key] == original[key]
    assert steps(again) == steps(original)


@pytest.mark.jdks(17)
def test_a_timeline_covers_78_hours_and_no_more(jdk, tmp_path):
    """Times of nodes have 48 bits. Later ones were taken for times at the beginning."""
    path, out = exported(jdk.version, "4", ".trcxml", tmp_path)
    lines = out.read_text().splitlines(keepends=True)
    waits = [i for i, line in enumerate(lines) if line.startswith("<monWaited ")]
    last, hour = waits[len(waits) // 2], 3600
    late = tmp_path / "late.trcxml"

    def read(seconds):
        late.write_text(
            "".join(
                line
                if i < last
                else re.sub(
                    r'time="(\d+)([.]\d+)"', lambda m: f'time="{int(m[1]) + seconds}{m[2]}"', line
                )
                for i, line in enumerate(lines)
            )
        )
        return lab.jvmscope("threads", "summary", "--json", late)

    done, whole = read(78 * hour), threads("summary", out)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["end_ns"] == whole["end_ns"] + 78 * hour * 1_000_000_000
    done = read(79 * hour)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"jvmscope: {late}: cannot read: the states of threads cover more than 78 hours, the limit\n"
    )


@pytest.mark.jdks(17)
def test_a_part_of_a_recording_of_more_than_78_hours_is_read(jdk, tmp_path):
    """The second chunk is the first one, 80 hours later."""
    path, _ = exported(jdk.version, "4", ".trcxml", tmp_path)
    first, long = pathlib.Path(path).read_bytes(), tmp_path / "long.jfr"
    later = bytearray(first)
    at = 32  # in the head of a chunk: ns since 1970
    start = int.from_bytes(later[at : at + 8], "big") + 80 * 3600 * 10**9
    later[at : at + 8] = start.to_bytes(8, "big")
    long.write_bytes(first + later)
    limit = (
        "the states of threads cover more than 78 hours, the limit; "
        "convert a part of it with --from and --to"
    )
    done = lab.jvmscope("threads", "summary", long)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"jvmscope: {long}: cannot read: {limit}\n"
    names = {t["name"] for t in threads("summary", path)["threads"]}
    for start, end in (("0s", "1h"), ("79.5h", "81h")):
        part = tmp_path / f"{start}.jfr"
        done = lab.jvmscope("convert", "--from", start, "--to", end, long, "-o", part)
        assert done.returncode == 0, done.stderr
        assert {t["name"] for t in threads("summary", part)["threads"]} == names
    page = tmp_path / "page.html"
    assert lab.jvmscope("convert", long, "-o", page).returncode == 0
    assert f'"warning":"{limit}"' in page.read_text()
    assert lab.jvmscope("convert", path, "-o", page).returncode == 0
    assert '"warning":null' in page.read_text()


@pytest.mark.jdks(17)
def test_what_lies_outside_of_a_recording_is_refused(jdk, tmp_path):
    path, _ = exported(jdk.version, "4", ".trcxml", tmp_path)
    end = threads("summary", path)["end_ns"]
    assert threads("critical-path", path, "--to", f"{end + 10**12}ns") == threads(
        "critical-path", path
    )
    late, reversed_, empty = (
        "--from .* is not before the end of the recording at .*",
        "--from .* is not before --to .*",
        "[^:]+: nothing lies between --from and --to",
    )
    for outside, why in {
        ("--from", f"{end + 10**9}ns"): late,
        ("--from", f"{end + 10**9}ns", "--to", f"{end + 10**12}ns"): late,
        ("--from", "2ms", "--to", "2ms"): reversed_,
        ("--from", "2ms", "--to", "1ms"): reversed_,
        ("--to", "1ns"): empty,
    }.items():
        for verb in (("critical-path",), ("what-if", "--lock", "Object", "--factor", "0.5")):
            done = lab.jvmscope("threads", *verb, *outside, path)
            assert done.returncode == 1 and done.stdout == "", outside
            assert re.fullmatch(f"jvmscope: {re.escape(str(path))}: {why}\n", done.stderr), outside


@pytest.mark.jdks(8, 17)
def test_a_part_has_what_its_waits_have_in_it(jdk, tmp_path):
    """The times of consecutive parts add up to those of the whole, and the times of the last part
    are those of a recording of it.
    """
    path = all_programs(jdk.version)["4"].path
    whole = threads("summary", path)
    end, times = whole["end_ns"], ("blocked_ns", "waited_ns", "idle_ns", "io_ns", "ready_ns")
    edges = [0, end // 3, end // 3 * 2, end]
    parts = [
        threads("summary", path, "--from", f"{a}ns", "--to", f"{b}ns")
        for a, b in itertools.pairwise(edges)
    ]

    def sums(found):
        by = collections.Counter()
        for row in found["threads"]:
            assert sum(row[t] for t in times) <= found["span_ns"], row
            by.update({(row["id"], t): row[t] for t in times})
        return +by

    assert sums(parts[0]) + sums(parts[1]) + sums(parts[2]) == sums(whole)
    assert sum(part["events"] for part in parts) == whole["events"] and all(
        part["events"] for part in parts
    )
    assert sum(part["idle_ns"] for part in parts) == whole["idle_ns"]
    assert parts[0]["began_before"] == 0 < parts[2]["began_before"]

    keys = ("span_ns", "began_before", "idle_ns", "waits_over_1ms", "owner_unknown")
    for part, a, b in zip(parts, edges, edges[1:]):
        flags = ("--from", f"{a}ns", "--to", f"{b}ns")
        done = lab.jvmscope("convert", *flags, path, "-o", tmp_path / "part.jfr")
        assert done.returncode == 0, done.stderr
        alone = threads("summary", tmp_path / "part.jfr")
        assert {key: alone[key] for key in keys} == {key: part[key] for key in keys}, flags
        assert alone["end_ns"] == b - a
        assert sums(alone) == sums(part), flags
    # The last part ends with the recording, however much is asked for.
    flags = ("--from", f"{edges[2]}ns", "--to", f"{end + 10**9}ns")
    done = lab.jvmscope("convert", *flags, path, "-o", tmp_path / "part.jfr")
    assert done.returncode == 0, done.stderr
    assert threads("summary", tmp_path / "part.jfr")["end_ns"] == end - edges[2]
    stats = threads("monitors", path, "--from", f"{edges[2]}ns")
    of_part = {
        c["class"]: (c["blocks"]["total_ns"], c["waits"]["total_ns"]) for c in stats["classes"]
    }
    assert of_part == {
        c["class"]: (c["blocks"]["total_ns"], c["waits"]["total_ns"])
        for c in threads("monitors", tmp_path / "part.jfr")["classes"]
    }
    text = lab.output("threads", "summary", path, "--from", f"{edges[2]}ns")
    assert (
        f"{parts[2]['began_before']} waits began before the part: counted from its start on" in text
    ), text


def lock_class(path):
    """The class of an object that a thread of the recording waited for, as a pattern, or None."""
    found = {
        e["lockedObject"]["class"]
        for e in threads("timeline", path)["events"]
        if e.get("lockedObject")
    }
    return min(found, default=None)


@pytest.mark.jdks(8, 17)
def test_every_verb_counts_the_same_events(jdk):
    """The summary, the rows of the timeline and its JSON have the same number of events, with those
    that have no record of their own: locks that a waiting thread hands over, and joined threads.
    """
    implied = 0
    for run in all_programs(jdk.version).values():
        path = run.path
        end, name = threads("summary", path)["end_ns"], "=main"
        for part in (
            (),
            ("--to", f"{end // 2}ns"),
            ("--from", f"{end // 2}ns"),
            ("--thread", name),
            *((("--class", c),) if (c := lock_class(path)) else ()),
        ):
            listed = threads("timeline", path, *part)["events"]
            rows = lab.output("threads", "timeline", "-n", "1000000", *part, path).splitlines()[1:]
            cut = lab.output("threads", "timeline", "-n", "1", *part, path).splitlines()[1:]
            head = lab.output("threads", "summary", *part, path).split("\n")[0]
            n = len(listed)
            implied += sum("id" not in event for event in listed)
            assert threads("summary", path, *part)["events"] == n == len(rows), (path, part)
            assert f", {n} events of " in head, (head, part)
            assert bool(re.search(" of 1 thread(,|;|$)", head)) == (part[:1] == ("--thread",)), (
                head,
                part,
            )
            assert len(cut) == 2 and f"and {n - 1} more events" in cut[1], cut
    assert implied > 0


@pytest.mark.jdks(8, 17)
def test_time_blocked_on_locks_in_a_part_is_one_figure(jdk, tmp_path):
    """A wait that began before the part or ended after it counts with what lies in the part, in the
    report, in every converted file and in the statistics of monitors, so parts add up.
    """
    path = tmp_path / "locks.jfr"
    options = jdk.agent(f"threads=y,format=r,file={path}")
    done = jdk.java("CpuLocks", "monitor", 1, 60, jvm=(options,))
    assert done.returncode == 0, done.stderr

    def blocked(recording, *window):
        done = lab.jvmscope("report", "--json", "--metric", "locks", *window, recording)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["locks"]["total"]

    end = threads("summary", path)["end_ns"]
    waits, since = [], {}
    for event in threads("timeline", path)["events"]:
        thread, at = event["threadId"], event["time"]
        if thread in since:
            waits.append((at - since.pop(thread), at))
        if event["type"] == "TRCThreadWaitingForLockEvent":
            since[thread] = at
    # The parts meet in the middle of two waits.
    edges = [0, *sorted(at - ns // 2 for ns, at in sorted(waits)[-2:]), end + 1]
    sums = 0
    for a, b in itertools.pairwise(edges):
        window = ("--from", f"{a}ns", "--to", f"{b}ns")
        rows = threads("monitors", path, *window)["threads"]
        truth = sum(row["blocked_ns"] for row in rows)
        found = {"report": blocked(path, *window)}
        for extension in (".jfr", ".pb.gz"):
            part = tmp_path / f"part{extension}"
            only = () if extension == ".jfr" else ("--metric", "locks")
            assert lab.jvmscope("convert", *only, *window, path, "-o", part).returncode == 0
            found[extension] = blocked(part)
        assert truth > 0 and found == dict.fromkeys(found, truth), (window, truth, found)
        sums += truth
    assert sums == blocked(path)


@pytest.mark.jdks(17)
def test_an_empty_table_says_that_it_is(jdk, tmp_path):
    """A heading alone could also mean that something was lost."""
    out = tmp_path / "x.jfr"
    java = jdk.command("java", "-cp", lab.compiled("Busy"), "Busy", "0.2")
    assert lab.jvmscope("run", "--threads", "-o", out, "--", *java).returncode == 0
    lines = lab.output("threads", "monitors", out).splitlines()
    for title in ("Classes", "Blocks by calling method", "Waits by calling method"):
        assert lines[lines.index(title) + 2] == "  (none)", lines


@pytest.mark.jdks(17)
def test_tables_are_what_a_new_user_reads(jdk):
    """Tests orders, truncated tables, times that can be compared, and names that match nothing."""
    run = all_programs(jdk.version)["4"]

    def text(verb, *args):
        done = lab.jvmscope("threads", verb, *args, run.path, *run.window)
        assert done.returncode == 0, done.stderr
        assert not re.search(
            r"\((\[*[BCDFIJSZ]|\[*L[\w/$]+;)*\)(\[*[BCDFIJSZV]|\[*L[\w/$]+;)", done.stdout
        ), "a descriptor"
        return done.stdout

    # What-if without a lock: the locks that take most of the path, by descending gain. Longer
    # sections gain nothing.
    found, tried = run.threads("critical-path"), run.threads("what-if")
    assert {row["lock"] for row in tried} == {
        lock["class"] for lock in found["locks"][:5] if lock["ns"]
    } and tried[0]["lock"] == "java.lang.Object"
    assert tried[0]["factor"] == 0.5 and tried[0]["after_ns"] < tried[0]["before_ns"]
    head, _, first, *rest = text("what-if").splitlines()
    assert re.match(
        r"[\d.]+ ms; if the sections of one lock took 0.5 of their time", head
    ) and re.fullmatch(
        r" +[\d.]+ ms +[\d.]+ ms sooner +[\d.]+ m?s to [\d.]+ m?s  java\.lang\.Object( \(inferred\))?",
        first,
    )
    noted = [
        line for line in rest if line.startswith(" (inferred): ")
    ]  # there is such a line, if it matters when locks were released
    explained = [line for line in rest if line.startswith(" possible: ")]
    assert len(noted) == any(row["ends_inferred"] for row in tried)
    assert len(explained) == any(
        row["possible_low_ns"] < row["after_low_ns"]
        or row["possible_high_ns"] > row["after_high_ns"]
        for row in tried
    )
    assert len(rest) == len(tried) - 1 + len(noted) + len(explained)
    assert (
        len(
            [
                line
                for line in text("what-if", "-n", 1).splitlines()
                if not line.startswith((" (inferred): ", " possible: "))
            ]
        )
        == 3
    )
    # The message names what was not recorded, together with the option that records it.
    for command, option in (
        ("coverage", "--cover"),
        ("trace", "--trace"),
        ("requests", "--requests"),
    ):
        done = lab.jvmscope(command, run.path)
        assert (
            done.returncode == 1
            and done.stdout == ""
            and re.fullmatch(rf"jvmscope: .*{option}\b.*\n", done.stderr)
        ), (command, done)
    # If the order cannot be decided anew, with or without the change, the answer uses the recorded
    # order.
    for other in all_programs(jdk.version).values():
        tried = other.threads("what-if")
        assert [row["after_ns"] for row in tried] == sorted(
            row["after_ns"] for row in tried
        ), other.name
        for row in other.threads("what-if", "--factor", 2):
            assert (
                row["after_high_ns"] >= row["after_ns"] >= row["after_low_ns"] >= row["before_ns"]
            ), (other.name, row)
        shown = lab.output("threads", "what-if", "-n", 1, other.path, *other.window)
        assert bool(re.search(r"\d+ more locks? \(--limit\)", shown)) == (len(tried) > 1), (
            other.name,
            shown,
        )
        for row in tried:
            assert row["after_ns"] <= row["after_high_ns"] <= row["before_ns"], (other.name, row)
            assert (
                row["order_decided_anew"]
                or row["after_ns"] == row["order_arbitrated_ns"] == row["order_kept_ns"]
            ), (other.name, row)
    # Orders.
    stats = run.threads("monitors")
    for table, ns in (
        ("classes", lambda r: (r["blocks"]["total_ns"], r["waits"]["total_ns"])),
        ("blocks", lambda r: r["times"]["total_ns"]),
        ("waits", lambda r: r["times"]["total_ns"]),
    ):
        assert [ns(r) for r in stats[table]] == sorted(map(ns, stats[table]), reverse=True), table
    threads_shown = re.findall(
        r"(?m)^ +\d+ +([\d.]+) ms +\d+ +([\d.]+) ms  (T[12])$", text("summary")
    )
    assert len(threads_shown) == 2 and float(threads_shown[0][0]) >= float(threads_shown[1][0])
    for key in ("locks", "methods"):
        amounts = [row.get("total_ns", row.get("ns")) for row in found[key]]
        assert amounts == sorted(amounts, reverse=True), key
    assert not re.search(
        r"java\.lang\.(Virtual)?Thread\.run\b", text("critical-path")
    ), "all of a path is below it"
    # Each table says how many rows its limit leaves out.
    assert re.search(r"(?m)^ \.\.\. and \d+ more threads? \(--limit\)$", text("summary", "-n", 1))
    assert (
        len(
            re.findall(
                r"(?m)^ \.\.\. and \d+ more (?:class|classes|rows?) \(--limit\)$",
                text("monitors", "-n", 1),
            )
        )
        >= 1
    )
    assert re.findall(
        r"(?m)^ \.\.\. and (\d+) more segments \(--limit\)$", text("critical-path", "-n", 3)
    ) == [str(len(found["segments"]) - 3)]
    heading, *events, more = text("timeline", "-n", 2).splitlines()
    assert heading.split()[:3] == ["time", "event", "thread"] and len(events) == 2, heading
    assert re.fullmatch(r" \.\.\. and \d+ more events \(--limit\)", more), more
    for options in (("--from", "0s", "--to", "1ns"), ("--json", "--from", "0s", "--to", "1ns")):
        done = lab.jvmscope("threads", "timeline", *options, run.path)
        assert done.returncode == 1 and done.stdout == "", options
        assert "no event lies between --from and --to" in done.stderr
    # Times: seconds with six digits, so that they can be compared and given to --from.
    times = [float(t) for t in re.findall(r"(?m)^ *(\d+\.\d{6}) s  ", text("timeline"))]
    assert len(times) == len(text("timeline").splitlines()) - 1 > 40 and times == sorted(times)
    starts = re.findall(
        r"(?m)^ +(\d+\.\d{6})  +[\d.]+ \w+  ",
        text("critical-path", "-n", 100_000).split("START (s)")[1],
    )
    assert starts == [f"{s['start_ns'] / 1e9:.6f}" for s in found["segments"]]
    # Names.
    for verb, option in (
        ("summary", "--thread"),
        ("monitors", "--class"),
        ("monitors", "--lock"),
        ("timeline", "--thread"),
        ("critical-path", "--thread"),
        ("critical-path", "--end"),
        ("what-if", "--lock"),
        ("what-if", "--method"),
        ("what-if", "--end"),
    ):
        for name in ("Misspelt", "T1,Misspelt") if option == "--thread" else ("Misspelt",):
            done = lab.jvmscope("threads", verb, option, name, run.path)
            assert (done.returncode, done.stdout) == (1, "") and re.fullmatch(
                r"jvmscope: \S+: no [a-z' ]+: Misspelt\n(jvmscope: note: what-if .*\n)?",
                done.stderr,
            ), (verb, option, done)
    for verb, one, other in (
        ("summary", "--class", "--lock"),
        ("monitors", "--class", "--lock"),
        ("timeline", "--class", "--lock"),
        ("critical-path", "--end", "--thread"),
    ):
        done = lab.jvmscope("threads", verb, other, "main", one, "main", run.path)
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            f"jvmscope: threads {verb}: {one} or {other}, not both\n",
        )


@pytest.mark.jdks(17)
def test_what_if_of_nothing_and_a_cut_recording_are_reported(jdk, tmp_path):
    path, _ = exported(jdk.version, "4", ".trcxml", tmp_path)
    for option, what in (
        ("--lock", "no lock's class matches"),
        ("--method", "no method matches on the stacks of waits"),
    ):
        done = lab.jvmscope("threads", "what-if", option, "Misspelt", path)
        assert (done.returncode, done.stdout) == (1, "")
        note = (
            "jvmscope: note: what-if shortens locks and waits; `threads critical-path` ranks methods"
            " that run\n"
        )
        assert done.stderr == f"jvmscope: {path}: {what}: Misspelt\n" + (
            note if option == "--method" else ""
        )
    cut = tmp_path / "cut.jfr"
    cut.write_bytes(pathlib.Path(path).read_bytes()[:-1000])
    for verb in ("summary", "critical-path", "timeline"):
        done = lab.jvmscope("threads", verb, cut)
        assert done.returncode == 0 and done.stdout
        assert (
            done.stderr
            == f"jvmscope: {cut}: the file is cut: the end of the recording is missing\n"
        )
        assert lab.jvmscope("threads", verb, path).stderr == ""


@pytest.mark.jdks(17, 25)
def test_export_perfetto_decodes_and_its_flows_pair(jdk, tmp_path):
    _, out = exported(jdk.version, "4", ".pftrace", tmp_path)
    done = subprocess.run(
        [
            "protoc",
            f"--proto_path={lab.ROOT / 'tests' / 'data'}",
            "--decode=Trace",
            "perfetto.proto",
        ],
        input=out.read_bytes(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert not re.search(r"^ *\d+: ", text, re.M), "fields that the schema does not know"
    begins, ends = (
        re.findall(rf"^ *{name}: (\d+)", text, re.M)
        for name in ("flow_ids", "terminating_flow_ids")
    )
    assert len(begins) >= 19 and sorted(begins) == sorted(ends) and len(set(begins)) == len(begins)
    assert {"T1", "T2", "main"} <= set(re.findall(r'thread_name: "(.*)"', text))
    assert re.search(r'name: "lock java.lang.Object@', text)
    assert text.count("TYPE_SLICE_BEGIN") == text.count("TYPE_SLICE_END") > 40


@pytest.mark.jdks(8, 17, 25)
def test_threads_of_the_vm_wait_from_their_start(jdk, tmp_path):
    """JVM TI reports them as runnable, and some start after the recording has begun."""
    _, out = exported(jdk.version, "4", ".json", tmp_path)
    events = json.loads(out.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    spent = collections.Counter()
    for e in events:
        if e["ph"] == "X" and names[e["tid"]] in ("Signal Dispatcher", "Notification Thread"):
            spent[names[e["tid"]], e["name"].split()[0] == "run"] += e["dur"]
    found = {name for name, _ in spent}
    assert found == {"Signal Dispatcher"} | (
        {"Notification Thread"} if int(jdk.version) >= 17 else set()
    )
    for name in found:
        assert spent[name, True] < 0.1 * spent[name, False], spent


@pytest.mark.jdks(17, 25)
def test_export_chrome(jdk, tmp_path):
    _, out = exported(jdk.version, "4", ".json", tmp_path)
    events = json.loads(out.read_text())["traceEvents"]
    starts, ends = ([e["id"] for e in events if e["ph"] == phase] for phase in "sf")
    assert len(starts) >= 19 and sorted(starts) == sorted(ends)
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    slept = sum(
        e["dur"]
        for e in events
        if e["ph"] == "X" and e["name"] == "sleep" and names[e["tid"]] == "T1"
    )
    assert slept >= 400_000
    # A running thread has the same name from its first moment on, so that viewers add up its
    # slices.
    assert {e["name"] for e in events if e["ph"] == "X" and e["name"].startswith("run")} == {"run"}


@pytest.mark.jdks(8, 17, 25)
def test_slices_have_the_names_and_times_of_the_recording(jdk, tmp_path):
    """.json and .pftrace have the same slices of the same threads. They agree with `threads
    summary` about waits, and so does .trcxml, whose times are absolute.
    """
    path, out = exported(jdk.version, "4", ".json", tmp_path)
    events, summary = json.loads(out.read_text())["traceEvents"], threads("summary", path)
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    slices = sorted(
        (names[e["tid"]], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000))
        for e in events
        if e["ph"] == "X"
    )
    out = exported(jdk.version, "4", ".pftrace", tmp_path)[1]
    text = subprocess.run(
        [
            "protoc",
            f"--proto_path={lab.ROOT / 'tests' / 'data'}",
            "--decode=Trace",
            "perfetto.proto",
        ],
        input=out.read_bytes(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    tracks, begun, others = {}, {}, []
    for packet in text.split("packet {")[1:]:
        track, at = re.search(r"uuid: (\d+)", packet)[1], re.search(r"timestamp: (\d+)", packet)
        if "thread_name" in packet:
            tracks[track] = re.search(r'thread_name: "(.*)"', packet)[1]
        elif "TYPE_SLICE_BEGIN" in packet:
            begun[track] = int(at[1]), re.search(r'(?m)^ {4}name: "(.*)"', packet)[1]
        elif "TYPE_SLICE_END" in packet and track in tracks:  # the others are locks
            start, name = begun.pop(track)
            others.append((tracks[track], name, start - summary["origin_ns"], int(at[1]) - start))
    assert sorted(others) == slices and len(slices) > 100
    totals, kinds = collections.Counter(), {
        "wait-lock": "blocked",
        "run": None,
        "io": None,
        "preempted": None,
    }
    for thread, name, _, ns in slices:
        totals[thread, kinds.get(name.split()[0], "waited")] += ns
    want = collections.Counter()
    for row in summary["threads"]:
        want[row["name"], "blocked"] += row["blocked_ns"]
        want[row["name"], "waited"] += row["waited_ns"] + row["idle_ns"]
    assert {k: ns for k, ns in totals.items() if k[1]} == +want
    again, waits = threads("summary", exported(jdk.version, "4", ".trcxml", tmp_path)[1]), (
        "name",
        "blocked",
        "blocked_ns",
        "waited",
        "waited_ns",
        "idle",
    )
    assert sorted([r[k] for k in waits] for r in again["threads"]) == sorted(
        [r[k] for k in waits] for r in summary["threads"]
    )
    shift = again["origin_ns"] - summary["origin_ns"]
    for row in summary["threads"]:
        assert any(
            (r["name"], r["start_ns"] + shift) == (row["name"], row["start_ns"])
            for r in again["threads"]
        ), row


@pytest.mark.jdks(daily=1)
@pytest.mark.usefixtures("on_time")
def test_attach_sees_what_follows(jdk, tmp_path):
    """After a late attach, native methods are bound without a message, and nearly every wait from
    then on has its cause.
    """
    with jdk.start_java(
        "ThreadPrograms", "all", "platform", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        time.sleep(1.2)
        out = tmp_path / "attached.jfr"
        done = lab.jvmscope("attach", "--threads", "-t", "2s", "-o", out, program.pid)
        output, errors = program.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    assert program.returncode == 0
    assert all(word.isalnum() for word in output.split()), output
    found = threads("summary", out)
    assert found["contanalysis"] is True and found["waits_over_1ms"] > 20
    # Only waits whose cause preceded the attach lack it.
    assert found["with_cause"] >= found["waits_over_1ms"] - 10
    assert found["inferred"] <= 0.02 * found["waits_over_1ms"]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize(
    "rounds, shortest, mode",
    [(300, 1_000_000, "-Xint"), (3000, 2000, "-Xmixed")],
    ids=["interpreted", "compiled"],
)
def test_each_park_has_its_own_stack(jdk, rounds, shortest, mode, tmp_path):
    """Stacks that are recognized by what is in memory, interpreted or compiled, are those of the
    places where the thread parked.
    """
    out = tmp_path / "places.jfr"
    done = jdk.java(
        "ParkPlaces",
        rounds,
        shortest,
        jvm=[jdk.agent(f"threads=y,format=r,file={out}"), "-Xmx64m", mode],
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    printed = (jdk if jdk.version > 8 else lab.Jdk(17)).run(
        "jfr", "print", "--json", "--stack-depth", 30, "--events", "jdk.ThreadPark", out
    )
    seen = 0
    for event in json.loads(printed.stdout)["recording"]["events"]:
        values = event["values"]
        n = round(float(values["timeout"][2:-1]) * 1e9) - shortest if values["timeout"] else -1
        names = [
            f["method"]["name"]
            for f in values["stackTrace"]["frames"]
            if f["method"]["type"]["name"] == "ParkPlaces"
        ]
        if names:
            assert names == [x for k in reversed(range(6)) for x in ("go", "ab"[n >> k & 1])] + [
                "go",
                "main",
            ], (n, names)
            seen += 1
    assert seen == 3 * rounds


@pytest.mark.jdks(17)
def test_a_recording_ends_while_threads_hand_over(jdk, tmp_path):
    """Native functions of ours that are still running use the recording until they return. There
    are twenty recordings of 50 ms, and the VM must not end before it is asked to.
    """
    path = ":".join(map(str, (lab.compiled("UnderLoad"), lab.compiled("LockCost"))))
    with jdk.start(
        "java",
        "-Xmx64m",
        f"-XX:ErrorFile={tmp_path}/hs_err.log",
        "-cp",
        path,
        "UnderLoad",
        "LockCost",
        3,
        100,
        4,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as program:
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline()  # it runs
        for _ in range(20):
            done = lab.jvmscope("attach", "--threads", "-d", "1", program.pid)
            assert done.returncode == 0, done.stderr
            written = re.search(r"recording to ([^;\s]+)", done.stderr)[1]
            time.sleep(0.05)
            done = lab.jvmscope("stop", program.pid)
            os.unlink(written)
            assert done.returncode == 0, done.stderr
        before = int(program.communicate("\n", timeout=60)[0].split()[0])
    assert program.returncode == 0 and before > 1000


@pytest.mark.jdks(17, 25)
def test_path_of_h2_ends_with_its_last_work_and_is_known(jdk, tmp_path):
    """The program ends by H2's shutdown hook, which DestroyJavaVM starts when main has ended, which
    joined the two workers.
    """
    out = tmp_path / "h2.jfr"
    done = jdk.run(
        *workloads.h2_command(rows=6000, jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    )
    assert done.returncode == 0 and done.stdout.startswith("sum "), done.stderr
    found = threads("critical-path", out)
    assert on(found, state="unknown") <= 0.02 * on(found)
    visited = [name for name, _ in itertools.groupby(s["thread"] for s in found["segments"])]
    assert visited[-3:] == ["main", "DestroyJavaVM", "Thread-0"]
    system = {
        "Reference Handler",
        "Finalizer",
        "Common-Cleaner",
    }  # main may wait for one of them for a moment
    assert set(visited[:-3]) <= {"sql-0", "sql-1", "main"} | system and on(
        found, "sql-0", "sql-1"
    ) > 0.2 * on(found)
    assert on(found, *system) < 0.02 * on(found)
    assert [
        s["edge"] for s in found["segments"] if s["thread"] == "DestroyJavaVM" and s["edge"]
    ] == ["join"]


@pytest.mark.jdks(17)
def test_path_of_tomcat_is_known_without_privileges(jdk, tmp_path):
    """Four clients ask a server for 4,000 files in the same VM, which may use no perf_event and
    read nothing of the kernel's.
    """
    out = tmp_path / "tomcat.jfr"
    command = workloads.held_command(
        "tomcat",
        jdk,
        tmp_path / "files",
        jvm=["-Xmx256m", jdk.agent(f"threads=y,format=r,file={out}")],
    )
    with jdk.start(
        "setpriv",
        "--bounding-set=-all",
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as program:
        assert "READY" in program.stdout.read()
    assert program.returncode == 0
    found = threads("critical-path", out)
    unknown = [s for s in found["segments"] if s["state"] == "unknown" and s["ns"] > MS]
    assert on(found, state="unknown") <= 0.02 * on(found), unknown
    assert on(found, state="io") > 0
    # Conditions are named by their owners, and none of them is the handler of references, which has
    # nothing to do.
    classes = {w["class"] or "" for w in threads("monitors", out, "--idle")["waits"]}
    assert any(c.startswith("condition of ") for c in classes), classes
    assert not any("ReferenceHandler" in c or "ConditionObject" in c for c in classes), classes
    (handler,) = (
        t for t in threads("summary", out, "--idle")["threads"] if t["name"] == "Reference Handler"
    )
    assert handler["idle"] >= 1 and handler["idle_ns"] > 0.5 * found["length_ns"], handler


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(17, 25)
def test_plain_jfr_is_analysed_and_says_what_is_inferred(jdk, tmp_path):
    out = f"{lab.SCRATCH}/plain-{jdk.version}.jfr"
    done = jdk.java(
        "ThreadPrograms", "4", jvm=[f"-XX:StartFlightRecording=filename={out},settings=profile"]
    )
    assert done.returncode == 0, done.stderr
    found = threads("critical-path", out)
    assert sum(s["ns"] for s in found["segments"]) == found["length_ns"]
    assert on(found, "T1", "T2", state="sleep") >= 600
    # JFR records a thread that was blocked for 10 ms or more. On a busy machine there are fewer,
    # because the other thread is back first.
    blocked = sum(
        t["blocked"] for t in threads("summary", out)["threads"] if t["name"] in ("T1", "T2")
    )
    assert blocked >= 5 and found["edges"]["handoff"] >= 0.8 * blocked
    assert any(s["inferred"] for s in found["segments"])
    assert threads("summary", out)["contanalysis"] is None


WHAT_IF = {
    "1": ("--method", "ThreadPrograms.b"),
    "3": ("--lock", "java.lang.Object"),
    "4": ("--lock", "java.lang.Object"),
    "7": ("--method", "ThreadPrograms.b"),
    "14": ("--method", "ThreadPrograms.a"),
}

WHAT_IF_LATE = 0.03  # a run that took so much longer than it is written, and an answer of 4 %, make the 7 % that are allowed


def what_if_error(runs, name, factor):
    before, after = runs[f"{name} {FACTORS[0]}"], runs[f"{name} {factor}"]
    (answer,) = threads("what-if", before.path, *WHAT_IF[name], "--factor", factor, *before.window)
    assert answer["after_low_ns"] <= answer["after_ns"] <= answer["after_high_ns"]
    error = abs(answer["after_ns"] / MS - after.took) / after.took
    # The last thread at a barrier does not wait there, and the replay does not know that it would
    # have to wait if it came first. A pair that the machine delayed counts only in the median.
    alone = (name, factor) == ("14", "0.2") or before.delayed or after.delayed
    assert error <= 0.07 or alone, (name, factor, answer, after.took)
    return error


@pytest.mark.jdks(8, 17, 25)
def test_what_if_is_what_happens(jdk):
    """Sections shortened in the replay, and in the program: each answer, and the median of their
    errors.
    """
    runs = run_programs(
        jdk.version,
        "factors",
        *(f"{name}:{factor}" for name, factor in itertools.product(SCALED, FACTORS)),
    )
    errors = [
        what_if_error(runs, name, factor) for name, factor in itertools.product(SCALED, FACTORS[1:])
    ]
    assert statistics.median(errors) <= 0.05


@pytest.mark.usefixtures("on_time")
def test_waits_for_files_and_sockets_are_recorded(jdk, tmp_path):
    """accept, a socket's read, a channel's read, a file's: each as long as the other side lets it
    wait.
    """
    out = tmp_path / "io.jfr"
    with jdk.start_java(
        "IoWaits",
        jvm=[jdk.agent(f"threads=y,format=r,file={out}")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.07)
        program.stdin.write("x\n")
        program.stdin.flush()
        assert program.stdout.read() + program.stderr.read() == ""
    assert program.returncode == 0
    events = [e for e in threads("timeline", out)["events"] if e["thread"] == "main"]
    waits = {}
    for event, after in zip(events, events[1:]):
        if "IO" in event["type"]:
            key = next(
                word
                for word in ("ccept", "FileInputStream.read", "Socket", "")  # "": a class is read
                if any(word in f for f in event["frames"])
            )
            waits[key] = waits.get(key, 0) + (after["time"] - event["time"]) / MS
    # How the 50, 80 and 70 ms are divided depends on which of the two threads is late.
    waits.pop("", None)
    assert min(waits.values()) > 5 and len(waits) == 3 and sum(waits.values()) > 150, waits
    (client,) = (t for t in threads("summary", out)["threads"] if t["name"] == "client")
    assert client["io"] >= 1 and client["io_ns"] > 50 * MS
    rows = [line.split() for line in lab.output("threads", "summary", out).splitlines()]
    assert ["blocked", "time", "waited", "time", "I/O", "time", "thread"] in rows, rows
    # two words for each time
    (row,) = [row for row in rows if row and row[-1] == client["name"] and row[0].isdigit()]
    assert int(row[6]) == client["io"], row
    n = sum(t["io"] for t in threads("summary", "--idle", out)["threads"])
    for extension in (".trcxml", ".json", ".pftrace"):
        done = lab.jvmscope("convert", out, "-o", tmp_path / f"out{extension}")
        assert done.returncode == 0
        assert (f"note: the output lacks {n} waits for I/O" in done.stderr) == (
            extension == ".trcxml"
        ), done.stderr


@pytest.mark.jdks(8, 17, 25)
def test_what_a_wake_up_costs_is_measured_after_the_start(jdk, tmp_path):
    """Measuring it takes milliseconds, so a program that starts with the recording does not wait
    for it.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java("Busy", "3", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.returncode == 0 and not done.stderr, done.stderr
    dumped = subprocess.run(
        [lab.BUILD / "tests/unit/jfr_dump", "--get=wakeUp", out, "jvmscope.ThreadAnalysis"],
        capture_output=True,
        text=True,
    )
    unknown, measured = sorted(
        int(line.split("(")[0]) for line in dumped.stdout.splitlines()
    )  # two threads write them
    assert unknown == 0 and 100 < measured < 100 * MS


@pytest.mark.jdks(11, 17, 25)
def test_each_read_of_a_socket_names_its_peer(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    done = jdk.java("Peers", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.returncode == 0 and not done.stderr, done.stderr
    printed = jdk.run("jfr", "print", "--json", "--events", "jdk.SocketRead", out)
    events = [e["values"] for e in json.loads(printed.stdout)["recording"]["events"]]
    reads = sorted(
        (e for e in events if e["eventThread"]["javaName"] == "main"), key=lambda e: e["startTime"]
    )
    assert [str(e["port"]) for e in reads] == done.stdout.split()
    assert {e["address"].removeprefix("::ffff:") for e in reads} == {"127.0.0.1"}


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(17, 21, 25)
@pytest.mark.parametrize(
    "program, event", [("3", "JavaMonitorEnter"), ("6", "JavaMonitorWait"), ("7", "ThreadPark")]
)
def test_totals_are_those_of_jfr_in_the_same_run(jdk, program, event, tmp_path):
    """Time blocked on monitors, in Object.wait, and parked, agrees with a JDK Flight Recorder
    recording of the same run. That is without stacks: a thread writes its event when it has been
    woken and before it returns to Java, where our time of parking ends. With stacks this took up to
    2 ms of the 150 that are compared.
    """
    settings = {"enabled": "true", "threshold": "0 ms", "stackTrace": "false"}
    (tmp_path / "locks.jfc").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0"><event name="jdk.{event}">'
        + "".join(f'<setting name="{name}">{value}</setting>' for name, value in settings.items())
        + "</event></configuration>"
    )
    base = f"/tmp/jvmscope-totals-{os.getpid()}-{jdk.version}-{program}"
    (tmp_path / "locks.jfc").replace(f"{base}.jfc")
    done = jdk.java(
        "ThreadPrograms",
        program,
        jvm=[
            f"-XX:StartFlightRecording=filename={base}-jfr.jfr,settings={base}.jfc",
            "-Xlog:disable",
            jdk.agent(f"threads=y,format=r,file={base}-ours.jfr"),
        ],
    )
    assert done.returncode == 0, done.stderr

    def recorded(which):
        """The number of events of each thread, and their seconds."""
        printed = jdk.run(
            "jfr", "print", "--json", "--events", f"jdk.{event}", f"{base}-{which}.jfr"
        )
        count, seconds = collections.Counter(), 0
        for e in json.loads(printed.stdout)["recording"]["events"]:
            thread = (e["values"]["eventThread"] or {}).get("javaName")
            if thread in ("T1", "T2", "T3", "T4", "Ping", "Pong", "B", "C"):
                count[thread] += 1
                seconds += float(e["values"]["duration"][2:-1])
        return count, seconds

    (counts, theirs), (our_counts, ours) = recorded("jfr"), recorded("ours")
    for name in (f"{base}.jfc", f"{base}-jfr.jfr", f"{base}-ours.jfr"):
        os.unlink(name)
    assert theirs > 0.1 and our_counts == counts
    assert abs(ours - theirs) <= 0.01 * theirs
