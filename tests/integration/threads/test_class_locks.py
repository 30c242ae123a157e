# SPDX-License-Identifier: Apache-2.0
"""Locks of `static synchronized` methods and of `synchronized (X.class)` are named by their class."""
import json
import subprocess

import pytest

import lab

STORE, ARRAY, WAITER = "class ClassLocks$Store", "class int[]", "class ClassLocks$Waiter"


def threads(verb, path, *args):
    return json.loads(lab.output("threads", verb, "--json", *args, path))


def recorded(jdk, out, mode, *options):
    done = jdk.java(
        "ClassLocks", mode, jvm=[jdk.agent(",".join([*options, f"format=r,file={out}"]))]
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.jdks(8, 17, 25)
def test_each_lock_of_a_class_is_a_row_of_its_own(jdk, tmp_path):
    out = tmp_path / "contend.jfr"
    recorded(jdk, out, "contend", "threads=y", "cpu=samples")
    stats = threads("monitors", out)
    shown = lab.output("threads", "monitors", out)
    blocks = {row["class"]: row["times"]["count"] for row in stats["blocks"]}
    # How often the workers meet at a lock is not known, but what it is called is.
    assert {STORE, ARRAY} <= set(blocks) and "java.lang.Class" not in blocks, blocks
    assert WAITER in {row["class"] for row in stats["waits"]}, stats["waits"]
    assert "java.lang.Class\n" not in shown, shown
    for name in (STORE, ARRAY):
        assert f"{name}\n" in shown, shown
    locks = {lock["class"] for lock in threads("critical-path", out)["locks"]}
    assert {STORE, ARRAY} <= locks, locks
    assert threads("what-if", out, "--lock", STORE)
    only = threads("monitors", out, "--class", STORE)
    assert {row["class"] for row in only["blocks"]} == {STORE}, only
    written = tmp_path / "again.jfr"
    lab.output("convert", "-o", written, out)
    assert {row["class"] for row in threads("monitors", written)["blocks"]} >= {STORE, ARRAY}
    if jdk.version > 8:
        printed = jdk.run("jfr", "print", "--events", "jdk.JavaMonitorEnter", out).stdout
        assert f"monitorClass = {STORE} " in printed, printed[:4000]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("pattern", ["ClassLocks$Store", "java.lang.Class"])
def test_holds_of_the_object_of_a_class(jdk, tmp_path, pattern):
    """A pattern requests the object of the class that it names; java.lang.Class requests all."""
    out = tmp_path / "holds.jfr"
    recorded(jdk, out, "contend", f"locks={pattern}")
    holds = {}
    for row in threads("monitors", out)["holds"]:
        if row["method"].startswith("ClassLocks"):
            holds[row["class"]] = holds.get(row["class"], 0) + row["count"]
    everything = {STORE: 60, ARRAY: 60, WAITER: 3}
    assert holds == (everything if pattern == "java.lang.Class" else {STORE: 60}), holds


@pytest.mark.jdks(8, 17, 25)
def test_a_deadlock_of_classes_names_them(jdk, tmp_path):
    out = tmp_path / "deadlock.jfr"
    done = recorded(jdk, out, "deadlock", "deadlock=y")
    assert f" waits for {STORE}@" in done.stderr and f" waits for {ARRAY}@" in done.stderr
    (found,) = threads("deadlocks", out)["deadlocks"]
    assert {t["waits_for"] for t in found["cycle"]} == {STORE, ARRAY}, found
    assert f"waits for {STORE} owned by stuck 1" in lab.output("threads", "deadlocks", out)


@pytest.mark.jdks(8, 17, 25)
def test_classes_that_are_locked_at_attach(jdk, tmp_path):
    """The class is found even if others have the same identity hash as the locked one."""
    out = tmp_path / "held.jfr"
    process = jdk.start_java("ClassLocks", "held", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        asked = json.loads(lab.output("inspect", "--json", process.pid, "threads"))
        by_name = {t["name"]: t for t in asked["threads"]}
        assert [h["class"] for h in by_name["holder"]["holds"]] == [STORE]
        assert by_name["blocked"]["awaits"]["class"] == STORE
        assert by_name["waiting"]["awaits"]["class"] == WAITER
        lab.output("attach", "--threads", "-o", out, process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "released\n"
        lab.output("stop", process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    stats = threads("monitors", out)
    assert STORE in {row["class"] for row in stats["blocks"]}, stats["blocks"]
    rows = stats["blocks"] + stats["waits"]
    assert "java.lang.Class" not in {row["class"] for row in rows}, rows
    assert WAITER in {row["class"] for row in stats["waits"]}, stats["waits"]


@pytest.mark.jdks(8, 17, 25)
def test_inspect_names_the_classes_of_a_deadlock(jdk):
    process = jdk.start_java(
        "ClassLocks", "deadlock", "stays", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        text = lab.output("inspect", process.pid, "deadlocks")
        assert f"{STORE}@" in text and f"{ARRAY}@" in text, text
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(17)
def test_a_slow_request_names_the_class_whose_lock_it_waited_for(jdk, tmp_path):
    out = tmp_path / "slow.jfr"
    recorded(jdk, out, "served", "requests=ClassLocks.serve")
    slow = lab.output("requests", "slow", out)
    assert "class lock of ClassLocks$Store in ClassLocks$Store.sell" in slow, slow
    assert "class class" not in slow
