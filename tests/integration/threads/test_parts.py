# SPDX-License-Identifier: Apache-2.0
"""A part of a recording has the same answers whether it is selected by --from and --to or cut out
by `convert` first.
"""
import functools
import json

import pytest

import lab

MS = 1_000_000
# What a part does not tell of a thread that started before it; and the number of events, to which
# the states count that last when it begins.
OF_THE_WHOLE = {"origin_ns", "start_ns", "end_ns", "parent", "group", "events"}


def threads(verb, path, *args):
    done = lab.jvmscope("threads", *verb.split(), "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def recorded(version):
    """Four threads that sleep with one of two locks, and hand over by notify and unpark."""
    jdk, out = lab.Jdk(version), f"{lab.SCRATCH}/parts-{version}.jfr"
    done = jdk.java(
        "PartsOfTime", jvm=[jdk.agent(f"threads=y,cpu=samples,format=r,file={out}")], timeout=60
    )
    assert done.returncode == 0, done.stderr
    return out


def differences(a, b, where):
    """Compares two answers; times differ by what rounding to the clock of a chunk does."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a.keys() - OF_THE_WHOLE:
            yield from differences(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list):
        if where.endswith("/threads"):  # in the order in which they were first seen
            a, b = (sorted(rows, key=lambda row: row["id"]) for rows in (a, b))
        if len(a) != len(b):
            yield f"{where}: {len(a)} and {len(b)} entries"
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{where}/{i}")
    elif isinstance(a, (int, float)) and not isinstance(a, bool):
        if abs(a - b) > max(1000 if "ns" in where else 0, 1e-5 * abs(a)):
            yield f"{where}: {a} and {b}"
    elif a != b:
        yield f"{where}: {a} and {b}"


VERBS = ("summary", "monitors", "critical-path", "what-if", "what-if --lock Shelf --factor 0.5")


@pytest.mark.jdks(8, 17, 25)
def test_a_part_has_one_answer(jdk, tmp_path):
    """The windows begin and end at odd times, within waits; what the threads did before decides who
    had the locks then.
    """
    path, part = recorded(jdk.version), tmp_path / "part.jfr"
    busy = [e["time"] for e in threads("timeline", path)["events"] if "taker" in e["thread"]]
    span = busy[-1] - busy[0]
    edges = [busy[0] + span * k // 29 for k in (2, 5, 11, 12, 20, 27)]
    windows = [*zip(edges, edges[1:]), (edges[0], edges[3]), (0, edges[2]), (edges[2], None)]
    locks = 0
    for a, b in windows:
        flags = (("--from", f"{a}ns") if a else ()) + (("--to", f"{b}ns") if b else ())
        done = lab.jvmscope("convert", *flags, path, "-o", part)
        assert done.returncode == 0, done.stderr
        for verb in VERBS:
            found, alone = threads(verb, path, *flags), threads(verb, part)
            assert not list(differences(found, alone, verb)), (flags, verb)
            if verb == "critical-path":
                starts = [s["start_ns"] for s in found["segments"]]
                assert starts == [
                    pytest.approx(a + s["start_ns"], abs=1000) for s in alone["segments"]
                ]
                locks += sum(row["ns"] > 0 for row in found["locks"])
    assert locks >= 3


@pytest.mark.jdks(8, 17, 25)
def test_a_wait_that_began_before_a_part_is_followed(jdk, tmp_path):
    """Where a thread waited for a lock when a part began, the path continues in the thread that had
    the lock then, which is another one than when the wait began.
    """
    path, part = recorded(jdk.version), tmp_path / "part.jfr"
    events = threads("timeline", path)["events"]
    since, tried = {}, 0
    handed = []  # the times at which a thread got the lock that another one had awaited for longer
    for e in events:
        waits = e["type"] == "TRCThreadWaitingForLockEvent" and "Shelf" in str(
            e.get("lockedObject")
        )
        if e["threadId"] in since and not waits:
            since.pop(e["threadId"])
            if any(other < e["time"] - 2 * MS for other in since.values()):
                handed.append(e["time"] + MS)
        elif waits:
            since[e["threadId"]] = e["time"]
    for a in handed[:20]:
        flags = ("--from", f"{a}ns", "--to", f"{a + 60 * MS}ns")
        assert lab.jvmscope("convert", *flags, path, "-o", part).returncode == 0
        for found in (threads("critical-path", path, *flags), threads("critical-path", part)):
            tried += 1
            # The threads do nothing but sleep with the lock.
            first = found["segments"][0]
            assert first["state"] != "lock" or first["ns"] < 3 * MS, (flags, first)
    assert tried >= 6


@pytest.mark.jdks(8, 17, 25)
def test_blocks_are_those_of_the_report(jdk):
    """`report` has no waits to get a lock back after Object.wait; the other figures are the same,
    and so are the methods.
    """
    path = recorded(jdk.version)
    found = threads("monitors", path)
    report = json.loads(lab.output("report", "--json", "--metric", "locks", path))["locks"]
    blocked = sum(row["blocked_ns"] for row in found["threads"])
    assert found["back"] > 0 or int(jdk.version) >= 27
    assert blocked - found["back_ns"] == report["total"] > 0
    summary = threads("summary", path)
    assert (summary["back"], summary["back_ns"]) == (found["back"], found["back_ns"])
    for verb in ("summary", "monitors"):
        assert (f" of the blocks, {found['back']} " in lab.output("threads", verb, path)) == (
            found["back"] > 0
        ), verb
    assert "not in it: getting a lock back after Object.wait" in lab.output(
        "report", "--metric", "locks", path
    )


@pytest.mark.jdks(17)
def test_blocks_in_the_jdk_have_the_method_that_enters(jdk, tmp_path):
    """A selector enters a monitor in a method of its own, and not in the one that called it."""
    out = tmp_path / "selector.jfr"
    done = jdk.java("SelectorBlocks", jvm=[jdk.agent(f"threads=y,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    blocks = {
        b["method"].rsplit(".", 1)[1]
        for b in threads("monitors", out)["blocks"]
        if "nio.ch" in b["method"]
    }
    report = json.loads(lab.output("report", "--json", "--metric", "locks", out))["locks"]
    entered = {
        m["method"].rsplit(".", 1)[1]
        for m in report["methods"]
        if m["self"] > 0 and "nio.ch" in m["method"]
    }
    assert blocks == entered and blocks


@pytest.mark.jdks(17)
def test_whose_end_and_what_is_inferred(jdk):
    """The path and what-if name the thread whose end they took, and mark the same locks."""
    path = recorded(jdk.version)
    for flags in (("--end", "taker"), ("--end", "taker-1"), ("--thread", "taker"), ()):
        found, gains = threads("critical-path", path, *flags), threads("what-if", path, *flags)
        end = found["end_thread"]
        assert bool(end) == bool(flags) and (not flags or flags[1] in end), flags
        assert {g["end_thread"] for g in gains} == {end}, flags
        inferred = {row["class"]: row["inferred"] for row in found["locks"]}
        for g in gains:
            assert g["inferred"] == (inferred[g["lock"]] or g["ends_inferred"]), (flags, g)
        for verb in ("critical-path", "what-if", "what-if --lock Shelf"):
            text = lab.output("threads", *verb.split(), *flags, path)
            assert (f"up to the end of {end}" in text) == bool(flags), (verb, flags, text)
        marked = lab.output("threads", "what-if", *flags, path)
        for g in gains:
            assert (f"{g['lock']} (inferred)" in marked) == g["inferred"], (flags, marked)
    ends = {t["name"]: t["end_ns"] for t in threads("summary", path)["threads"]}
    last = max((name for name in ends if "taker" in name), key=ends.get)
    assert threads("critical-path", path, "--end", "taker")["end_thread"] == last


@pytest.mark.jdks(17)
def test_columns_of_the_timeline_are_straight(jdk):
    """An object begins at the same place in all rows, and no row ends in blanks."""
    head, *rows = lab.output("threads", "timeline", recorded(jdk.version)).splitlines()
    at = head.index("what it waited for")
    objects = [row for row in rows if "@" in row]
    assert objects and all(row[at - 2 : at] == "  " and row[at] != " " for row in objects)
    to = head.index("-> which")
    arrows = [row for row in rows if " -> " in row]
    assert arrows and all(row.index("-> ") == to for row in arrows)
    assert all(row == row.rstrip() for row in [head, *rows])
