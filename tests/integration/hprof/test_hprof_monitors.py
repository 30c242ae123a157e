# SPDX-License-Identifier: Apache-2.0
"""monitor=y: blocked time compared with what the program itself measured, WAIT lines, and the dump
of monitors.
"""
import collections
import re

import pytest

import hproftext
import lab


@pytest.mark.usefixtures("on_time")
def test_time_blocked_is_what_the_program_measured(jdk, tmp_path):
    """Time blocked at monitors, and with park=y for a lock of java.util.concurrent, attributed to
    the method that wanted the lock.
    """
    done = jdk.java(
        "Monitors", "park", jvm=[jdk.agent(f"monitor=y,park=y,cutoff=0,file={tmp_path}/m.txt")]
    )
    assert done.returncode == 0, done.stderr
    first, second, lock, wait, longest, blocked = map(int, done.stdout.split())
    text = hproftext.Text(tmp_path / "m.txt")
    (rows,), (total,) = text.ranked["MONITOR TIME"], text.totals["MONITOR TIME"]
    by_class, tops = collections.Counter(), {}
    for r in rows:
        assert r.name.endswith(" (Java)")
        by_class[r.name[:-7]] += r.self / 100 * total
        tops.setdefault(r.name[:-7], r)
    # The program's clocks run around the wait, so they include the time for which the VM spins on a
    # busy machine before it blocks.
    assert by_class["Monitors$First"] <= first + 2 and by_class["Monitors$Second"] <= second + 2
    assert by_class["Monitors$First"] + by_class["Monitors$Second"] == pytest.approx(
        blocked, rel=0.05
    )
    assert by_class["java.util.concurrent.locks.ReentrantLock$NonfairSync"] == pytest.approx(
        lock, rel=0.05
    )
    for name, method in (
        ("Monitors$First", "first"),
        ("java.util.concurrent.locks.ReentrantLock$NonfairSync", "locked"),
    ):
        assert text.traces[tops[name].trace][0][0] == f"Monitors.{method}"
    # Each of 32 calls blocks once at most, and none longer than the longest.
    assert by_class["Monitors$First"] / (longest + 1) <= tops["Monitors$First"].count <= 32
    main = next(n for n, name in text.threads.items() if name == "main")
    assert ("WAIT", "LMonitors$Second;", 50, main) in text.waits
    waited = [
        ms
        for what, name, ms, thread in text.waits
        if (what, name) == ("WAITED", "LMonitors$Second;")
    ]
    assert len(waited) == 1 and 50 <= waited[0] <= wait + 1, "the program's clock runs around it"


@pytest.mark.jdks(8, 25)
def test_threads_in_traces(jdk, tmp_path):
    done = jdk.java(
        "Monitors",
        jvm=[jdk.agent(f"monitor=y,thread=y,depth=2,lineno=n,cutoff=0,file={tmp_path}/m.txt")],
    )
    assert done.returncode == 0, done.stderr
    text = hproftext.Text(tmp_path / "m.txt")
    workers = {n for n, name in text.threads.items() if name.startswith("worker ")}
    assert len(workers) == 4
    rows = [r for r in text.ranked["MONITOR TIME"][0] if r.name == "Monitors$First (Java)"]
    assert {text.trace_threads[r.trace] for r in rows} <= workers and len(rows) >= 2
    assert all(
        len(t) <= 2 and all(line == "Unknown line" for _, _, line in t)
        for t in text.traces.values()
    )


@pytest.mark.jdks(8, 25)
def test_the_program_is_not_slowed_by_a_dump(jdk, tmp_path):
    done = jdk.java("Monitors", jvm=[jdk.agent(f"monitor=y,doe=n,file={tmp_path}/m.txt")])
    assert done.returncode == 0
    text = hproftext.Text(tmp_path / "m.txt")
    assert not text.ranked and not text.monitor_dumps and text.waits


@pytest.mark.usefixtures("on_time")
def test_a_recording_has_monitor_events(jdk, tmp_path):
    done = jdk.java("Monitors", jvm=[jdk.agent(f"monitor=y,format=r,file={tmp_path}/m.jfr")])
    assert done.returncode == 0, done.stderr
    first = int(done.stdout.split()[0])
    events = (
        lab.Jdk(17)
        .run("jfr", "print", "--events", "jdk.JavaMonitorEnter", tmp_path / "m.jfr")
        .stdout
    )
    blocks = re.findall(r"duration = PT([\d.]+)S\s+monitorClass = (\S+)", events)
    blocked = sum(float(seconds) * 1000 for seconds, name in blocks if name == "Monitors$First")
    assert blocked == pytest.approx(first, rel=0.05)
