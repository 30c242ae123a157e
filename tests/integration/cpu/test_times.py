# SPDX-License-Identifier: Apache-2.0
"""cpu=times: counts that must be exact, on every JDK; the program prints the same as without the
agent.
"""
import json
import re
import signal
import subprocess
import time

import hprof_times
import hproftext
import lab
import outputs
import pytest

C = "TimesTruth."
UNREAD = "[no reading of the clock]"  # the row of CPU time that belongs to no method


def run(jdk, tmp_path, program, *args, options="", jvm=(), release=8):
    out = tmp_path / "times.txt"
    agent = jdk.agent(f"cpu=times,cutoff=0,depth=2,verbose=n,file={out}{options}")
    done = jdk.java(program, *args, jvm=[agent, *jvm], release=release)
    assert done.returncode == 0, done.stderr
    return done, out.read_text(errors="replace")


@pytest.mark.jdks(8, 17)
def test_cpu_time_of_measuring_probes_is_not_the_program_s(jdk, tmp_path):
    """The threads that measure the probes at the beginning and at each dump run no method of the
    program, which has none that is timed. Their time without a reading made a row.
    """
    out = tmp_path / "o.hprof.txt"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with jdk.start_java("Endings", "wait", **pipes) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            words = "include=nosuch.*,fail=measure:50"
            done = lab.jvmscope("attach", "--cpu=times", "--agent", words, "-o", out, process.pid)
            assert done.returncode == 0, done.stderr
            for verb in ("dump", "dump", "stop"):
                assert lab.jvmscope(verb, process.pid).returncode == 0
        finally:
            process.kill()
    tables = hproftext.Text(out).ranked["CPU TIME (ms)"]
    assert tables == [[], [], []], tables


@pytest.mark.parametrize("clock", ["cpu", "elapsed"])
def test_counts_are_exact(jdk, tmp_path, clock):
    n = 3001
    done, text = run(jdk, tmp_path, "TimesTruth", n, options=f",clock={clock}")
    assert done.stdout == f"done {n}\n"
    wrong = hprof_times.wrong_counts(text, jdk, n)
    assert not wrong, f"(found, expected): {wrong}"
    check_report(tmp_path / "times.txt", text)


def as_reported(name):
    """Readers merge the accessors that the VM generates, whose numbers differ from run to run."""
    return re.sub(r"(Generated\w+Accessor)\d+", r"\1", name)


def check_report(path, text):
    """`report` prints what the text contains: calls, the total, and shares of it."""
    table = json.loads(lab.jvmscope("report", "--json", path).stdout)["times"]
    rows, methods = hprof_times.rows(text), {m["method"]: m for m in table["methods"]}
    calls, shares = {}, {}
    for share, count, frames in rows:
        name = as_reported(frames[0])
        calls[name] = calls.get(name, 0) + count
        shares[name] = shares.get(name, 0) + share
    total = int(re.findall(r"CPU TIME \(ms\) BEGIN \(total = (\d+)\)", text)[-1]) * 10**6
    rest = methods.pop("[in no row of the file]", {"self_ns": 0, "calls": 0})
    assert {name: m["calls"] for name, m in methods.items()} == calls and rest["calls"] == 0
    assert abs(table["total_ns"] - total) <= total * len(rows) * 0.0001 and table["rounded"] is True
    assert all(
        abs(m["self_ns"] - shares[name] * total / 100) <= len(rows) for name, m in methods.items()
    )
    assert sum(m["self_ns"] for m in methods.values()) + rest["self_ns"] == table["total_ns"]


def test_every_construct_runs_as_before(jdk, tmp_path):
    release = 25 if jdk.version >= 25 else 8
    before = jdk.java("Constructs", release=release)
    done, text = run(jdk, tmp_path, "Constructs", release=release)
    assert done.stdout == before.stdout and done.stderr == ""
    counted = {key[0] for key in hprof_times.calls(text, "Constructs")}
    methods = [
        "loopAtStart",
        "tables",
        "strings",
        "exceptions",
        "locks",
        "wide",
        "arrays",
        "recursion",
        "max",
        "lambdas",
        "conditions",
        "thrower",
        "tryThrow",
        "manyLocals",
        "main",
        "start",
        "next",
        "<clinit>",
    ]
    assert not [m for m in methods if "Constructs." + m not in counted]
    assert {
        "Constructs$Derived.<init>",
        "Constructs$Base.<init>",
        "Constructs$Color.<clinit>",
        "Constructs$Shape.show",
    } <= counted


def recorded(jdk, tmp_path, program, *args, options=""):
    out = tmp_path / "times.jfr"
    done = jdk.java(program, *args, jvm=[jdk.agent(f"cpu=times,format=r,file={out}{options}")])
    assert done.returncode == 0, done.stderr
    report = lab.jvmscope("report", "--json", out)
    assert report.returncode == 0, report.stderr
    return out, json.loads(report.stdout)["times"]


@pytest.mark.parametrize("clock", ["cpu", "elapsed"])
def test_recordings_report_calls_times_and_their_errors(jdk, tmp_path, clock):
    out, times = recorded(
        jdk, tmp_path, "TimesTruth", 1000, options=f",clock={clock},include=TimesTruth"
    )
    assert times["clock"] == clock
    if jdk.version == 17:  # each stack is in the file once, and a checkpoint has many
        summary = lab.Jdk(25).run("jfr", "summary", out).stdout
        stacks, checkpoints = (
            int(re.search(rf"{kind} +(\d+)", summary)[1])
            for kind in ("jvmscope.CallTimes", "jdk.Checkpoint")
        )
        assert stacks > 20 and checkpoints < stacks / 2, summary
    methods = {m["method"]: m for m in times["methods"] if m["method"] != UNREAD}
    assert methods["TimesTruth.recurse"]["calls"] == 21000
    assert methods["TimesTruth.plain"]["calls"] == 1800
    assert not [m for m in methods if not m.startswith("TimesTruth")]
    # Methods that are not counted or not timed are named.
    left = {m["method"]: m["reason"] for m in times["left"]}
    assert [m for m, reason in left.items() if reason != "small"] == ["TimesTruth.neverBound"]
    assert left["TimesTruth.neverBound"] == "native" and left["TimesTruth.accessor"] == "small"
    assert (
        methods["TimesTruth.accessor"]["calls"] == 3000
        and methods["TimesTruth.accessor"]["timed"] is False
    )
    assert {m for m in methods if "timed" in methods[m]} <= set(left)
    assert sum(m["self_ns"] or 0 for m in methods.values()) == times["total_ns"]
    if clock == "elapsed":
        main = methods["TimesTruth.main"]
        assert main["slowest_ns"] > methods["TimesTruth.threads"]["slowest_ns"] > 0
        assert (
            main["total_ns"]
            > methods["TimesTruth.threads"]["total_ns"]
            >= methods["TimesTruth.threads"]["self_ns"]
            > 0
        )
    else:
        for m in methods.values():
            assert (
                (m["raw_self_ns_95"] is None) == (m["self_ns_95"] is None) == (m["readings"] < 10)
            )
            assert (m["self_ns"] is None) == (m["readings"] == 0)
        # Formats without calls have the same time for each method, and show which times rest on too
        # few readings.
        true = {name: m["self_ns"] for name, m in methods.items() if (m["self_ns"] or 0) > 0}
        for made in (tmp_path / "t.otlp", tmp_path / "t.pb.gz"):
            assert lab.jvmscope("convert", "--metric", "times", "-o", made, out).returncode == 0
            rows = lab.read_json("report", "--json", made)["times"]["methods"]
            assert {
                m["method"]: m["self"] for m in rows if m["self"] and m["method"] != UNREAD
            } == true, made
            unknown = [m.get("few_readings", False) or not m["self"] for m in rows]
            assert unknown == sorted(unknown), rows
    text = tmp_path / "times.hprof.txt"
    assert lab.jvmscope("convert", "-o", text, out).returncode == 0
    check_report(text, text.read_text())
    converted = {
        m["method"]: m["calls"] for m in lab.read_json("report", "--json", text)["times"]["methods"]
    }
    assert {m: converted.get(m) for m in methods} == {m: v["calls"] for m, v in methods.items()}
    if jdk.version >= 11:
        printed = jdk.run("jfr", "print", "--events", "jvmscope.CallTimes", out)
        assert "TimesTruth.recurse(int)" in printed.stdout


def test_old_format_pairs_callers_and_callees(jdk, tmp_path):
    out = tmp_path / "old.txt"
    done = jdk.java("TimesTruth", 100, jvm=[jdk.agent(f"cpu=old,verbose=n,file={out}")])
    assert done.returncode == 0
    text = out.read_text(errors="replace")
    assert text.startswith("count callee caller time\n")
    assert re.search(r"^2000 TimesTruth\.recurse\(I\)I TimesTruth\.recurse\(I\)I \d+$", text, re.M)
    assert re.search(
        r"^100 TimesTruth\.recurse\(I\)I TimesTruth\.main\(\[Ljava/lang/String;\)V \d+$", text, re.M
    )
    table = lab.read_json("report", "--json", out)["times"]
    rows = re.findall(r"^(\d+) (\S+?)\(\S* \S.* (\d+)$", text, re.M)
    calls = {}
    for count, callee, _ in rows:
        calls[as_reported(callee)] = calls.get(as_reported(callee), 0) + int(count)
    assert {m["method"]: m["calls"] for m in table["methods"] if m["calls"]} == calls and calls[
        "TimesTruth.recurse"
    ] == 2100
    assert table["total_ns"] == sum(int(ms) for _, _, ms in rows) * 10**6


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21), daily=1)
def test_javac_under_full_instrumentation_writes_the_same(jdk, tmp_path):
    sources = [
        lab.ROOT / "tests" / "java" / f"{n}.java"
        for n in ("Constructs", "TimesTruth", "TimesMicro")
    ]
    for folder, agent in (
        ("plain", []),
        ("counted", ["-J" + jdk.agent(f"cpu=times,verbose=n,file={tmp_path / 'javac.txt'}")]),
    ):
        (tmp_path / folder).mkdir()
        done = jdk.run("javac", "-nowarn", *agent, "-d", tmp_path / folder, *sources)
        assert done.returncode == 0, done.stderr
    plain = {p.name: p.read_bytes() for p in (tmp_path / "plain").iterdir()}
    assert (
        plain == {p.name: p.read_bytes() for p in (tmp_path / "counted").iterdir()}
        and len(plain) > 10
    )
    assert len(hprof_times.rows((tmp_path / "javac.txt").read_text(errors="replace"))) > 100


@pytest.mark.jdks(8, 17, 25)
def test_calls_that_never_returned_do_not_lead(jdk, tmp_path):
    """At the end, daemons wait for as long as the recording lasts. This time is shown separately,
    and the sum includes both.
    """
    out, times = recorded(jdk, tmp_path, "TimesOpen", options=",clock=elapsed")
    methods = [m["method"] for m in times["methods"]]
    rows = {m["method"]: m for m in times["methods"]}
    waits, works = rows["TimesOpen.waitsForEver"], rows["TimesOpen.works"]
    assert waits["calls"] == 1 and waits["slowest_ns"] == 0
    assert waits["open_ns"] == waits["self_ns"] >= 700_000_000
    assert works["calls"] == 20 and works["open_ns"] == 0 and works["self_ns"] >= 190_000_000
    returned = [m["self_ns"] - m["open_ns"] for m in times["methods"] if m.get("timed", True)]
    assert returned == sorted(returned, reverse=True)
    assert max(methods.index("TimesOpen.main"), methods.index("TimesOpen.works")) < methods.index(
        "TimesOpen.waitsForEver"
    )
    assert sum(m["open_ns"] for m in times["methods"]) > 1_400_000_000  # both daemons
    assert sum(m["self_ns"] for m in times["methods"]) == times["total_ns"]
    text = lab.output("report", "--limit", "3", "--stacks", "0", out)
    table, reported = text.split("Time in calls that had not returned")
    assert (
        "TimesOpen.works" in table
        and "TimesOpen.waitsForEver" not in table
        and "TimesOpen.waitsForEver" in reported
    ), text
    stacks = lab.output("report", "--limit", "1", "--stacks", "3", out).split("Hottest stacks")[1]
    assert "TimesOpen.works" in stacks and "TimesOpen.waitsForEver" not in stacks, stacks
    # In every output their time is under a separate mark, so it does not belong to a method.
    for name in ("t.html", "t.collapsed", "t.pb.gz"):
        assert (
            lab.jvmscope("convert", "--metric", "times", "-o", tmp_path / name, out).returncode == 0
        )
    data = outputs.page(tmp_path / "t.html")
    for found in (
        outputs.page_weights(data, data["metrics"][0]),
        outputs.collapsed_weights(tmp_path / "t.collapsed"),
        outputs.pprof(tmp_path / "t.pb.gz")[0],
    ):
        assert (
            found.own["TimesOpen.waitsForEver"] == 0
            and found.total["TimesOpen.waitsForEver"] == waits["self_ns"]
        )
        assert found.own["TimesOpen.works"] == works["self_ns"]
        assert found.sum == times["total_ns"]
    assert "In calls that had not returned" in lab.output("report", tmp_path / "t.collapsed")
    again = lab.read_json("report", "--json", tmp_path / "t.collapsed")["times"]
    assert again["unattributed"] == 0 and again["open_ns"] == sum(
        m["open_ns"] for m in times["methods"]
    ), again["open_ns"]


def every_total(out, folder):
    """The total in each output of a recording, and those of its methods' own times that are not 0,
    if the output has them.
    """
    table = lab.read_json("report", "--json", out)["times"]
    assert sum(m["self_ns"] or 0 for m in table["methods"]) == table["total_ns"]
    totals, own = {"json": table["total_ns"]}, {
        "json": {m["method"]: m["self_ns"] for m in table["methods"] if m["self_ns"]}
    }
    for name in ("t.collapsed", "t.pb.gz", "t.otlp", "t.hprof.txt", "t.html", "t.jfr"):
        lab.jvmscope(
            "convert",
            *([] if name == "t.jfr" else ["--metric", "times"]),
            "-o",
            folder / name,
            out,
            check=True,
        )
        head = (
            lab.jvmscope("report", "--stacks", "0", folder / name, check=True)
            if name != "t.html"
            else None
        )
        assert head is None or "Time of counted calls: " in head.stdout, head.stdout
        if name not in ("t.html", "t.hprof.txt"):  # the text has whole milliseconds
            again = lab.read_json("report", "--json", folder / name)["times"]
            totals[name] = again["total" if "total" in again else "total_ns"]
            own[name] = {
                m["method"]: m.get("self", m.get("self_ns"))
                for m in again["methods"]
                if m.get("self", m.get("self_ns"))
            }
    data = outputs.page(folder / "t.html")
    metric = next(m for m in data["metrics"] if m["name"] == "times")
    found = {
        "page": outputs.page_weights(data, metric),
        "lines": outputs.collapsed_weights(folder / "t.collapsed"),
        "pprof": outputs.pprof(folder / "t.pb.gz")[0],
    }
    for name, weights in found.items():
        totals[name] = weights.sum
        own[name] = {m: ns for m, ns in weights.own.items() if ns}
    # CPU time without a reading belongs to no method. It is a part of every sum.
    own = {name: {m: v for m, v in of.items() if m[0] != "["} for name, of in own.items()}
    lab.jvmscope("diff", out, out, check=True)
    totals["diff"] = lab.read_json("diff", "--json", out, out)["times"]["base_total"]
    return totals, own


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("clock", ["cpu", "elapsed"])
@pytest.mark.parametrize("args", [(), ("small",)])
def test_calls_without_a_time_are_a_recording_in_every_output(jdk, tmp_path, clock, args):
    """Methods that are only counted have no time, and methods that were called seven times probably
    have none. Their calls are shown, under a heading that says which span they cover, and every
    format can be written and read.
    """
    out, times = recorded(
        jdk, tmp_path, "FewCalls", *args, options=f",clock={clock},include=FewCalls$*"
    )
    rows = {m["method"]: m for m in times["methods"]}
    assert (
        rows["FewCalls$Small.next"]["calls"] == (7 if args else 21)
        and rows["FewCalls$Small.next"]["timed"] is False
    )
    assert args or rows["FewCalls$Short.sum"]["calls"] == 7
    head, *table = lab.jvmscope("report", out, check=True).stdout.splitlines()
    assert re.search(r": Time of counted calls: \S+ \S+, in [\d.]+ m?s", head), head
    assert [
        line for line in table if line.split()[:1] == [str(rows["FewCalls$Small.next"]["calls"])]
    ], table
    if args:
        assert times["total_ns"] == 0
        assert [
            line for line in table if re.match(r" +7 .*not timed  FewCalls.Small\.next$", line)
        ], table
    totals, own = every_total(out, tmp_path)
    assert len(set(totals.values())) == 1, totals
    assert all(methods == own["json"] for methods in own.values()), own
    # If no time is measured, a comparison has nothing to divide by.
    assert lab.read_json("diff", "--json", out, out)["times"]["new_total"] == times["total_ns"]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("steps", [0, 10**9])
def test_tiny_methods_have_one_sum_that_holds_the_truth(jdk, tmp_path, steps, record_property):
    """Twice ten million calls of a nanosecond or two, alone and together with a second of work
    elsewhere. The probes cost several times what the methods take. Every output has the same sum,
    and the stated interval contains what the program takes without an agent.
    """
    calls = 10**7
    out, times = recorded(jdk, tmp_path, "TimesTiny", calls, steps, options=",include=TimesTiny")
    rows = {m["method"].split(".")[-1]: m for m in times["methods"]}
    assert rows["tiny"]["calls"] == rows["inner"]["calls"] == calls and rows["loop"]["calls"] == 1
    # The program's own measurements with the agent show how busy the machine was in the same
    # seconds.
    tiny, heavy = map(int, jdk.java("TimesTiny", calls, steps).stdout.split())
    low, high = times["total_ns_95"]
    found = {"truth": tiny + heavy, "sum": times["total_ns"], "between": (low, high)}
    record_property("found", str(found))
    print(found)
    assert low <= tiny + heavy <= high and low <= times["total_ns"] <= high, found
    for m in times["methods"]:
        assert (m["total_ns"] or 0) >= (m["self_ns"] or 0) >= 0, m
        if m["self_ns_95"]:
            assert m["self_ns_95"][0] <= m["self_ns"] <= m["self_ns_95"][1], m
    if steps:
        low, high = rows["heavy"]["self_ns_95"]
        assert low <= heavy <= high and rows["heavy"]["self_ns"] == max(
            m["self_ns"] or 0 for m in times["methods"]
        ), (heavy, rows["heavy"])
        assert rows["main"]["total_ns"] >= rows["heavy"]["self_ns"]
    # Times that may be zero are marked and listed after the known ones, ordered by calls.
    table = lab.output("report", "--limit", "100", "--stacks", "0", out)
    lines = {
        line.split("TimesTiny.")[-1]: line.split()
        for line in table.splitlines()
        if "  TimesTiny." in line
    }
    unknown = [
        m["method"].split(".")[-1]
        for m in times["methods"]
        if not (m["self_ns_95"] and m["self_ns_95"][0])
    ]
    assert list(lines)[len(lines) - len(unknown) :] == unknown, table
    assert all(lines[m][1][0] in "~-" for m in unknown) and "inner" in unknown, table
    assert "the sum lies between " in table, table
    totals, own = every_total(out, tmp_path)
    assert len(set(totals.values())) == 1, totals
    assert all(methods == own["json"] for methods in own.values()), own


@pytest.mark.jdks(8, 17, 25)
def test_times_of_a_killed_program_hold_the_truth(jdk, tmp_path):
    """The cost of the probes may be measured for the first time before the JIT has compiled them.
    The counts that are saved last subtract the cost that the probes have by then.
    """
    out, calls, steps = tmp_path / "t.jfr", 10**7, 10**9
    jvm = [jdk.agent(f"cpu=times,format=r,file={out},include=TimesTiny")]
    process = jdk.start_java("TimesTiny", calls, steps, 600000, jvm=jvm, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        time.sleep(6)  # three times as long as from one save to the next
    finally:
        process.kill()
        process.communicate()
    times = lab.read_json("report", "--json", out)["times"]
    tiny, heavy = map(int, jdk.java("TimesTiny", calls, steps).stdout.split())
    rows = {m["method"].split(".")[-1]: m for m in times["methods"]}
    low, high = times["total_ns_95"]
    assert rows["tiny"]["calls"] == rows["inner"]["calls"] == calls
    assert low <= tiny + heavy <= high and low <= times["total_ns"] <= high, (
        tiny,
        heavy,
        times["total_ns"],
        low,
        high,
    )
    assert times["total_ns"] >= 0.8 * heavy, (tiny, heavy, times)


def short_threads(jdk, out, how):
    """Records TimesShort with `run` or `attach`: what it printed."""
    args = ["TimesShort", 1500, 200000, 4]
    options = ["--cpu=times", "--include", "TimesShort", "-o", out]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if how == "run":
        command = ["java", "-cp", lab.compiled("TimesShort", 8), *args]
        program = jdk.start(lab.BUILD / "jvmscope", "run", *options, "--", *command, **pipes)
    else:
        program = jdk.start_java(*args, **pipes)
    assert program.stdout.readline() == "ready\n"
    if how == "attach":
        command = [lab.BUILD / "jvmscope", "attach", "-t", "1000s", *options, str(program.pid)]
        attached = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        lab.wait_for(
            lambda: re.search(
                r"^state +recording$", lab.jvmscope("status", program.pid).stdout, re.M
            ),
            60,
            "the recording",
        )
    program.stdin.write("\n")
    program.stdin.flush()
    printed = program.stdout.readline()
    if how == "attach":
        attached.send_signal(signal.SIGINT)
        complaints = attached.communicate(timeout=60)[1]
        assert attached.returncode == 0, complaints
    complaints = program.communicate("\n", timeout=60)[1]
    assert program.returncode == 0, complaints
    return [int(number) for number in printed.split()]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("how", ["run", "attach"])
def test_threads_shorter_than_a_tick_have_their_time(jdk, tmp_path, how, record_property):
    """1,500 threads of some 1.5 ms, and a tenth of that work in one thread: in every output the
    stated interval has what the program measured, and the sum is the CPU time of all threads. What
    a thread uses before its first method that is included belongs to none, or to the first one.
    """
    out = tmp_path / "short.jfr"
    burn, alone, everything, born = short_threads(jdk, out, how)
    times = lab.read_json("report", "--json", out)["times"]
    rows = {m["method"].split(".")[-1]: m for m in times["methods"]}
    found = {
        "truth": (burn, alone, everything, born),
        "burn": [rows["burn"][name] for name in ("self_ns", "self_ns_95")],
        "alone": [rows["alone"][name] for name in ("self_ns", "self_ns_95")],
        "sum": (times["total_ns"], times["total_ns_95"]),
        "unread": times["unread_ns"],
    }
    record_property("found", str(found))
    print(found)
    assert rows["burn"]["calls"] == 1500 and rows["alone"]["calls"] == 1
    for name, truth in (("burn", burn), ("alone", alone)):
        low, high = rows[name]["self_ns_95"]
        assert low <= truth <= high and low <= rows[name]["self_ns"] <= high, found
        # An interval that has room for anything would say nothing.
        assert high - low < truth, found
    low, high = times["total_ns_95"]
    assert low <= everything and everything - born <= high, found
    assert low <= times["total_ns"] <= high, found
    assert 0.9 * (everything - born) < times["total_ns"] < 1.1 * everything, found
    assert times["unread_ns"] < everything / 20, found
    totals, own = every_total(out, tmp_path)
    assert len(set(totals.values())) == 1, totals
    assert all(methods == own["json"] for methods in own.values()), own
    shares = {}
    text = (tmp_path / "t.hprof.txt").read_text()
    for share, _, frames in hprof_times.rows(text):
        shares[frames[0]] = shares.get(frames[0], 0) + share
    low, high = rows["burn"]["self_ns_95"]
    assert low <= shares["TimesShort.burn"] / 100 * times["total_ns"] <= high, shares
