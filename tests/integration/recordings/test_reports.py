# SPDX-License-Identifier: Apache-2.0
"""What commands report about a recording: the files that they wrote, what was lost, and what the
recording lacks.
"""
import base64
import gzip
import json
import os
import re
import subprocess

import pytest

import lab
import outputs


@pytest.fixture
def busy(jdk):
    """Starts Busy under the JDK with the given VM options; it is ended with the test."""
    started = []

    def start(*jvm):
        process = jdk.start_java(
            "Busy", 600, jvm=("-Xmx32m", *jvm), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


def printed(done, status=0):
    assert done.returncode == status, done.stderr
    return done.stderr


def run(jdk, out, *options, program=("Busy", "0.2"), status=0):
    """`jvmscope run` of a short program; its own lines on standard error."""
    done = lab.jvmscope(
        "run",
        *options,
        "-o",
        out,
        "--",
        *jdk.command("java", "-Xmx32m", "-cp", lab.compiled(program[0]), *program),
    )
    return [line for line in printed(done, status).splitlines() if line.startswith("jvmscope: ")]


@pytest.mark.jdks(17)
def test_patterns_that_choose_nothing_are_reported(jdk, tmp_path):
    """Sampled allocations cannot be chosen by class, unlike exact ones; a dump of the heap is not
    made by changing classes.
    """
    out = tmp_path / "x.jfr"
    note = (
        "jvmscope: note: --alloc: include and exclude do not choose among sampled allocations, "
        "only among exact ones"
    )
    for option in ("--include=Busy", "--exclude=Busy"):
        assert note in run(jdk, out, "--alloc", option)
    assert note not in run(jdk, out, "--alloc")
    assert not any(
        "do not choose" in line for line in run(jdk, out, "--alloc=exact", "--include=Busy")
    )
    no_effect = "has no effect on what is recorded"
    for options in (["--events", "-i", "5ms"], ["--cover", "-d", "5"], ["--heap=dump", "-d", "5"]):
        lines = run(jdk, out, *options)
        assert any(f"-{options[1][1]}" in line and no_effect in line for line in lines), lines
    assert not any(no_effect in line for line in run(jdk, out, "--cpu", "-i", "5ms", "-d", "5"))
    done = lab.jvmscope("run", "--heap=dump", "--include=Busy", "-o", out, "--", "java")
    assert done.returncode == 2 and "--include=Busy: has no effect without" in done.stderr


@pytest.mark.jdks(17)
def test_options_that_an_output_cannot_heed_are_noted_or_refused(jdk, tmp_path):
    """Only a .jfr has chunks; HPROF's binary output has no monitors and no times of methods."""
    for name in ("x.hprof.txt", "x.hprof", "x.html", "x.collapsed"):
        out = tmp_path / name
        note = f"jvmscope: note: --chunk: has no effect on {out}"
        assert note in run(jdk, out, "--cpu", "--chunk", "1m")
        assert note not in run(jdk, out, "--cpu")
    assert not any(
        "note: --chunk" in line for line in run(jdk, tmp_path / "x.jfr", "--chunk", "1m")
    )
    for option in ("--monitors", "--cpu=times"):
        done = lab.jvmscope("run", option, "-o", tmp_path / "y.hprof", "--", "java")
        assert done.returncode == 2 and done.stderr.endswith(
            f": {option} cannot be recorded into a .hprof; write a .hprof.txt or a .jfr instead\n"
        )


@pytest.mark.jdks(17)
def test_a_recording_without_an_exhausted_memory_says_so(jdk, busy, tmp_path):
    """Only if nothing else was asked for, because then the recording holds nothing."""
    out, why = tmp_path / "x.jfr", "no OutOfMemoryError was thrown"
    assert any(why in line for line in run(jdk, out, "--on-oom"))
    assert any(why in line for line in run(jdk, tmp_path / "x.hprof", "--on-oom"))
    assert not any(why in line for line in run(jdk, out, "--on-oom", "--cpu"))
    assert why in printed(lab.jvmscope("attach", "--on-oom", "-t", "300ms", "-o", out, busy()))


@pytest.mark.jdks(17)
def test_heap_into_a_recording_has_sites_and_a_dump_that_is_named(jdk, tmp_path):
    out, dump = tmp_path / "x.jfr", tmp_path / "x.hprof"
    wrote, dumped = run(jdk, out, "--heap")
    assert wrote.startswith(f"jvmscope: wrote {out} (") and dumped.startswith(
        f"jvmscope: wrote {dump} ("
    )
    assert lab.read_json("report", "--json", out)["allocations"]["methods"]
    assert lab.jvmscope("heap", "summary", dump).returncode == 0
    # If there is only a dump, report has nothing to show, and an older dump is not mentioned.
    (wrote,) = run(jdk, out, "--cpu")
    assert dump.exists()
    wrote, dumped = run(jdk, out, "--heap=dump")
    assert (
        wrote.startswith(f"jvmscope: wrote {out} (")
        and "see it with" not in wrote
        and str(dump) in dumped
    )


@pytest.mark.jdks(8, 17)
def test_where_throws_are_not_counted_the_message_does_not_deny_them(jdk, tmp_path):
    out = tmp_path / "x.jfr"
    for words, why in (
        (
            ("--include", "com.x.*"),
            " in the classes that --include names; what other classes threw",
        ),
        (("--exclude", "*"), " outside of the classes that --exclude names, in which throws were"),
    ):
        done = lab.jvmscope(
            *("run", "--exceptions", *words, "-o", out, "--"),
            *jdk.command("java", "-cp", lab.compiled("Throws"), "Throws", "10"),
        )
        line = f"jvmscope: {out}: holds no exceptions: none was thrown{why}"
        for printed in (done.stderr, lab.jvmscope("trace", "--exceptions", out).stderr):
            assert any(l.startswith(line) for l in printed.splitlines()), (words, printed)


@pytest.mark.jdks(17)
def test_what_was_asked_for_and_is_not_in_a_recording_is_reported(jdk, tmp_path):
    out, page = tmp_path / "x.jfr", tmp_path / "x.html"
    asked = ("--trace=Busy.nosuch", "--exceptions", "--monitors", "--watch=Busy.sink")
    for path in (out, page):
        lines = run(jdk, path, *asked, status=1)  # because of the pattern
        assert (
            "jvmscope: Busy.nosuch: the pattern traced nothing: Busy is loaded and has no such method"
            in lines
        )
        assert f"jvmscope: {path}: holds no exceptions: none was thrown" in lines
        if path == out:  # the reader knows what was recorded too
            assert (
                lab.jvmscope("trace", "--exceptions", out).stderr
                == f"jvmscope: {out}: holds no exceptions: none was thrown\n"
            )
        assert f"jvmscope: {path}: holds no waits for monitors: there was no contention" in lines
        # The program does access the field.
        assert not [line for line in lines if "--watch" in line]


@pytest.mark.jdks(8, 17)
def test_a_vm_that_attach_would_end_is_shown_and_left_alone(jdk, busy):
    """A VM with -Xrs ignores the signal, and here somebody has removed the socket on which it
    listens.
    """
    pid, other = busy("-Xrs"), busy()
    socket = f"/proc/{pid}/root/tmp/.java_pid{pid}"
    lab.wait_for(lambda: os.path.exists(socket), 60, "the socket that HotSpot makes at once")
    os.unlink(socket)
    vms = {vm["pid"]: vm for vm in json.loads(printed_by(lab.jvmscope("list", "--json")))}
    assert vms[pid]["command"] == "Busy 600"
    assert (vms[pid]["attachable"], vms[other]["attachable"]) == (False, True)
    assert vms[pid]["version"].startswith("1.8.0" if jdk.version == 8 else str(jdk.version))
    line = next(l for l in lab.output("list").splitlines() if l.split()[0] == str(pid))
    assert line.endswith("(no attach: -Xrs)")
    assert "Busy 600" in printed_by(lab.jvmscope("top", "-n", 1, "-i", "50ms", pid))
    for command in (
        ["status"],
        ["attach", "-t", "1s"],
        ["top", "--states", "-n", 1],
        ["heap", "dump"],
    ):
        done = lab.jvmscope(*command, pid)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (command, done.stderr)
        assert (
            "it runs with -Xrs and does not take SIGQUIT, and no attach listener has its socket in /tmp, so attach would end it"
            in done.stderr
            and "starting" not in done.stderr
        ), done.stderr
    assert "Busy 600" in printed_by(lab.jvmscope("top", "-n", 1, "-i", "50ms", pid))


def printed_by(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.jdks(8, 25)
def test_a_recording_that_goes_on_is_reported_with_its_size_and_its_losses(jdk, busy, tmp_path):
    pid, file, copy, page = busy(), tmp_path / "a.jfr", tmp_path / "b.jfr", tmp_path / "c.html"
    note = "note: --heap=sites: "
    printed(
        lab.jvmscope(
            "attach", "--agent", "heap=sites", "--trace=Busy.work", "--limit=3", "-o", file, pid
        )
    )
    again = printed(lab.jvmscope("attach", "-t", "1s", pid), 1)
    assert again.endswith(
        f"already recording to {file}; end that recording with: jvmscope stop {pid}\n"
    )
    lost = r": trace: (\d+) calls were lost between \S+ s and \S+ s: the number that --limit allows was reached\n"
    lab.wait_for(
        lambda: "lost.trace.calls" in lab.jvmscope("status", "--json", pid).stdout,
        60,
        "calls that are lost",
    )
    first = printed(lab.jvmscope("dump", pid))
    assert re.search(
        rf"wrote {file} \(\S+ [KM]iB\); see it with: jvmscope \w+ {file}\n", first
    ) and re.search(re.escape(str(file)) + lost, first)
    assert f"jvmscope: {pid}: the recording goes on\n" in first and first.count(note) == 1
    # A loss that was reported once is reported only by status afterwards.
    assert printed(lab.jvmscope("inspect", pid, "threads")) == ""
    assert "note  " in printed_by(lab.jvmscope("status", pid))
    second = printed(lab.jvmscope("dump", "-o", copy, pid))
    assert re.search(re.escape(str(copy)) + lost, second) and second.count(note) == 1
    # The copy ends with its only chunk, without the room that the recorder has ready: half a MiB or
    # more.
    assert (
        copy.stat().st_size
        == int.from_bytes(copy.read_bytes()[8:16], "big")
        < file.stat().st_size - (1 << 19)
    )
    traced = json.loads(printed_by(lab.jvmscope("trace", "--json", copy)))
    assert len(traced["calls"]) == 3 and traced["lost"] > 0 and not traced["unended"]
    third = printed(lab.jvmscope("dump", "-o", page, pid))
    assert (
        re.search(re.escape(str(page)) + lost, third)
        and len(lab.lost(third)) == 1
        and page.stat().st_size > 1000
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jfr", "b.jfr", "c.html"]
    assert re.search(re.escape(str(file)) + lost, printed(lab.jvmscope("stop", pid)))
    whole = json.loads(printed_by(lab.jvmscope("trace", "--json", file)))
    assert whole["lost"] >= traced["lost"] and not whole["unended"]


@pytest.mark.jdks(8, 25)
def test_no_loss_is_later_than_the_end_of_the_recording(jdk, tmp_path):
    """Calls may be lost until the trace has stopped, which is after the end of the recording. Here
    the end is moved to before the last loss.
    """
    out, page = tmp_path / "a.jfr", tmp_path / "a.html"
    run(
        jdk,
        out,
        "--cpu",
        "-i",
        "1ms",
        "--trace=Busy.work",
        "--limit=3",
        program=("Busy", "0.2", "1", "0.1"),
    )
    (before,) = lab.read_json("trace", "--json", out)["losses"]
    data = bytearray(out.read_bytes())
    assert int.from_bytes(data[8:16], "big") == len(
        data
    ), "one chunk, whose header has its length in ns at 40"
    span = (before["from_ns"] + before["to_ns"]) // 2
    data[40:48] = span.to_bytes(8, "big")
    out.write_bytes(data)
    (loss,) = lab.read_json("trace", "--json", out)["losses"]
    assert f" and {span / 1e9:.2f} s: " in loss["sentence"]
    assert (
        loss == {**before, "to_ns": span, "sentence": loss["sentence"]}
        and before["from_ns"] < span < before["to_ns"]
    ), (before, loss, span)
    until = f"{loss['amount']} calls were lost between {loss['from_ns'] / 1e9:.2f} s and {span / 1e9:.2f} s: "
    for command in (["trace", out], ["convert", "-o", page, out]):
        assert until in lab.jvmscope(*command).stderr, command


@pytest.mark.jdks(17)
def test_json_of_differences_reports_what_each_side_lost(jdk, tmp_path):
    whole, limited = tmp_path / "a.jfr", tmp_path / "b.jfr"
    run(jdk, whole, "--cpu", "-i", "1ms")
    # So much CPU time that work() is called more than three times on a busy machine too.
    run(
        jdk,
        limited,
        "--cpu",
        "-i",
        "1ms",
        "--trace=Busy.work",
        "--limit=3",
        program=("Busy", "0.2", "1", "0.1"),
    )
    both = json.loads(printed_by(lab.jvmscope("diff", "--json", whole, limited)))
    (loss,) = both["new"]["losses"]
    assert loss["capture"] == "trace" and loss["amount"] == both["new"]["lost"] > 0
    assert (both["base"]["lost"], both["base"]["losses"], both["base"]["unended"]) == (0, [], False)


@pytest.mark.jdks(17)
def test_no_probe_is_in_a_result_and_filters_that_match_nothing_are_reported(jdk, tmp_path):
    out, stacks = tmp_path / "a.jfr", tmp_path / "a.collapsed"
    run(jdk, out, "--cpu", "-i", "1ms", "--threads", "--trace=Busy.*", program=("Busy", "1", "2"))
    assert lab.jvmscope("convert", "-o", stacks, out).returncode == 0
    report, path = printed_by(lab.jvmscope("report", out)), printed_by(
        lab.jvmscope("threads", "critical-path", out)
    )
    assert "Busy.work" in report and "\n\nHottest stacks\n" in report
    assert "\\n" not in report + path and "Jvmscope" not in report + path + stacks.read_text()
    for command in (["trace", "--method", "nosuch"], ["trace", "--thread", "nosuch"]):
        done = lab.jvmscope(*command, out)
        assert done.returncode == 1 and done.stderr.endswith(": nosuch\n"), (command, done.stderr)
    # Each name of a list matches something, and times lie in the recording, in order.
    views = [
        ["report"],
        ["vm"],
        ["diff", out],
        ["convert", "-o", tmp_path / "b.collapsed"],
        *(
            ["threads", verb]
            for verb in ("summary", "monitors", "timeline", "critical-path", "what-if")
        ),
    ]
    for view in views:
        threads = () if view[-1] in ("vm", "what-if") else ("nosuch", "main,nosuch")
        for words, why in (
            *((("--thread", name), ": nosuch") for name in threads),
            (("--from", "5s", "--to", "1s"), "--from 5.00 s is not before --to 1.00 s"),
            (("--from", "1h"), "--from 3600 s is not before the end of the recording at "),
        ):
            done = lab.jvmscope(
                *view[: 2 if view[0] == "threads" else 1],
                *words,
                *view[2 if view[0] == "threads" else 1 :],
                out,
            )
            assert done.returncode == 1 and why in done.stderr and done.stdout == "", (
                view,
                words,
                done,
            )
    for words in (("--method", "nosuch"), ("--lock", "nosuch")):
        done = lab.jvmscope("threads", "what-if", *words, out)
        assert (
            done.returncode == 1
            and done.stderr.splitlines()[0].endswith(": nosuch")
            and done.stdout == ""
        ), done
    for factor in ("0,5", "x", "-1", "1001", "nan"):
        done = lab.jvmscope("threads", "what-if", "--method", "Busy.work", "--factor", factor, out)
        assert (
            done.returncode == 2
            and f"--factor takes a number from 0 to 1000: {factor}" in done.stderr
        ), done.stderr


OF_ALL_KINDS = {
    "sampled": "cpu=samples,alloc=sampled,threads=y,locks=*,deadlock=y,events=y,jfr=default,requests=TracedForever.one(..),trace=TracedForever.one,"
    "exceptions=counts,cover=y,"
    "watch=TracedForever.sum,allow-control=y,format=r",
    "exact": "cpu=times,alloc=exact,live=exact,monitor=y,exceptions=stacks,cover=y,trace=TracedForever.one,format=r",
}
HEAP_VERBS = {
    verb: [[]]
    for verb in (
        "summary",
        "histogram",
        "dominators",
        "leaks",
        "strings",
        "collections",
        "arrays",
        "references",
        "classes",
        "components",
        "unreachable",
        "threads",
    )
}
HEAP_VERBS |= {
    "retained": [["java.lang.Object[]"], ["java.lang.Class"]],
    "paths": [["java.lang.Thread"], ["byte[]"]],
    "objects": [["java.lang.Class"], ["java.lang.Thread"]],
    "query": [
        ["SELECT class, count(*) FROM objects GROUP BY 1"],
        ["SELECT name FROM classes"],
        ["SELECT value FROM strings"],
        ["SELECT class, value FROM objects"],
        ["SELECT name, value FROM fields"],
        ['SELECT * FROM "java.lang.Class"'],
    ],
}


@pytest.mark.jdks(17, slow=(8, 11, 21, 25, 27))
@pytest.mark.parametrize("kinds", OF_ALL_KINDS)
def test_no_class_of_the_agent_is_in_any_result(jdk, kinds, tmp_path):
    """Checks every verb of heap, as text and JSON, every command that reads the recording, and
    every format, with all captures on.
    """
    options, out, dumps = (
        OF_ALL_KINDS[kinds],
        tmp_path / "a.jfr",
        [tmp_path / "0.hprof", tmp_path / "1.hprof"],
    )
    if jdk.version < 11:
        options = options.replace("alloc=sampled,", "")
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m", jdk.agent(f"{options},file={out}")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for dump in dumps:
            assert lab.jvmscope("heap", "dump", "-o", dump, process.pid).returncode == 0
    finally:
        process.communicate("\n")
    own = re.compile(r"java[/.]lang[/.]Jvmscope\w*|jvmscope[/.]Binder")
    wrong = []

    def look(*words):
        done = lab.jvmscope(*words)
        assert (
            done.returncode == 0 or "holds no" in done.stderr or "cannot select" in done.stderr
        ), (words, done.stderr)
        wrong.extend(
            [(*map(str, words), *sorted({*own.findall(done.stdout + done.stderr)}))]
            if own.search(done.stdout + done.stderr)
            else []
        )

    for flags in (["-n", "100000"], ["--json"]):
        for verb, operands in HEAP_VERBS.items():
            for words in operands:
                look("heap", verb, *flags, dumps[1], *words)
        look("heap", "diff", *flags, *dumps)
        for command in (
            ["report"],
            ["vm"],
            ["trace"],
            ["coverage"],
            ["requests"],
            ["threads", "summary"],
            ["threads", "monitors"],
            ["threads", "critical-path"],
        ):
            look(*command, *(flags if command[0] != "coverage" else flags[2:]), out)
    for name in ("x.html", "x.collapsed", "x.pb.gz", "x.otlp"):
        made = tmp_path / name
        assert lab.jvmscope("convert", out, "-o", made).returncode == 0
        data = made.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        wrong.extend(
            [(name, *sorted({*own.findall(data.decode("latin1"))}))]
            if own.search(data.decode("latin1"))
            else []
        )
    assert not wrong, wrong


@pytest.mark.parametrize("output", ["x.collapsed", "x.pb.gz", "x.pftrace", "x.json", "x.trcxml"])
def test_an_output_that_cannot_hold_what_is_asked_for_is_refused_before_the_program_runs(
    output, tmp_path
):
    done = lab.jvmscope(
        "run", "--trace", "Amounts.called", "-o", tmp_path / output, "--", "touch", tmp_path / "ran"
    )
    assert (
        done.returncode == 2 and f"{tmp_path / output}: this format shows " in done.stderr
    ), done.stderr
    assert done.stderr.count("\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.jdks(8, 27)
def test_losses_of_what_is_converted_at_once_are_reported_once_and_under_its_name(jdk, tmp_path):
    page = tmp_path / "x.html"
    lines = run(
        jdk,
        page,
        "--cpu",
        "--trace=Amounts.called",
        "--limit=100",
        program=("Amounts", "calls", "20000"),
    )
    losses = [line for line in lines if " were lost " in line]
    assert len(losses) == 1 and losses[0].startswith(
        f"jvmscope: {page}: trace: 19900 calls were lost "
    ), lines
    assert not [line for line in lines if page.name + "." in line]


@pytest.mark.jdks(8, 17, 27)
def test_patterns_of_classes_that_match_nothing_are_reported(jdk, tmp_path, busy):
    """They are reported at the end of a run, at attach, and at the end of an attached recording."""
    options = (
        "--locks",
        "no.Such,java.lang.Object",
        "--cover",
        "--include",
        "Busy*,nono.*",
        "--exclude",
        "nana.*,java.*",
        "--trace",
        "Busy.nosuch",
        "--to-string",
        "no.Other,java.lang.Thread",
    )
    stated = run(
        jdk,
        tmp_path / "r.jfr",
        *options,
        "--show",
        "no.Such.f,Busy.nosuch,Busy.sink",
        "--log",
        "No:1 x;Busy:1 x",
        "--watch",
        "No.f",
        status=1,
    )
    assert [l for l in stated if "matches" in l] == [
        f"jvmscope: --{o}: nothing that was loaded matches: {p}"
        for o, p in (
            ("locks", "no.Such"),
            ("include", "nono.*"),
            ("exclude", "nana.*"),
            ("to-string", "no.Other"),
        )
    ]
    assert [l for l in stated if "--show" in l] == [
        f"jvmscope: --show: no class that was loaded has this field: {f}"
        for f in ("no.Such.f", "Busy.nosuch")
    ]
    for place, why in (
        ("No:1", "nothing was logged: no class of this name is loaded"),
        ("Busy:1", "nothing was logged: the class is loaded and has no code for this line"),
        ("No.f", "nothing was watched: no class of this name is loaded"),
    ):
        assert stated.count(f"jvmscope: {place}: {why}") == 1, stated
    pid = busy()
    done = lab.jvmscope("attach", *options, "-o", tmp_path / "a.jfr", pid)
    assert [l for l in printed(done).splitlines() if "matches" in l] == [
        f"jvmscope: note: {o}: no class that is loaded so far matches"
        for o in ("--locks no.Such", "--include nono.*", "--exclude nana.*", "--to-string no.Other")
    ]
    done = lab.jvmscope("stop", "-o", tmp_path / "a.jfr", pid)
    assert printed(done, status=1).count("nothing that was loaded matches") == 4
    # Nested classes with a dot, as people write them.
    done = lab.jvmscope(
        "attach",
        "--trace",
        "java.util.HashMap.Node.getKey",
        "--to-string",
        "java.util.HashMap.Node",
        "--log",
        "java.util.HashMap.Node:1 x",
        "-t",
        "50ms",
        "-o",
        tmp_path / "n.jfr",
        pid,
    )
    # The end of a recording that holds nothing names the pattern and the place once more.
    assert (
        printed(done, status=1).count(", but java.util.HashMap$Node is\n") == 3
        and "java.util.HashMap.Node.getKey: the pattern traced nothing\n" in done.stderr
        and "no class that is loaded so far matches, but there is java.util.HashMap$Node\n"
        in done.stderr
    ), done.stderr
    # One command reports it once.
    stated = printed(
        lab.jvmscope(
            "attach", "-t", "100ms", *options, "--log", "No:1 x", "-o", tmp_path / "b.jfr", pid
        ),
        status=1,
    )
    for pattern in ("no.Such", "no.Other", "nono.*", "nana.*"):
        assert stated.count(f"{pattern}: ") + stated.count(f": {pattern}\n") == 1, stated
    # But the end repeats why the status is 1: nothing that these options name exists.
    for place, why in (
        ("Busy.nosuch", "the pattern traced nothing"),
        ("No:1", "nothing was logged: "),
    ):
        assert stated.count(f"jvmscope: note: ") == 6 and stated.count(f"{place}: ") == 2, stated
        assert stated.count(f"jvmscope: {place}: {why}") == 1, stated


@pytest.mark.jdks(8, 25)
@pytest.mark.parametrize("what", ["--cpu=times", "--alloc=exact"])
def test_what_is_empty_because_nothing_is_included_says_so(jdk, tmp_path, what):
    """HPROF's output has no place for it, so the end of the recording says it. Commands say it of
    a recording that has none of what they show.
    """
    words = (what, "--include", "nosuch.*")
    program = jdk.command("java", "-Xmx32m", "-cp", lab.compiled("Busy"), "Busy", "0.2")
    for name in ("o.hprof.txt", "o.jfr", "o.html"):
        done = lab.jvmscope("run", *words, "-o", tmp_path / name, "--", *program)
        assert (
            len(re.findall(r"--include:? .*nothing that was loaded matches", done.stderr)) == 1
        ), (
            name,
            done,
        )
    out = tmp_path / "o.jfr"
    for verb in (["report", "--metric", "locks"], ["convert", "-o", tmp_path / "o.collapsed"]):
        done = lab.jvmscope(*verb, out)
        if done.returncode:
            assert "--include: nothing that was loaded matches: nosuch.*\n" in done.stderr, done
    done = lab.jvmscope("report", "--metric", "locks", out)
    assert done.returncode == 1 and "--include: nothing" in done.stderr, done


@pytest.mark.jdks(8, 25)
@pytest.mark.parametrize(
    "options, last",
    [
        (("--locks", "nosuch", "--threads"), "--locks: nothing that was loaded matches: nosuch"),
        (
            ("--exclude", "nosuch.*", "--include", "Busy", "--cpu=times"),
            "--exclude: nothing that was loaded matches: nosuch.*",
        ),
        (
            ("--show", "Busy.nosuch", "--trace", "Busy.main"),
            "--show: no class that was loaded has this field: Busy.nosuch",
        ),
        (
            ("--to-string", "no.Such", "--trace", "Busy.main"),
            "--to-string: nothing that was loaded matches: no.Such",
        ),
        (
            ("--include", "nosuch.*", "--cpu=times", "--threads"),
            "--include: nothing that was loaded matches: nosuch.*",
        ),
        (("--trace", "Busy.nosuch", "--cpu"), "Busy.nosuch: the pattern traced nothing"),
        (
            ("--watch", "No.f", "--cpu"),
            "No.f: nothing was watched: no class of this name is loaded",
        ),
        (("--log", "No:1 x", "--cpu"), "No:1: nothing was logged: no class of this name is loaded"),
        (
            ("--requests=no.Such.f", "--cpu"),
            "--requests: nothing that was loaded matches: no.Such.f",
        ),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_the_end_of_attach_says_why_its_status_is_1(jdk, tmp_path, busy, options, last):
    """It had said it at the beginning alone, and then "wrote FILE; see it with" and nothing else."""
    done = lab.jvmscope("attach", *options, "-t", "200ms", "-o", tmp_path / "a.jfr", busy())
    stated = printed(done, status=1).splitlines()
    wrote = [i for i, line in enumerate(stated) if line.startswith("jvmscope: wrote ")]
    assert f"jvmscope: {last}" in stated[wrote[0] :], stated


@pytest.mark.jdks(17)
def test_a_page_without_samples_names_a_file_that_would_hold_the_rest(jdk, tmp_path, busy):
    """The page is not written, so `see it with trace` led nowhere."""
    pid, page = busy(), tmp_path / "x.html"
    done = lab.jvmscope("attach", "--log", "Busy:1 x", "-o", tmp_path / "a.jfr", pid)
    assert done.returncode == 0, done.stderr
    done = lab.jvmscope("dump", "-o", page, pid)
    assert done.returncode == 1 and not page.exists(), done.stderr
    assert (
        f"jvmscope: {page}: holds nothing that a page shows: what it holds so far is in a file that "
        "ends in .jfr, for trace, threads or vm\n"
    ) in done.stderr, done.stderr
    kept = tmp_path / "x.jfr"
    assert lab.jvmscope("dump", "-o", kept, pid).returncode in (0, 1) and kept.exists()


@pytest.mark.jdks(17)
def test_a_view_reports_its_own_losses_and_names_those_of_the_others_in_one_line(jdk, tmp_path):
    out = tmp_path / "l.jfr"
    options = f"trace=Amounts.called,limit=100,cpu=samples,cover=y,threads=y,events=y,include=Amounts,requests=Amounts.called(..),format=r,file={out}"
    assert (
        jdk.java("Amounts", "calls", "20000", jvm=("-Xmx64m", jdk.agent(options))).returncode == 0
    )
    losses = lab.read_json("trace", "--json", out)["losses"]
    shown = {
        "trace": "trace",
        "requests": "requests",
        "threads": "threads",
        "cpu": "report",
        "events": "vm",
    }
    assert {"trace", "requests"} <= {x["capture"] for x in losses} <= set(shown), losses
    own = {
        "trace": {"trace", "events"},
        "coverage": set(),
        "threads summary": {"threads"},
        "vm": {"events"},
        "report": {"cpu"},
        "requests": {"requests", "threads", "cpu"},
        "convert": {"cpu"},
        "diff": {"cpu"},
    }
    for verb, captures in own.items():
        more = (
            ["-o", tmp_path / "x.pb.gz"] if verb == "convert" else [out] if verb == "diff" else []
        )
        stated = [
            line.removeprefix(f"jvmscope: {out}: ")
            for line in printed(lab.jvmscope(*verb.split(), *more, out)).splitlines()
            if "lost" in line or "losses" in line
        ]
        # The table itself says how many requests have no details.
        mine = [
            x
            for x in losses
            if x["capture"] in captures and (verb, x["what"]) != ("requests", "details of requests")
        ]
        others = ", ".join(
            f"{x['capture']} {x['amount']} {x['what'] if x['amount'] > 1 else x['what'].removesuffix('s')} (jvmscope {shown[x['capture']]})"
            for x in losses
            if x["capture"] not in captures
        )
        want = [f"losses of other captures: {others}"] if others else []
        assert stated[len(mine) :][:1] == want and len(stated) == (2 if verb == "diff" else 1) * (
            len(mine) + len(want)
        ), (verb, stated)
        assert all(
            line.startswith(f"{x['capture']}: {x['amount']} ") for line, x in zip(stated, mine)
        ), (verb, stated)
    # Every command states the same number of things lost, and how many its own figures lack.
    everything = sum(x["amount"] for x in losses)
    for verb, captures in own.items():
        if verb in ("convert", "coverage"):
            continue
        found = json.loads(
            lab.jvmscope(*verb.split(), "--json", *([out] if verb == "diff" else []), out).stdout
        )
        found = found["new"] if verb == "diff" else found
        mine = sum(x["amount"] for x in losses if x["capture"] in captures)
        assert (found["lost"], found["lost_here"]) == (everything, mine), (verb, losses)
    assert 0 < sum(x["amount"] for x in losses if x["capture"] == "trace") < everything
    # The first line of `threads summary` counts losses next to the events of threads: only those.
    of_threads = sum(x["amount"] for x in losses if x["capture"] in own["threads summary"])
    summary = lab.jvmscope("threads", "summary", out).stdout.splitlines()[0]
    assert summary.endswith(" threads" + (f", {of_threads} lost" if of_threads else "")), summary
    assert lab.jvmscope("convert", "-o", tmp_path / "l.html", out).returncode == 0
    assert outputs.page(tmp_path / "l.html")["lost"] == everything
    # Methods that ran when a recording began are not called lost, because their next calls are in
    # it.
    process = jdk.start_java("Busy", 600, jvm=("-Xmx32m",), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    stated = printed(
        lab.jvmscope(
            "attach", "--trace=Busy.*", "-t", "300ms", "-o", tmp_path / "a.jfr", process.pid
        )
    ) + printed(lab.jvmscope("trace", tmp_path / "a.jfr"))
    process.kill()
    process.communicate()
    assert (
        len(
            re.findall(
                r"a\.jfr: trace: (?:1 method that ran when the recording began is traced from its|\d+ methods that ran when the recording began are traced from their) next call on: Busy\.[^\n]*\n",
                stated,
            )
        )
        == 2
    ), stated


@pytest.mark.jdks(8, 25)
def test_running_methods_of_one_name_are_distinguished_as_in_source(jdk, tmp_path):
    process = jdk.start_java(
        "RunsOverloaded", stdin=subprocess.PIPE, stdout=subprocess.PIPE, jvm=("-Xmx32m",)
    )
    assert process.stdout.readline() == "ready\n"
    out = tmp_path / "a.jfr"
    reported = printed(
        lab.jvmscope("attach", "--trace=RunsOverloaded.", "-t1ms", "-o", out, process.pid)
    )
    process.communicate("x")
    assert "RunsOverloaded.hold(java.lang.String, long[])" in reported, reported
    assert "RunsOverloaded.hold(int)" in reported, reported


@pytest.mark.jdks(8, 25)
def test_a_nested_class_with_a_dot_is_answered_with_its_name_by_every_option_that_takes_classes(
    jdk, tmp_path, busy
):
    """Outer.Inner could also be the method Inner of Outer, so each option checks that."""
    node, real = "java.util.HashMap.Node", "java.util.HashMap$Node"
    options = {
        "--locks": node,
        "--include": f"{node},{node}.*,java.util.HashMap.put",
        "--exclude": f"{node}.getKey,{node}*",
        "--show": f"{node}.hash",
        "--to-string": f"{node}*",
    }
    words = [
        "--cover",
        "--trace=Busy.work",
        *(f"{option}={pattern}" for option, pattern in options.items()),
    ]
    known = [
        pattern
        for patterns in options.values()
        for pattern in patterns.split(",")
        if pattern != "java.util.HashMap.put"
    ]
    # Nothing that most of the options name is there.
    stated = [l for l in run(jdk, tmp_path / "r.jfr", *words, status=1) if real in l]
    assert sorted(
        re.fullmatch(
            r".*: (?:no class|nothing) that was loaded .*: (\S+), but (?:there is )?(\S+?)(?:\.hash| was)",
            l,
        ).groups()
        for l in stated
    ) == sorted((p, real) for p in known), stated
    stated = [
        l
        for l in printed(
            lab.jvmscope("attach", *words, "-t", "100ms", "-o", tmp_path / "a.jfr", busy()), 1
        ).splitlines()
        if real in l
    ]
    # The end repeats what had no effect at all.
    stated = [l for l in stated if l.startswith("jvmscope: note: ")]
    assert len(stated) == len(known) and all(
        re.fullmatch(rf"jvmscope: note: .*, but there is {re.escape(real)}(\.hash)?", l)
        for l in stated
    ), stated
    # No method of the JDK's is a request.
    process = jdk.start_java("Triggers", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print("throw 2", file=process.stdin, flush=True)
    lab.read_until(process.stdout, "done throw")
    wrong, right = "Triggers.Lost.<init>(..)", "Triggers$Lost.<init>(..)"
    stated = printed(
        lab.jvmscope(
            "attach",
            "--requests",
            f"{wrong},{right}",
            "-t",
            "100ms",
            "-o",
            tmp_path / "q.jfr",
            process.pid,
        )
    )
    assert [l for l in stated.splitlines() if "Lost" in l] == [
        f"jvmscope: note: --requests {wrong}: no class that is loaded so far matches, but there is Triggers$Lost"
    ]
    process.communicate("", timeout=60)


@pytest.mark.jdks(8, 17)
def test_what_was_written_names_a_command_that_shows_it(jdk, busy, tmp_path):
    """Each suggested command has something to show, whatever was recorded. If there is nothing to
    show, none is suggested.
    """
    pid = busy()
    for name, words, shows in (
        ("a.jfr", ["--trace=Busy.work", "--limit=3"], "trace"),
        ("b.jfr", ["--trace=Busy.nosuch", "--log=No:1 x"], None),
        ("c.hprof", ["--cpu", "-i", "1ms"], "report"),
        ("g.jfr", ["--cpu=samples", "--cpu=times", "-i", "1ms", "--include=Busy*"], "report"),
        ("d.hprof", ["--heap=dump"], "heap leaks"),
        ("e.hprof.txt", ["--cpu", "-i", "1ms"], "report"),
        ("f.hprof.txt", ["--cpu=times", "--agent", "include=No"], None),
    ):
        out = tmp_path / name
        printed(lab.jvmscope("attach", *words, "-o", out, pid))
        if shows == "trace":
            lab.wait_for(
                lambda: "lost.trace.calls" in lab.jvmscope("status", "--json", pid).stdout,
                60,
                "calls that are lost",
            )
        if shows == "report":
            lab.wait_for(
                lambda: "report"
                in lab.jvmscope("dump", "-o", tmp_path / f"now.{name}", pid).stderr,
                60,
                "samples",
            )
        for command in (
            ["dump", pid],
            ["dump", "-o", tmp_path / f"copy.{name}", pid],
            ["stop", pid],
        ):
            (wrote,) = [
                line
                for line in printed(
                    lab.jvmscope(*command), status=int(command[0] == "stop" and name == "b.jfr")
                ).splitlines()  # nothing that it names is there
                if "; see it with: " in line or ": wrote " in line
            ]
            named = re.search(r"; see it with: jvmscope (.*) (\S+)$", wrote)
            assert (named and named[1]) == shows, (name, command, wrote)
            assert not named or lab.jvmscope(*named[1].split(), named[2]).returncode == 0, wrote


@pytest.mark.jdks(17)
def test_what_any_dump_of_a_text_file_has_is_named(jdk, tmp_path):
    """The first dump precedes any call, so its table has no rows; the second one has some, and the
    third has none again.
    """
    out, pattern = tmp_path / "x.hprof.txt", re.compile(r"wrote \S+ \(\S+ \w+\)(.*)")
    process = jdk.start_java(
        "Endings",
        "wait",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    printed(lab.jvmscope("attach", "--agent", "cpu=times,include=Endings", "-o", out, process.pid))
    for shown in (
        "",
        f"; see it with: jvmscope report {out}",
        f"; see it with: jvmscope report {out}",
    ):
        (found,) = pattern.findall(printed(lab.jvmscope("dump", process.pid)))
        assert found == shown
        if not shown:
            print("", file=process.stdin, flush=True)
            lab.read_until(process.stdout, "worked\n")
    assert "Endings.called" in printed_by(lab.jvmscope("report", out))
    process.communicate("\n", timeout=60)
    assert process.returncode == 7 and out.read_text().count("CPU TIME (ms) BEGIN") == 4


@pytest.mark.jdks(17)
def test_options_that_select_nothing_are_reported_and_so_is_what_is_left_out(jdk, tmp_path):
    out = tmp_path / "a.jfr"
    run(
        jdk, out, "--cpu", "-i", "1ms", "--threads", "--trace=Busy.work", program=("Busy", "1", "2")
    )
    calls = json.loads(printed_by(lab.jvmscope("trace", "--json", out)))["calls"]
    thread = calls[0]["thread"]
    for words, why in (
        (("--thread", f"{thread},nosuch"), ": nosuch"),
        (("--method", "Busy.work,nosuch"), ": nosuch"),
        (("--min", "5h"), "no call is selected by: --min"),
        (("--min", "5h", "--thread", thread), "no call is selected by: --thread --min"),
    ):
        for as_json in ([], ["--json"]):
            done = lab.jvmscope("trace", *words, *as_json, out)
            assert done.returncode == 1 and why in done.stderr and not done.stdout, (words, done)
    assert f" ... and {len(calls) - 2} more lines (--limit)\n" in printed_by(
        lab.jvmscope("trace", "-n", 2, out)
    )
    cut = json.loads(printed_by(lab.jvmscope("trace", "--json", "-n", 2, out)))
    assert len(cut["calls"]) == 2 and cut["calls_all"] == len(calls)
    # The number of threads is that of the whole recording, not of a selection.
    assert re.search(r", from \d+ threads?\n", printed_by(lab.jvmscope("report", out)))
    assert ", from " not in printed_by(lab.jvmscope("report", "--thread", thread, out))
    # Each option selects something, but both together select nothing.
    for command in (["report"], ["report", "--json"], ["convert", "-o", tmp_path / "x.collapsed"]):
        done = lab.jvmscope(*command, "--class", "Busy", "--from", "1ms", "--to", "2ms", out)
        assert (
            done.returncode == 1
            and ": no sample is selected by: --class --from --to" in done.stderr
            and not done.stdout
        ), done


@pytest.mark.jdks(11, 17)
def test_a_metric_of_which_a_selection_has_nothing_is_refused(jdk, tmp_path):
    out = tmp_path / "a.jfr"
    run(jdk, out, "--cpu", "-i", "1ms", "--alloc", program=("OneAllocates",))
    assert printed_by(lab.jvmscope("report", "--thread", "spins", out))
    # diff said "no difference: each method has the same share of both".
    for command in (
        ["report"],
        ["report", "--json"],
        ["convert", "-o", tmp_path / "x.collapsed"],
        ["diff", out],
        ["diff", "--json", out],
    ):
        done = lab.jvmscope(*command, "--metric", "allocations", "--thread", "spins", out)
        assert (done.returncode, done.stdout) == (1, "") and (
            done.stderr
            == f"jvmscope: {out}: no sample of the metric allocations is selected by: --thread\n"
        ), done
    # One of the two files has it.
    run(jdk, tmp_path / "b.jfr", "--alloc", program=("OneAllocates",))
    for files, without in (
        ((out, tmp_path / "b.jfr"), "b.jfr"),
        ((tmp_path / "b.jfr", out), "a.jfr"),
    ):
        done = lab.jvmscope("diff", *(["--thread", "spins"] if without == "a.jfr" else []), *files)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert f"{tmp_path / 'b.jfr'}: " in done.stderr, done


@pytest.mark.jdks(11, 17)
def test_the_metric_is_one_of_which_the_selection_has_samples(jdk, tmp_path):
    """An empty table of CPU samples was shown of threads that were only blocked."""
    out, flame = tmp_path / "a.jfr", tmp_path / "a.collapsed"
    run(jdk, out, "--cpu", "-i", "100ms", "--monitors", program=("OneBlocks",))
    assert printed_by(lab.jvmscope("report", out)).startswith(f"{out}: CPU samples: ")
    # A thread has a sample by chance when it uses any CPU time: not all three have one.
    names = [
        name
        for name in ("blocked-0", "blocked-1", "blocked-2")
        if lab.jvmscope("report", "--metric", "samples", "--thread", name, out).returncode
    ]
    assert names
    for name in names:
        text = printed_by(lab.jvmscope("report", "--thread", name, out))
        assert text.startswith(f"{out}: Time blocked on locks: ") and "OneBlocks.want" in text, text
        assert "also there: CPU samples (--metric samples)" in text, text
        lab.jvmscope("convert", "--thread", name, out, "-o", flame, check=True)
        assert "OneBlocks.want" in flame.read_text()
        done = lab.jvmscope("diff", "--thread", name, out, out)
        assert done.returncode == 0 and "nothing to compare" not in done.stdout + done.stderr, done


def test_a_command_with_verbs_names_them_and_a_method_is_no_program(tmp_path):
    for words, why in (
        (["threads", "x.jfr"], "threads: x.jfr: no such verb: the verbs are summary, monitors, "),
        (["heap", "top", "x"], "heap: top: no such verb: "),
        (
            ["trace", "4711", "add"],
            "add: a pattern is missing: trace PID add|remove package.Class.method",
        ),
        (
            ["run", "--requests", "Val.str", "java"],
            "Val.str: is not a program; for requests to this method: --requests=Val.str",
        ),
        (
            ["run", "--cpu", "wall", "-o", "x.jfr", "--", "java"],
            "run: wall: as a value of --cpu: --cpu=wall; as a program or another operand: -- wall\n",
        ),
        (
            ["run", "--cpu", "samples,times", "java"],
            "run: samples,times: as a value of --cpu: --cpu=samples,times;",
        ),
        (["attach", "--heap", "dump", "4711"], "attach: dump: as a value of --heap: --heap=dump;"),
        (["run", "-o", "--", "java"], "run: -o: needs a value"),
        (["report", "--thread", "--", "x.jfr"], "report: --thread: needs a value"),
        (["run", "--trace", "--", "java"], "run: --trace: needs a value"),
        (["run", "--trace", "", "java"], "--trace=: not a value of this option"),
        (["attach", "--all", "4711"], "attach: only one of a PID, --all and --match"),
        (["run", "--then", "dump", "java"], "--then=dump: has no effect without --on"),
    ):
        done = lab.jvmscope(*words)
        assert done.returncode == 2 and why in done.stderr, done
    assert (
        lab.jvmscope("list", "--help").stdout.splitlines()[0] == "usage: jvmscope list [OPTION ...]"
    )
    assert not [
        line
        for command in ("list", "completion", "report")
        for line in lab.jvmscope(command, "--help").stdout.splitlines()
        if line != line.rstrip()
    ]


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize(
    "capture, options",
    [
        ("alloc", ["--alloc=exact"]),
        ("coverage", ["--cover"]),
        ("times", ["--cpu=times"]),
        ("trace", ["--trace=RunsOn.loop,RunsOn.main,RunsOn.once,RunsOn.run"]),
        ("log", ["--watch=RunsOn.kept,RunsOn.other"]),
    ],
)
def test_methods_that_run_when_it_begins_are_reported(jdk, tmp_path, capture, options):
    """The VM runs a call to its end in the code with which it began, and nothing is counted in
    that: 0 of millions of objects.
    """
    out = tmp_path / "out.jfr"
    vm = jdk.start_java(
        "RunsOn", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert vm.stdout.readline() == "ready\n"
        done = lab.jvmscope("attach", *options, "-t", "1s", "-o", out, vm.pid)
        assert done.returncode == 0, done.stderr
        made = int(vm.communicate("\n", timeout=60)[0])
    finally:
        vm.kill()
        vm.communicate()
    verb = {"coverage": ["coverage"], "trace": ["trace"], "log": ["trace"]}.get(capture, ["report"])
    found = lab.read_json(*verb, "--json", out)
    stated = [
        loss
        for loss in found["losses"]
        if (loss["capture"], loss["what"]) == (capture, "methods")
        and "ran when the recording began" in loss["reason"]
    ]
    assert made > 10000 and len(stated) == 1 and stated[0]["amount"] >= 1, found["losses"]
    # The methods are named, those of the program first.
    names = stated[0]["reason"].split(": ")[-1].split(", ")
    assert (
        "RunsOn.loop" in names
        and ("RunsOn.main" in names) == (capture != "log")
        and "RunsOn.once" not in names
    ), stated
    # Two methods that differ only in their parameters are distinguished. (--log and --alloc name
    # neither: these use no field and allocate nothing.)
    assert capture in ("log", "alloc") or {"RunsOn.run(int)", "RunsOn.run()"} <= set(names), stated
    own = [name.startswith("RunsOn.") for name in names]
    assert own == sorted(own, reverse=True), stated
    done = lab.jvmscope(*verb, out)
    assert "ran when the recording began" in done.stdout + done.stderr


# Options that record something only with another option, or with a value that is not in the table.
OF_OTHERS = {
    "trace": "pkg.Name.x",
    "locks": "nosuch",
    "log": "pkg.Name:1 x",
    "watch": "pkg.Name.field",
    "requests": "auto",
}


def table_of_options():
    """The rows of the agent's table."""
    done = subprocess.run(
        [lab.BUILD / "tests" / "unit" / "options_read", "table"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def sets_of_options():
    """Each option of the agent's table that records something, alone and with each other value, and
    none at all.
    """
    sets = [[]]
    for row in table_of_options():
        if (
            not row["flag"]
            or row["hidden"]
            or row["goes_with"]
            or row["name"]
            in ("file", "duration", "depth", "interval", "chunk", "cover", "contanalysis")
        ):
            continue
        values = (
            [OF_OTHERS[row["name"]]]
            if row["name"] in OF_OTHERS
            else row["values"].split("|")
            if "<" not in row["values"]
            else []
        )
        sets += [[row["flag"]]] * bool(row["bare"]) + [
            [f"{row['flag']}={value}"] for value in values if value not in ("n", row["bare"])
        ]
    return sets


@pytest.mark.jdks(8, 25)
def test_notes_name_only_options_that_were_typed(jdk, tmp_path, busy):
    """--always includes events of the VM, CPU samples and more. A note about one of them is not
    about an option of the same name.
    """
    out, sets = tmp_path / "x.jfr", sets_of_options()
    assert (
        len(sets) > 20
        and ["--always"] in sets
        and ["--requests"] in sets
        and ["--cpu=wall"] in sets
    )
    notes, pid = set(), busy()
    names = {row["name"] for row in table_of_options()}
    sets.append(["--live", "--alloc=sampled"])

    def check(words, *command):
        text = lab.jvmscope(*command, timeout=240).stderr
        agents = [
            word
            for line in text.splitlines()
            if line.startswith("jvmscope: ")
            for word in re.findall(r"(?<![-\w=,])([a-z]+)=", line)
        ]
        assert not set(agents) & names, (words, text)
        for option in re.findall(
            r"(?:note|attach|run|dump|stop|some data was not recorded|cannot record): (--[a-z-]+)",
            text,
        ):
            notes.add(option)
            assert option in [word.split("=")[0] for word in words], (words, text)
        return text

    for words in sets:
        always = words and words[0] == "--always"
        # A ring takes the place of a ring alone.
        into = tmp_path / "x.ring" if always else out
        flag, _, value = words[0].partition("=") if words else ("", "", "")
        changes = (
            flag in ("--live", "--heap", "--exceptions")
            or value in ("times", "old", "exact")
            or (flag == "--alloc" and jdk.version < 11)
        )
        few = ["--include", "nosuch"] if changes and value not in ("stacks", "dump") else []
        if flag == "--locks":
            continue  # changes all classes that lock, whatever is recorded
        check(
            words + few,
            "attach",
            *words,
            *few,
            *(["--max-size", "4M"] if always else ["-t", "50ms"]),
            "-o",
            into,
            pid,
        )
        if always:
            check(words, "dump", "--last", "1s", "-o", tmp_path / "y.jfr", pid)
            check(words, "stop", pid)
        if all("=" not in word for word in words):
            check(
                words + few,
                "run",
                *words,
                *few,
                *(["--max-size", "4M"] if always else []),
                "-o",
                into,
                "--",
                *jdk.command("java", "-Xmx32m", "-cp", lab.compiled("Busy"), "Busy", "0.1"),
            )
    assert "--events" in notes, "the name of an option given as text is unchanged"


@pytest.mark.jdks(8, 17, 25)
def test_the_page_of_live_objects_has_them(jdk, tmp_path):
    """Under the output's own name, and without a strip of times, which counts of a whole recording
    do not have.
    """
    out, page = tmp_path / "x.jfr", tmp_path / "x.html"
    run(jdk, out, "--live", "--include", "Amounts", program=("Amounts", "calls", "20000"))
    lab.jvmscope("convert", "-o", page, out, check=True)
    metrics = {m["name"]: m for m in outputs.page(page)["metrics"]}
    assert list(metrics) == ["allocations", "live"] and all(
        m["untimed"] for m in metrics.values()
    ), metrics
    sites = lab.read_json("report", "--json", out)["allocations"]["sites"]
    live = sum(site.get("live_bytes", 0) for site in sites)
    assert sum(list(outputs.numbers(base64.b64decode(metrics["live"]["cells"])))[3::4]) == live > 0
    done = lab.jvmscope(
        "run",
        "--cpu",
        "-o",
        "y.html",
        "--",
        *jdk.command("java", "-Xmx32m", "-cp", lab.compiled("Busy"), "Busy", "0.5"),
        cwd=tmp_path,
    )
    assert (
        done.returncode == 0 and outputs.page(tmp_path / "y.html")["file"] == "y.html"
    ), done.stderr


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize("stall", ["", "fail=end:50,"])
@pytest.mark.parametrize("cpu", ["wall", "samples"])
def test_a_recording_has_one_length(jdk, tmp_path, cpu, stall):
    """Samples that were taken while the other captures were being taken back made it longer in the
    report than in the other views, and so did samples that were recorded between the reading of the
    clock for its end and the end of sampling. A thread may lose its processor between the two.
    """
    out = tmp_path / "w.jfr"
    options = f"cpu={cpu},interval=1ms,alloc=exact,monitor=y,{stall}format=r,file={out}"
    done = jdk.java("CallsAtEnd", 2, 300, jvm=(jdk.agent(options),))
    assert done.returncode == 7, done.stderr
    report = lab.read_json("report", "--json", out)["span_ns"]
    threads = lab.read_json("threads", "summary", "--json", out)["end_ns"]
    assert report == threads == lab.read_json("vm", "--json", out)["duration_ns"]
