# SPDX-License-Identifier: Apache-2.0
"""What is counted exactly (calls, lines, allocations, exceptions) is the same known number in every
capture, table and format.
"""
import collections
import datetime
import gzip
import json
import re
import time
import xml.etree.ElementTree

import lab
import outputs
from outputs import method
import pytest


@pytest.mark.jdks(8, 17, 25)
def test_a_class_defined_without_a_name_is_counted_by_every_capture(jdk, tmp_path):
    out = tmp_path / "t.jfr"
    options = "trace=Unnamed$Body.run,cover=y,cpu=times,alloc=exact,exceptions=counts"
    done = jdk.java(
        "Unnamed", jvm=(jdk.agent(f"{options},include=Unnamed,format=r,file={out}"), "-Xmx64m")
    )
    assert (done.returncode, done.stdout) == (0, "done Unnamed$Body\n"), done.stderr
    assert len(lab.read_json("trace", "--json", out)["calls"]) == 100
    report = lab.read_json("report", "--json", out)
    assert method(report["times"]["methods"], "Unnamed$Body.run")["calls"] == 100
    assert [
        s["objects"]
        for s in report["allocations"]["sites"]
        if s["class"] == "long[]" and "Unnamed$Body.run" in s["trace"][0]
    ] == [100]
    body = next(
        c
        for c in lab.read_json("coverage", "--json", out)["classes"]
        if c["class"] == "Unnamed$Body"
    )
    assert method(body["by_method"], "run")["hit"]


@pytest.mark.jdks(8, 11, 17, 25)
def test_allocations_of_a_class_of_a_thousand_loaders_are_counted_once(jdk, tmp_path):
    """The VM also samples what is counted: a sample in one loader's copy of a method is of an
    object that the place's count includes.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "ManyLoaders", 1000, jvm=(jdk.agent(f"alloc=exact,format=r,file={out}"), "-Xmx256m")
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    table = lab.read_json("report", "--json", out)["allocations"]
    rows = [
        s
        for s in table["sites"]
        if s["class"] == "long[]" and "ManyLoaders$Body.one" in "".join(s["trace"][:1])
    ]
    assert sum(r["objects"] for r in rows) == 100_000 and sum(r["bytes"] for r in rows) == 4_800_000
    assert not any(r.get("estimated") for r in rows)


COUNTED = "cover=y,cpu=times,alloc=exact,exceptions=counts,include=Counted"


def counts(out):
    """What a recording of Counted contains of each known amount; None if it contains nothing yet."""
    found = dict.fromkeys(("calls", "objects", "bytes", "throws", "covered"))
    done = lab.jvmscope("report", "--json", out)
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    called = method(report.get("times", {}).get("methods", []), "Counted.called")
    found["calls"] = called and called["calls"]
    for site in report.get("allocations", {}).get("sites", []):
        # While a save goes on, what is not yet in it by site is there without a stack.
        if site["class"] == "long[]" and "Counted.allocate" in "".join(site["trace"][:1]):
            found.update(objects=site["objects"], bytes=site["bytes"], live=site["live_objects"])
    done = lab.jvmscope("trace", "--exceptions", "--json", out)
    if done.returncode == 0:
        rows = json.loads(done.stdout)["exceptions"]
        found["throws"] = sum(
            r["count"] for r in rows if r["class"] == "java.lang.IllegalStateException"
        )
    done = lab.jvmscope("coverage", "--json", out)
    if done.returncode == 0:
        body = next(c for c in json.loads(done.stdout)["classes"] if c["class"] == "Counted")
        found["covered"] = sorted(m["method"] for m in body["by_method"] if m["hit"])
    return found


def truth(rounds):
    """The true amounts. bytes: 16 longs and the array's header, which has 16 bytes by default on
    every JDK.
    """
    ran = ["allocate", "called", "fail", "main", "round"] + (["later"] if rounds > 1 else [])
    return {
        "calls": 1000 * rounds,
        "objects": 500 * rounds,
        "bytes": 500 * 144 * rounds,
        "throws": 100 * rounds,
        "covered": sorted(ran),
    }


def wait_for_counts(out, want):
    """Reads the recording while it is being written, until the counts of a save are in it."""
    return lab.wait_for(
        lambda: {**(found := counts(out)), **want} == found and found, 60, f"a save of {want}"
    )


@pytest.mark.parametrize("version, end", [(8, "killed"), (17, "ended"), (27, "killed")])
def test_counts_are_saved_while_the_program_runs_and_none_twice(version, end, tmp_path):
    jdk, out = lab.Jdk(version), tmp_path / "t.jfr"
    process = jdk.start_java(
        "Counted",
        jvm=(jdk.agent(f"{COUNTED},format=r,file={out}"), "-Xmx64m"),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    try:
        for number in (1, 2):
            process.stdin.write("\n")
            process.stdin.flush()
            lab.read_until(process.stdout, f"round {number}\n")
            assert wait_for_counts(out, truth(number))["live"] is None
    finally:
        if end == "killed":
            process.kill()
        rest = process.communicate()
    found = counts(out)
    assert {**found, **truth(2)} == found
    assert (found["live"] is None) == (end == "killed"), rest


STAGES = [
    n
    for n, text in enumerate(
        (lab.ROOT / "tests" / "java" / "Ticks.java").read_text().splitlines(), 1
    )
    if " stages += " in text
]


def ticks_counted(out):
    """What a recording of Ticks says of its ticks, by capture; for coverage the number of its
    stages.
    """
    report = lab.read_json("report", "--json", out)
    found = {"times": method(report["times"]["methods"], "Ticks.tick")["calls"]}
    found["alloc"] = sum(
        s["objects"]
        for s in report["allocations"]["sites"]
        if "Ticks.allocate" in "".join(s["trace"][:1])
    )
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    found["exceptions"] = sum(
        r["count"] for r in rows if r["class"] == "java.lang.IllegalStateException"
    )
    found["requests"] = sum(
        n["count"] for n in lab.read_json("requests", "--json", out)["requests"]
    )
    lines = next(
        c for c in lab.read_json("coverage", "--json", out)["classes"] if c["class"] == "Ticks"
    )["by_line"]
    found["coverage"] = sum(r["hit"] for r in lines if r["line"] in STAGES)
    return found


@pytest.mark.jdks(8, 17, 25)
def test_the_counts_of_a_killed_program_are_those_of_the_moment_that_is_reported(jdk, tmp_path):
    """What is only counted is saved every few seconds, so after a kill it is older than the last
    events. Every verb says as of when it is.
    """
    out, output_text = tmp_path / "t.jfr", tmp_path / "said"
    options = (
        "alloc=exact,cpu=times,cover=y,exceptions=counts,requests=Ticks.request(..),include=Ticks"
    )
    with output_text.open("w") as stdout:
        process = jdk.start_java(
            "Ticks",
            jvm=(jdk.agent(f"{options},format=r,file={out}"), "-Xmx64m"),
            stdout=stdout,
            stderr=-1,
        )

    def saved():
        """All captures have been saved at one moment, and there had been ticks."""
        done = lab.jvmscope("report", "--json", out)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        calls = method(report.get("times", {}).get("methods", []), "Ticks.tick")
        return (
            calls and calls["calls"] > 200 and len({c["until_ns"] for c in report["counted"]}) == 1
        )

    lab.wait_for(saved, 60, "the counts of all captures")
    printed = len(output_text.read_text())
    lab.wait_for(
        lambda: len(output_text.read_text()) > printed + 500,
        60,
        "ticks that are counted after them",
    )
    process.kill()
    process.communicate()
    stated = lab.read_json("report", "--json", out)
    assert (
        stated["unended"] is True
        and lab.jvmscope("convert", "-o", tmp_path / "t.html", out).returncode == 0
    )
    page = outputs.page(tmp_path / "t.html")
    assert page["counted"] == stated["counted"]
    until = {c["capture"]: c["until_ns"] for c in stated["counted"]}
    ticks = [tuple(map(int, line.split())) for line in output_text.read_text().splitlines()]
    found = ticks_counted(out)
    assert sorted(found) == sorted(until)
    for capture, ns in until.items():
        # The clocks of the program and of the recording are compared to within some milliseconds.
        before = max((n for ms, n in ticks if ms < page["start_ms"] + ns / 1e6 - 20), default=0)
        least, most = (
            (min(before // 100, 6), 6) if capture == "coverage" else (before, ticks[-1][1] + 10)
        )
        assert least <= found[capture] <= most, (capture, ns, before, found)
    first = stated["counted"][0]["until_ns"] / 1e9
    for verb in (
        ["report"],
        ["trace", "--exceptions"],
        ["coverage"],
        ["requests"],
        ["convert", "-o", tmp_path / "t.html"],
    ):
        sentences = [
            s
            for s in lab.jvmscope(*verb, out).stderr.splitlines()
            if "the recording was not ended" in s
        ]
        missing = (
            r"everything after [\d.]+ s is missing(, and some of what happened after [\d.]+ s)?"
        )
        assert len(sentences) == 1 and re.search(f"{missing}; the counts of ", sentences[0]), (
            verb,
            sentences,
        )
        assert f"those of {first:.2f} s" in sentences[0] and all(
            c in sentences[0] for c in until
        ), (verb, sentences)
        assert sentences[0].endswith(
            "; of a name with more requests than that in the recording, these count"
        ), sentences


def test_calls_of_many_stacks_are_saved_as_totals_of_methods(tmp_path):
    """So many stacks are not written every few seconds. They are written at the end, and nothing
    counts twice.
    """
    out = tmp_path / "t.jfr"
    jdk = lab.Jdk(17)
    process = jdk.start_java(
        "Counted",
        15,
        jvm=(jdk.agent(f"cpu=times,include=Counted,format=r,file={out}"), "-Xmx64m"),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )

    def calls():
        done = lab.jvmscope("report", "--json", out)
        rows = (
            json.loads(done.stdout).get("times", {}).get("methods", [])
            if done.returncode == 0
            else []
        )
        return {r["method"]: r["calls"] for r in rows}

    def want(rounds):
        return {
            "Counted.left": rounds << 14,
            "Counted.right": rounds * ((1 << 14) - 1),
            "Counted.called": 1000 * rounds,
        }

    try:
        for number in (1, 2):
            process.stdin.write("\n")
            process.stdin.flush()
            lab.wait_for(
                lambda: {**(saved := calls()), **want(number)} == saved,
                90,
                f"a save of {want(number)}",
            )
        assert "[callers not saved]" in lab.jvmscope("report", out).stdout
    finally:
        output_text = process.communicate(timeout=120)
    assert {**calls(), **want(2)} == calls(), output_text
    assert "[callers not saved]" not in lab.jvmscope("report", "--stacks", "100000", out).stdout


def test_a_short_program_has_its_counts_and_no_times_from_a_few_readings(tmp_path):
    """cpu=times as text: the program's own methods with all calls, and a share of the time only
    where the clock was read.
    """
    text, jdk = tmp_path / "t.txt", lab.Jdk(17)
    process = jdk.start_java(
        "Counted", jvm=(jdk.agent(f"cpu=times,file={text}"),), stdin=-1, stdout=-1, stderr=-1
    )
    process.communicate("\n", timeout=120)
    rows = re.findall(
        r"^ *\d+ +([\d.]+)% +([\d.]+)% +(\d+) +\d+ (\S+)$",
        text.read_text().split("CPU TIME (ms) BEGIN")[1],
        re.M,
    )
    counts = {name: int(count) for _, _, count, name in reversed(rows)}
    assert counts["Counted.called"] == 1000 and counts["Counted.fail"] == 100
    shares = [float(share) for share, *_ in rows]
    # Ten readings stand for at least a hundredth of a second. A method with a share has at least
    # that much, and precedes those without one.
    assert shares == sorted(shares, reverse=True) and sum(shares) <= 100.5
    unknown = [int(count) for share, _, count, _ in rows if share == "0.00"]
    assert unknown == sorted(unknown, reverse=True) and len(unknown) > 20


def test_report_ranks_no_time_of_too_few_readings(tmp_path):
    """The rows of the report and of its JSON agree on what is known. If nothing is known, no stack
    is called hot.
    """
    out, jdk = tmp_path / "t.jfr", lab.Jdk(17)
    process = jdk.start_java(
        "Counted",
        jvm=(jdk.agent(f"cpu=times,format=r,file={out}"),),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    process.communicate("\n", timeout=120)
    times = lab.read_json("report", "--json", out)["times"]
    known = [m["self_ns_95"] is not None and m["self_ns_95"][0] > 0 for m in times["methods"]]
    methods = [m for m in times["methods"] if m["method"] != "[no reading of the clock]"]
    assert all((m["self_ns"] is None) == (m["readings"] == 0) for m in methods)
    assert times["clock"] == "cpu" and known == sorted(known, reverse=True)
    assert all(
        m["readings"] >= 10 or m not in methods
        for m, is_known in zip(times["methods"], known)
        if is_known
    )
    assert times["readings"] == sum(m["readings"] for m in times["methods"])
    table = lab.jvmscope("report", out).stdout
    called = next(l for l in table.splitlines() if l.endswith(" Counted.called"))
    assert (
        called.split()[:5] == ["1000", "-", "-", "-", "-"]
        or method(times["methods"], "Counted.called")["readings"]
    )
    assert times["readings"] >= 10 or "%" not in table.partition("Hottest stacks")[2]
    # Formats without a place for readings state how reliable the times are.
    lab.jvmscope("convert", "--metric", "times", "-o", tmp_path / "t.pb.gz", out, check=True)
    if times["readings"]:
        assert (
            lab.jvmscope("convert", "-o", tmp_path / "t.collapsed", tmp_path / "t.pb.gz").returncode
            == 0
        )
        for made in ("t.pb.gz", "t.collapsed"):
            again = lab.read_json("report", "--json", tmp_path / made)["times"]
            readings = "1 reading" if times["readings"] == 1 else f"{times['readings']} readings"
            assert f"times rest on {readings} of" in again["note"]
            unknown = [m.get("few_readings", False) or not m["self"] for m in again["methods"]]
            assert unknown == sorted(unknown), again["methods"]
            few = sum(m.get("few_readings", False) for m in again["methods"])
            table = lab.jvmscope(
                "report", "--stacks", 0, "-n", 100000, tmp_path / made
            ).stdout.split("self  method")[1]
            assert table.count(" ~") == few and few >= sum(
                0 < m["readings"] < 3 and m["self_ns"] > 0 for m in times["methods"]
            ), table
            rows = lab.read_json("diff", "--json", "--metric", "times", out, tmp_path / made)[
                "times"
            ]["methods"]
            unknown = [r.get("few_readings", False) for r in rows]
            marked = {
                m["method"] for m in again["methods"] if m.get("few_readings") or not m["self"]
            }
            certain = {m["method"] for m, is_known in zip(times["methods"], known) if is_known}
            assert unknown == sorted(unknown), rows
            assert all(
                r.get("few_readings", False)
                == (r["method"] not in certain and (not r["new"]["self"] or r["method"] in marked))
                for r in rows
            )
            assert (
                " ~ rough: "
                in lab.jvmscope(
                    "diff", "--metric", "times", "-n", 100000, out, tmp_path / made
                ).stdout
            ) == any(unknown)


def test_diff_marks_a_time_that_may_be_nothing_as_report_does(tmp_path):
    """All of a time, even one with many readings, may be the cost of counting: its interval then
    includes 0. The table of the report marks it, and so does a comparison.
    """
    out = tmp_path / "t.jfr"
    done = lab.Jdk(17).java(
        "Hot", "tiny", 1500, jvm=(lab.Jdk(17).agent(f"cpu=times,format=r,file={out}"),)
    )
    assert done.returncode == 0, done.stderr
    times = lab.read_json("report", "--json", out)["times"]["methods"]
    certain = {m["method"]: m["self_ns_95"] is not None and m["self_ns_95"][0] > 0 for m in times}
    vague = {m["method"] for m in times if m["readings"] >= 10 and not certain[m["method"]]}
    assert vague, times[:5]
    rows = lab.read_json("diff", "--json", out, out)["times"]["methods"]
    assert {r["method"]: r.get("few_readings", False) for r in rows} == {
        r["method"]: not certain.get(r["method"], False) for r in rows
    }
    assert vague & {r["method"] for r in rows}


def test_diff_of_different_clocks_says_so(tmp_path):
    """A comparison of elapsed with CPU time names the clocks, in both orders. Figures with too few
    readings on one side are rough, unless the other side, which is exact, has a larger share than
    they could have.
    """
    paths = {clock: tmp_path / f"{clock}.jfr" for clock in ("elapsed", "cpu")}
    for clock, path in paths.items():
        done = lab.Jdk(17).java(
            "Hot",
            "tiny",
            1500,
            jvm=(lab.Jdk(17).agent(f"cpu=times,clock={clock},format=r,file={path}"),),
        )
        assert done.returncode == 0, done.stderr
    named = {"elapsed": "elapsed time, waiting included", "cpu": "CPU time"}
    times = lab.read_json("report", "--json", paths["cpu"])["times"]
    known = {
        m["method"]
        for m in times["methods"]
        if m["self_ns_95"] is not None and m["self_ns_95"][0] > 0
    }
    for base, new in (
        ("elapsed", "cpu"),
        ("cpu", "elapsed"),
        ("cpu", "cpu"),
        ("elapsed", "elapsed"),
    ):
        text = lab.output("diff", paths[base], paths[new])
        assert (
            f"\n  the clocks differ: base has {named[base]}, new has {named[new]}\n" in text
        ) == (base != new), text
        found = lab.read_json("diff", "--json", paths[base], paths[new])["times"]
        assert (found["base_clock"], found["new_clock"]) == (base, new)
        few = {m["method"] for m in found["methods"] if m.get("few_readings")}
        assert (" ~ rough: " in text) == bool(
            {base, new} & {"cpu"} and any(line.startswith("~") for line in text.splitlines())
        )
        if base == new == "elapsed":
            assert not few
        elif base != new:
            exact, total = (
                ("base", found["base_total"]) if base == "elapsed" else ("new", found["new_total"])
            )
            least = times["total_ns"] // times["readings"] * 10 / times["total_ns"]
            assert (
                few
                == {
                    m["method"]
                    for m in found["methods"]
                    if m["method"] not in known and m[exact]["self"] / total < least
                }
                and few
            )


def run_counted(tmp_path, options, rounds=1, version=17, args=()):
    """A finished recording of Counted. Rounds are 10 ms apart, because in a burst of throws with
    stacks some are lost, which is reported.
    """
    out, jdk = tmp_path / "t.jfr", lab.Jdk(version)
    process = jdk.start_java(
        "Counted",
        *args,
        jvm=(jdk.agent(f"{options},format=r,file={out}"), "-Xmx64m"),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    for _ in range(rounds - 1):
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(0.01)
    output_text = process.communicate("\n", timeout=120)
    assert process.returncode == 0, output_text
    return out


def metrics(report):
    """The members of a report that are metrics, without those about losses."""
    return {
        key: value
        for key, value in report.items()
        if key in ("samples", "wall", "allocations", "locks", "times")
    }


def rate(lines):
    return sum(int(l.get("hits")) > 0 for l in lines) / len(lines) if lines else 1


def branches(lines):
    """(taken, all) of lines of Cobertura."""
    parts = [
        re.search(r"\((\d+)/(\d+)\)", l.get("condition-coverage"))
        for l in lines
        if l.get("branch") == "true"
    ]
    return sum(int(p[1]) for p in parts), sum(int(p[2]) for p in parts)


def test_coverage_says_the_same_in_every_format(tmp_path):
    out = run_counted(
        tmp_path,
        "cover=y,include=Counted:java.util.A*:java.util.concurrent.*:java.util.concurrent.locks.*",
    )
    wanted = lab.read_json("coverage", "--json", out)
    total = wanted["total"]
    for key in ("lines", "lines_hit", "methods", "methods_hit", "branches", "branches_hit"):
        assert total[key] == sum(c[key] for c in wanted["classes"]), key
    for c in wanted["classes"]:
        assert (c["lines"], c["lines_hit"]) == (
            len(c["by_line"]),
            sum(l["hit"] for l in c["by_line"]),
        )
        assert (c["branches"], c["branches_hit"]) == (
            sum(m["branches"] for m in c["by_method"]),
            sum(m["branches_hit"] for m in c["by_method"]),
        )
    counted = method(
        next(c for c in wanted["classes"] if c["class"] == "Counted")["by_method"], "round"
    )
    # The head of `for` is two entries of javac's table; `later()` does not run, nor does the end of
    # a try that always throws.
    assert (counted["lines"], counted["lines_hit"]) == (11, 9)
    # The table.
    table = lab.jvmscope("coverage", "--methods", out).stdout
    all_of = next(l for l in table.splitlines() if l.endswith(" (all)"))
    assert [*map(int, re.findall(r"\d+", all_of.split("%")[1]))] == [
        total[k]
        for k in ("lines_hit", "lines", "methods_hit", "methods", "branches_hit", "branches")
    ]
    round_of = next(l for l in table.splitlines() if l.endswith(" round(int)"))
    assert re.search(r"(\d+)/(\d+)", round_of)[0] == "9/11"
    # Cobertura.
    assert lab.jvmscope("coverage", "-o", tmp_path / "c.xml", out).returncode == 0
    root = xml.etree.ElementTree.parse(tmp_path / "c.xml").getroot()
    assert (int(root.get("lines-covered")), int(root.get("lines-valid"))) == (
        total["lines_hit"],
        total["lines"],
    )
    packages = root.findall("packages/package")
    names = [p.get("name") for p in packages]
    assert len(set(names)) == len(names) and {"", "java.util", "java.util.concurrent"} <= set(names)
    for p in packages:
        lines = p.findall("classes/class/lines/line")
        taken, edges = branches(lines)
        assert abs(float(p.get("line-rate")) - rate(lines)) < 1e-3, p.get("name")
        assert abs(float(p.get("branch-rate")) - (taken / edges if edges else 1)) < 1e-3, p.get(
            "name"
        )
    for m in root.iter("method"):
        lines = m.findall("lines/line")
        assert (
            len({l.get("number") for l in lines}) == len(lines)
            and abs(float(m.get("line-rate")) - rate(lines)) < 1e-3
        )
    assert sum(len(c.findall("lines/line")) for c in root.iter("class")) == total["lines"]
    # lcov.
    assert lab.jvmscope("coverage", "-o", tmp_path / "c.info", out).returncode == 0
    info = (tmp_path / "c.info").read_text()
    sums = {
        key: sum(map(int, re.findall(rf"^{key}:(\d+)$", info, re.M)))
        for key in ("LF", "LH", "FNF", "FNH", "BRF", "BRH")
    }
    assert sums == {
        "LF": total["lines"],
        "LH": total["lines_hit"],
        "FNF": total["methods"],
        "FNH": total["methods_hit"],
        "BRF": total["branches"],
        "BRH": total["branches_hit"],
    }


def test_the_recording_says_how_and_when_the_vm_started(tmp_path):
    before = time.time()
    out = run_counted(tmp_path, "cpu=samples", version=25)
    output_text = lab.Jdk(25).run("jfr", "print", "--json", "--events", "jdk.JVMInformation", out)
    values = json.loads(output_text.stdout)["recording"]["events"][0]["values"]
    assert (
        values["jvmName"]
        and values["jvmVersion"]
        and values["javaArguments"] == "Counted"
        and values["pid"] > 0
    )
    assert (
        values["jvmArguments"]
        == f"-agentpath:{lab.BUILD}/libhprof.so=cpu=samples,format=r,file={out} -Xmx64m"
    )
    start = datetime.datetime.fromisoformat(
        values["jvmStartTime"].replace("Z", "+00:00")
    ).timestamp()
    assert before - 1 <= start <= time.time()


def without_marks(methods):
    return (
        methods
        if not isinstance(methods, list)
        else [{k: v for k, v in m.items() if k != "estimated"} for m in methods]
    )


def test_round_trips_keep_units_kinds_and_sums(tmp_path):
    """Converts a recording, and the stacks of each metric, to .collapsed and .pb.gz, and each of
    these to the other. Neither can mark methods; their note says how much is estimated.
    """
    recorded = run_counted(
        tmp_path, "cpu=samples,depth=2,interval=1ms,alloc=exact,include=Counted", args=(18,)
    )
    sources = [recorded]
    for metric in ("samples", "wall", "allocations", "locks", "times"):
        sources.append(tmp_path / f"{metric}.collapsed")
        sources[-1].write_text(
            f"# jvmscope: {metric} 0\na.B.<init>;c.D.e 5000000\n[truncated];c.D.e 7\n[stack not walked] 3\na.B.<init> 11\n"
        )
    for source in sources:
        whole = metrics(lab.read_json("report", "--json", source))
        assert source == recorded or list(whole) == [source.stem]
        assert source != recorded or whole["allocations"]["truncated"] > 0  # depth=2
        for metric, wanted in whole.items():
            for first, second in ((".collapsed", ".pb.gz"), (".pb.gz", ".collapsed")):
                a, b = tmp_path / f"a{first}", tmp_path / f"b{second}"
                assert lab.jvmscope("convert", "--metric", metric, "-o", a, source).returncode == 0
                assert lab.jvmscope("convert", "-o", b, a).returncode == 0
                for out in (a, b):
                    found = metrics(lab.read_json("report", "--json", out))
                    assert list(found) == [metric], (out, list(found))
                    for key in ("total", "truncated", "unattributed", "methods"):
                        assert without_marks(found[metric][key]) == without_marks(wanted[key]), (
                            metric,
                            out,
                            key,
                        )
                    if any(m.get("estimated") for m in wanted["methods"]):
                        assert "estimated" in found[metric]["note"], (
                            metric,
                            out,
                            found[metric]["note"],
                        )


def test_pprof_of_another_profiler_is_read(tmp_path):
    """Inlined lines, several kinds of values, packed and single numbers, uncompressed data.
    Truncated or foreign files are reported.
    """

    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])

    def field(number, value):
        return (
            varint(number << 3 | 2) + varint(len(value)) + value
            if isinstance(value, bytes)
            else varint(number << 3) + varint(value)
        )

    texts = ["", "samples", "count", "cpu", "nanoseconds", "main.inner", "main.outer", "main.main"]
    file = field(1, field(1, 3) + field(2, 4))  # cpu in nanoseconds comes first
    file += field(2, field(1, varint(1) + varint(2)) + field(2, varint(30_000_000)))
    file += field(2, field(1, 2) + field(2, 10_000_000))
    file += field(
        4, field(1, 1) + field(4, field(1, 1) + field(2, 12)) + field(4, field(1, 2))
    ) + field(4, field(1, 2) + field(4, field(1, 3)))
    file += b"".join(field(5, field(1, i) + field(2, 4 + i)) for i in (1, 2, 3)) + b"".join(
        field(6, t.encode()) for t in texts
    )
    file += field(11, field(1, 3) + field(2, 4)) + field(12, 10_000_000)
    for name, data in (("raw.pb", file), ("packed.pb.gz", gzip.compress(file))):
        (tmp_path / name).write_bytes(data)
        samples = lab.read_json("report", "--json", tmp_path / name)["samples"]
        assert (samples["total"], samples["interval_ns"]) == (4, 10_000_000)
        assert {m["method"]: (m["self"], m["total"]) for m in samples["methods"]} == {
            "main.inner": (3, 3),
            "main.outer": (0, 3),
            "main.main": (1, 4),
        }
    for name, data, output_text in (
        ("cut.pb.gz", gzip.compress(file)[:-20], "damaged or cut"),
        ("text.pb.gz", gzip.compress(b"nothing"), "not a pprof profile"),
    ):
        (tmp_path / name).write_bytes(data)
        done = lab.jvmscope("report", tmp_path / name)
        assert (
            done.returncode == 1
            and done.stdout == ""
            and output_text in done.stderr
            and len(done.stderr.splitlines()) == 1
        ), done.stderr


def view(jdk, name, out):
    """Rows of the JDK's own `jfr view`, as (first column, number)."""
    done = jdk.run("jfr", "view", "--width", "200", name, out)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(re.findall(r"^(\S+) +([\d.,]+%?)$", done.stdout, re.M))


@pytest.mark.jdks(25)
def test_the_jdks_own_views_show_what_was_recorded(jdk, tmp_path):
    rounds = 200  # 14 MB of arrays, of which every 512 KiB is sampled; 20,000 throws
    out = run_counted(tmp_path, "exceptions=stacks,alloc=sampled", version=25, rounds=rounds)
    assert view(jdk, "exception-by-type", out)["java.lang.IllegalStateException"].replace(
        ",", ""
    ) == str(100 * rounds)
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    assert (
        sum(r["count"] for r in rows if r["class"] == "java.lang.IllegalStateException")
        == 100 * rounds
    )
    places = view(jdk, "allocation-by-site", out)
    arrays = next((v for k, v in places.items() if k.startswith("Counted.allocate")), None)
    assert arrays and float(arrays.rstrip("%").replace(",", ".")) > 30, places
    assert (
        method(
            lab.read_json("report", "--json", out)["allocations"]["methods"], "Counted.allocate"
        )["self"]
        > 0
    )


# Fields of the JDK's own events that are empty for a reason: only HotSpot itself knows their value,
# or there is none (a wait that was not notified, an allocation that is counted for all threads).
EMPTY = {
    ("jdk.ActiveSetting", "eventThread"),
    ("jdk.ActiveSetting", "stackTrace"),
    ("jdk.GCPhasePause", "eventThread"),
    ("jdk.JVMInformation", "jvmFlags"),
    ("jdk.JavaMonitorWait", "notifier"),
    ("jdk.ObjectAllocationSample", "eventThread"),
    ("jdk.ThreadEnd", "stackTrace"),
}


# Events of the VM or of the process as a whole, which no thread of the program posts.
WHOLE = re.compile(
    r"jdk\.(Container|GC|GarbageCollection|Safepoint|ExecuteVMOperation|ResidentSetSize|CPULoad)"
)


@pytest.mark.slow
@pytest.mark.jdks(27)
def test_the_jdks_own_tools_of_27_read_everything(jdk, tmp_path):
    test_the_jdks_own_tools_read_everything(jdk, tmp_path)


@pytest.mark.jdks(25)
def test_the_jdks_own_tools_read_everything(jdk, tmp_path):
    """All captures at once: the JDK's views have the known numbers, its summary counts what it
    prints, and no field of its events is empty if its value is known.
    """
    out = tmp_path / "all.jfr"
    options = "trace=Amounts.through,exceptions=stacks,cpu=samples,interval=1ms,cover=y,alloc=exact,threads=y,events=y,requests=Amounts.hold"
    done = jdk.java(
        "Amounts", jvm=("-Xmx64m", jdk.agent(f"format=r,{options},include=Amounts,file={out}"))
    )
    assert done.returncode == 0, done.stderr
    assert view(jdk, "exception-by-type", out) == {
        "java.lang.IllegalStateException": "30",
        "java.lang.IllegalArgumentException": "1",
    }
    assert {"Amounts.fail(int)": "30", "Amounts.ends()": "1"}.items() <= view(
        jdk, "exception-by-site", out
    ).items()
    assert float(view(jdk, "allocation-by-site", out)["Amounts.allocate()"].rstrip("%")) > 80
    for name, row in (
        ("hot-methods", r"(?m)^Amounts\.\S+ .*\d%$"),
        ("contention-by-site", r"(?m)^Amounts\.main\S* +1 .*ms"),
        ("contention-by-class", r"(?m)^java\.lang\.Object +1 .*ms"),
        ("jvm-information", r"VM Start: \d\d:"),
        ("recording", r"Event Count: [\d,]+"),
    ):
        shown_view = jdk.run("jfr", "view", "--width", "200", name, out)
        assert shown_view.returncode == 0 and re.search(row, shown_view.stdout), (
            name,
            shown_view.stdout,
        )
    printed = jdk.run("jfr", "print", "--json", out)
    assert printed.returncode == 0, printed.stderr
    events = json.loads(printed.stdout)["recording"]["events"]
    summary = dict(re.findall(r"(?m)^ (j\S+) +(\d+) +\d+$", jdk.run("jfr", "summary", out).stdout))
    kinds = collections.Counter(e["type"] for e in events)
    assert kinds == {
        k: int(n)
        for k, n in summary.items()
        if n != "0" and k not in ("jdk.Metadata", "jdk.CheckPoint", "jdk.Checkpoint")
    }
    names = {
        e["values"]["thread"]["javaName"]: e["values"]
        for e in events
        if e["type"] == "jdk.ThreadStart"
    }
    holder = names["holder"]
    assert holder["parentThread"]["javaName"] == "main" and "main" in [
        f["method"]["name"] for f in holder["stackTrace"]["frames"]
    ]
    allowed = {
        "jdk.ThreadStart": {n for n in names if n != "holder" and n != "ends"}
    }  # begun by the VM, or before the capture
    unknown = set()
    for e in events:
        for field, value in e["values"].items():
            if value is not None or not e["type"].startswith("jdk.") or (e["type"], field) in EMPTY:
                continue
            if e["type"] == "jdk.ThreadStart":
                assert e["values"]["thread"]["javaName"] in allowed["jdk.ThreadStart"], e
            elif (e["type"], field) == (
                "jdk.JavaMonitorEnter",
                "previousOwner",
            ):  # the VM's own locks may have none on a busy machine
                assert e["values"]["monitorClass"]["name"] != "java/lang/Object", e
            elif e["type"] == "jdk.ObjectAllocationSample":
                assert field == "stackTrace", e  # what the VM allocates outside of any method
            elif e["type"] == "jdk.JavaMonitorWait":
                assert field == "monitorClass" and e["values"]["eventThread"]["javaName"] in (
                    "Reference Handler",
                    "Finalizer",
                ), e
            elif not WHOLE.match(e["type"]) or field not in ("eventThread", "stackTrace", "caller"):
                unknown.add((e["type"], field))
    assert not unknown, sorted(unknown)


@pytest.mark.jdks(8, 17, 25)
def test_counts_of_a_running_program_are_in_every_output(jdk, tmp_path):
    """Attached while it waits, the program does two rounds. Each capture has exactly these, and the
    page agrees with the verbs.
    """
    out, page = tmp_path / "a.jfr", tmp_path / "a.html"
    process = jdk.start_java("Counted", jvm=("-Xmx64m",), stdin=-1, stdout=-1, stderr=-1)
    try:

        def a_round(number):
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"round {number}\n"

        assert process.stdout.readline() == "ready\n"
        a_round(1)
        done = lab.jvmscope(
            "attach",
            "--trace",
            "Counted.called",
            "--exceptions",
            "--cover",
            "--alloc=exact",
            "--cpu=times",
            "--threads",
            "--include",
            "Counted",
            "-o",
            out,
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        a_round(2)
        a_round(3)
        done = lab.jvmscope("stop", process.pid)
        assert done.returncode == 0 and not lab.lost(done.stderr), done.stderr
    finally:
        process.kill()
        process.communicate()
    found = counts(out)
    assert {key: found[key] for key in ("calls", "objects", "bytes", "throws")} == {
        key: truth(2)[key] for key in ("calls", "objects", "bytes", "throws")
    }
    assert set(found["covered"]) >= {"allocate", "called", "fail", "round"}
    traced = lab.read_json("trace", "--json", out)
    assert (len(traced["calls"]), traced["lost_here"], traced["unended"]) == (2000, 0, False)
    # Three captures count main, which runs when the recording begins, from its next call on.
    assert traced["lost"] == 3 and {loss["what"] for loss in traced["losses"]} == {"methods"}
    assert lab.jvmscope("convert", "-o", page, out).returncode == 0
    data, report = outputs.page(page), lab.read_json("report", "--json", out)
    assert data["trace"]["total"] == 2000 and [
        json.loads(c["args"]) for c in data["trace"]["calls"]
    ] == [c["args"] for c in traced["calls"]]
    assert data["coverage"]["total"] == lab.read_json("coverage", "--json", out)["total"]
    metrics = {m["name"]: outputs.page_weights(data, m) for m in data["metrics"]}
    own = method(report["allocations"]["methods"], "Counted.allocate")["self"]
    assert metrics["allocations"].own["Counted.allocate"] == own >= truth(2)["bytes"]
    assert metrics["allocations"].sum == report["allocations"]["total"]
    events = lab.read_json("threads", "summary", "--json", "--idle", out)["threads"]
    assert sorted(t["name"] for t in data["timeline"]["threads"]) == sorted(
        t["name"] for t in events
    )
    # The timeline for other readers: each thread's slices last no longer than the thread exists.
    chrome = tmp_path / "a.json"
    assert lab.jvmscope("convert", "-o", chrome, out).returncode == 0
    slices = json.loads(chrome.read_text())["traceEvents"]
    names = {
        e["tid"]: e["args"]["name"] for e in slices if e["ph"] == "M" and e["name"] == "thread_name"
    }
    for t in events:
        mine = [e for e in slices if e["ph"] == "X" and names.get(e["tid"]) == t["name"]]
        assert (
            abs(sum(e["dur"] for e in mine) - (t["end_ns"] - t["start_ns"]) / 1000)
            < 0.01 * (t["end_ns"] - t["start_ns"]) / 1000 + 1
        ), t


@pytest.mark.jdks(21, 25, 27)
def test_calls_and_allocations_of_virtual_threads_are_counted_together(jdk, tmp_path):
    """While a virtual thread is mounted or unmounted, JVM TI waits for ever if it is asked for the
    stack, so the probes of calls that run then must allocate nothing that is counted.
    """
    out, threads, rounds = tmp_path / "v.jfr", 60, 20
    options = f"trace=VirtualCalls.deep,cpu=times,alloc=exact,format=r,file={out}"
    done = jdk.java("VirtualCalls", threads, rounds, release=21, jvm=(jdk.agent(options),))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    report = lab.read_json("report", "--json", out)
    calls = {
        m["method"]: m["calls"]
        for m in report["times"]["methods"]
        if m["method"].startswith("VirtualCalls.")
    }
    n = threads * rounds
    for name, expected in (("rounds", threads), ("outer", n), ("inner", 2 * n), ("deep", 3 * n)):
        assert calls[f"VirtualCalls.{name}"] == expected, calls
    thrown = [
        s for s in report["allocations"]["sites"] if s["class"] == "java.lang.IllegalStateException"
    ]
    assert sum(s["objects"] for s in thrown) == n // 2, thrown
