# SPDX-License-Identifier: Apache-2.0
"""`jvmscope threads` on programs whose answer is known: waits that began before the recording, and
what is not a wait.
"""
import functools
import json
import re
import subprocess

import pytest

import lab


def threads(verb, path, *args):
    done = lab.jvmscope("threads", verb, "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def named(found, name):
    return [t for t in found["threads"] if t["name"] == name]


def release_and_stop(process):
    """Lets the threads of a program that waits for its input continue, ends the recording, and lets
    the program end.
    """
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "released\n"
    done = lab.jvmscope("stop", process.pid)
    assert done.returncode == 0, done.stderr
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(60) == 0


@functools.cache
def recorded_waits(version, folder):
    """AttachedWaits, recorded from when all of its threads wait until all of them have continued;
    returns the recording.
    """
    out = folder / f"waits-{version}.jfr"
    process = lab.Jdk(version).start_java(
        "AttachedWaits", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = lab.jvmscope("attach", "--threads", "--cpu=wall", "-o", out, process.pid)
        assert done.returncode == 0, done.stderr
        release_and_stop(process)
    finally:
        process.kill()
        process.communicate()
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("threads")


@pytest.fixture
def attached_waits(jdk, folder):
    return recorded_waits(jdk.version, folder)


# For each thread: its state when the recording began, what it waited for, the owner of that, and
# how its wait ended.
STATES = {
    "has-both": ("TRCThreadWaitingForObjectEvent", "java.lang.Object", None, "notify"),
    "comes-to-the-monitor": (
        "TRCThreadWaitingForLockEvent",
        "java.lang.Object",
        "has-both",
        "handoff",
    ),
    "comes-to-the-lock": (
        "park",
        "java.util.concurrent.locks.ReentrantLock$NonfairSync",
        None,
        "unpark",
    ),
    "takes-from-a-queue-and-has-a-long-name": (
        "park",
        "condition of java.util.concurrent.LinkedBlockingQueue",
        None,
        "unpark",
    ),
    "polls-a-queue": (
        "park",
        "condition of java.util.concurrent.LinkedBlockingQueue",
        None,
        "unpark",
    ),
    "sleeps": ("TRCThreadSleepingEvent", None, None, "interrupt"),
}


def test_what_waits_at_attach_is_known(jdk, attached_waits):
    """State, object, owner and stack are read when the recording begins; the end of each wait and
    its cause are known too.
    """
    summary = threads("summary", attached_waits, "--idle")
    events = threads("timeline", attached_waits)["events"]
    for name, (state, object_class, owner, cause) in STATES.items():
        mine = [e for e in events if e["thread"] == name]
        assert mine[0]["type"] == "TRCThreadRunningEvent", name
        wait = mine[1]
        assert wait["type"] == state or state == "park" and "Park" in wait["type"], (name, wait)
        what = wait.get("objectWaitingFor") or wait.get("lockedObject")
        assert (what or {}).get("class") == object_class, (name, wait)
        assert owner is None or wait["lockedThread"] == owner
        assert any("AttachedWaits" in frame for frame in wait["frames"]), (name, wait)
        assert wait["time"] - mine[0]["time"] < 1000, name  # never shown as running
        ended = next(e for e in mine[2:] if e["type"] == "TRCThreadRunningEvent")
        assert ended["cause"] == cause, (name, ended)
    for row in summary["threads"]:
        if row["name"] in ("Reference Handler", "Finalizer", "Signal Dispatcher", "pool"):
            assert row["idle"] >= 1 and row["idle_ns"] > 0, row
    assert len(named(summary, "pool")) == 2
    assert {t["name"] for t in summary["threads"]} >= set(STATES)
    assert not any("jvmscope" in t["name"] for t in summary["threads"])
    # The spinning thread is the only one that runs all the time, so it is what the time depends on.
    shown = lab.output("threads", "summary", attached_waits)
    assert "Finalizer" not in shown and not re.search(
        r"\bpool\b", shown.split("idle threads")[0]
    ), shown
    assert re.search(r"\d+ waits? of threads with nothing to do \(.* in all\)", shown), shown
    # How long a wait took that began before the recording is unknown, so it counts neither in the
    # least nor in the average.
    stats, shown = threads("monitors", attached_waits), lab.output(
        "threads", "monitors", attached_waits
    )
    slept = [
        row["times"]
        for row in stats["waits"]
        if any("Thread.sleep" in frame for frame in row["frames"][:3])
    ]
    assert (
        len(slept) == 1
        and slept[0]["count"] == slept[0]["cut"] == 1
        and slept[0]["max_ns"] == slept[0]["total_ns"] > 0
    ), stats["waits"]
    assert {slept[0][key] for key in ("min_ns", "avg_ns", "p50_ns", "p90_ns", "p99_ns")} == {None}
    assert re.search(
        r"(?m)^ of these, (1 was|\d+ were) in progress when the recording began or ended: ", shown
    ), shown


def test_waits_are_named_by_who_calls(jdk, attached_waits):
    """Two queues, a lock and a pool have rows of their own, named after the program's methods. Idle
    pool threads are not among them.
    """
    found = threads("monitors", attached_waits)
    rows = {(s["method"], s["class"]) for s in found["waits"]}
    methods = [method for method, _ in rows]
    assert all("AttachedWaits" in m for m in methods), rows
    conditions = [
        m for m, c in rows if c and c == "condition of java.util.concurrent.LinkedBlockingQueue"
    ]
    assert len(conditions) == 2, rows
    everything = threads("monitors", attached_waits, "--idle")
    idle = [s for s in everything["waits"] if s["idle"]]
    assert {"java.util.concurrent.ThreadPoolExecutor.getTask"} <= {s["method"] for s in idle}, idle
    assert found["waits"] == [s for s in everything["waits"] if not s["idle"]]


@pytest.mark.jdks(8, 17, 21, 25)
def test_conditions_are_named_by_their_owner(jdk, folder):
    """The table of classes has a row for each queue, for each of the program's own classes with a
    condition, and for the pool, and a different place of the program in each.
    """
    out = folder / f"conditions-{jdk.version}.jfr"
    done = jdk.java("Conditions", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    queue, own = (
        "condition of java.util.concurrent.LinkedBlockingQueue",
        "condition of Conditions$Mailbox",
    )
    found = threads("monitors", out, "--idle")
    rows = {
        (w["method"], w["class"])
        for w in found["waits"]
        if (w["class"] or "").startswith("condition of")
    }
    assert rows >= {
        ("Conditions.takeOrder", queue),
        ("Conditions.takeMail", queue),
        ("Conditions$Mailbox.put", own),
        ("Conditions$Mailbox.get", own),
        ("java.util.concurrent.ThreadPoolExecutor.getTask", queue),
        ("Conditions.takeJob", "condition of java.util.concurrent.ArrayBlockingQueue"),
    }, rows
    assert not [w for w in found["waits"] if "ConditionObject" in (w["class"] or "")]
    waits = {c["class"]: c["waits"] for c in threads("monitors", out)["classes"]}
    assert (
        waits[queue]["count"] == 2 and waits[own]["count"] >= 2
    ), waits  # the pool's threads are idle


def wall(path, *args):
    done = lab.jvmscope("report", "--json", "--metric", "wall", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["wall"]


@pytest.mark.jdks(8, 17, 25)
def test_a_thread_that_rests_is_not_where_it_was_last_sampled(jdk, folder):
    """What a running thread did when it was sampled does not count for the time after that in which
    it rests.
    """
    out = folder / f"rests-{jdk.version}.jfr"
    done = jdk.java("WallRests", jvm=[jdk.agent(f"cpu=wall,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    found = wall(out)
    methods = {m["method"]: m["total"] for m in found["methods"]}
    # Ten times 1.5 s of rest; of each thread's work the intervals that end in it, and one that
    # began before the thread.
    assert methods["WallRests.rests"] * found["interval_ns"] >= 0.9 * 15e9, methods
    assert methods.get("WallRests.works", 0) <= int(done.stdout) / found["interval_ns"] + 10 * 2, (
        methods,
        done.stdout,
    )


@pytest.mark.jdks(8, 17, 25)
def test_wall_clock_samples_leave_idle_threads_out(jdk, attached_waits):
    """Threads that wait for something are counted individually; pools, cleaners and the VM's own
    threads are summed up. Together these are all samples.
    """
    found, everything = wall(attached_waits), wall(attached_waits, "--idle")
    assert everything["idle"] == 0 and found["idle"] > 0
    assert found["total"] + found["idle"] == everything["total"]
    shown = {m["method"]: m["total"] for m in found["methods"]}
    assert "java.util.concurrent.ThreadPoolExecutor.getTask" not in shown
    assert not any("ReferenceQueue" in m or "ReferenceHandler" in m for m in shown), shown
    assert any("AttachedWaits.lambda$main" in m for m in shown), shown
    assert "java.util.concurrent.ThreadPoolExecutor.getTask" in {
        m["method"] for m in everything["methods"]
    }
    text = lab.output("report", "--metric", "wall", attached_waits)
    assert f"left out: {found['idle']} of threads with nothing to do (--idle)" in text, text


@functools.cache
def path_truth(version, folder):
    """PathTruth with its threads and CPU samples, and with its threads alone."""
    jdk = lab.Jdk(version)
    paths = []
    for options in ("threads=y,cpu=samples,interval=1ms", "threads=y"):
        paths.append(folder / f"path-{version}-{len(paths)}.jfr")
        done = jdk.java("PathTruth", jvm=[jdk.agent(f"{options},format=r,file={paths[-1]}")])
        assert done.returncode == 0 and not done.stderr, done.stderr
    return paths


@pytest.mark.jdks(8, 17, 25)
def test_a_run_is_what_ran_not_what_ended_it(jdk, folder):
    """CPU samples attribute the 300 ms of spin() on the path to spin(). Without samples they belong
    to its caller, but never to unpark().
    """
    for path in path_truth(jdk.version, folder):
        found = threads("critical-path", path)
        rows = {m["method"]: m for m in found["methods"]}
        run = max(
            (s for s in found["segments"] if s["thread"] == "worker" and s["state"] == "run"),
            key=lambda s: s["ns"],
        )
        worker = sum(s["ns"] for s in found["segments"] if s["thread"] == "worker")
        assert worker > 250_000_000
        at = [
            s["sampled_in"] or (s["frames"] or ["?"])[0]
            for s in found["segments"]
            if s["thread"] == "worker"
        ]
        assert not any("nsafe" in method or "LockSupport" in method for method in at), at
        if found["samples"]:
            # spin() calls nanoTime() and sin(), which are calls until it is compiled.
            assert (
                run["sampled_in"] in ("PathTruth.spin", "java.lang.System.nanoTime")
                or "sin" in run["sampled_in"]
            ), run
            assert rows["PathTruth.spin"]["total_ns"] > worker * 0.9, (worker, rows)
            assert found["sampled_run_ns"] > found["run_ns"] * 0.5
        else:
            assert path == path_truth(jdk.version, folder)[1]
            assert run["frames"][0].startswith("PathTruth.lambda$main$0"), run
            assert rows["PathTruth.lambda$main$0"]["total_ns"] > worker * 0.9


@pytest.mark.jdks(17)
def test_one_answer_in_every_view(jdk, folder):
    """`monitors` and `what-if` report the same gain, and a faster lock never makes the program
    slower than it was.
    """
    path = path_truth(jdk.version, folder)[1]
    lock = next(c for c in threads("monitors", path)["classes"] if c["class"] == "java.lang.Object")
    for percent, factor in (("25", "0.75"), ("50", "0.5"), ("100", "0")):
        (answer,) = threads("what-if", path, "--lock", "java.lang.Object", "--factor", factor)
        assert lock["gain_ns"][percent] == answer["before_ns"] - answer["after_ns"]
        assert (
            answer["after_low_ns"]
            <= answer["after_ns"]
            <= answer["after_high_ns"]
            <= answer["before_ns"]
        )
    (slower,) = threads("what-if", path, "--lock", "java.lang.Object", "--factor", "1.5")
    assert slower["before_ns"] <= slower["after_low_ns"] <= slower["after_ns"]
    listed = threads("what-if", path)
    assert [a["lock"] for a in listed if a["factor"] == 0.5].count("java.lang.Object") == 1
    half = next(a for a in listed if a["lock"] == "java.lang.Object" and a["factor"] == 0.5)
    assert half["before_ns"] - half["after_ns"] == lock["gain_ns"]["50"]


@pytest.mark.jdks(17)
def test_filters_do_what_they_say(jdk, folder):
    path = path_truth(jdk.version, folder)[1]
    # The path of a thread ends with that thread.
    segments = threads("critical-path", path, "--thread", "worker")["segments"]
    assert segments[-1]["thread"] == "worker" and segments[0]["thread"] == "main"
    # Only waits of 200 ms and their ends.
    events = threads("timeline", path)["events"]
    kept = threads("timeline", path, "--min", "200ms")["events"]
    assert 0 < len(kept) < len(events)
    assert any(e["thread"] == "main" and e.get("cause") == "unpark" for e in kept)
    assert not any(e["type"] == "TRCThreadSleepingEvent" for e in kept)
    none = lab.jvmscope("threads", "timeline", path, "--min", "1h")
    assert (none.returncode, none.stdout, none.stderr) == (
        1,
        "",
        f"jvmscope: {path}: no wait is selected by: --min\n",
    ), none
    for verb, option, message in (
        ("timeline", "--thread", "no thread's name matches"),
        ("summary", "--thread", "no thread's name matches"),
        ("monitors", "--class", "no lock's class matches"),
        ("what-if", "--lock", "no lock's class matches"),
    ):
        done = lab.jvmscope("threads", verb, option, "nosuch", path)
        assert done.returncode == 1 and f"{message}: nosuch" in done.stderr and not done.stdout, (
            verb,
            done,
        )
    # All times have the same form, so that a column can be read from top to bottom.
    heading, *lines = lab.output("threads", "timeline", path).splitlines()
    assert re.match(r" +time  event +thread +what it waited for ", heading)
    assert heading.index("event") == lines[0].index(lines[0].split(" s  ")[1])
    assert all(re.match(r" +\d+\.\d{6} s  [a-z]", line) for line in lines), lines[:3]
    # A thread that runs waits for nothing, so its row names no object.
    runs = [line for line in lines if re.match(r" +\d+\.\d{6} s  run ", line)]
    assert runs and not any(re.search(r"@[0-9a-f]+(  |$)", line) for line in runs), runs[:3]
    cut = lab.output("threads", "timeline", "-n", "3", path).splitlines()[1:]
    assert cut == [*lines[:3], f" ... and {len(lines) - 3} more events (--limit)"]


@pytest.mark.jdks(8, 17, 25, 27)
def test_a_lock_is_handed_over_by_an_owner_that_ends(jdk, folder):
    out = folder / f"dies-{jdk.version}.jfr"
    done = jdk.java("OwnerDies", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    hands = [
        (e["thread"], e["receiverThread"])
        for e in threads("timeline", out)["events"]
        if e["type"] == "TRCThreadHandoffLockEvent"
        and e["lockedObject"]["class"] == "java.lang.Object"
    ]
    assert hands == [(f"owner-{i}", "main") for i in range(5)], hands


@pytest.mark.jdks(17)
def test_no_deadlock_is_reported_where_one_was_searched_for(jdk, folder):
    """The JDK's own recordings do not contain who owns a lock."""
    path = path_truth(jdk.version, folder)[1]
    assert lab.output("threads", "deadlocks", path) == (
        "no deadlock of monitors at the end of the recording; who owns locks of java.util.concurrent is recorded with --deadlocks\n"
    )
    path = folder / "looked.jfr"
    assert (
        jdk.java("PathTruth", jvm=[jdk.agent(f"deadlock=y,format=r,file={path}")]).returncode == 0
    )
    assert lab.output("threads", "deadlocks", path) == "no deadlock at the end of the recording\n"
    path = folder / "jdk.jfr"
    assert jdk.java("PathTruth", jvm=[f"-XX:StartFlightRecording=filename={path}"]).returncode == 0
    done = lab.jvmscope("threads", "deadlocks", path)
    assert done.returncode == 0 and done.stdout.startswith("not known: "), done


@pytest.mark.jdks(8, 25)
def test_a_deadlock_that_needs_unknown_owners_is_not_denied(jdk, folder):
    """A monitor and a lock of java.util.concurrent: only deadlock=y records the owner of the
    latter.
    """
    for options, waiting in (("threads=y", 1), ("monitor=y", None), ("deadlock=y", 0)):
        out = folder / f"mixed-{jdk.version}.jfr"
        done = jdk.java(
            "ThreadPrograms", "10", "mixed", 500, jvm=[jdk.agent(f"{options},format=r,file={out}")]
        )
        assert done.returncode == 0, done.stderr
        found, text = threads("deadlocks", out), lab.output("threads", "deadlocks", out)
        if options == "deadlock=y":
            assert (
                found["looked_at_locks"]
                and len(found["deadlocks"]) == 1
                and text.startswith("deadlock of 2 threads")
            )
            continue
        assert (found["looked"], found["looked_at_locks"], found["deadlocks"]) == (
            True,
            False,
            [],
        ), options
        # Without threads=y a wait that goes on at the end of the recording may be missing.
        assert waiting is None or found["waiting_for_locks"] == waiting
        assert (
            text.startswith("no deadlock of monitors at the end of the recording; ")
            and "--deadlocks" in text
        ), text


LOCKS_NOT_LOOKED_AT = "not examined: deadlocks with locks of java.util.concurrent, whose owners are recorded with --deadlocks"


@pytest.mark.jdks(8, 25)
def test_what_was_not_judged_is_reported_next_to_a_deadlock(jdk, folder):
    """Two monitors, two locks of java.util.concurrent, and two monitors of virtual threads whose
    owners JDK 25 does not report.
    """
    which, unknown = ("several-virtual", 2) if jdk.version == 25 else ("several", 0)
    out = folder / f"several-{jdk.version}.jfr"
    done = jdk.java(
        "ThreadPrograms", "10", which, 500, jvm=[jdk.agent(f"threads=y,format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr
    found, lines = threads("deadlocks", out), lab.output("threads", "deadlocks", out).splitlines()
    assert [sorted(c["thread"] for c in d["cycle"]) for d in found["deadlocks"]] == [["A", "B"]]
    assert (found["looked_at_locks"], found["waiting_for_locks"], found["owner_unknown"]) == (
        False,
        2,
        unknown,
    )
    stated = (
        [
            f"{unknown} threads wait for monitors whose owners are unknown, so deadlocks of these are not found (record with --deadlocks)"
        ]
        if unknown
        else []
    )
    assert [
        line for line in lines if re.match(r"not |\d+ threads? waits? for ", line)
    ] == stated + [f"{LOCKS_NOT_LOOKED_AT}; threads that wait for one: 2"], lines
    assert lines[0].startswith("deadlock of 2 threads, ")
    # Everything is judged under deadlock=y.
    out = folder / f"several-all-{jdk.version}.jfr"
    done = jdk.java(
        "ThreadPrograms", "10", which, 1500, jvm=[jdk.agent(f"deadlock=y,format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr
    found, text = threads("deadlocks", out), lab.output("threads", "deadlocks", out)
    assert (
        len(found["deadlocks"]) == 2 + bool(unknown)
        and found["owner_unknown"] == 0
        and "not " not in text
        and "unknown" not in text
    ), text


@pytest.mark.jdks(25, 27)
def test_monitors_of_unknown_owners_are_not_called_free_of_deadlocks(jdk, folder):
    """Two virtual threads wait for each other's monitor, and the VM does not report the owners."""
    out = folder / f"unknown-{jdk.version}.jfr"
    done = jdk.java(
        "ThreadPrograms", "10", "virtual", 500, jvm=[jdk.agent(f"threads=y,format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr
    for _ in range(2):  # from the recording, and from the timeline that is kept next to it
        found = threads("deadlocks", out)
        assert (found["looked"], found["owner_unknown"], found["deadlocks"]) == (True, 2, [])
        assert lab.output("threads", "deadlocks", out).splitlines() == [
            "2 threads wait for monitors whose owners are unknown, so deadlocks of these are not found (record with --deadlocks)",
            LOCKS_NOT_LOOKED_AT,
        ]


@pytest.mark.jdks(17)
def test_sleeps_that_run_out_are_timed_out(jdk, folder):
    """Sleeps end by their timeout in every output, the thread profiler's XML included."""
    path = path_truth(jdk.version, folder)[1]
    xml = folder / "path.trcxml"
    assert lab.jvmscope("convert", path, "-o", xml).returncode == 0
    ends = re.findall(r'<monWaited [^>]*objIdRef="-1"[^>]*isTimedOut="(\d)"', xml.read_text())
    assert len(ends) == 20 and set(ends) == {"1"}


@pytest.mark.jdks(8, 25, slow=(11, 17, 21, 27))
def test_sleeps_that_are_interrupted_have_not_timed_out(jdk, tmp_path):
    """Also those that end at once, because the thread was interrupted before."""
    out, xml, again = tmp_path / "s.jfr", tmp_path / "s.trcxml", tmp_path / "again.trcxml"
    done = jdk.java("SleepEnds", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.stdout == "5 5 5\n", done.stderr
    for source, to in ((out, xml), (xml, again)):
        done = lab.jvmscope("convert", source, "-o", to)
        assert done.returncode == 0, done.stderr
        ends = re.findall(
            r'<monWaited [^>]*objIdRef="-1" timeout="(20|1000|2000)" isTimedOut="(.)"/>'
            r"(\n<threadInterrupted )?",
            to.read_text(),
        )
        assert [(timeout, out == "1", bool(by)) for timeout, out, by in ends] == [
            *[("20", True, False)] * 5,
            *[("1000", False, True)] * 5,
            *[("2000", False, True)] * 5,
        ]


def virtual_monitors(jdk, out):
    """Twenty virtual threads hold a monitor one after the other. Returns the events, and the
    threads that waited for it.
    """
    done = jdk.java(
        "VirtualMonitors", 20, jvm=[jdk.agent(f"threads=y,format=r,file={out}")], release=21
    )
    assert done.returncode == 0, done.stderr
    events = threads("timeline", out)["events"]
    return events, [
        e
        for e in events
        if e["type"] == "TRCThreadWaitingForLockEvent" and "VirtualMonitors.hold" in e["frames"][0]
    ]


@pytest.mark.jdks(21, 25, 27)
def test_an_owner_that_the_vm_does_not_report_is_shown_as_unknown(jdk, tmp_path):
    """Any monitor counts: now and then a thread waits for the VM's own lock of a class that is
    being initialized, an int[]. Such a thread may also be a carrier, which is not virtual.
    """
    out = tmp_path / "v.jfr"
    events, _ = virtual_monitors(jdk, out)
    unknown = [
        e
        for e in events
        if e["type"] == "TRCThreadWaitingForLockEvent" and e["lockedThread"] is None
    ]
    summary = threads("summary", out)
    assert summary["owner_unknown"] == len(unknown)
    of_virtual = [e for e in unknown if re.fullmatch(r"v\d+", e["thread"])]
    assert summary["owner_unknown_virtual"] == len(of_virtual)
    assert {e["lockedObject"]["class"] for e in unknown if e not in of_virtual} <= {"int[]"}
    if jdk.version == 21:  # pinned: the carrier has the monitor, and the VM says so
        assert not unknown
    text = lab.jvmscope("threads", "timeline", out).stdout
    assert text.count("owner unknown") == len(unknown)
    assert ("owner is unknown" in lab.jvmscope("threads", "summary", out).stdout) == bool(unknown)


@pytest.mark.jdks(21, 25, 27)
def test_monitors_of_virtual_threads_have_owners_and_a_gain(jdk, tmp_path):
    """However many threads had to wait, and however late a busy machine lets them continue, each
    got the monitor from another thread, and what-if knows their sections.
    """
    out = tmp_path / "v.jfr"
    events, waits = virtual_monitors(jdk, out)
    hands = [
        e
        for e in events
        if e["type"] == "TRCThreadHandoffLockEvent"
        and e["lockedObject"]["class"] == "java.lang.Object"
    ]
    assert len(waits) >= 5 and len(waits) - 2 <= len(hands) <= len(waits), (len(waits), len(hands))
    # The thread that hands it over had it before, and no two have the same.
    assert {e["thread"] for e in hands} <= {e["thread"] for e in events} and len(
        {e["receiverThread"] for e in hands}
    ) == len(hands)
    (half,) = threads("what-if", out, "--lock", "java.lang.Object", "--factor", "0.5")
    assert (
        half["scaled_ns"] >= len(hands) * 20e6
        and half["after_low_ns"] < half["before_ns"] - 0.2 * half["scaled_ns"]
    ), half


@pytest.mark.jdks(21, 25, 27)
def test_a_wait_of_a_pinned_thread_is_one_wait(jdk, tmp_path):
    """On JDK 21 the VM reports a thread as unmounted before it fails to leave its carrier, and the
    thread parks then.
    """
    out = tmp_path / "pinned.jfr"
    done = jdk.java("VirtualPinned", jvm=[jdk.agent(f"threads=y,format=r,file={out}")], release=21)
    assert done.returncode == 0, done.stderr
    own = [e for e in threads("timeline", out)["events"] if e["thread"] == "pinned"]
    waits = [
        (e["type"], (after["time"] - e["time"]) / 1e6)
        for e, after in zip(own, own[1:])
        if e["type"] in ("TRCThreadSleepingEvent", "TRCThreadParkedEvent")
    ]
    assert int(done.stdout) >= 5
    assert [kind for kind, _ in waits] == ["TRCThreadSleepingEvent"] * 10 + [
        "TRCThreadParkedEvent"
    ] * int(done.stdout), waits
    assert all(ms > 10 for _, ms in waits), waits
    unmounted = [e for e in own if e["type"] == "TRCThreadUnmountedEvent" and jdk.version == 21]
    assert not unmounted, unmounted


@pytest.mark.measured
@pytest.mark.jdks(21, 25, 27)
def test_monitors_of_virtual_threads_are_handed_off(jdk, tmp_path):
    """On a busy machine a thread may arrive just when the monitor is free, so that fewer wait."""
    out = tmp_path / "v.jfr"
    events, waits = virtual_monitors(jdk, out)
    # Each thread that waited got it from another one; for the first one this is unknown if its
    # owner is unknown.
    hands = [
        e
        for e in events
        if e["type"] == "TRCThreadHandoffLockEvent"
        and e["lockedObject"]["class"] == "java.lang.Object"
    ]
    assert len(waits) - 2 <= len(hands) <= len(waits), (len(waits), len(hands))
    (same,), (half,) = (
        threads("what-if", out, "--lock", "java.lang.Object", "--factor", f) for f in ("1", "0.5")
    )
    assert abs(same["after_ns"] - same["before_ns"]) < 0.1 * same["before_ns"], same
    assert half["scaled_ns"] > 15 * 20e6, half
    # On JDK 21 threads that sleep in the monitor keep the carriers, and other threads wait for one
    # of these.
    assert half["before_ns"] - half["after_ns"] > 0.4 * half["scaled_ns"], half


def recorded_virtual(jdk, out, parked, *options, jvm=()):
    """Records AttachedVirtual after all but one of its threads have begun to wait, and returns what
    `inspect threads` reported before that.
    """
    process = jdk.start_java(
        "AttachedVirtual",
        parked,
        jvm=jvm,
        release=21,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    trackable = not jvm  # whether the JDK lists all virtual threads
    try:
        assert process.stdout.readline() == "ready\n"
        asked = lab.jvmscope("inspect", "--json", process.pid, "threads")
        stack = (
            json.loads(
                lab.jvmscope("inspect", "--json", process.pid, "stack", "takes", check=True).stdout
            )
            if trackable
            else None
        )
        top = json.loads(
            lab.jvmscope(
                "top", "--json", "--states", "-n", 1, "-i", "200ms", "-r", 200, process.pid
            ).stdout
        )
        assert not trackable or (
            stack["thread"]["virtual"] and stack["thread"]["state"] == "parked"
        ), stack
        assert not trackable or "AttachedVirtual.takes" in {
            f"{f['class']}.{f['method']}" for f in stack["frames"]
        }, stack
        done = lab.jvmscope("attach", "--threads", "--cpu", *options, "-o", out, process.pid)
        assert done.returncode == 0, done.stderr
        lab.use_cpu(process, 0.5)
        release_and_stop(process)
    finally:
        process.kill()
        process.communicate()
    # The one that runs all the time is named in the row of its carrier.
    carries = {t["carries"]: t["name"] for t in top["busiest"] if "carries" in t}
    assert not trackable or (
        list(carries) == ["spins"] and carries["spins"].startswith("ForkJoinPool-1-worker-")
    ), carries
    return json.loads(asked.stdout)


@pytest.mark.jdks(21, 25, 27)
def test_virtual_threads_that_exist_at_attach(jdk, tmp_path):
    """Each has a row with its state from the beginning on, whether it is mounted or not, and
    whichever thread started it.
    """
    out = tmp_path / "v.jfr"
    asked = recorded_virtual(jdk, out, 100)
    rows = {t["name"]: t for t in threads("summary", out, "--idle")["threads"] if t["virtual"]}
    executed = {f"executed-{i}" for i in range(50)}
    parked = {f"parked-{i}" for i in range(0, 100, 2)}
    assert set(rows) == executed | parked | {"at-the-lock", "sleeps", "takes", "spins"}
    assert "not_listed" not in asked
    states = {t["name"]: t["state"] for t in asked["threads"] if t["virtual"]}
    assert (
        set(states) == set(rows) and states["takes"] == "parked" and states["spins"] == "runnable"
    ), states
    events = threads("timeline", out)["events"]
    # When the recording began; sleeps and parks are reported from then on.
    states = {
        "at-the-lock": (
            "park",
            "java.util.concurrent.locks.ReentrantLock$NonfairSync",
            "AttachedVirtual.waitsForTheLock",
        ),
        "takes": (
            "park",
            "condition of java.util.concurrent.LinkedBlockingQueue",
            "AttachedVirtual.takes",
        ),
        "sleeps": ("TRCThreadSleepingEvent", None, "AttachedVirtual.sleeps"),
        "parked-0": ("park", None, "LockSupport.park"),
        "executed-49": (
            "park",
            "condition of java.util.concurrent.LinkedBlockingQueue",
            "AttachedVirtual.takes",
        ),
    }
    for name, (state, class_name, method) in states.items():
        mine = [e for e in events if e["thread"] == name]
        assert mine[0]["type"] == "TRCThreadRunningEvent", name
        wait = mine[1]
        assert wait["type"] == state or state == "park" and "Park" in wait["type"], wait
        assert wait["time"] - mine[0]["time"] < 1000, name  # never shown as running
        assert ((wait.get("objectWaitingFor") or wait.get("lockedObject")) or {}).get(
            "class"
        ) == class_name, wait
        assert any(method in frame for frame in wait["frames"]), wait
        assert name == "at-the-lock" or len(mine) == 2, mine
    ended = next(
        e
        for e in events
        if e["thread"] == "at-the-lock" and e["type"] == "TRCThreadRunningEvent" and e.get("cause")
    )
    assert ended["cause"] == "unpark", ended
    # The samples of the one that runs are its own.
    found = json.loads(lab.jvmscope("report", "--json", "--thread", "spins", out).stdout)
    assert found["samples"]["total"] > 5, found
    assert not lab.jvmscope("threads", "summary", out).stderr


@pytest.mark.parametrize("words", ["threads=y,format=r", "always=y"])
@pytest.mark.jdks(21, 25, 27)
def test_unparking_a_thread_that_keeps_its_carrier_ends(jdk, tmp_path, words):
    """The program used to hang: the thread that was woken waited for a lock of its waker, and the
    waker, whose stack was read, for that thread to leave its carrier.
    """
    done = jdk.java(
        "PinnedUnparks",
        1000,
        jvm=[jdk.agent(f"{words},file={tmp_path / 'u.jfr'}")],
        release=21,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done


def pinned_owner(jdk, out, how):
    """PinnedOwner, whose virtual thread `holder` keeps its carrier while it holds a monitor for which
    others wait: recorded from its start, or by attach once they wait.
    """
    agent = [jdk.agent(f"threads=y,format=r,file={out}")] if how == "run" else []
    process = jdk.start_java(
        "PinnedOwner",
        jvm=agent,
        release=21,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        if how == "attach":
            done = lab.jvmscope("attach", "--threads", "-o", out, process.pid)
            assert done.returncode == 0, done.stderr
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    waits = {}
    for e in threads("timeline", out)["events"]:
        if e["type"] == "TRCThreadWaitingForLockEvent" and "PinnedOwner$M" in str(e):
            waits.setdefault(e["thread"], e)
    return waits, lab.output("threads", "summary", out), threads("summary", out)


@pytest.mark.parametrize("how", ["run", "attach"])
@pytest.mark.jdks(21, 25, 27)
def test_the_owner_of_a_monitor_is_a_virtual_thread_and_not_its_carrier(jdk, tmp_path, how):
    """ThreadMXBean knows no virtual threads and names the carrier."""
    waits, text, summary = pinned_owner(jdk, tmp_path / "p.jfr", how)
    # From JDK 24 on, the VM may not tell a thread that begins to wait.
    unknown = [None] if jdk.version >= 24 and how == "run" else []
    assert waits["platform"]["lockedThread"] in ["holder", *unknown], waits
    # A virtual thread without a carrier does not show what it waits for.
    assert "virtual" not in waits or waits["virtual"]["lockedThread"] in ("holder", None), waits
    if jdk.version == 21:  # the waiting virtual thread keeps its carrier as well
        assert waits["virtual"]["lockedThread"] == "holder", waits
        assert summary["owner_unknown"] == 0 and "owner is unknown" not in text, text


@pytest.mark.parametrize("how", ["run", "attach"])
@pytest.mark.jdks(8, 21, 25)
def test_why_an_owner_is_unknown_is_true_for_the_vm(jdk, tmp_path, how):
    """It used to be said of every VM that it was JDK 24 or later."""
    out = tmp_path / "w.jfr"
    if jdk.version == 8:
        done = jdk.java(
            "ThreadPrograms",
            "10",
            "several",
            500,
            jvm=[jdk.agent(f"threads=y,format=r,file={out}")],
        )
        assert done.returncode == 0, done.stderr
        text, summary = lab.output("threads", "summary", out), threads("summary", out)
    else:
        _, text, summary = pinned_owner(jdk, out, how)
    assert "from JDK 24 on" not in text or jdk.version >= 24, text
    assert ("owner is unknown" in text) == bool(summary["owner_unknown"])
    assert summary["owner_unknown_at_start"] <= summary["owner_unknown"]
    if summary["owner_unknown"] and how == "attach":
        assert "in progress when the recording began" in text, text


@pytest.mark.jdks(25, 27)
def test_virtual_threads_that_want_a_monitor_or_a_class_are_not_ready(jdk, tmp_path):
    """A virtual thread that waits for a monitor or a class is not shown as ready without a carrier.
    (Before JDK 26 a thread that waits for a class keeps its carrier.)
    """
    out = tmp_path / "v.jfr"
    classes = ["class"] if jdk.version >= 26 else []
    done = jdk.java(
        "VirtualStops", *classes, jvm=[jdk.agent(f"threads=y,format=r,file={out}")], release=21
    )
    assert done.returncode == 0, done.stderr
    events = threads("timeline", out)["events"]
    waits = [e for e in events if e["thread"] == "waits"]
    locks = [i for i, e in enumerate(waits) if e["type"] == "TRCThreadWaitingForLockEvent"]
    assert locks
    for at in locks:
        assert (
            waits[at]["lockedObject"]
            == [e for e in waits[:at] if e["type"] == "TRCThreadWaitingForObjectEvent"][-1][
                "objectWaitingFor"
            ]
        )
        assert (
            waits[at - 1]["type"] == "TRCThreadRunningEvent"
            and waits[at + 1]["type"] == "TRCThreadRunningEvent"
        ), waits[at - 1 : at + 2]
    needs = [e for e in events if (e["thread"] or "").startswith("needs-")]
    stopped = [e for e in needs if e["type"] == "TRCThreadWaitingForClassEvent"]
    assert len(stopped) == 3 * len(classes) and all(
        e["frames"][0].startswith("VirtualStops.touch") for e in stopped
    ), stopped
    # A thread may be ready without a carrier for a moment, when its wait has ended 1 ns before.
    for own in (waits, needs):
        ends = {(e["thread"], e["time"] + 1) for e in own if e["type"] == "TRCThreadRunningEvent"}
        assert all(
            (e["thread"], e["time"]) in ends for e in own if e["type"] == "TRCThreadUnmountedEvent"
        ), own
    text = lab.jvmscope("threads", "timeline", out).stdout
    assert text.count("  class-init ") == len(stopped)
    for needs in stopped:
        path = threads("critical-path", out, "--thread", needs["thread"])
        assert [
            s
            for s in path["segments"]
            if s["thread"] == needs["thread"] and s["state"] == "unknown"
        ], path


@pytest.mark.jdks(21, 27)
def test_virtual_threads_that_cannot_be_listed_at_attach_are_counted(jdk, tmp_path):
    out = tmp_path / "v.jfr"
    asked = recorded_virtual(jdk, out, 100, jvm=["-Djdk.trackAllThreads=false"])
    assert (
        re.fullmatch(r"5\d virtual threads", asked["not_listed"])
        and sum(t["virtual"] for t in asked["threads"]) == 50
    )
    found = threads("summary", out)
    (loss,) = found["losses"]
    assert (loss["capture"], loss["what"]) == ("threads", "virtual threads") and "next run" in loss[
        "reason"
    ], loss
    # The JDK counts those that it does not track: 50 that are parked, and four. Another thread may
    # come or go meanwhile.
    assert 52 <= loss["amount"] == found["lost"] <= 56, loss
    assert len([t for t in found["threads"] if t["name"].startswith("executed-")]) == 50
    assert "virtual threads were lost" in (lambda d: d.stdout + d.stderr)(
        lab.jvmscope("threads", "summary", out)
    )


@pytest.mark.jdks(8, 11, 25)
def test_the_handler_of_references_waits_between_two_collections(jdk, tmp_path):
    """It waits inside the VM, which calls that running. After each collection it must be shown as
    waiting again.
    """
    out = tmp_path / "r.jfr"
    done = jdk.java("References", jvm=("-Xmx16m", jdk.agent(f"threads=y,format=r,file={out}")))
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    events = [e for e in threads("timeline", out)["events"] if e["thread"] == "Reference Handler"]
    waits = [e["time"] for e in events if e["type"] == "TRCThreadWaitingForObjectEvent"]
    works = [e["time"] for e in events if "Notify" in e["type"]]
    assert len(works) >= 3 and len(waits) >= 3, events
    # It waits after the last of its work, too.
    assert max(waits) > max(works), events[-5:]
    # A collection woke it, and another thread that had slept caused the collection. The path goes
    # there and does not end in its wait.
    path = threads("critical-path", out, "--thread", "main")
    spent = {
        key: sum(s["ns"] for s in path["segments"] if (s["thread"], s["state"]) == key)
        for key in {(s["thread"], s["state"]) for s in path["segments"]}
    }
    assert spent[("collects", "sleep")] >= 300e6, spent
    assert not [
        s
        for s in path["segments"]
        if s["thread"] == "Reference Handler" and s["state"] == "unknown"
    ], spent


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("mode", ["once", "method", "sleep"])
def test_what_if_covers_when_a_lock_may_have_been_left(jdk, folder, mode, record_property):
    """No thread waits for the end of half of these sections. The program is also run with all
    sections halved, and its time lies in the interval.
    """
    out = folder / f"ends-{mode}-{jdk.version}.jfr"
    ns = []
    for factor in (1, 0.5, 0.5, 0.5):
        done = jdk.java(
            "HoldEnds",
            mode,
            factor,
            jvm=[jdk.agent(f"threads=y,format=r,file={out}")] if factor == 1 else (),
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        ns.append(int(done.stdout))
    ns[1] = min(ns[1:])  # a busy machine only delays
    (answer,) = threads("what-if", out, "--lock", "HoldEnds*", "--factor", "0.5")
    truth = answer["before_ns"] - (ns[0] - ns[1])
    found = {k: round(v / 1e6) for k, v in answer.items() if k.endswith("_ns")}
    record_property("found", f"truth {truth / 1e6:.0f}, {found}")
    assert answer["ends_inferred"]
    # Two runs differ by the delays that the machine causes.
    assert answer["after_low_ns"] - 20e6 <= truth <= answer["after_high_ns"] + 20e6, (truth, found)
    assert answer["if_ended_late_ns"] <= answer["after_ns"] <= answer["if_ended_at_once_ns"], found
    row = next(c for c in threads("monitors", out)["classes"] if c["class"] == "HoldEnds$Lock")
    assert row["gain_inferred"] and row["gain_ns"]["50"] == answer["before_ns"] - answer["after_ns"]
    for words in (("monitors",), ("what-if",)):
        assert "HoldEnds$Lock (inferred)\n" in lab.output("threads", *words, out)
    text = lab.output("threads", "what-if", "--lock", "HoldEnds*", "--factor", "0.5", out)
    assert (
        "some releases of locks, for which no thread waited, have no time in the recording: "
        in text
    ), text


@pytest.mark.usefixtures("on_time")  # the times of two runs are compared
@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("program", ["locks", "joins", "own"])
def test_what_if_says_what_is_possible_with_what_was_free(jdk, folder, program, record_property):
    """Shortened sections of these programs then wait for a lock or a thread that was free in the
    recording, or were mostly free themselves. The changed program is really run: its time is among
    what is possible, and the answer says so in each of its forms.
    """
    out = folder / f"free-{program}-{jdk.version}.jfr"
    which = (
        ("--method", "FreeBefore.section")
        if program == "joins"
        else ("--lock", "=FreeBefore$Shortened")
    )
    for factor in (0.5, 0):
        ns = []
        for scale in (1, factor, factor):
            done = jdk.java(
                "FreeBefore",
                program,
                scale,
                jvm=[jdk.agent(f"threads=y,format=r,file={out}")] if scale == 1 else (),
            )
            assert done.returncode == 0 and not done.stderr, done.stderr
            ns.append(int(done.stdout))
        (answer,) = threads("what-if", out, *which, "--factor", factor)
        truth = answer["before_ns"] - (ns[0] - min(ns[1:]))  # a busy machine only delays
        found = {k: round(v / 1e6) for k, v in answer.items() if k.endswith("_ns")}
        record_property(f"found at {factor}", f"truth {truth / 1e6:.0f}, {found}")
        low, high = answer["possible_low_ns"], answer["possible_high_ns"]
        # Two runs differ by the delays that the machine causes.
        assert low - 20e6 <= truth <= high + 20e6, (truth, found)
        assert low <= answer["after_low_ns"] <= answer["after_high_ns"] <= high, found
        assert high <= answer["before_ns"]
        text = lab.output("threads", "what-if", *which, "--factor", factor, out)
        assert re.search(
            r", possible from [\d.]+ m?s to [\d.]+ m?s( \(order kept\))?\n", text
        ), text
        assert (
            "\n possible: when sections take another time, threads may have to wait" in text
        ), text
    (slower,) = threads("what-if", out, *which, "--factor", "2")
    assert slower["before_ns"] <= slower["possible_low_ns"] <= slower["after_low_ns"], slower
    assert slower["after_high_ns"] <= slower["possible_high_ns"] <= 3 * slower["before_ns"]
    if program == "locks":
        head, columns, *rows = lab.output("threads", "what-if", out).splitlines()
        assert columns.split() == ["becomes", "change", "possible", "lock"]
        assert re.search(r" [\d.]+ m?s to [\d.]+ m?s  FreeBefore\$Shortened\b", rows[0]), rows


@pytest.mark.jdks(17)
def test_recorded_sections_leave_less_possible(jdk, folder):
    """With --locks all sections are recorded, so that no more of them can have been free."""
    out = folder / "free-own-locks.jfr"
    done = jdk.java(
        "FreeBefore",
        "own",
        1,
        jvm=[jdk.agent(f"threads=y,locks=FreeBefore$Shortened,format=r,file={out}")],
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    (answer,) = threads("what-if", out, "--lock", "FreeBefore*", "--factor", "0")
    assert answer["possible_low_ns"] == answer["after_low_ns"], answer
    # 30 sections of 20 ms in each thread
    assert answer["after_low_ns"] <= answer["before_ns"] - 580e6, answer
