# SPDX-License-Identifier: Apache-2.0
"""cpu=times against the truth that programs measure themselves: shares of CPU time, their
intervals, elapsed time per call.
"""
import json
import subprocess

import lab
import pytest


def recorded(jdk, tmp_path, program, *args, options, jvm=()):
    """(what the program printed, methods by short name, the recording)"""
    out = tmp_path / "times.jfr"
    done = jdk.java(
        program, *args, jvm=[*jvm, jdk.agent(f"cpu=times,{options},format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr
    report = lab.jvmscope("report", "--json", out)
    assert report.returncode == 0, report.stderr
    methods = {m["method"].split(".")[-1]: m for m in json.loads(report.stdout)["times"]["methods"]}
    return done.stdout, methods, out


FORTY = [f"w{i:02d}" for i in range(40)]
# The program's clock sees choosing and calling a method as part of the forty methods.
PARTS = {
    "heavy": ["heavy"],
    "forty": [*FORTY, "call", "random", "main"],
    "tiny": ["tinies", "tiny", "tinier"],
}


def shares(jdk, tmp_path, seconds):
    """Runs TimesShares: ({part: (true share, found share)}, {method: (its interval, true raw
    time)}, methods).
    """
    own, methods, _ = recorded(
        jdk,
        tmp_path,
        "TimesShares",
        seconds,
        options="include=TimesShares,exclude=TimesShares.work",
    )
    plain = dict(
        line.split() for line in jdk.java("TimesShares", max(2, seconds / 4)).stdout.splitlines()
    )
    found = {part: sum(methods[m]["self_ns"] or 0 for m in names) for part, names in PARTS.items()}
    true = {part: int(plain[part]) for part in PARTS}
    parts = {p: (true[p] / sum(true.values()), found[p] / sum(found.values())) for p in PARTS}
    raw = sum(methods[m]["raw_self_ns"] for m in FORTY)
    weights = dict(line.split() for line in own.splitlines())
    claims = {m: (methods[m]["raw_self_ns_95"], float(weights[m]) * raw) for m in FORTY}
    return parts, claims, methods


def check_ranks(methods):
    """Tiny methods that are called millions of times rank after what takes the time; the original
    ranks them first.
    """
    tiny = sum(methods[m]["self_ns"] or 0 for m in PARTS["tiny"])
    assert methods["tiny"]["calls"] > 1000000
    assert max(methods.values(), key=lambda m: m["self_ns"] or 0)["method"] == "TimesShares.heavy"
    assert methods["heavy"]["self_ns"] > 3 * tiny


@pytest.mark.jdks(17)
def test_tiny_methods_are_ranked_where_they_belong(jdk, tmp_path):
    check_ranks(shares(jdk, tmp_path, 4)[2])


@pytest.mark.measured
@pytest.mark.slow
def test_shares_and_their_intervals(jdk, tmp_path, record_property):
    """Enough CPU time for thousands of readings, so that three points are three standard deviations
    and more.
    """
    parts, claims, methods = shares(jdk, tmp_path, 30)
    record_property("shares", str(parts))
    check_ranks(methods)
    assert all(abs(true - found) <= 0.03 for true, found in parts.values()), parts
    right = sum(low <= true <= high for (low, high), true in claims.values())
    record_property("intervals", f"{right} of {len(claims)}")
    # With a coverage of 95 % there are fewer than 35 once in 300 runs; with one of 80 %, in 2 of 3
    # runs.
    assert right >= 35, claims


@pytest.mark.measured
@pytest.mark.jdks(8, 25)
def test_nothing_is_claimed_on_few_readings(jdk, tmp_path):
    _, methods, out = recorded(jdk, tmp_path, "TimesTruth", 3000, options="include=TimesTruth*")
    assert all(
        (m["raw_self_ns_95"] is None) == (m["readings"] < 10)
        for m in methods.values()
        if m["method"] != "[no reading of the clock]"
    )
    unseen = [
        m
        for m in methods.values()
        if m["readings"] == 0 and m["calls"] >= 3000 and m.get("timed", True)
    ]
    assert unseen and all(m["self_ns"] is None and m["raw_self_ns"] == 0 for m in unseen), unseen
    text = lab.jvmscope("report", "--limit", "1000", out).stdout
    name = unseen[0]["method"]
    row = next(line for line in text.splitlines() if line.endswith("  " + name))
    assert row.split()[1:3] == ["-", "-"] and "too few readings" in row, row


SHAPES = ("straight", "nested", "recursive", "virtual", "throwing")


def accuracy(jdk, steps, calls, jvm=(), when_warm=None):
    """Runs TimesAccuracy; returns {shape: its row}. `calls` is called with the process when the
    program is warm.
    """
    program = jdk.start_java(
        "TimesAccuracy",
        calls,
        jvm=[f"-Dsteps={steps}", *jvm],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert program.stdout.readline() == "warm\n"
        if when_warm:
            when_warm(program)
        printed = program.communicate("\n", timeout=300)[0]
    finally:
        program.kill()
        program.communicate()
    return {line.split()[0]: line.split() for line in printed.splitlines()}


def times_of(file):
    report = lab.jvmscope("report", "--json", file)
    assert report.returncode == 0, report.stderr
    return {m["method"].split(".")[-1]: m for m in json.loads(report.stdout)["times"]["methods"]}


def elapsed_a_call(jdk, steps, calls, folder):
    """Returns {shape: (its row, ns per call as reported)} for the calls after the JIT has compiled
    everything: the report minus that of an earlier dump.
    """
    early, last = folder / "early.jfr", folder / "last.jfr"

    def dump(program):
        done = lab.jvmscope("dump", "-o", early, program.pid)
        assert done.returncode == 0, done.stderr

    agent = jdk.agent(f"cpu=times,clock=elapsed,include=TimesAccuracy*,format=r,file={last}")
    rows, before, after = (
        accuracy(jdk, steps, calls, [agent], dump),
        times_of(early),
        times_of(last),
    )
    ns = {
        s: (after[s]["self_ns"] - before[s]["self_ns"]) / (after[s]["calls"] - before[s]["calls"])
        for s in SHAPES
    }
    return {s: (rows[s], ns[s]) for s in SHAPES}


def quiet(run):
    """Runs until each shape has had the machine to itself once. Returns {shape: what is reported
    for it}. The last word of a row is elapsed time divided by CPU time.
    """
    found = {}
    for _ in range(12):
        for shape, (row, ns) in run().items():
            if float(row[4]) <= 1.08:
                found.setdefault(shape, ns)
        if len(found) == len(SHAPES):
            return found
    pytest.fail("the machine is too busy to measure elapsed time on")


@pytest.mark.measured
@pytest.mark.slow
@pytest.mark.parametrize(
    "steps, calls", [(40, 500000), (150, 300000), (500, 100000), (1200, 50000)]
)
def test_elapsed_time_a_call(jdk, tmp_path, steps, calls, record_property):
    """Methods of about 33, 120, 400 and 1000 ns. Below about 15 ns the clock is too coarse:
    doc/cpu-times.md.
    """
    truth = quiet(
        lambda: {s: (row, float(row[3])) for s, row in accuracy(jdk, steps, calls).items()}
    )
    found = quiet(lambda: elapsed_a_call(jdk, steps, calls, tmp_path))
    ratios = {s: found[s] / truth[s] for s in SHAPES}
    record_property("ratios", str(ratios))
    print(jdk.version, steps, {s: (round(truth[s], 1), round(found[s], 1)) for s in SHAPES})
    assert all(0.8 <= ratio <= 1.2 for ratio in ratios.values()), ratios
