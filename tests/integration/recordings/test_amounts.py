# SPDX-License-Identifier: Apache-2.0
"""Known amounts: what each capture records of a program that counts its own work, with all captures
on at once and in their default forms, and what is reported as lost.
"""
import collections
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import lab
import outputs
from amounts import BYTES, CALLS, HOLD_MS, OBJECTS, THROWS, line

js = lab.read_json
SUM = sum(2 * i + i % 2 for i in range(CALLS)) + THROWS + 2


def row(table, method):
    return next(m for m in table["methods"] if m["method"] == method)


def test_calls_by_way_of_bridges_are_counted_once(jdk, tmp_path):
    """A call of a generic method begins with the bridge that the compiler generated for it. Both
    have one name, so only the method itself is counted, traced and taken as a request, unless a
    pattern names the bridge's own parameters; a method that is only inherited has its own count.
    """
    known = {
        "Bridges$Number.compareTo": 1000,
        "Bridges$Number.call": 2000,
        "Bridges$Base.seen": 1000,
    }

    def record(*options):
        out = tmp_path / "bridges.jfr"
        done = jdk.run(
            lab.BUILD / "jvmscope",
            "run",
            *options,
            "-o",
            out,
            "--",
            "java",
            "-cp",
            lab.compiled("Bridges"),
            "Bridges",
        )
        assert done.returncode == 0 and done.stdout.startswith("sum "), done.stderr
        return out

    out = record("--cpu=times", "--include", "Bridges")
    counted = {m["method"]: m["calls"] for m in js("report", "--json", out)["times"]["methods"]}
    assert {m: counted.get(m) for m in known} == known
    for pattern in (
        "Bridges$Number.*",
        "Bridges$Number.compareTo(..)",
        "@Bridges$Marked",
        "implements java.lang.Comparable",
    ):
        traced = js("trace", "--json", record("--trace", pattern))
        names = collections.Counter(c["method"].split("(")[0] for c in traced["calls"])
        assert names["Bridges$Number.compareTo"] == 1000, pattern
    out = record("--trace", "Bridges$Number.compareTo(Object)")
    assert js("trace", "--json", out)["calls_all"] == 1000
    for pattern in ("Bridges$Number.compareTo", "Bridges$Number.compareTo(Object)"):
        out = record(f"--requests={pattern}")
        assert [r["count"] for r in js("requests", "--json", out)["requests"]] == [1000], pattern


def test_all_captures_at_once_give_what_the_program_did(jdk, tmp_path):
    """The probes of one capture are not counted by another: exceptions, calls, times, coverage,
    objects and locks agree with the program while all of them watch the same methods, and nothing
    is reported as lost.
    """
    out = tmp_path / "all.jfr"
    options = "trace=Amounts.*,exceptions=stacks,cpu=times,cover=y,alloc=exact,threads=y,locks=java.lang.Object,include=Amounts"
    done = jdk.java("Amounts", jvm=("-Xmx64m", jdk.agent(f"format=r,{options},file={out}")))
    assert done.returncode == 0 and done.stdout == f"sum {SUM}\n", done.stderr
    traced = js("trace", "--json", out)
    assert (traced["lost"], traced["losses"], traced["unended"]) == (0, [], False)
    calls = {}
    for c in traced["calls"]:
        name = c["method"].split("(")[0]
        calls[name] = calls.get(name, 0) + 1
    known = {
        "Amounts.called": CALLS,
        "Amounts.through": CALLS // 2,
        "Amounts.fail": THROWS,
        "Amounts.passes": THROWS,
        "Amounts.ends": 1,
        "Amounts.hold": 1,
        "Amounts.allocate": 1,
    }
    assert {m: calls.get(m) for m in known} == known and "Amounts.never" not in calls
    assert {c["depth"] for c in traced["calls"] if c["method"].startswith("Amounts.called")} == {
        1,
        2,
    }
    # The same pattern as --trace takes, without a descriptor or an asterisk behind it.
    assert js("trace", "--json", "-n", "1", "--method", "Amounts.called", out)["calls_all"] == CALLS
    thrown = [
        e
        for e in traced["events"]
        if e["kind"] == "exception" and "java.lang.Illegal" in e["exception"]
    ]
    place = f"Amounts.fail:{line('thrown')}"
    own = [e for e in thrown if e["place"] == place]
    assert [(e["message"], e["caught"], e["unwound"]) for e in own] == [
        (f"thrown {i}", f"Amounts.main:{line('caught')}", 2) for i in range(THROWS)
    ]
    assert all(e["stack"][0] == place and e["stack"][1].startswith("Amounts.passes:") for e in own)
    assert [(e["place"], e["caught"]) for e in thrown if e not in own] == [
        (f"Amounts.ends:{line('uncaught')}", None)
    ]
    table = {
        (e["class"], e["place"], e["caught"]): e["count"]
        for e in js("trace", "--exceptions", "--json", out)["exceptions"]
    }
    assert {k: n for k, n in table.items() if "Amounts." in k[1] or "Amounts." in (k[2] or "")} == {
        ("java.lang.IllegalStateException", place, f"Amounts.main:{line('caught')}"): THROWS,
        ("java.lang.IllegalArgumentException", f"Amounts.ends:{line('uncaught')}", None): 1,
    }
    covered = js("coverage", "--json", out)
    assert covered["lost"] == 0
    report = lab.jvmscope("report", "--json", out)
    assert report.returncode == 0 and report.stderr == "", report.stderr
    report = json.loads(report.stdout)
    counted = {m["method"]: m["calls"] for m in report["times"]["methods"]}
    assert {m: counted.get(m) for m in known} == known and "Amounts.never" not in counted
    allocated = row(report["allocations"], "Amounts.allocate")["self"]
    assert OBJECTS * BYTES <= allocated <= OBJECTS * (BYTES + 32)
    assert 0.5 * HOLD_MS < row(report["locks"], "Amounts.main")["self"] / 1e6 < 5 * HOLD_MS
    assert (
        lab.jvmscope(
            "convert", "--metric", "allocations", "-o", tmp_path / "a.collapsed", out
        ).returncode
        == 0
    )
    for text in (
        (tmp_path / "a.collapsed").read_text(),
        json.dumps(report),
        json.dumps(traced),
        lab.output("coverage", out),
    ):
        assert "Jvmscope" not in text  # no class of the agent's is the program's
    # also of a thread that started while the captures did
    daemons = {t["name"]: t["daemon"] for t in js("threads", "summary", "--json", out)["threads"]}
    assert (
        not daemons["main"] and daemons["Finalizer"] and daemons.get("Common-Cleaner", True)
    ), daemons


def test_sampled_allocations(jdk, tmp_path):
    """alloc=sampled, which is what a bare --alloc means: in every output the bytes are within the
    error that the report states.
    """
    objects, out = 2_000_000, tmp_path / "a.jfr"
    options = f"format=r,alloc=sampled,exceptions=counts,trace=Amounts.main,file={out}"  # what the probes allocate is not the program's
    done = jdk.java("Amounts", "objects", objects, jvm=("-Xmx64m", jdk.agent(options)))
    assert done.returncode == 0 and done.stdout.startswith("in "), done.stderr
    report = lab.jvmscope("report", "--json", out)
    assert report.returncode == 0 and report.stderr == "", report.stderr
    report = json.loads(report.stdout)
    table = report["allocations"]
    truth, got = objects * (BYTES + 16), row(table, "Amounts.allocate")["self"]
    # JDK 8 does not sample: all are counted.
    error = table.get("standard_error", 0)
    assert error < 0.05 * truth and (error > 0) == (jdk.version > 8)
    assert not table.get("unused_buffers_count")  # our recordings allow for them
    assert abs(got - truth) < 5 * error + 0.01 * truth, (got, truth, error)
    shown = lab.output("report", out)
    assert "Jvmscope" not in shown + json.dumps(report)
    assert "estimated from" in shown if jdk.version > 8 else "Amounts.allocate" in shown
    collapsed = tmp_path / "a.collapsed"
    assert lab.jvmscope("convert", "-o", collapsed, out).returncode == 0
    for other in ("a.html", "a.pb.gz"):
        assert lab.jvmscope("convert", "-o", tmp_path / other, out).returncode == 0
    data = outputs.page(tmp_path / "a.html")
    packed, comments = outputs.pprof(tmp_path / "a.pb.gz")
    for found in (
        outputs.collapsed_weights(collapsed),
        packed,
        outputs.page_weights(data, data["metrics"][0]),
    ):
        assert (found.own["Amounts.allocate"], found.sum) == (got, table["total"])
    # Each output says how far its figures may be off, and so does what is made of it.
    note = next(
        (x.strip() for x in shown.splitlines() if re.match("  (estimated from|counted: )", x)), None
    )
    assert jdk.version == 8 or note.startswith("estimated")
    assert data["metrics"][0]["note"] == (note or "")
    assert data["metrics"][0]["note_short"] == (note or "").split(": ")[0]
    assert comments == ([f"jvmscope: {note}"] if note else [])
    assert ("# jvmscope note: " in collapsed.read_text()) == (note is not None)
    # Figures that rest on fewer than ten samples are marked, and each format that keeps the note
    # keeps the marks.
    few = {m["method"] for m in table["methods"] if m.get("few_readings")}
    least = 10 * (table["total"] // table["samples"]) if jdk.version > 8 else 0
    assert few == {m["method"] for m in table["methods"] if 0 < m["self"] < least} and bool(
        few
    ) == (jdk.version > 8)
    assert "Amounts.allocate" not in few
    lab.jvmscope("convert", "-o", tmp_path / "a.otlp", out, check=True)
    lab.jvmscope("convert", "-o", tmp_path / "again.jfr", out, check=True)
    for again in (
        out,
        collapsed,
        tmp_path / "a.pb.gz",
        tmp_path / "a.otlp",
        tmp_path / "again.jfr",
    ):
        found = lab.read_json("report", "--json", again)["allocations"]
        assert again == out or again.suffix == ".jfr" or found.get("note") == note
        assert {m["method"] for m in found["methods"] if m.get("few_readings")} == few, again
        text = lab.output("report", again)
        assert len(re.findall(r"^ .* %  .* ~[0-9]", text, re.M)) >= len(few) and (
            " ~ rough: " in text
        ) == bool(few), text
        rows = lab.read_json("diff", "--json", out, again)["allocations"]["methods"]
        assert {m["method"] for m in rows if m.get("few_readings") and m["base"]["self"]} == few
        assert (" ~ rough: " in lab.output("diff", out, again)) == bool(few)


@pytest.mark.parametrize("capture, of", [("alloc=exact", "allocations"), ("cpu=times", "times")])
def test_threads_that_ended_long_ago_have_their_names(jdk, tmp_path, capture, of):
    """With thread=y counts belong to threads, and are written when these have long ended. Each
    keeps its name and its count.
    """
    threads, out = 60, tmp_path / "a.jfr"
    done = jdk.java(
        "CountedEnds", threads, 2000, jvm=(jdk.agent(f"format=r,{capture},thread=y,file={out}"),)
    )
    assert done.returncode == 0 and not lab.lost(done.stderr), done.stderr
    for i in (1, 7, threads):
        made = row(js("report", "--json", "--thread", f"ends-{i:05}", out)[of], "CountedEnds.make")
        assert made["self" if of == "allocations" else "calls"] == i * (
            120 if of == "allocations" else 1
        ), (i, made)
    assert not js("report", "--json", out)["lost"]


@pytest.mark.slow
@pytest.mark.jdks(21, 27)
def test_sampled_allocations_of_many_threads_on_other_jdks(jdk, tmp_path):
    test_sampled_allocations_of_many_threads(jdk, tmp_path)


@pytest.mark.jdks(8, 11, 17, 25)
def test_sampled_allocations_of_many_threads(jdk, tmp_path):
    """Threads that follow each other draw their distances to the first sample independently,
    although the VM puts them where their predecessors were. What a collection leaves unused of a
    thread's buffer does not count. The VM's own count for all threads is next to the estimate.
    """
    known = dict(
        re.findall(
            r"(\w+) = (\d+)",
            (lab.ROOT / "tests" / "java" / "AllocThreads.java").read_text().split("volatile")[0],
        )
    )
    known = {name: int(number) for name, number in known.items()}
    size, out = known["BYTES"] + 16, tmp_path / "a.jfr"
    brief = known["SHORT"] * known["OBJECTS"] * size
    rounds = known["LONG"] * known["ROUNDS"] * known["ROUND_OBJECTS"] * size
    done = jdk.java(
        "AllocThreads",
        jvm=("-Xmx64m", "-XX:+UseParallelGC", jdk.agent(f"format=r,alloc=sampled,file={out}")),
    )
    assert done.returncode == 0, done.stderr
    table = js("report", "--json", out)["allocations"]
    got = {m: row(table, f"AllocThreads.{m}")["self"] for m in ("briefly", "round")}
    if jdk.version == 8:
        assert got == {"briefly": brief, "round": rounds}
        return
    # A sample stands for some 512 KB.
    error = {m: (2**19 * truth) ** 0.5 for m, truth in (("briefly", brief), ("round", rounds))}
    assert brief + rounds <= table["counted_bytes"] < 1.03 * (brief + rounds)
    note = lab.output("report", out).splitlines()[1]
    assert ", and the VM counted " in note, note
    # JDK 11 overlooks what is allocated in a buffer after an object that did not fit into it
    # (doc/memory.md).
    if jdk.version > 11:
        assert all(
            abs(got[m] - truth) < 5 * error[m]
            for m, truth in (("briefly", brief), ("round", rounds))
        ), (got, brief, rounds, error)
        assert "does not explain" not in note, note
    # A part has no such sum.
    assert "counted_bytes" not in js("report", "--json", "--thread", "Thread-*", out)["allocations"]


def test_sampled_allocations_by_attach(jdk, tmp_path):
    """Samples of a program that is already running add up to what it allocates: 200 MB per round,
    several rounds per second.
    """
    out = tmp_path / "a.jfr"
    process = jdk.start_java(
        "Amounts", "objects", 200_000, "again", jvm=("-Xmx64m",), stdout=subprocess.PIPE
    )
    rounds = collections.Counter()
    try:
        reader = threading.Thread(
            target=lambda: [
                rounds.update(["done"]) for line in process.stdout if line.startswith("in ")
            ]
        )
        reader.start()
        lab.wait_for(lambda: rounds["done"], 60, "a round")
        attached = lab.jvmscope("attach", "--alloc", process.pid, cwd=tmp_path)
        assert attached.returncode == 0, attached.stderr
        before = rounds["done"]
        lab.wait_for(
            lambda: rounds["done"] > before + 3, 60, "rounds"
        )  # at least these two began after the recording did
        stopped = lab.jvmscope("stop", "-o", out, process.pid)
        assert stopped.returncode == 0 and not lab.lost(stopped.stderr), stopped.stderr
    finally:
        process.kill()
        reader.join()
        process.wait()
    table = lab.read_json("report", "--json", out)["allocations"]
    assert row(table, "Amounts.allocate")["self"] > 200_000 * BYTES


@pytest.mark.jdks(8, 17, 27)
def test_counted_allocations_are_there_for_other_readers_too(jdk, tmp_path):
    """alloc=exact written as jdk.ObjectAllocationSample, for `jfr view allocation-by-site`: the
    bytes are the same as in our own events, and count once.
    """
    objects, out = 100_000, tmp_path / "a.jfr"
    done = jdk.java(
        "Amounts",
        "objects",
        objects,
        jvm=("-Xmx64m", jdk.agent(f"format=r,alloc=exact,file={out}")),
    )
    assert done.returncode == 0 and done.stdout.startswith("in "), done.stderr
    table = lab.read_json("report", "--json", out)["allocations"]
    assert (
        row(table, "Amounts.allocate")["self"] == objects * (BYTES + 16)
        and "standard_error" not in table
    )
    # One stack was found for each place, but a rare one may have been missed.
    assert "several stacks" in table["note"]
    sites_agree(out, table["sites"])
    printed = lab.Jdk(21).run(
        "jfr", "print", "--json", "--events", "jdk.ObjectAllocationSample", out
    )
    assert printed.returncode == 0, printed.stderr
    events = [e["values"] for e in json.loads(printed.stdout)["recording"]["events"]]
    assert sum(e["weight"] for e in events) == table["total"]
    own = [
        e
        for e in events
        if e["stackTrace"] and e["stackTrace"]["frames"][0]["method"]["name"] == "allocate"
    ]
    assert sum(e["weight"] for e in own) == objects * (BYTES + 16) and {
        e["objectClass"]["name"] for e in own
    } == {"[B"}
    seen = lab.Jdk(25).run("jfr", "view", "allocation-by-site", out)
    assert "Amounts.allocate()" in seen.stdout, seen.stdout + seen.stderr


def traced(out):
    done = lab.jvmscope("trace", "--json", out)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
@pytest.mark.jdks(8, 27)
def test_calls_are_there_or_reported_to_be_lost_on_other_jdks(jdk, tmp_path):
    test_calls_are_there_or_reported_to_be_lost(jdk, tmp_path)


@pytest.mark.jdks(17)
def test_calls_are_there_or_reported_to_be_lost(jdk, tmp_path):
    """Half a million calls, made as fast as one thread can, lose nothing, whatever share of the
    machine the agent's thread gets. Of a million calls, each is recorded or counted as lost, in the
    table, in JSON, in the status and on the page, and none is nested in another.
    """
    out, calls = tmp_path / "t.jfr", 500_000
    done = jdk.java(
        "Amounts",
        "calls",
        calls,
        jvm=("-Xmx64m", jdk.agent(f"format=r,trace=Amounts.called,file={out}")),
    )
    assert done.returncode == 0, done.stderr
    all_there, err = traced(out)
    assert (len(all_there["calls"]), all_there["lost"], err) == (calls, 0, "")
    calls = 1_000_000
    options = f"trace=Amounts.called,limit={calls // 10},file={out}"
    done = jdk.java("Amounts", "calls", calls, jvm=("-Xmx64m", jdk.agent(f"format=r,{options}")))
    assert done.returncode == 0, done.stderr
    some, err = traced(out)
    assert len(some["calls"]) == calls // 10 and some["lost"] == calls - calls // 10
    assert {(c["depth"], c["caller"]) for c in some["calls"]} == {(0, None)}
    limit = next(x for x in some["losses"] if "--limit" in x["reason"])
    assert (limit["capture"], limit["what"]) == ("trace", "calls") and 0 <= limit[
        "from_ns"
    ] <= limit["to_ns"]
    sentence = f"trace: {limit['amount']} calls were lost between "
    assert sentence in err and err.count("\n") == len(some["losses"])
    assert lab.jvmscope("convert", "-o", tmp_path / "t.html", out).returncode == 0
    # The page makes its sentences from the same rows when it is opened (tests/page/truth.test.mjs).
    stated = '"losses":' + json.dumps(some["losses"], separators=(",", ":"))
    assert stated in (tmp_path / "t.html").read_text()
    shown = lab.jvmscope("trace", "-n", 1, out)
    assert sentence in shown.stderr
    first = float(next(s for s in shown.stdout.splitlines() if "Amounts.called" in s).split()[0])
    kept = (some["calls"][-1]["start_ns"] - some["calls"][0]["start_ns"]) / 1e9
    # All calls after the last one kept are lost: the reported span must reach back to it.
    assert min(x["from_ns"] for x in some["losses"]) / 1e9 <= first + kept + 0.001


@pytest.mark.jdks(8, 17)
def test_counts_of_a_killed_program_are_kept_and_run_does_not_deny_them(jdk, tmp_path):
    """Calls whose counts were saved before the program was killed are in the recording, and `run`
    does not report that there were none.
    """
    out = tmp_path / "k.jfr"
    process = jdk.start(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu=times",
        "--alloc=exact",
        "--cover",
        "--include",
        "Amounts",
        "-o",
        out,
        "java",
        "-Xmx64m",
        "-cp",
        lab.compiled("Amounts"),
        "Amounts",
        "calls",
        "20000",
        "again",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()

    def calls():
        done = lab.jvmscope("report", "--json", out)
        rows = (
            json.loads(done.stdout).get("times", {}).get("methods", [])
            if done.returncode == 0
            else []
        )
        return sum(m["calls"] for m in rows if "Amounts.called" in m["method"])

    before = lab.wait_for(calls, 60, "traced calls")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    _, output_text = process.communicate()
    assert (
        "the recording was not ended" in output_text and "holds no" not in output_text
    ), output_text
    assert calls() >= before
    assert lab.jvmscope("coverage", out).returncode == 0


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize("form", [".hprof.txt", ".hprof"])
@pytest.mark.parametrize("by", ["run", "attach"])
def test_a_program_that_is_killed_before_its_tables_are_written(jdk, tmp_path, form, by):
    """HPROF's outputs get what was recorded at the end. The command reports that it is lost, and why."""
    out = tmp_path / f"k{form}"
    command = [lab.BUILD / "jvmscope", by, "--cpu", "-o", out]
    java = ["java", "-cp", lab.compiled("Busy"), "Busy", "600"]
    if by == "run":
        process = jdk.start(*command, "--", *java, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline().strip() == "ready"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        vm = int(children[0])
    else:
        started = jdk.start(*java, stdout=subprocess.PIPE)
        assert started.stdout.readline().strip() == "ready"
        vm = started.pid
        process = subprocess.Popen(
            [*command, "-t", "600s", str(vm)], stderr=subprocess.PIPE, text=True
        )
    lab.wait_for(
        lambda: json.loads(lab.jvmscope("status", "--json", vm).stdout or "{}").get("cpu.samples"),
        60,
        "samples",
    )
    os.kill(vm, signal.SIGKILL)
    reported = process.communicate(timeout=120)[1]
    assert process.returncode == (137 if by == "run" else 1), reported
    assert f"{out}: the recording was not ended: everything is lost: this format gets" in reported
    assert "holds nothing" not in reported, reported
    done = lab.jvmscope("report", out)
    assert done.returncode == 1
    assert done.stderr.endswith(": the program was killed, or is still recording\n"), done.stderr
    # An ended recording without a sample has its tables.
    for words in ("cpu=samples", "heap=sites"):
        empty = tmp_path / f"empty{form}"
        format = "a" if form == ".hprof.txt" else "b"
        done = jdk.java(
            "Busy", "0", jvm=[jdk.agent(f"{words},interval=1s,format={format},file={empty}")]
        )
        assert done.returncode == 0, done.stderr
        assert "was killed" not in lab.jvmscope("report", empty).stderr


@pytest.mark.jdks(8, 17)
def test_the_end_of_a_killed_program_s_recording_is_the_same_in_every_verb(jdk, tmp_path):
    """Events are in the file before the next flush writes the recording's length: the end is that
    of the last event.
    """
    for i in range(3):
        out = tmp_path / f"k{i}.jfr"
        options = "trace=Amounts.called,limit=10000000,cpu=samples,threads=y"
        process = jdk.start_java(
            "Amounts",
            "calls",
            2000,
            "again",
            jvm=("-Xmx64m", jdk.agent(f"format=r,{options},file={out}")),
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        lab.wait_for(lambda: lab.jvmscope("trace", out).returncode == 0, 60, "calls")
        time.sleep(0.5 + i / 3)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        threads = js("threads", "summary", "--json", out)
        span, origin = threads["span_ns"], threads["origin_ns"]
        assert js("report", "--json", out)["span_ns"] == span
        calls = js("trace", "--json", out)["calls"]
        assert max(c["start_ns"] + (c["ns"] or 0) for c in calls) <= origin + span
        for verb in (["report"], ["trace"], ["threads", "summary"]):
            reported = lab.jvmscope(*verb, out).stderr
            assert f"everything after {span / 1e9:.2f} s is missing" in reported, (verb, reported)


@pytest.mark.jdks(8, 17, 27)
def test_a_killed_program_s_recording_says_so_in_every_verb(jdk, tmp_path):
    out = tmp_path / "k.jfr"
    options = "trace=Amounts.called,limit=1000,cpu=samples,cover=y,exceptions=counts,threads=y,include=Amounts"
    process = jdk.start_java(
        "Amounts",
        "calls",
        20_000,
        "again",
        jvm=("-Xmx64m", jdk.agent(f"format=r,{options},file={out}")),
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    lab.wait_for(
        lambda: json.loads(lab.jvmscope("status", "--json", process.pid).stdout or "{}").get(
            "lost.trace.calls"
        ),
        60,
        "calls that are lost",
    )
    lab.wait_for(lambda: lab.jvmscope("coverage", out).returncode == 0, 60, "coverage")
    copy = tmp_path / "copy.jfr"
    done = lab.jvmscope("dump", "-o", copy, process.pid)
    assert done.returncode == 0 and f"{copy}: trace: " in done.stderr, done.stderr
    assert "not ended" not in done.stderr  # it goes on
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    for verb in (
        ["report"],
        ["trace"],
        ["coverage"],
        ["threads", "summary"],
        ["convert", "-o", tmp_path / "k.html"],
    ):
        done = lab.jvmscope(*verb, out)
        assert (
            done.returncode == 0
            and done.stderr.count("the recording was not ended: everything after") == 1
        ), (verb, done.stderr)
    calls = sum(
        x["amount"] for x in js("trace", "--json", out)["losses"] if x["capture"] == "trace"
    )
    for verb in (["report"], ["trace"], ["coverage"]):
        stated = js(*verb, "--json", out)
        assert (
            stated["unended"] is True and sum(x["amount"] for x in stated["losses"]) >= calls > 0
        ), verb
    # What was lost is the same list everywhere; the events of threads are all there.
    losses = js("trace", "--json", out)["losses"]
    for verb in ("summary", "monitors", "timeline", "critical-path", "deadlocks"):
        done = lab.jvmscope("threads", verb, "--json", out)
        stated = json.loads(done.stdout)
        assert (stated["unended"], stated["lost_here"], stated["losses"]) == (True, 0, losses), verb
        assert stated["lost"] == sum(x["amount"] for x in losses), verb
        # The limit was reached, and on a busy machine a buffer was full: one sum for both.
        sums = collections.Counter()
        for loss in losses:
            sums[loss["capture"], loss["what"]] += loss["amount"]
        for (capture, what), n in sums.items():
            what = what if n != 1 else what.removesuffix("s")
            assert done.stderr.count(f" {capture} {n} {what} (jvmscope trace)") == 1, (
                verb,
                done.stderr,
            )
    assert js("threads", "deadlocks", "--json", out)["looked"] is True
    both = js("diff", "--json", out, copy)
    assert both["base"]["lost"] >= calls and both["base"]["unended"] and both["new"]["lost"] > 0


def sites_agree(out, sites):
    """The table of allocation sites agrees with its JSON on classes, counts and places."""
    shown = lab.jvmscope("report", "--limit", len(sites), out).stdout
    head = "allocated     objects  class and site\n"
    rows = [
        re.sub("^.{36}", "", x).split(maxsplit=3)
        for x in shown.split(head)[1].splitlines()[: len(sites)]
    ]
    assert [(int(r[0]), int(r[1]), r[3].rsplit("  ", 1)[-1]) for r in rows] == [
        (s["bytes"], s["objects"], s["trace"][0] if s["trace"] else "[no Java stack]")
        for s in sites
    ]


@pytest.mark.jdks(8, 17, 25)
def test_samples_of_a_running_program_are_in_every_output(jdk, tmp_path):
    """CPU and allocations, recorded by attach: three parts have the same figures as one recording
    in each output, and twice as much where the same events are in two chunks, including stacks that
    were cut.
    """
    out, twice = tmp_path / "all.jfr", tmp_path / "two.jfr"
    process = jdk.start_java(
        "Shares", jvm=("-Xmx64m",), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        process.stdout.readline()
        lab.use_cpu(process, 0.5)
        done = lab.jvmscope(
            "attach",
            "--cpu",
            "--alloc",
            "--interval",
            "1ms",
            "--depth",
            "4",
            "-o",
            out,
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        lab.use_cpu(process, 1)
        done = lab.jvmscope("stop", process.pid)
        assert done.returncode == 0 and not lab.lost(done.stderr), done.stderr
    finally:
        process.kill()
        process.communicate()
    report = js("report", "--json", out)
    cpu, allocations = report["samples"], report["allocations"]
    three, one = (row(cpu, f"Shares.{m}")["total"] for m in ("three", "one"))
    n = three + one
    # The kernel may deliver the samples of a whole tick, with one stack, at once: how many there
    # are at how many moments is pure chance.
    at = subprocess.run(
        [lab.BUILD / "tests/unit/jfr_dump", "--get=startTime", out, "jdk.ExecutionSample"],
        capture_output=True,
        text=True,
        check=True,
    )
    moments = len(set(at.stdout.split()))
    assert n > 300 and abs(three / n - 0.75) < 5 * (0.75 * 0.25 / moments) ** 0.5, (
        three,
        one,
        moments,
    )
    # The work is done at the end of a recursion of ten: such a stack is always cut. Any other is
    # cut, or has main at its end.
    assert cpu["truncated"] >= row(cpu, "Shares.work")["total"] > 0.9 * n, cpu
    assert (
        cpu["truncated"] + sum(m["total"] for m in cpu["methods"] if m["method"] == "Shares.main")
        >= n
    ), cpu
    three, one = (row(allocations, f"Shares.{m}")["total"] for m in ("three", "one"))
    # JDK 8 counts everything, and samples one stack in each stratum of the count of a place. The
    # strata are at most a 1,024th of the count so far (SEVERAL_LATER), and longer than a round of
    # both: by chance each stratum is attributed to one of the two stacks. The sum of the squares of
    # the strata is then at most a 2,048th of the square of the count.
    error = (
        (0.75 * 0.25 / 2048) ** 0.5 * (three + one)
        if jdk.version == 8
        else allocations["standard_error"]
    )
    assert abs(three - 0.75 * (three + one)) < 5 * error, (three, one, error)
    if (
        jdk.version == 8
    ):  # estimates are marked, and a site without a stack is not counted for another place
        table = lab.output("report", out)
        assert all(
            "its count is divided among them by an estimate, with a standard error of at most 1.1 % of a count of many megabytes"
            in text
            for text in (allocations["note"], table)
        ), table
        sites_agree(out, allocations["sites"])
    twice.write_bytes(out.read_bytes() * 2)
    both = js("report", "--json", twice)
    for metric, table in (("samples", cpu), ("allocations", allocations)):
        for extension in (".collapsed", ".pb.gz", ".html", ".jfr"):
            only = (
                [] if extension == ".jfr" else ["--metric", metric]
            )  # a recording of a part holds all of its metrics
            assert (
                lab.jvmscope("convert", *only, "-o", tmp_path / f"s{extension}", out).returncode
                == 0
            )
        data = outputs.page(tmp_path / "s.html")
        shown = next(m for m in data["metrics"] if m["name"] == metric)
        for found in (
            outputs.collapsed_weights(tmp_path / "s.collapsed"),
            outputs.pprof(tmp_path / "s.pb.gz")[0],
            outputs.page_weights(data, shown),
        ):
            assert found.sum == table["total"], metric
            assert {
                m["method"]: (found.own[m["method"]], found.total[m["method"]])
                for m in table["methods"]
            } == {m["method"]: (m["self"], m["total"]) for m in table["methods"]}, metric
        assert js("report", "--json", tmp_path / "s.jfr")[metric]["methods"] == table["methods"]
        assert {k: both[metric][k] for k in ("total", "unattributed", "truncated")} == {
            k: 2 * table[k] for k in ("total", "unattributed", "truncated")
        }
        assert {m["method"]: (m["self"], m["total"]) for m in both[metric]["methods"]} == {
            m["method"]: (2 * m["self"], 2 * m["total"]) for m in table["methods"]
        }


@pytest.mark.jdks(8, 25)
def test_a_recording_that_was_cut_says_so_in_every_verb(jdk, tmp_path):
    """If the end of a file is missing, each verb says so, including those that find nothing for
    themselves in the rest. A part of it has what the rest has, also for the JDK's own tool, and
    says the same.
    """
    out, cut, part = tmp_path / "all.jfr", tmp_path / "cut.jfr", tmp_path / "part.jfr"
    options = "trace=Amounts.*,exceptions=stacks,cpu=times,cover=y,alloc=exact,threads=y,requests=Amounts.hold(..),include=Amounts"
    done = jdk.java("Amounts", jvm=("-Xmx64m", jdk.agent(f"format=r,{options},file={out}")))
    assert done.returncode == 0, done.stderr
    whole = out.read_bytes()
    verbs = [
        ["report"],
        ["diff", out],
        ["trace"],
        ["trace", "--exceptions"],
        ["coverage"],
        ["vm"],
        ["requests"],
        ["requests", "slow"],
        ["requests", "show", "1"],
        *(
            ["threads", v]
            for v in ("summary", "monitors", "timeline", "critical-path", "what-if", "deadlocks")
        ),
    ]
    formats = [
        ".jfr",
        ".html",
        ".collapsed",
        ".pb.gz",
        ".otlp",
        ".hprof.txt",
        ".hprof",
        ".pftrace",
        ".json",
        ".trcxml",
    ]
    for share in (0.4, 0.9):
        cut.write_bytes(whole[: int(len(whole) * share)])
        for verb in verbs:
            done = lab.jvmscope(*verb, cut)
            assert done.stderr.count("the file is cut: the end of the recording is missing") == 1, (
                share,
                verb,
                done.stderr,
            )
            assert "only part of it could be read" not in done.stderr, "it is reported once"
            stated = lab.jvmscope(*verb, "--json", cut)
            assert stated.returncode == done.returncode
            if (
                stated.returncode == 0
                and verb[0] != "requests"
                and (verb[0] != "threads" or verb[1] != "what-if")
            ):
                of = json.loads(stated.stdout)
                assert (of["new"] if verb[0] == "diff" else of)["unended"] is True, (share, verb)
        for form in formats:
            done = lab.jvmscope("convert", "-o", tmp_path / f"c{form}", cut)
            assert "is cut" in done.stderr, (share, form, done)
            assert (
                done.returncode == 0
                or re.search(
                    "holds no |HPROF lists classes and counts, which a profile of", done.stderr
                )
                and not (tmp_path / f"c{form}").exists()
            ), (share, form, done)
        # A part of the rest.
        done = lab.jvmscope("convert", "-o", part, cut)
        assert done.returncode == 0, done.stderr
        found, want = (json.loads(lab.output("trace", "--json", path)) for path in (part, cut))
        assert (
            found["calls"] == want["calls"]
            and found["events"] == want["events"]
            and len(found["calls"]) > 100
        )
        assert (
            found["unended"] is True
            and "the recording was not ended: everything after"
            in lab.jvmscope("trace", part).stderr
        )
        summary = lab.Jdk(21).run("jfr", "summary", part)
        assert re.search(rf"jvmscope.Call +{len(found['calls'])} ", summary.stdout), (
            summary.stdout + summary.stderr
        )
        printed = lab.Jdk(21).run("jfr", "print", "--events", "jvmscope.Call", part)
        assert printed.returncode == 0 and printed.stdout.count('method = "Amounts.called') == sum(
            c["method"].startswith("Amounts.called") for c in found["calls"]
        )
    # Without the description of its events, nothing of a file can be read.
    cut.write_bytes(whole[:500])
    done = lab.jvmscope("convert", "-o", tmp_path / "none.jfr", cut)
    assert (
        done.returncode == 1
        and not (tmp_path / "none.jfr").exists()
        and len(done.stderr.splitlines()) == 1
    ), done
