# SPDX-License-Identifier: Apache-2.0
"""What a new user asks first of a stuck program and of one that does little, and the next command
that each answer names.
"""
import re
import subprocess

import lab
import pytest


@pytest.fixture
def stuck(jdk):
    """A program with a deadlock of monitors, one of locks of java.util.concurrent, and nothing that
    runs.
    """
    process = jdk.start_java(
        "ThreadPrograms", "10", "several", 600000, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    found = "deadlock of 2 threads"
    lab.wait_for(
        lambda: lab.jvmscope("threads", "deadlocks", process.pid).stdout.count(found) == 2,
        60,
        "two deadlocks",
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.jdks(8, 17, 25)
def test_answers_about_a_stuck_program_agree(jdk, stuck, tmp_path):
    out = tmp_path / "stuck.jfr"
    done = lab.jvmscope("attach", "--threads", "-t", "1s", "-o", out, stuck.pid)
    assert done.returncode == 0, done.stderr
    text = lab.output("threads", "deadlocks", out)
    began = "deadlock of 2 threads, formed before the recording began:"
    assert text.count("formed ") == text.count(began) == 2, text
    found = lab.read_json("threads", "deadlocks", "--json", out)
    assert [d["formed_before"] for d in found["deadlocks"]] == [True, True]
    # The owners of the locks are known for the deadlock that was there, and not for later ones.
    assert "not examined: later deadlocks with locks of java.util.concurrent" in text, text
    assert "no wait of 1 ms or more has ended\n" in lab.output("threads", "summary", out)
    ends = (
        r"^ the path ends with a wait of A for a lock, which had not ended: a deadlock \(jvmscope"
    )
    path = lab.output("threads", "critical-path", "--thread", "A", out)
    assert re.search(ends, path, re.M) and "sections  lock" not in path, path
    answer = lab.output("threads", "what-if", "--thread", "A", out)
    assert answer.startswith("no thread holds a lock on the critical path: "), answer
    assert re.search(ends, answer, re.M), answer


@pytest.mark.jdks(17)
def test_a_recording_without_samples_names_what_records_waits(jdk, stuck, tmp_path):
    done = lab.jvmscope("attach", "-t", "500ms", "-o", tmp_path / "s.jfr", stuck.pid)
    assert done.returncode == 0
    empty = "holds no samples: no thread used enough CPU time; "
    assert f"{empty}--threads or --cpu=wall shows what they wait for" in done.stderr, done.stderr


@pytest.mark.jdks(17)
def test_events_of_the_vm_alone_are_shown_by_vm(jdk, stuck, tmp_path):
    out = tmp_path / "e.jfr"
    done = lab.jvmscope("attach", "--events", "-t", "500ms", "-o", out, stuck.pid)
    assert f"see it with: jvmscope vm {out}" in done.stderr, done.stderr
    assert "Memory" in lab.output("vm", out)
    done = lab.jvmscope("trace", out)
    if done.returncode:
        assert done.stderr.endswith(
            "holds no calls and no events of threads or classes: "
            "jvmscope vm shows what else --events recorded\n"
        ), done.stderr
    else:  # a class was loaded meanwhile
        assert "jdk.Class" in done.stdout, done.stdout


@pytest.mark.jdks(8, 25)
def test_a_report_of_one_metric_has_the_tables_of_that_metric(jdk, tmp_path):
    out = tmp_path / "both.jfr"
    options = f"cpu=times,alloc=exact,live=exact,include=Amounts,format=r,file={out}"
    assert jdk.java("Amounts", jvm=("-Xmx128m", jdk.agent(options))).returncode == 0
    calls, sites = "\n Counted calls\n", "\n Allocation sites\n"
    for metric, tables in ((), (1, 1)), (("times",), (1, 0)), (("allocations",), (0, 1)):
        text = lab.output("report", *(("--metric", *metric) if metric else ()), out)
        assert (text.count(calls), text.count(sites)) == tables, (metric, text)


@pytest.mark.jdks(17)
def test_equal_losses_of_other_captures_are_one(jdk, tmp_path):
    """A request is in progress in each of two threads when the recording begins and when it ends."""
    out = tmp_path / "r.jfr"
    process = jdk.start_java("LongCalls", stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        request = "--requests=LongCalls.hold(..)"
        done = lab.jvmscope("attach", "--cpu", request, "-t", "1700ms", "-o", out, process.pid)
    finally:
        process.kill()
        process.communicate()
    assert done.returncode == 0, done.stderr
    losses = lab.read_json("requests", "--json", out)["losses"]
    assert [(x["what"], x["amount"]) for x in losses] == [("requests", 2)] * 2, losses
    stated = lab.jvmscope("report", out).stderr
    others = "losses of other captures: requests 4 requests (jvmscope requests)\n"
    assert stated.endswith(others) and stated.count("requests (jvmscope") == 1, stated


@pytest.mark.jdks(8, 17, 25)
def test_what_was_lost_is_not_reported_as_absent(jdk, tmp_path):
    """The main method is called, and has not returned when it ends the program."""
    out, begun = tmp_path / "r.jfr", tmp_path / "b.jfr"
    done = jdk.java("Exits", "0", jvm=[jdk.agent(f"trace=Exits.main,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    shown = lab.jvmscope("trace", out).stderr
    assert "1 call was lost" in shown, shown
    assert shown.endswith("holds no calls: all that there were are lost\n"), shown
    # A method that is not called at all, and one that was called before the recording began
    process = jdk.start_java("LongCalls", stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        trace = ("attach", "--trace", "LongCalls.main", "-t", "300ms", "-o", begun, process.pid)
        done = lab.jvmscope(*trace)
    finally:
        process.kill()
        process.communicate()
    assert done.stderr.endswith("holds no calls: the methods to trace were not called\n"), done


@pytest.mark.jdks(17)
def test_the_words_of_the_tables_of_threads_say_what_is_in_the_rows(jdk, tmp_path):
    """The heading "which thread has it  by what that ended" stood over "main  by start of main",
    where nothing is had and nothing ended.
    """
    out = tmp_path / "t.jfr"
    done = jdk.run(
        *(lab.BUILD / "jvmscope", "run", "--threads", "-o", out, "--", "java", "-Xmx64m"),
        *("-cp", lab.compiled("Interactions"), "Interactions"),
    )
    assert done.returncode == 0, done.stderr
    heading = lab.output("threads", "timeline", out).splitlines()[0]
    assert re.search(r"what it waited for +-> which thread went on  by what$", heading), heading
    summary = lab.output("threads", "summary", out)
    known = r"^\d+ waits? of 1 ms or more; it is known what ended (all|\d+) of them"
    assert re.search(known, summary, re.M), summary


@pytest.mark.jdks(8, 25)
def test_methods_that_were_not_called_are_reported_beside_unknown_ones(jdk, stuck, tmp_path):
    out = tmp_path / "t.jfr"
    patterns = "nosuch.x,ThreadPrograms.p12"
    done = lab.jvmscope("attach", "--trace", patterns, "-t", "300ms", "-o", out, stuck.pid)
    assert "nosuch.x" in done.stderr, done.stderr
    assert "holds no calls: the methods to trace were not called" in done.stderr, done.stderr
