# SPDX-License-Identifier: Apache-2.0
"""locks=: exact holds of the monitors of chosen classes."""
import functools
import json
import re

import lab

CASES = "Block Nested Thrown Waits Loops Contended Whole Native".split()
N = 100


def threads(verb, path, *args):
    done = lab.jvmscope("threads", verb, "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def held(version):
    """HeldLocks as recorded: returns {case: (holds, least ns, most ns)} by its own clock, the
    recording, and what it printed.
    """
    jdk = lab.Jdk(version)
    out = f"{lab.SCRATCH}/locks-{version}.jfr"
    patterns = ":".join(f"HeldLocks${case}" for case in CASES) + ":HeldLocks$OfClass"
    done = jdk.java(
        "HeldLocks",
        N,
        lab.BUILD / "tests/agents/liblockjni.so",
        jvm=[
            jdk.agent(f"locks={patterns},format=r,file={out}"),
            "-XX:+PrintCompilation",
            "-Xmx128m",
        ],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    cases = {}
    for line in done.stderr.splitlines():
        found = re.fullmatch(r"(\w+) (\d+) (\d+) (\d+)", line)
        if found:
            cases[found[1]] = tuple(map(int, found.groups()[1:]))
    return cases, out, done.stdout


def holds_by_class(version):
    """Returns {class: (holds, ns)} for methods of the program only, because the JDK's code locks
    classes too.
    """
    sums = {}
    for row in threads("monitors", held(version)[1])["holds"]:
        assert row["method"], row
        if row["method"].startswith("HeldLocks"):
            count, ns = sums.get(row["class"], (0, 0))
            sums[row["class"]] = count + row["count"], ns + row["total_ns"]
    return sums


def test_every_hold_is_counted_and_no_other(jdk):
    cases, *_ = held(jdk.version)
    assert set(cases) == {*CASES, "OfClass"}
    expected = {
        "class HeldLocks$OfClass" if case == "OfClass" else f"HeldLocks${case}": count
        for case, (count, _, _) in cases.items()
    }
    assert {name: count for name, (count, _) in holds_by_class(jdk.version).items()} == expected


def test_time_held_lies_within_the_programs_own_clock(jdk):
    sums = holds_by_class(jdk.version)
    for case, (_, least, most) in held(jdk.version)[0].items():
        ns = sums["class HeldLocks$OfClass" if case == "OfClass" else f"HeldLocks${case}"][1]
        assert least <= ns <= most, (case, least, ns, most)


def test_the_path_knows_the_sections_exactly(jdk):
    _, out, _ = held(jdk.version)
    locks = {lock["class"]: lock for lock in threads("critical-path", out)["locks"]}
    assert all(
        locks[f"HeldLocks${case}"]["exact"] and not locks[f"HeldLocks${case}"]["inferred"]
        for case in CASES
    )
    # These are main's. main is the path except where it joins the three others.
    cases = held(jdk.version)[0]
    for case in ("Block", "Nested", "Thrown", "Whole", "Loops"):
        assert locks[f"HeldLocks${case}"]["sections_on_path"] == cases[case][0]
        assert cases[case][1] <= locks[f"HeldLocks${case}"]["ns"] <= cases[case][2]


def test_a_method_with_probes_is_compiled(jdk):
    """The VM never compiles a method that might keep a monitor; the loop must reach its last tier,
    and not just for one call.
    """
    printed = held(jdk.version)[2]
    assert re.search(r"\s4\s+HeldLocks::hot \(\d+ bytes\)", printed), [
        line for line in printed.splitlines() if "::hot" in line
    ]
    assert "not compilable" not in "".join(
        line for line in printed.splitlines() if "HeldLocks" in line
    )


def test_the_recording_says_what_is_exact(jdk):
    _, out, _ = held(jdk.version)
    text = lab.output("threads", "monitors", out)
    assert "Holds by method that took the lock, exact" in text
    assert re.search(r"^\s+100 .* HeldLocks\.block, HeldLocks\$Block$", text, re.M), text


def test_locks_need_a_recording(jdk):
    done = jdk.java(
        "HeldLocks", 1, jvm=[jdk.agent("locks=HeldLocks,format=b,file=/tmp/no.hprof")], timeout=60
    )
    assert "locks: goes into a recording: add format=r\n" in done.stderr + done.stdout


def test_a_list_in_parts_is_not_joined_in_a_message(jdk):
    done = jdk.java(
        "HeldLocks",
        1,
        jvm=[jdk.agent("trace=HeldLocks.hot,trace=HeldLocks.block,format=b,file=/tmp/no.hprof")],
        timeout=60,
    )
    assert "trace: goes into a recording: add format=r\n" in done.stderr + done.stdout


def test_what_is_too_much_is_lost_and_reported(jdk, tmp_path):
    """A thread holds 100 locks at once: the holds of 64 are kept, and the recording reports the
    others as lost.
    """
    out = tmp_path / "many.jfr"
    done = jdk.java("ManyHeld", jvm=[jdk.agent(f"locks=java.lang.Object,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    kept = sum(
        row["count"]
        for row in threads("monitors", out)["holds"]
        if row["method"].startswith("ManyHeld")
    )
    assert (kept, threads("summary", out)["lost"]) == (64, 36)
    for verb in ("timeline", "critical-path", "monitors"):
        answer = threads(verb, out)
        assert (answer["lost"], answer["losses"][0]["amount"], answer["unended"]) == (
            36,
            36,
            False,
        ), verb


def test_waits_that_a_thread_spins_through_are_reported(jdk, tmp_path):
    """The VM posts an event for 24 to 150 of some 5,000 before JDK 25, when spinning has failed.
    (The program sees a little less than all: a thread that arrives when the other one has just got
    the monitor, or is about to release it, is not counted.)
    """
    out = tmp_path / "spun.jfr"
    done = jdk.java(
        "SpunLocks",
        3000,
        jvm=[jdk.agent(f"threads=y,locks=SpunLocks$Monitor,format=r,file={out}"), "-Xmx32m"],
    )
    assert done.returncode == 0, done.stderr
    times = [
        row["times"]
        for row in threads("monitors", out)["blocks"]
        if row["class"] == "SpunLocks$Monitor"
    ]
    reported, met = sum(t["count"] for t in times), int(done.stdout)
    assert 0.9 * met <= reported <= 6000, (met, times)
    assert sum(t["unknown"] for t in times) <= 10 + 0.01 * reported, times
