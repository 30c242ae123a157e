# SPDX-License-Identifier: Apache-2.0
"""A stack that is recognized instead of walked is the right one: what live=exact counts for stacks
that differ in only one thing.
"""
import re

import pytest

import lab

KINDS = ("Turned", "Deep", "Lined", "Thrown", "Part", "Loaded", "Shared")
# Methods of the program that are not part of a case.
OUTSIDE = re.compile(r"main|threads|expect|lambda\$|keep")


def stack_of(trace):
    """The program's methods as it prints them: "make mid left turns", with the line of the one that
    has two.
    """
    names = []
    for frame in trace:
        m = re.match(r"StackTurns(?:\$(\w+))?\.([\w$<>]+)(?::(\d+))?", frame)
        if m and not m[1] and OUTSIDE.match(m[2]):
            continue
        if m and (not m[1] or m[1][:5] in ("Maker", "Guest")):
            names.append(
                (f"{m[1]}." if m[1] else "") + m[2] + (f":{m[3]}" if m[2] == "lines" else "")
            )
    return " ".join(names)


def with_ordered_lines(found):
    lines = sorted({k.rsplit(":", 1)[1] for k in found if " lines:" in k}, key=int)
    assert len(lines) <= 2, lines
    names = dict(zip(lines, ("first", "second")))
    return {
        re.sub(r"lines:(\d+)$", lambda m: f"lines:{names[m[1]]}", k): v for k, v in found.items()
    }


def counted(path):
    found = {}
    for s in lab.read_json("report", "--json", path)["allocations"]["sites"]:
        kind = s["class"].removeprefix("StackTurns$")
        if kind not in KINDS:
            continue
        assert not s.get("live_objects_error"), s
        key = f"{kind} {stack_of(s['trace'])}"
        live, objects = found.get(key, (0, 0))
        found[key] = (live + s["live_objects"], objects + s["objects"])
    return with_ordered_lines(found)


def run(jdk, tmp_path, options, rounds, *flags):
    out = tmp_path / "t.jfr"
    virtual = ["virtual"] if jdk.version >= 21 else []
    done = jdk.java(
        "StackTurns",
        rounds,
        *virtual,
        timeout=300,
        jvm=[
            *flags,
            "-Xmx256m",
            jdk.agent(f"alloc=exact,live=exact,depth=24,format=r,{options}file={out}"),
        ],
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
    expected = {}
    for line in done.stdout.splitlines()[:-1]:
        of, live, objects = line.rsplit(" ", 2)
        if int(objects):
            expected[of] = (int(live), int(objects))
    assert counted(out) == expected
    return done.stderr


@pytest.mark.parametrize(
    "flags", [[], ["-Xint"], ["-XX:TieredStopAtLevel=1"], ["-XX:-Inline"]], ids=" ".join
)
@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_each_stack_has_its_own_objects(jdk, flags, tmp_path):
    """For each stack, the numbers of all objects and of live ones are those that the program has
    counted.
    """
    run(jdk, tmp_path, "", 8000 if flags == ["-Xint"] else 40000, *flags)


@pytest.mark.parametrize("flags", [[], ["-Xint"]], ids=" ".join)
@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_recognized_stacks_are_what_a_walk_finds(jdk, flags, tmp_path):
    """Walks each stack that was recognized, and compares."""
    err = run(jdk, tmp_path, "stacks=check,", 8000, *flags)
    recognized, mistaken = map(
        int, re.search(r"(\d+) recognized, (\d+) of them mistaken", err).groups()
    )
    assert recognized > 20000 and mistaken == 0, err
    assert re.search(r"stacks=check: \d+ compared, 0 different", err), err
