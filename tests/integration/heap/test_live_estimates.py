# SPDX-License-Identifier: Apache-2.0
"""Live figures of heap=sites and alloc=exact: exact while every object is followed, then estimates
with their standard error.
"""
import collections
import json
import re
import subprocess

import pytest

import hproftext
import lab


def run(jdk, largest, options, file):
    done = jdk.java("LiveAmounts", largest, jvm=[jdk.agent(f"{options},file={file}"), "-Xmx512m"])
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    return done.stderr


def text_rows(path):
    """Returns by class the live and allocated objects and the standard error of the former, as in
    the file.
    """
    text = hproftext.Text(path)
    errors = text.live_errors[0] if text.live_errors else {}
    return {
        r.name: (r.live_objects, r.alloc_objects, errors.get(r.rank, (0, 0))[1])
        for r in text.sites[0]
        if r.name.startswith("LiveAmounts$")
    }


def json_rows(path):
    done = lab.jvmscope("report", "--json", path)
    assert done.returncode == 0, done.stderr
    return {
        s["class"]: (s["live_objects"], s["objects"], s.get("live_objects_error", 0))
        for s in json.loads(done.stdout)["allocations"]["sites"]
        if s["class"].startswith("LiveAmounts$")
    }


def check(rows, largest, spread):
    """All allocated figures are correct; live ones are within six standard errors, which are at
    most a part of the amount.
    """
    for power in range(len(str(largest))):
        amount = 10**power
        for kind, alive in (("Kept", amount), ("Dropped", 0)):
            live, allocated, error = rows[f"LiveAmounts${kind}{power}"]
            assert allocated == amount
            assert abs(live - alive) <= 6 * error, (kind, power, live, error)
            # The first twenty-five thousand objects are followed one by one, on every JDK.
            assert error <= spread * amount if power > 3 else error == 0, (kind, power, live, error)
    live, allocated, error = rows["LiveAmounts$Last"]
    assert allocated == 1 and abs(live - 1) <= error


def test_small_amounts_are_exact(jdk, tmp_path):
    err = run(jdk, 1000, "heap=sites,cutoff=0", tmp_path / "s.txt")
    rows = text_rows(tmp_path / "s.txt")
    check(rows, 1000, 0)
    assert rows["LiveAmounts$Last"] == (1, 1, 0)
    # A few of the JDK's own objects are attributed to another stack of the same place, which counts
    # as an error.
    assert re.search(
        r"live (exact, every object was followed|estimated from .* live bytes 0\.\d\d %)", err
    ), err


@pytest.mark.jdks(8, 11, 25)
def test_large_amounts_carry_their_error(jdk, tmp_path):
    """A text has figures with the digits that their error allows. Figures below their error come
    last.
    """
    err = run(jdk, 1000000, "heap=sites,cutoff=0", tmp_path / "s.txt")
    assert re.search(
        r"live estimated from \d+ followed objects, standard error of live bytes \d+\.\d\d %", err
    ), err
    rows = text_rows(tmp_path / "s.txt")
    # One stack is sampled in each sixteenth of what a place has counted.
    check(rows, 1000000, 0.1)
    live, _, error = rows["LiveAmounts$Kept6"]
    assert error > 100 and live % 100 == 0
    order = [r.name for r in hproftext.Text(tmp_path / "s.txt").sites[0]]
    assert order.index("LiveAmounts$Dropped6") > order.index("LiveAmounts$Kept1")


@pytest.mark.jdks(8, 17)
def test_errors_in_a_recording(jdk, tmp_path):
    """In JSON, and as a column of the table; what is below its error is marked."""
    run(jdk, 1000000, "alloc=exact,format=r", tmp_path / "s.jfr")
    check(json_rows(tmp_path / "s.jfr"), 1000000, 0.1)
    table = lab.output("report", "--limit", "1000", tmp_path / "s.jfr")
    assert re.search(r"^ *\d+ +\d+ +\d+ +\d+ +1000000  *LiveAmounts\$Kept6 ", table, re.M), table
    assert re.search(
        r"^ *<\d+ +\d+ +<\d+ +\d+ +1000000  *LiveAmounts\$Dropped6 ", table, re.M
    ), table
    assert (
        re.search(r"< fewer live bytes than their standard error: \d+ sites", table)
        and "+- is the standard error" in table
    )


def attached(jdk, program, options, out, *jvm):
    """Runs a program that waits for a line at its start and at its end, and records it by attach in
    between.
    """
    vm = jdk.start_java(
        *program, jvm=jvm, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert vm.stdout.readline() == "ready\n"
        done = lab.jvmscope("attach", *options, "-o", out, vm.pid)
        assert done.returncode == 0, done.stderr
        vm.stdin.write("\n")
        vm.stdin.flush()
        assert vm.stdout.readline() == "done\n"
        done = lab.jvmscope("stop", vm.pid)
        assert done.returncode == 0 and not lab.lost(done.stderr), done.stderr
    finally:
        vm.kill()
        vm.communicate()


def live_of_known(path):
    """By class of LiveKnown: its live objects, all of its objects, and the sum of the errors of the
    former.
    """
    found = {}
    for s in lab.read_json("report", "--json", path)["allocations"]["sites"]:
        if s["class"].startswith("LiveKnown$"):
            live, objects, error = found.get(s["class"][len("LiveKnown$") :], (0, 0, 0))
            found[s["class"][len("LiveKnown$") :]] = (
                live + s["live_objects"],
                objects + s["objects"],
                error + s.get("live_objects_error", 0),
            )
    return found


@pytest.mark.parametrize(
    "options", [["--heap=sites"], ["--alloc=exact"], ["--alloc=exact", "--live"]], ids=" ".join
)
@pytest.mark.parametrize("how", ["run", "attach"])
@pytest.mark.jdks(8, 11, 17, 25, slow=(21, 27))
def test_small_classes_are_exact_after_millions_of_other_objects(jdk, how, options, tmp_path):
    """The live objects of classes with few objects are exact with every option, even those made
    after five million others, whose number is estimated without --live.
    """
    out = tmp_path / "s.jfr"
    if how == "attach":
        attached(jdk, ["LiveKnown", "waits"], options, out)
    else:
        done = jdk.run(
            lab.BUILD / "jvmscope",
            "run",
            *options,
            "-o",
            out,
            "--",
            "java",
            "-cp",
            lab.compiled("LiveKnown"),
            "LiveKnown",
        )
        assert done.returncode == 0, done.stderr
    found = live_of_known(out)
    live, objects, error = found.pop("Dropped")
    assert objects == 5_010_000 and live <= 6 * error and error <= 0.05 * objects
    assert error == 0 or "--live" not in options
    few = {f"Few{i}": (100, 100, 0) for i in range(10)}
    assert found == {
        "First": (10_000, 10_000, 0),
        "Second": (10_000, 10_000, 0),
        "Late": (10_000, 10_000, 0),
        **few,
    }


@pytest.mark.jdks(8, 17, 25)
def test_objects_whose_constructor_throws_are_not_live(jdk, tmp_path):
    """No other object of the same place is followed instead of one that was to be followed and has
    been lost to an exception. An object whose argument is one of the same place has no such fate.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "LiveThrows", jvm=("-Xmx512m", jdk.agent(f"alloc=exact,depth=8,format=r,file={out}"))
    )
    assert done.returncode == 0, done.stderr
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for s in lab.read_json("report", "--json", out)["allocations"]["sites"]:
        if s["class"].startswith("LiveThrows$"):
            row = rows[s["class"][len("LiveThrows$") :]]
            row[0] += s["live_objects"]
            row[1] += s["objects"]
            row[2] += s.get("live_objects_error", 0)
    for name, expected in {"Half": 500_000, "Nested": 1_000_000}.items():
        live, objects, error = rows[name]
        assert objects == 1_000_000 and error > 0, rows
        assert abs(live - expected) <= 5 * error and error < 0.4 * expected, rows


def nested_deviations(jdk, out):
    """Of the four stacks that lead to one place of LiveThrows, each with 250,000 live objects: how
    far the live objects are from that, and the stated error.
    """
    done = jdk.java(
        "LiveThrows", jvm=("-Xmx512m", jdk.agent(f"alloc=exact,depth=8,format=r,file={out}"))
    )
    assert done.returncode == 0, done.stderr
    found = [
        (abs(s["live_objects"] - 250_000), s["live_objects_error"])
        for s in lab.read_json("report", "--json", out)["allocations"]["sites"]
        if s["class"] == "LiveThrows$Nested"
    ]
    assert len(found) == 4, found
    return found


@pytest.mark.jdks(8, 17, 25)
def test_the_error_of_a_stack_includes_how_a_place_is_divided_among_stacks(jdk, tmp_path):
    for off, error in nested_deviations(jdk, tmp_path / "n.jfr"):
        assert off <= 5 * error and 15_000 < error < 45_000, (off, error)


@pytest.mark.slow
@pytest.mark.jdks(8, 25)
def test_live_figures_are_within_their_error_as_often_as_it_says(jdk, tmp_path):
    """One standard error in 68 % of all cases, two in 95 %; of 120 figures, each bound is missed by
    chance in less than one run of ten thousand.
    """
    found = [pair for i in range(30) for pair in nested_deviations(jdk, tmp_path / f"n{i}.jfr")]
    once = sum(off <= error for off, error in found) / len(found)
    twice = sum(off <= 2 * error for off, error in found) / len(found)
    assert 0.5 < once < 0.86 and twice > 0.85, (once, twice)


@pytest.mark.jdks(8, 17, 25)
def test_a_stack_that_no_stratum_was_attributed_to_is_not_exact(jdk, tmp_path):
    """It may have had objects in each of them."""
    out = tmp_path / "s.jfr"
    done = jdk.java(
        "LiveSeldomStack", jvm=("-Xmx512m", jdk.agent(f"alloc=exact,depth=8,format=r,file={out}"))
    )
    assert done.returncode == 0, done.stderr
    [(live, error)] = [
        (s["live_objects"], s.get("live_objects_error", 0))
        for s in lab.read_json("report", "--json", out)["allocations"]["sites"]
        if s["class"] == "LiveSeldomStack$Node" and any(".seldom" in f for f in s["trace"])
    ]
    assert abs(live - 600) <= 5 * error and 1000 < error < 50_000, (live, error)


@pytest.mark.jdks(8, 17, 25, daily=1)
def test_short_threads_have_their_share_in_the_error(jdk, tmp_path):
    """With threads in traces, each thread's end cuts its strata short. The row of a place has the
    sum of its threads, and an error that includes them all: of 32 rows, chance leaves fewer than
    fourteen within one error, or fewer than 26 within two, in less than one run of ten thousand.
    """
    rows = []
    for i in range(4):
        out = tmp_path / f"{i}.jfr"
        done = jdk.java(
            "LiveShortThreads",
            200,
            60,
            i,
            jvm=("-Xmx512m", jdk.agent(f"heap=sites,thread=y,cutoff=0,format=r,file={out}")),
        )
        assert done.returncode == 0, done.stderr
        truth = [int(n) for n in done.stdout.split()]
        sites = sorted(
            (s["trace"][0], s["objects"], s["live_objects"], s.get("live_objects_error", 0))
            for s in lab.read_json("report", "--json", out)["allocations"]["sites"]
            if s["class"] == "LiveShortThreads$Kept"
        )
        assert [s[1] for s in sites] == [200 * 60] * 8, sites
        rows += [(live, error, n) for (_, _, live, error), n in zip(sites, truth, strict=True)]
    within = [sum(abs(live - n) <= k * error for live, error, n in rows) for k in (1, 2)]
    assert within[0] >= 14 and within[1] >= 26, (within, rows)
    assert all(0 < error < 0.05 * live for live, error, _ in rows), rows


@pytest.mark.jdks(8, 17)
def test_errors_by_attach(jdk, tmp_path):
    """After attach, when most of what was counted is garbage, no error exceeds what one sample may
    miss, or the heap.
    """
    heap = 128 << 20
    attached(
        jdk, ["LiveAmounts", 1000000, "waits"], ["--alloc=exact"], tmp_path / "s.jfr", "-Xmx128m"
    )
    check(json_rows(tmp_path / "s.jfr"), 1000000, 0.1)
    sites = lab.read_json("report", "--json", tmp_path / "s.jfr")["allocations"]["sites"]
    wasted = [
        s
        for s in sites
        if s["class"] == "byte[]" and any("LiveAmounts.waste" in f for f in s["trace"])
    ]
    assert sum(s["objects"] for s in wasted) == 1500000, wasted
    for s in wasted:
        # One of 256 objects is sampled.
        assert s["live_bytes"] <= s["live_bytes_error"] <= 1016 * (1500000 / 256 + 1), s
    assert all(s.get("live_bytes_error", 0) <= heap for s in sites)


@pytest.mark.jdks(8, 25)
def test_no_thread_awaits_an_object_that_no_probe_offers(jdk, tmp_path):
    """Where a place's objects cannot be tracked, the agent must not wait for one: otherwise the
    probe after every constructor would make a call from then on.
    """
    vm = jdk.start_java(
        "NeverOffered", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert vm.stdout.readline() == "ready\n"
        done = lab.jvmscope(
            "attach", "--alloc=exact", "--include", "NeverOffered", "-o", tmp_path / "n.jfr", vm.pid
        )
        assert done.returncode == 0, done.stderr
        vm.stdin.write("\n")
        vm.stdin.flush()
        assert vm.stdout.readline() == "done\n"
        status = lab.read_json("status", "--json", vm.pid)
        assert lab.jvmscope("stop", vm.pid).returncode == 0
    finally:
        vm.kill()
        vm.communicate()
    assert status["alloc.stack_samples"] >= 2000 and status["alloc.awaiting"] == 0, status
    found = {
        s["class"]: s["objects"]
        for s in lab.read_json("report", "--json", tmp_path / "n.jfr")["allocations"]["sites"]
    }
    assert found["NeverOffered$Outer"] == found["NeverOffered$Inner"] == 1000


def of_callers(rows):
    """By class of LiveCallers: its live objects for each caller, as {"keeps": n}, and all of its
    objects. Rows: class, the stack's methods, live objects, all objects.
    """
    found = {}
    for name, stack, live, objects in rows:
        name = name.removeprefix("LiveCallers$")
        # The JDK's own methods are not among the callers.
        caller = next((m for m in stack if m in ("LiveCallers.keeps", "LiveCallers.drops")), None)
        if (
            name.strip("[]") in ("Plain", "Nested", "Row", "Fixed", "Matrix", "Cloned", "Copied")
            and caller
        ):
            kept, all_of = found.setdefault(name, ({}, {}))
            kept[caller[12:]] = kept.get(caller[12:], 0) + live
            all_of[caller[12:]] = all_of.get(caller[12:], 0) + objects
    return found


def expected_of_callers(n):
    once = ({"keeps": n, "drops": 0}, {"keeps": n, "drops": n})
    return {
        "Plain": once,
        "Nested": ({"keeps": n, "drops": 0}, {"keeps": n, "drops": 2 * n}),
        "Row[]": once,
        "Fixed[]": once,
        "Matrix[][]": once,
        "Matrix[]": once,
        "Cloned[]": once,
        "Copied[]": once,
    }


@pytest.mark.parametrize(
    "options", [["--alloc=exact", "--live=exact"], ["--live"], ["--alloc=exact"]], ids=" ".join
)
@pytest.mark.jdks(8, 17, 25)
def test_each_caller_has_its_own_live_objects(jdk, options, tmp_path):
    """Two callers reach each place, and only what one of them gets stays alive. With live=exact
    each object has the stack of its own allocation, however many there are; so have the first
    objects without it.
    """
    n = 2000 if options == ["--alloc=exact"] else 20000
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        *options,
        "--depth=10",
        "-o",
        tmp_path / "c.jfr",
        "--",
        "java",
        "-cp",
        lab.compiled("LiveCallers"),
        "LiveCallers",
        n,
    )
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
    sites = lab.read_json("report", "--json", tmp_path / "c.jfr")["allocations"]["sites"]
    # Without live=exact, objects whose constructors have thrown count as objects that were not
    # followed.
    thrown = ("LiveCallers$Nested",) if options == ["--alloc=exact"] else ()
    assert not [
        s
        for s in sites
        if s["class"].startswith("LiveCallers$")
        and s.get("live_objects_error")
        and s["class"] not in thrown
    ]
    # Only without live=exact do callers share the count of a place.
    shared = "a place to which several stacks lead" in lab.output("report", tmp_path / "c.jfr")
    assert shared == (options == ["--alloc=exact"])
    assert of_callers(
        (s["class"], [f.split(":")[0] for f in s["trace"]], s["live_objects"], s["objects"])
        for s in sites
    ) == expected_of_callers(n)


@pytest.mark.parametrize("options", ["heap=all", "heap=sites,live=exact", "heap=sites"])
@pytest.mark.jdks(8, 17, 25)
def test_each_caller_has_its_own_live_objects_in_text(jdk, options, tmp_path):
    """In HPROF's text each caller of a place has its own live objects, and each object of a dump has
    the stack that allocated it.
    """
    n = 2000
    done = jdk.java(
        "LiveCallers", n, jvm=[jdk.agent(f"{options},cutoff=0,depth=10,file={tmp_path}/s.txt")]
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    stacks = {trace: [f[0] for f in frames] for trace, frames in text.traces.items()}
    assert of_callers(
        (r.name, stacks[r.trace], r.live_objects, r.alloc_objects) for r in text.sites[0]
    ) == expected_of_callers(n)
    if options == "heap=all":
        plain = [
            stacks[trace]
            for name, _, trace in text.heaps[0].instances.values()
            if name == "LiveCallers$Plain"
        ]
        assert len(plain) == n and all("LiveCallers.keeps" in s for s in plain)


@pytest.mark.jdks(8, 17, 25)
def test_objects_of_a_stratum_that_has_not_ended_are_in_the_estimate(jdk, tmp_path):
    """Shortly after the last object that was followed for itself."""
    off = []
    for n in (33_000, 33_500, 34_000, 34_500, 35_000):
        out = tmp_path / f"{n}.jfr"
        done = jdk.java("LiveUnfinished", n, jvm=[jdk.agent(f"heap=sites,format=r,file={out}")])
        assert done.returncode == 0, done.stderr
        (row,) = [
            s
            for s in lab.read_json("report", "--json", out)["allocations"]["sites"]
            if s["class"] == "LiveUnfinished$Kept"
        ]
        assert row["objects"] == n, row
        error = row.get("live_objects_error", 0)
        off.append((n, row["live_objects"], error))
        assert abs(row["live_objects"] - n // 2) <= 4 * error, off
    # The estimate is near the truth too, and its error is not that of half of all objects.
    assert all(error < n // 10 for n, _, error in off), off
