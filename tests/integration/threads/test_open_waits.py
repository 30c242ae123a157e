# SPDX-License-Identifier: Apache-2.0
"""Waits for monitors that have not ended when the recording does count in every output."""
import re
import subprocess
import time

import pytest

import hproftext
import lab
import outputs

HELD, SHARED = "OpenBlocks.want", "OpenBlocks.take"


def recorded(jdk, kind, out):
    """Runs OpenBlocks; returns for how many ms its threads were blocked at each monitor, at least
    and at most.
    """
    done = jdk.run(
        lab.BUILD / "jvmscope",
        *("run", "--monitors", "-o", out, "--", "java"),
        *(["-Djdk.virtualThreadScheduler.parallelism=6"] if kind == "virtual" else []),
        *("-cp", lab.compiled("OpenBlocks"), "OpenBlocks", kind, 5, 1000),
    )
    assert done.returncode == 0, done.stderr
    ready, truth = done.stdout.splitlines()
    entered, blocked, least, most, at = map(int, truth.split())
    assert ready == "ready" and entered == 15 and blocked >= 600 and least >= 2000
    after = time.time() * 1000 - at  # until the VM has ended, in which both are still blocked
    return {SHARED: (blocked, blocked), HELD: (least, most + 2 * after)}


def check(ms, truth):
    """The program's clock runs a little longer than a wait; the JDK's own methods may be blocked,
    too.
    """
    for method, (least, most) in truth.items():
        assert 0.9 * least - 20 <= ms[method] <= most + 2, (ms, truth)


def locks(path):
    table = lab.read_json("report", "--json", "--metric", "locks", "-n", 1000, path)["locks"]
    found = {m["method"]: m["self"] / 1e6 for m in table["methods"] if m["self"]}
    assert table["total"] / 1e6 == pytest.approx(sum(found.values()), abs=0.001)
    return found


def monitors(path):
    """What `threads monitors` says of the program's own monitors."""
    names = {"OpenBlocks$Held": HELD, "OpenBlocks$Shared": SHARED}
    return {
        names[c["class"]]: c["blocks"]["total_ns"] / 1e6
        for c in lab.read_json("threads", "monitors", "--json", path)["classes"]
        if c["class"] in names
    }


def check_outputs(jdk, kind, tmp_path):
    """Checks each output that has the time at monitors by stack."""
    out = tmp_path / "o.jfr"
    truth = recorded(jdk, kind, out)
    check(locks(out), truth)
    assert {n: ms for n, ms in locks(out).items() if n in truth} == pytest.approx(
        monitors(out), abs=0.001
    )
    for extension in ("pb.gz", "collapsed", "otlp", "jfr", "html"):
        to = tmp_path / f"to.{extension}"
        only = [] if extension == "jfr" else ["--metric", "locks"]
        done = lab.jvmscope("convert", *only, "-o", to, out)
        assert done.returncode == 0, done.stderr
        if extension == "html":
            data = outputs.page(to)
            table = next(m for m in data["metrics"] if m["name"] == "locks")
            check(
                {n: w / 1e6 for n, w in outputs.page_weights(data, table).own.items() if w}, truth
            )
        else:
            check(locks(to), truth)


@pytest.mark.jdks(8, 25, slow=(11, 17, 21, 27))
def test_waits_that_outlast_the_recording_count(jdk, tmp_path):
    check_outputs(jdk, "platform", tmp_path)


@pytest.mark.jdks(25, slow=(21, 27))
def test_waits_of_virtual_threads_that_outlast_the_recording_count(jdk, tmp_path):
    check_outputs(jdk, "virtual", tmp_path)


def check_monitor_time(jdk, kind, tmp_path):
    out = tmp_path / "o.hprof.txt"
    truth = recorded(jdk, kind, out)
    text = hproftext.Text(out)
    (rows,), (total,) = text.ranked["MONITOR TIME"], text.totals["MONITOR TIME"]
    tops = {r.trace: text.traces[r.trace][0][0] for r in rows}
    assert {(tops[r.trace], r.count) for r in rows} >= {(SHARED, 15), (HELD, 2)}
    check({tops[r.trace]: r.self / 100 * total for r in rows}, truth)


@pytest.mark.jdks(8, 25, slow=(11, 17, 21, 27))
def test_waits_that_outlast_the_recording_are_in_monitor_time(jdk, tmp_path):
    check_monitor_time(jdk, "platform", tmp_path)


@pytest.mark.jdks(25, slow=(21, 27))
def test_waits_of_virtual_threads_are_in_monitor_time(jdk, tmp_path):
    """From JDK 24 on they continue with another carrier."""
    check_monitor_time(jdk, "virtual", tmp_path)


@pytest.mark.jdks(25, slow=(21, 27))
def test_what_monitor_time_lacks_of_virtual_threads(jdk, tmp_path):
    """The threads were blocked when the recording began, and are still when it ends."""
    process = jdk.start_java(
        "OpenBlocks",
        *("virtual", 0, 0),
        jvm=["-Djdk.virtualThreadScheduler.parallelism=6"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        text = tmp_path / "o.hprof.txt"
        began = time.monotonic()
        done = lab.jvmscope("attach", "-t", "1s", "--monitors", "-o", text, process.pid)
        most = 2000 * (time.monotonic() - began)
        assert done.returncode == 0, done.stderr
        lacks = re.search(r"MONITOR TIME lacks (\d+) ms of 2 threads", done.stderr)
        assert lacks and 1900 <= int(lacks[1]) <= most, (most, done.stderr)
        assert "may lack time of" not in done.stderr, done.stderr
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(8, 25, slow=(11, 17, 21, 27))
def test_waits_that_are_longer_than_a_recording_count(jdk, tmp_path):
    """They begin before it, and end after it."""
    process = jdk.start_java(
        "OpenBlocks", "platform", 0, 0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        out = tmp_path / "o.jfr"
        done = lab.jvmscope("attach", "-t", "1s", "--monitors", "-o", out, process.pid)
        assert done.returncode == 0 and "contention" not in done.stderr, done.stderr
        span = lab.read_json("report", "--json", out)["span_ns"] / 1e6
        assert locks(out) == {HELD: pytest.approx(2 * span, rel=0.02)}
        assert monitors(out) == pytest.approx(locks(out), abs=0.001)
        text = tmp_path / "o.hprof.txt"
        began = time.monotonic()
        done = lab.jvmscope("attach", "-t", "1s", "--monitors", "-o", text, process.pid)
        most = 2000 * (time.monotonic() - began)
        lacks = re.search(r"MONITOR TIME lacks (\d+) ms of 2 threads", done.stderr)
        assert lacks and 1900 <= int(lacks[1]) <= most, (most, done.stderr)
    finally:
        process.kill()
        process.communicate()


def re_entering(jdk, out, kind="platform"):
    """Attaches while the threads of ReEntering wait to get their monitor back, lets them have it,
    and stops 2 s later. Returns what `stop` printed and how many ms the recording can have lasted
    until they had it.
    """
    process = jdk.start_java(
        "ReEntering",
        kind,
        jvm=["-Djdk.virtualThreadScheduler.parallelism=6"] if kind == "virtual" else [],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        done = lab.jvmscope("attach", "--monitors", "-o", out, process.pid)
        assert done.returncode == 0, done.stderr
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("left ")
        ms = 1000 * (time.monotonic() - began)
        time.sleep(2)
        done = lab.jvmscope("stop", process.pid)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr, ms
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("kind", ["platform", "virtual"])
def test_a_thread_that_has_its_monitor_back_is_not_blocked_in_monitor_time(jdk, kind, tmp_path):
    """No event of the VM shows that a thread has got its monitor back after Object.wait."""
    if kind == "virtual" and int(jdk.version) < 21:
        pytest.skip("has no virtual threads")
    printed, _ = re_entering(jdk, tmp_path / "o.hprof.txt", kind)
    assert "MONITOR TIME lacks" not in printed, printed


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("kind", ["platform", "virtual"])
def test_a_thread_that_has_its_monitor_back_is_not_blocked_in_a_recording(jdk, kind, tmp_path):
    if kind == "virtual" and int(jdk.version) < 21:
        pytest.skip("has no virtual threads")
    out = tmp_path / "o.jfr"
    _, ms = re_entering(jdk, out, kind)
    # The ends of the waits are seen within some 0.2 s.
    assert sum(locks(out).values()) <= 2 * (ms + 300)
    assert sum(monitors(out).values()) <= 2 * (ms + 300)


@pytest.mark.jdks(8, 25)
def test_monitor_time_of_several_dumps_adds_up(jdk, tmp_path):
    """A wait that goes on counts once, and each dump has the time since the one before."""
    out = tmp_path / "o.hprof.txt"
    process = jdk.start_java(
        "OpenBlocks",
        *("platform", 0, 0),
        jvm=[jdk.agent(f"monitor=y,cutoff=0,file={out}")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            time.sleep(1)
            done = lab.jvmscope("dump", process.pid)
            assert done.returncode == 0, done.stderr
        time.sleep(1)
        truth, _ = process.communicate(timeout=60)
        after = time.time() * 1000
    finally:
        process.kill()
        process.communicate()
    _, _, least, most, at = map(int, truth.split())
    text = hproftext.Text(out)
    tables, totals = text.ranked["MONITOR TIME"], text.totals["MONITOR TIME"]
    held = [
        [r for r in rows if text.traces[r.trace][0][0] == HELD and r.name.startswith("OpenBlocks")]
        for rows in tables
    ]
    assert [sum(r.count for r in rows) for rows in held] == [2, 0, 0], tables
    ms = [sum(r.self / 100 * total for r in rows) for rows, total in zip(held, totals)]
    assert min(ms) >= 1900 and least - 20 <= sum(ms) <= most + 2 * (after - at) + 6, (ms, truth)
