# SPDX-License-Identifier: Apache-2.0
"""Classes that the VM generates have names that mean the same in every run and in every output; the
agent's own classes appear in no output. The lambdas of the two runs have different numbers and
addresses, because MadeNames generates more of them first in the second run.
"""
import json
import re
import subprocess

import pytest

import hprofbinary
import lab

# What VMs put into such names, as JVM TI, Class.getName, the VM's structures and its dumps write
# it.
MADE_UP = re.compile(r"[/.+]0x[0-9a-f]+|\$\$Lambda\$[0-9]|/[0-9]{3,}|GeneratedMethodAccessor[0-9]")
CAPTURES, STATIC, MAKES, BOUND = (
    "lambda$main$",
    "MadeNames::square",
    "MadeNames::new",
    "MadeNames::add",
)


def lambdas(text):
    """Returns the targets of the lambdas of MadeNames that a text names."""
    return set(re.findall(r"MadeNames\$\$Lambda\[([^\]]*)\]", text))


def record(jdk, tmp_path, run, *options, suffix="jfr", cpu_ms=100):
    out = tmp_path / f"{run}.{suffix}"
    more = ["more"] * (run == "second")
    done = lab.jvmscope(
        "run",
        *options,
        "-o",
        out,
        "--",
        *jdk.command(
            "java", "-Xmx64m", "-cp", lab.compiled("MadeNames"), "MadeNames", cpu_ms, *more
        ),
    )
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
    return out


def shown(*command):
    done = lab.jvmscope(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(text, expected=()):
    """No number or address of a run and no class of the agent appears, and lambdas are named after
    their targets.
    """
    assert not MADE_UP.search(text), MADE_UP.findall(text)[:5]
    assert "java.lang.Jvmscope" not in text and "java/lang/Jvmscope" not in text
    there = lambdas(text)
    assert all(any(name.startswith(e) for name in there) for e in expected), (expected, there)


def check_proxies(text):
    """The second run creates another proxy first. (HPROF's dumps do not say what a class
    implements: there the verbs of heap name a proxy by the interfaces whose methods it has.)
    """
    proxies = set(re.findall(r"\$Proxy[\d\[]\S*", text))
    initializers = {
        f"$Proxy[{of}].{name}"
        for of in ("MadeNames$Shop", "Comparable,Runnable")
        for name in ("<clinit>", "<init>")
    }  # a sample may have been taken in such a class
    assert proxies - initializers == {"$Proxy[MadeNames$Shop].buy"}, proxies


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_recordings_name_lambdas_by_what_they_stand_for(jdk, tmp_path):
    stacks = {}
    for run in ("first", "second"):
        out = record(
            jdk,
            tmp_path,
            run,
            "--cpu",
            "-i",
            "1ms",
            "--alloc",
            "--trace",
            "MadeNames.main",
            cpu_ms=1200,
        )
        collapsed = tmp_path / f"{run}.collapsed"
        shown("convert", "-o", collapsed, out)
        report = shown("report", "-n", 1000, out)
        check(report)
        check(collapsed.read_text(), {CAPTURES, STATIC, MAKES, BOUND})
        check_proxies(re.sub("[; ]", "\n", collapsed.read_text()))
        check(shown("trace", out))
        check(shown("report", "--json", out))
        stacks[run] = lambdas(collapsed.read_text())
    assert {STATIC, MAKES, BOUND} <= stacks["first"] & stacks["second"]
    difference = shown("diff", "-n", 1000, tmp_path / "first.jfr", tmp_path / "second.jfr")
    check(difference)


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_changed_code_names_proxies_by_their_interfaces(jdk, tmp_path):
    """Traced calls and call counts take their names from the class files."""
    out = record(
        jdk,
        tmp_path,
        "second",
        "--cpu=times",
        "--trace",
        "implements MadeNames$Shop",
        "--limit",
        100,
    )
    for text in (shown("trace", "-n", 1000, out), shown("report", "--json", out)):
        check_proxies("\n".join(re.findall(r"\$Proxy[\d\[][^\s(\"]*\.buy", text)))


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_counted_allocations_name_the_lambdas_that_were_made(jdk, tmp_path):
    out = record(jdk, tmp_path, "second", "--alloc=exact", "--cover", "--events")
    sites = shown("report", "-n", 10_000, out)
    check(sites, {BOUND, CAPTURES, "Random::nextGaussian"})
    check(shown("coverage", out))


@pytest.mark.jdks(8, 25, slow=(17,))
def test_hprof_outputs_name_them_too(jdk, tmp_path):
    text, binary = tmp_path / "x.txt", tmp_path / "x.hprof"
    jdk.java(
        "MadeNames",
        800,
        jvm=(jdk.agent(f"cpu=samples,interval=1,heap=all,file={text}"),),
        check=True,
    )
    jdk.java(
        "MadeNames",
        800,
        jvm=(jdk.agent(f"cpu=samples,interval=1,heap=all,format=b,file={binary}"),),
        check=True,
    )
    written = text.read_text(errors="replace")
    check(written, {STATIC, BOUND, MAKES})
    assert "MadeNames$$Lambda" in written.partition("HEAP DUMP BEGIN")[2]
    names = shown("heap", "histogram", "-n", 100_000, binary) + shown("report", "-n", 1000, binary)
    check(names)
    stream = hprofbinary.Stream()
    stream.feed(binary.read_bytes())
    classes = "\n".join(stream.classes.values())
    check(classes, {STATIC, BOUND})
    assert "MadeNames$$Lambda" in stream.classes.values()


@pytest.mark.jdks(8, 17, 27)
def test_the_agents_classes_are_in_no_view_of_a_dump_that_the_vm_wrote(jdk, tmp_path):
    """The agent's objects, and what they hold, count as unreachable."""
    process = jdk.start_java(
        "Busy", 600, jvm=("-Xmx32m",), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        dump = tmp_path / "raw.hprof"
        shown(
            "attach",
            "--trace",
            "Busy.*",
            "--limit",
            10,
            "--cover",
            "--include",
            "Busy",
            "-o",
            tmp_path / "x.jfr",
            process.pid,
        )
        shown("heap", "dump", "-o", dump, process.pid)
    finally:
        process.kill()
        process.communicate()
    assert b"java/lang/JvmscopeTrace" in dump.read_bytes()
    for words in (
        ("histogram",),
        ("dominators",),
        ("leaks",),
        ("classes",),
        ("components",),
        ("references",),
        ("strings",),
        ("summary",),
    ):
        text = (
            shown("heap", *words, "--json", "-n", 100_000, dump)
            if words[0] not in ("leaks", "summary")
            else shown("heap", *words, "--json", dump)
        )
        # The text of a program or VM that itself contains such a name.
        assert not re.search(
            r'(?<!\\)"(?:java\.lang\.Jvmscope|jvmscope\.Binder|package jvmscope)', text
        ), words
    assert "Jvmscope" not in shown(
        "heap", "query", dump, "SELECT name FROM classes WHERE name LIKE '%vmscope%'"
    )


@pytest.mark.jdks(8, 17, 25, slow=(11,))
def test_heap_dumps_of_two_runs_are_matched(jdk, tmp_path):
    dumps = []
    for run in ("first", "second"):
        record(jdk, tmp_path, run, "--heap=dump")
        dumps.append(tmp_path / f"{run}.hprof")
        histogram = json.loads(shown("heap", "histogram", "--json", "-n", 100_000, dumps[-1]))
        rows = [r for r in histogram["classes"] if r["class"].startswith("MadeNames$$Lambda")]
        assert [r["class"] for r in rows] == ["MadeNames$$Lambda"] and rows[0][
            "objects"
        ] >= 300, rows
        check(json.dumps(histogram))
    difference = json.loads(shown("heap", "diff", "--json", "-n", 100_000, *dumps))
    check(json.dumps(difference))
    (row,) = [r for r in difference["classes"] if r["class"] == "MadeNames$$Lambda"] or [None]
    assert row is None or abs(row["objectsGrown"]) <= 4, row
