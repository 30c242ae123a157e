# SPDX-License-Identifier: Apache-2.0
"""Which thread held a lock that was free when it was taken, as the wait of another thread shows;
and how often threads waited.
"""
import functools
import json
import re
import subprocess
import urllib.parse
import urllib.request

import pytest

import lab
import recording

N, MS = 20, 15
LOCK = "java.util.concurrent.locks.ReentrantLock$NonfairSync"


def threads(verb, path, *args):
    done = lab.jvmscope("threads", verb, "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def recorded(version, what, kind):
    """Returns the recording, and the program's two sums in ns."""
    jdk, out = lab.Jdk(version), f"{lab.SCRATCH}/owner-{what}-{kind}-{version}.jfr"
    done = jdk.java(
        "KnownOwner", what, N, MS, kind, jvm=[jdk.agent(f"threads=y,format=r,file={out}")]
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return out, *map(int, done.stdout.split())


def check_lock(recording, name):
    out, least, most = recording
    path = threads("critical-path", out)
    row = next(r for r in path["locks"] if r["class"] == name)
    assert 0.95 * least <= row["ns"] <= 1.05 * most, (least, most, path["locks"])
    answers = {f: threads("what-if", out, "--lock", name, "--factor", f)[0] for f in ("0", "0.5")}
    gains = {f: a["before_ns"] - a["after_ns"] for f, a in answers.items()}
    assert 0.9 * least <= gains["0"] <= 1.05 * most, (gains, least, most)
    assert 0.45 * least <= gains["0.5"] <= 0.55 * most, (gains, least, most)
    assert not any(a["owner_unknown"] for a in answers.values()), answers
    table = next(c for c in threads("monitors", out)["classes"] if c["class"] == name)
    assert table["path_ns"] == row["ns"] and table["gain_ns"]["50"] == gains["0.5"], (
        table,
        row,
        gains,
    )


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("what, name", [("lock", LOCK), ("monitor", "java.lang.Object")])
def test_the_path_lies_in_the_lock_that_its_owner_found_free(jdk, what, name):
    check_lock(recorded(jdk.version, what, "platform"), name)


@pytest.mark.jdks(21, 25)
def test_the_path_lies_in_the_lock_that_a_virtual_owner_found_free(jdk):
    check_lock(recorded(jdk.version, "lock", "virtual"), LOCK)


@pytest.mark.jdks(8, 17, 25)
def test_what_has_no_owner_is_no_lock_and_says_so(jdk):
    """Any thread may release a semaphore, so the thread that released it need not be the one that
    had it.
    """
    out, least, _ = recorded(jdk.version, "semaphore", "platform")
    name = "java.util.concurrent.Semaphore$NonfairSync"
    assert not [r for r in threads("critical-path", out)["locks"] if r["class"] == name]
    (answer,) = threads("what-if", out, "--lock", name, "--factor", "0.5")
    assert (
        answer["before_ns"] == answer["after_ns"]
        and answer["owner_unknown"] >= N
        and answer["owner_unknown_ns"] >= least
    ), answer
    printed = (
        f"who held it is unknown for {answer['owner_unknown']} of {answer['owner_unknown']} waits"
    )
    assert printed in lab.output("threads", "what-if", "--lock", name, out)


@pytest.mark.jdks(8, 17, 25)
def test_a_lock_whose_owner_is_unknown_is_marked(jdk):
    """Readers and writers release this lock in the same way, so its figures are too small. The
    three tables say so, and for how long.
    """
    out, least, _ = recorded(jdk.version, "write", "platform")
    name = "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync"
    (row,) = (r for r in threads("critical-path", out)["owners_unknown"] if r["class"] == name)
    assert N <= row["owner_unknown"] == row["waits"] and row["owner_unknown_ns"] >= least, row
    table = next(c for c in threads("monitors", out)["classes"] if c["class"] == name)
    assert (table["owner_unknown"], table["owner_unknown_ns"]) == (
        row["owner_unknown"],
        row["owner_unknown_ns"],
    ), table
    printed = f" {name}: who held it is unknown for {row['waits']} of {row['waits']} waits, "
    for words in (("critical-path",), ("monitors",), ("what-if",), ("what-if", "--lock", name)):
        assert printed in lab.output("threads", *words, out), words
    assert f"{name} (owner unknown)\n" in lab.output("threads", "monitors", out)
    # Only classes that are in the table have the reservation.
    longest = max(
        c[kind]["max_ns"]
        for c in threads("monitors", out)["classes"]
        for kind in ("blocks", "waits")
    )
    for least in ("1us", f"{longest}ns"):
        text = lab.output("threads", "monitors", "--min", least, out)
        assert (printed in text) == (f"{name} (owner unknown)\n" in text), text


@pytest.mark.jdks(17)
def test_the_pages_what_if_says_the_same(jdk):
    out, name = (
        recorded(jdk.version, "write", "platform")[0],
        "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync",
    )
    process = subprocess.Popen(
        [lab.BUILD / "jvmscope", "serve", out], stdout=subprocess.PIPE, text=True
    )
    try:
        at = process.stdout.readline().strip()

        def ask(name):
            query = urllib.parse.urlencode({"class": name, "factor": 0.5})
            with urllib.request.urlopen(f"{at}0/what-if?{query}", timeout=30) as answer:
                return json.load(answer)

        page = ask(name)
        # The page names a class of its list, never a part of its name or a pattern.
        for other in (name[:-1], "*", f"{name},x"):
            nothing = ask(other)
            assert nothing["owner_unknown"] == 0, (other, nothing)
            assert nothing["after_ns"] == nothing["before_ns"], (other, nothing)
    finally:
        process.terminate()
        process.communicate(timeout=30)
    (shown,) = threads("what-if", out, "--lock", name, "--factor", "0.5")
    assert page == {key: shown[key] for key in page} and page["owner_unknown"] >= N, (page, shown)
    # The reservations of the two are the same too.
    assert {"inferred", "order_decided_anew", "owner_matters"} <= page.keys() and page[
        "owner_matters"
    ]
    # The change is printed, which two times of three digits may hide, and a reservation once.
    text = lab.output("threads", "what-if", out, "--lock", name)
    answers = threads("what-if", out, "--lock", name)
    changed = sum(a["after_ns"] != a["before_ns"] for a in answers)
    assert len(re.findall(r", [\d.]+ [mnµ]?s (?:sooner|later), expected", text)) == changed, text
    kept = [a for a in answers if not a["order_decided_anew"]]
    assert text.count(" (order kept)\n") == len(kept), text
    assert text.count("could not determine a new one") == min(len(kept), 1), text


def of_thread(found, name):
    return next(t for t in found["threads"] if t["name"] == name)


def check_counts(recording, names):
    """Each wait is counted once, in the table of threads and in those of methods, and with the same
    time.
    """
    out = recording[0]
    summary = threads("summary", out, "--idle")
    for name in names:
        row, stats = of_thread(summary, name), threads("monitors", out, "--idle", "--thread", name)
        for key, table in (("blocked", "blocks"), ("waited", "waits")):
            times = [s["times"] for s in stats[table]]
            assert row[key] == sum(t["count"] for t in times), (name, row, times)
            assert row[f"{key}_ns"] == sum(t["total_ns"] for t in times), (name, row, times)


def check_sleeps(recording, out):
    path, least, most = recording
    row = of_thread(threads("summary", path), "sleeper")
    assert row["waited"] == N and 0.99 * least <= row["waited_ns"] <= most - row["ready_ns"], (
        row,
        least,
        most,
    )
    check_counts(recording, ["sleeper"])
    assert lab.jvmscope("convert", path, "-o", out).returncode == 0
    text = out.read_text()
    number = re.search(r'<threadStart threadId="(\d+)"[^>]* threadName="sleeper"', text)[1]
    for element in ("monWait", "monWaited"):
        assert len(re.findall(f'<{element} [^>]*threadIdRef="{number}"', text)) == N
    return row


@pytest.mark.jdks(8, 17, 25)
def test_each_wait_is_counted_once(jdk, tmp_path):
    assert (
        check_sleeps(recorded(jdk.version, "sleep", "platform"), tmp_path / "out.trcxml")["ready"]
        == 0
    )
    check_counts(recorded(jdk.version, "lock", "platform"), ["owner", "waiter"])


@pytest.mark.jdks(21, 25)
def test_each_wait_of_a_virtual_thread_is_counted_once(jdk, tmp_path):
    """A virtual thread whose wait is over does not count as waiting until it gets a carrier: it is
    ready.
    """
    row = check_sleeps(recorded(jdk.version, "sleep", "virtual"), tmp_path / "out.trcxml")
    assert 0 < row["ready"] <= N and row["ready_ns"] > 0, row
    path = recorded(jdk.version, "sleep", "virtual")[0]
    # The summary of all threads has columns for I/O as well if main's line took 100 us to write.
    text = lab.output("threads", "summary", "--thread", "sleeper", path)
    assert re.search(r"(?m)^ blocked +time +waited +time +ready +time  thread$", text), text
    check_counts(recorded(jdk.version, "lock", "virtual"), ["owner", "waiter"])


@pytest.mark.jdks(25, 27, daily=1)
def test_reading_the_stack_of_a_sleeping_virtual_thread_does_not_shorten_its_wait(jdk, tmp_path):
    """The agent reads 1,000 frames before each sleep, in which the sleep's timer does not run yet.
    The median, because the system may let the thread pause before it is about to wait, which is no
    wait.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "KnownOwner",
        *("sleep", N, MS, "virtual", 1000),
        jvm=[jdk.agent(f"threads=y,depth=2000,format=r,file={out}")],
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    lines = recording.events(
        out, "jvmscope.VirtualThreadUnmounted", get="eventThread.javaName,duration"
    )
    waits = sorted(int(ns.split("(")[0]) for name, ns in map(str.split, lines) if name == "sleeper")
    assert len(waits) == N and 0.995 * MS * 1e6 <= waits[N // 2] <= MS * 1e6, waits
