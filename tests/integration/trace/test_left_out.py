# SPDX-License-Identifier: Apache-2.0
"""Classes that a pattern of --trace matches and that no agent may change: those of lambdas, of
method references, and hidden classes. Their calls are missing, and every output says so.
"""
import re
import subprocess

import pytest

import lab

CANNOT = (
    "cannot be traced: the VM does not allow those of lambdas, method references and hidden classes "
    "to be changed"
)
REASON = (
    "no agent may change the class of a lambda or method reference, or a hidden class, so that "
    "calls of its methods are not recorded: the first is "
)
# Patterns, and how many of the classes that they match are left out. A pattern that matches a class
# as a whole, or the code of its lambdas, leaves out none.
IMPLEMENTED = {
    "Implemented$*.work": 3,
    "*.run": 1,
    "implements Implemented$Job": 3,
    "Implemented": 0,
    "Implemented.*": 0,
    "Implemented$Worker.work": 0,
    "*.work,*.lambda$main$*,*.help": 0,
}


def left_out(path, capture="trace", what="classes"):
    return [
        loss
        for loss in lab.read_json("trace", "--json", path)["losses"]
        if (loss["capture"], loss["what"]) == (capture, what)
    ]


@pytest.mark.jdks(8, 17, 25)
def test_classes_of_lambdas_that_a_wildcard_matches_are_reported(jdk, jvmscope, tmp_path):
    program = jdk.command("java", "-cp", lab.compiled("Implemented"), "Implemented")
    out = tmp_path / "r.jfr"
    for pattern, n in IMPLEMENTED.items():
        done = jvmscope("run", "--trace", pattern, "-o", out, "--", *program)
        lost = left_out(out)
        assert [loss["amount"] for loss in lost] == ([n] if n else []), (pattern, lost)
        partly = f"the pattern did not trace all that it matches: {n} class"
        assert (partly in done.stderr) == (n > 0), (pattern, done.stderr)
        if n:
            assert REASON + "Implemented$$Lambda[" in lost[0]["reason"]
            assert lost[0]["sentence"] in jvmscope("trace", out).stderr


@pytest.mark.jdks(17, 25)
def test_hidden_classes_that_a_pattern_matches_are_reported(jdk, jvmscope, tmp_path):
    program = ("-cp", lab.compiled("HiddenThrows", release=17), "HiddenThrows", "1")
    out = tmp_path / "r.jfr"
    for pattern, n in {
        "HiddenThrows$*.apply,*.divide": 2,
        "HiddenThrows": 2,
        "HiddenThrows.*": 0,
    }.items():
        done = jvmscope("run", "--trace", pattern, "-o", out, "--", *jdk.command("java", *program))
        lost = left_out(out)
        assert [loss["amount"] for loss in lost] == ([n] if n else []), (pattern, lost)
        if n:
            assert REASON + "HiddenThrows$Hidden" in lost[0]["reason"]
            reported = f"{pattern.split(',')[0]}: the pattern did not trace all that it matches: 2 classes that it matches {CANNOT}"
            assert reported in done.stderr, done.stderr


@pytest.mark.jdks(8, 17, 25)
def test_a_running_vm_reports_what_a_wildcard_leaves_out(jdk, jvmscope, tmp_path):
    """This is reported on attach, when a pattern is added, and in the list of what is traced."""
    out = tmp_path / "a.jfr"
    process = jdk.start_java(
        "Implemented", "forever", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope("attach", "--trace", "Implemented$*.work", "-o", out, process.pid)
        note = f"--trace Implemented$*.work: does not trace all that it matches: 3 classes that it matches {CANNOT}"
        assert note in done.stderr and done.returncode == 0, done.stderr
        assert re.search(
            r"; the code of a lambda is traced by its own name, such as Implemented\.lambda\$main\$\d, "
            r"and what a method reference calls by its own name, such as Implemented\$Helper\.help$",
            done.stderr,
            re.MULTILINE,
        )
        added = lab.read_json("trace", process.pid, "add", "--json", "*.step,Implemented.main")
        assert [p["pattern"] for p in added["unmatched_added"]] == ["*.step"], added
        added = lab.read_json("trace", process.pid, "add", "--json", "*.run,*.plain")
        (one,) = added["partly_traced_added"]
        assert one["pattern"] == "*.run" and f"1 class that it matches {CANNOT}" in one["why"]
        assert {p["pattern"] for p in added["partly_traced"]} == {"Implemented$*.work", "*.run"}
        assert jvmscope("stop", process.pid).returncode == 0
        assert [loss["amount"] for loss in left_out(out)] == [5]
    finally:
        process.communicate("\n", timeout=60)


@pytest.mark.jdks(8, 17, 25)
def test_what_an_earlier_recording_traced_does_not_count(jvmscope, jdk, tmp_path):
    """The table of methods also contains those of earlier recordings of the VM."""
    out = tmp_path / "a.jfr"
    process = jdk.start_java(
        "TracedForever", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        words = ("attach", "-t", "300ms", "--trace", "TracedForever.one", "-o", out)
        done = jvmscope(*words, process.pid)
        assert done.returncode == 0 and "note" not in done.stderr, done.stderr
        excluded = "TracedForever.one cannot be traced: --exclude names it"
        done = jvmscope(*words, "--exclude", "TracedForever", process.pid)
        assert f"note: --trace TracedForever.one: traces nothing so far: {excluded}" in done.stderr
        done = jvmscope(*words, "--exclude", "TracedForever.two", process.pid)
        assert done.returncode == 0 and "--trace" not in done.stderr, done.stderr
    finally:
        process.communicate("\n", timeout=60)


def line_of(text):
    lines = (lab.ROOT / "tests/java/HiddenWork.java").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"// {text}"))


MAY_NOT = ", and the VM does not allow {} to be changed"
# Options, how many hidden classes they match, and what is reported about these.
HIDDEN = {
    ("--log", "HiddenWork$Adds:{adds} here"): (2, "2 hidden classes have code for this line"),
    ("--log", "HiddenWork.java:{adds} here"): (2, "2 hidden classes have code for this line"),
    ("--log", "HiddenWork.java:{idle} here"): (1, "1 hidden class has code for this line"),
    ("--log", "HiddenWork.java:{other} here"): (0, ""),
    ("--watch", "HiddenWork.total"): (2, "2 hidden classes have code that names this field"),
    ("--watch", "HiddenWork.other"): (0, ""),
}


@pytest.mark.jdks(17, 25)
@pytest.mark.parametrize("attach", (False, True))
def test_hidden_classes_that_log_and_watch_mean_are_reported(jdk, jvmscope, tmp_path, attach):
    out = tmp_path / "r.jfr"
    words = ("-cp", lab.compiled("HiddenWork", release=17), "HiddenWork")
    lines = {text: line_of(text) for text in ("adds", "idle", "other")}
    process = None
    if attach:
        process = jdk.start_java(
            "HiddenWork", "forever", release=17, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == "ready\n"
    try:
        for (option, value), (n, printed) in HIDDEN.items():
            value = value.format(**lines)
            if attach:
                done = jvmscope("attach", option, value, "-o", out, process.pid)
                assert done.returncode == 0, done.stderr
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == "done\n"
                assert jvmscope("stop", process.pid).returncode == 0
            else:
                command = jdk.command("java", *words)
                done = jvmscope("run", option, value, "-o", out, "--", *command)
                assert done.returncode == 0, done.stderr
            lost = left_out(out, "log")
            assert [loss["amount"] for loss in lost] == ([n] if n else []), (value, lost)
            message = printed + MAY_NOT.format("it" if n == 1 else "them")
            table = jvmscope("trace", out)
            if n:
                assert "HiddenWork$" in lost[0]["reason"] and lost[0]["sentence"] in table.stderr
                assert message in table.stdout and (
                    not attach or message in done.stderr
                ), done.stderr
            else:
                assert "hidden class" not in table.stdout + table.stderr + done.stderr
    finally:
        if process:
            process.communicate(timeout=60)


@pytest.mark.jdks(8, 17, 25)
def test_methods_without_room_for_probes_are_reported(jdk, jvmscope, tmp_path):
    """With probes one method would be longer than the JIT compiles, and one longer than the VM
    allows. A third is traced, so that the pattern matches something.
    """
    source = tmp_path / "Long.java"
    body = {"huge": 2660, "tooLong": 21841, "small": 1}  # of three bytes each
    methods = "".join(
        f"static int {name}() {{ int n = 0; {'n++;' * n} return n; }}\n" for name, n in body.items()
    )
    calls = " + ".join(f"{name}()" for name in body)
    source.write_text(
        f"public class Long {{ {methods} public static void main(String[] args) {{"
        f" System.out.println({calls}); }} }}"
    )
    done = jdk.run("javac", "-d", tmp_path, source)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "r.jfr"
    program = jdk.command("java", "-cp", tmp_path, "Long")
    for pattern, amounts in {
        "Long.*": [2],
        "Long.small": [],
        "@Nothing,Long.huge,Long.s*": [1],
    }.items():
        done = jvmscope("run", "--trace", pattern, "-o", out, "--", *program)
        assert done.returncode == 0 and done.stdout == f"{sum(body.values())}\n", done.stderr
        lost = left_out(out, what="methods")
        assert [loss["amount"] for loss in lost] == amounts, (pattern, lost)
        if amounts:
            first = "the first is Long.huge (its code would be too long for the JIT)"
            assert lost[0]["reason"].endswith(
                f"so that calls of it are not recorded: {first}"
            ), lost
            assert lost[0]["sentence"] in jvmscope("trace", out).stderr
            assert lost[0]["sentence"] in done.stderr
