# SPDX-License-Identifier: Apache-2.0
"""Tests jvmscope control: its effect on a thread whose work is known, that it is recorded, and that
it is refused without permission.
"""
import json
import re
import subprocess
import time

import lab
import pytest

SOURCE = (lab.ROOT / "tests" / "java" / "Controlled.java").read_text()
WORKER = "the worker"


def line_of(text):
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


class Program:
    def __init__(self, jdk, jvmscope, out, *options, attach=False):
        jvm = () if attach else (jdk.agent(f"format=r,file={out}," + ",".join(options)),)
        self.process = jdk.start_java(
            "Controlled",
            jvm=("-Xmx64m", *jvm),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.jvmscope = jvmscope
        assert self.process.stdout.readline() == "ready\n"

    def control(self, *words):
        done = self.jvmscope("control", "--json", self.process.pid, *words)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *words):
        done = self.jvmscope("control", self.process.pid, *words)
        assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, (
            words,
            done,
        )
        # A refusal is described in words, not by names of JVM TI.
        assert not re.search(r"\b[A-Z]{2,}(_[A-Z]+)+|\bcan_\w+|error \d", done.stderr), done.stderr
        return done.stderr

    def state(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        result, name, rounds, interrupted, thrown = self.process.stdout.readline().split()
        return int(result), name, int(rounds), interrupted == "true", thrown

    def until(self, reached):
        return lab.wait_for(
            lambda: reached(state := self.state()) and state, 60, "the state of the program"
        )

    def held(self):
        return lab.wait_for(lambda: self.control("list")["held"], 60, "a thread that is held")[0]

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        return self.process.stderr.read()


@pytest.fixture
def start(jdk, jvmscope, tmp_path):
    started = []

    def starter(*options, **how):
        started.append(Program(jdk, jvmscope, tmp_path / "c.jfr", *options, **how))
        return started[-1]

    yield starter
    for p in started:
        p.process.kill()
        p.process.wait()


@pytest.mark.jdks(8, 21)
def test_locals_that_are_null_or_constants_are_shown(start):
    program = start("allow-control=y")
    line = line_of("painted = value;")
    program.until(lambda s: s[2] > 3)
    assert program.control("break", f"Controlled:{line}")["done"].endswith("1 place")
    assert program.held()["at"] == f"Controlled.paint:{line}"
    program.control("set", WORKER, 0, "name", "null")
    pid = program.process.pid
    shown = lab.read_json("inspect", "--json", pid, "stack", WORKER)["frames"][0]["locals"]
    assert list(shown) == ["name", "id", "value"] and shown["name"] is None
    green = shown["id"]
    assert (green["class"], green["constant"]) == ("Controlled$Color$1", "Controlled$Color.GREEN")
    table = lab.output("inspect", pid, "stack", WORKER)
    constant = f"Controlled$Color.GREEN@{green['id']}"
    assert f" name=null id={constant} value=" in table, table
    # Times have units; what `state` says, and false properties, are not in the text.
    first = table.splitlines()[0]
    assert re.search(
        rf"^thread +{WORKER} .*state=\w+ suspended daemon .* cpu=[\d.]+ [mu]?s ", first
    )
    assert "=false" not in first and "flags" not in first and "\ndepth" not in table, table
    threads = lab.output("inspect", pid, "threads")
    assert "flags" not in threads and re.search(r" tid +cpu +frames", threads), threads
    described = lab.output("inspect", pid, "class", "Controlled")
    assert "bytecode" not in described and max(map(len, described.splitlines())) < 130, described
    done = program.control("return", WORKER)["done"]
    assert done == f"Controlled.paint:{line} returns when {WORKER} runs"


def test_a_thread_is_held_inspected_and_changed(jdk, start, tmp_path, jvmscope):
    program = start("allow-control=y")
    program.until(lambda s: s[2] > 3)
    assert program.control("suspend", WORKER)["done"].startswith(f"{WORKER} is suspended at ")
    before = program.state()
    time.sleep(0.1)
    assert program.state() == before
    assert program.refused("suspend", WORKER).endswith(
        "is suspended already; the verb resume lets it continue\n"
    )  # and no recording is to be ended
    program.control("resume", WORKER)
    program.until(lambda s: s[2] > before[2])

    first = line_of("int doubled")
    assert program.control("break", f"Controlled:{first + 1}")["done"].endswith("1 place")
    held = program.held()
    assert held == {"thread": WORKER, "why": "breakpoint", "at": f"Controlled.work:{first + 1}"}
    listed = program.control("list")["breakpoints"]
    assert len(listed) == 1 and listed[0]["hits"] == 1
    stack = lab.read_json("inspect", "--json", program.process.pid, "stack", WORKER)
    assert stack["frames"][0]["locals"] == {"n": 7, "doubled": 14}
    depth = len(stack["frames"])
    assert program.refused("set", WORKER, depth, "n", 1).endswith(
        f": {depth}: the thread has {depth} frames, and 0 is the innermost\n"
    )
    assert "the frame has no such slot" in program.refused("set", WORKER, 0, "#99:I", 1)
    assert "the value has another type" in program.refused("set", WORKER, 0, "#0:L", "null")
    program.control("set", WORKER, 0, "doubled", 100)
    program.control("set", WORKER, 0, "#0:I", 8)
    assert (
        program.control("step", WORKER, "into")["done"]
        == f"now at Controlled.add:{line_of('int c = a + b')}"
    )
    assert program.control("step", WORKER)["done"] == f"now at Controlled.add:{line_of('return c')}"
    assert program.control("step", WORKER, "out")["done"] == f"now at Controlled.work:{first + 1}"
    assert program.control("step", WORKER, "over")["done"] == f"now at Controlled.work:{first + 2}"
    program.control("clear", f"Controlled:{first + 1}")
    program.control("break", "Controlled.named")
    program.control("resume", WORKER)
    assert program.held()["at"] == f"Controlled.named:{line_of('return Renamed')}"
    assert program.state()[0] == 101, "the local that was set"
    program.control("clear", "Controlled.named()Ljava/lang/String;")
    assert "not a value of type" in program.refused("return", WORKER, "17")
    # The refusal says how a value of this type is written.
    assert "which is written as" in program.refused("return", WORKER, "17")
    program.control("return", WORKER, '"forced"')
    for place, why in (
        ("Controlled.add(long)", "the class has no such method; there is add(int, int)"),
        ("Controlled.ad", "the class has no such method; there is add(int, int)"),
        ("Controlled:1", "the class has no code for this line"),
        ("Controlled:99999", "the class has no code for this line"),
        ("Controlled$$Lambda[lambda$main$0]:1", "the class was compiled without line numbers"),
        (
            f"Controlled.add:{line_of('int c = a + b')}",
            f"a line number follows the class, not a method: Controlled:{line_of('int c = a + b')}",
        ),
        (
            "java.lang.Runnable.run",
            "the method is abstract and has no code; name one that implements it",
        ),
        (
            "java.lang.Object.hashCode",
            "the method is native and has no code where a thread could stop",
        ),
        ("no.Such.m", "no loaded class of this name"),
        ("no.Such:7", "no loaded class of this name"),
    ):
        assert program.refused("break", place).rstrip().endswith(f": {place}: {why}"), (
            place,
            program.refused("break", place),
        )
    assert (
        program.refused("clear", "Controlled.work")
        .rstrip()
        .endswith(": Controlled.work: no breakpoint there")
    )
    assert "Controlled.add(int: " in program.refused(
        "break", "Controlled.add(int"
    ) and "no such" not in program.refused("break", "Controlled.add(int")
    for _ in range(2):
        assert program.control("break", " Controlled::add (int, int) ")["done"].endswith(
            "stops at 1 place"
        )
    assert len(program.control("list")["breakpoints"]) == 1
    program.control("resume", WORKER)
    assert program.held()["at"].startswith("Controlled.add:")
    assert program.state()[1] == "forced"
    program.control("pop", WORKER)
    program.control("resume", WORKER)
    assert program.held()["at"].startswith("Controlled.add:"), "the call began anew"
    program.control("return", WORKER, "-5")
    program.control("clear", "Controlled.add")
    program.control("break", f"Controlled:{first + 2}")
    program.control("resume", WORKER)
    assert program.held()["at"] == f"Controlled.work:{first + 2}"
    program.control("clear", f"Controlled:{first + 2}")
    program.control("resume", WORKER)
    program.until(lambda s: s[0] == 15)
    assert program.control("list") == {"held": [], "breakpoints": []}
    assert lab.output("control", program.process.pid, "list") == "no held threads\nno breakpoints\n"

    program.control("interrupt", WORKER)
    program.until(lambda s: s[3])
    program.control("stop", WORKER, "java.lang.IllegalStateException")
    program.until(lambda s: s[4] == "java.lang.IllegalStateException")
    assert program.end() == ""
    events = recorded(tmp_path / "c.jfr")
    assert [WORKER, "suspend the worker"] == events[0][:2] and events[0][2].startswith(
        "the worker is suspended at"
    )
    assert [WORKER, "breakpoint", f"Controlled.work:{first + 1}"] in events
    assert [WORKER, "set the worker 0 doubled 100", "doubled is 100"] in events
    assert [WORKER, "step", f"Controlled.add:{line_of('return c')}"] in events
    assert any(e[1].startswith("stop the worker") for e in events)


def recorded(path):
    """Returns [thread, command, outcome] of each jvmscope.Control event, as JDK 17 reads them."""
    text = lab.Jdk(17).run("jfr", "print", "--events", "jvmscope.Control", path).stdout
    return [
        [re.search(rf'{f} = "?(.*?)"?$', e, re.M)[1] for f in ("thread", "command", "outcome")]
        for e in text.split("jvmscope.Control {")[1:]
    ]


@pytest.mark.jdks(8, 17, 27)
def test_classes_are_redefined(jdk, start, tmp_path):
    program = start("allow-control=y")
    source = tmp_path / "Controlled.java"
    source.write_text(SOURCE.replace('return "one"', 'return "two"'))
    done = lab.Jdk(17).run(
        "javac", "-nowarn", "-Xlint:-options", "-g", "--release", "8", "-d", tmp_path, source
    )
    assert done.returncode == 0, done.stderr
    program.until(lambda s: s[1] == "one")
    assert (
        "it stays so" in program.control("redefine", tmp_path / "Controlled$Renamed.class")["done"]
    )
    program.until(lambda s: s[1] == "two")
    source.write_text(
        SOURCE.replace(
            "static String name() {", "static int more() { return 1; } static String name() {"
        )
    )
    lab.Jdk(17).run(
        "javac", "-nowarn", "-Xlint:-options", "-g", "--release", "8", "-d", tmp_path, source
    )
    renamed = "static String name() {"
    for change, why in (
        (f"static int more() {{ return 1; }} {renamed}", "a method that the loaded one lacks"),
        (f"static int more; {renamed}", "other fields than the loaded one"),
        (f"synchronized {renamed}", "other modifiers than in the loaded one"),
    ):
        source.write_text(SOURCE.replace(renamed, change))
        lab.Jdk(17).run(
            "javac", "-nowarn", "-Xlint:-options", "-g", "--release", "8", "-d", tmp_path, source
        )
        printed = program.refused("redefine", tmp_path / "Controlled$Renamed.class")
        assert printed.startswith(f"jvmscope: {program.process.pid}: control: Controlled$Renamed: ")
        assert why in printed, printed
    assert "not a class file" in program.refused("redefine", source)
    assert "no such file" in program.refused("redefine", tmp_path / "none.class")
    assert program.end() == ""


def test_it_is_refused_without_permission_and_ends_with_the_recording(
    jdk, start, jvmscope, tmp_path
):
    program = start("cpu=samples")
    assert "no recording permits control; begin one with --allow-control" in program.refused(
        "suspend", WORKER
    )
    assert jvmscope("stop", program.process.pid).returncode == 0
    late = tmp_path / "late.jfr"
    done = jvmscope("attach", "--allow-control", "-o", late, program.process.pid)
    assert done.returncode == 0, done.stderr
    # The message of attach, the manual and the document name the verbs that work.
    listed = lab.output("control", "--help").split("\nVERB:\n")[1].split("\n\n")[0]
    verbs = [line.split()[0] for line in listed.splitlines()]
    started = [v for v in verbs if v in ("pop", "return", "set", "break", "clear", "step")]
    operands = {"set": ("0", "n", "1"), "break": (), "clear": ()}
    for verb in started:
        place = (WORKER,) if verb not in ("break", "clear") else ("Controlled.main",)
        assert program.refused(verb, *place, *operands.get(verb, ())).endswith(
            f"{verb}: only a program that was started by jvmscope run --allow-control permits this "
            "verb\n"
        )
    others = [v for v in verbs if v not in started]
    sentence = f"{', '.join(others[:-1])} and {others[-1]}"
    assert f"so only {sentence} work" in done.stderr, done.stderr
    assert sentence in " ".join(lab.output("manual", "control").split())
    document = " ".join((lab.ROOT / "doc/inspect.md").read_text().split())
    assert f"only `{'`, `'.join(others[:-1])}` and `{others[-1]}` do" in document
    for words, message in (
        (("suspend", "nobody"), "no live thread"),
        (("suspend", "jvmscope"), "the agent's own thread"),
        (("resume", WORKER), "is not held"),
    ):
        assert message in program.refused(*words)
    for words, message in (
        (("fly",), "fly: unknown\njvmscope: VERB is one of: suspend"),
        (("suspend",), "suspend: takes THREAD"),
        (("set", WORKER, "0", "n"), "set: takes THREAD DEPTH NAME VALUE"),
        (("step", WORKER, "under"), "step: takes THREAD [into|over|out]"),
        (("verbose", "gc", "loud"), "verbose: takes gc|class|jni on|off"),
    ):
        done = jvmscope("control", program.process.pid, *words)
        assert done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr
    program.control("suspend", WORKER)
    before = program.state()
    assert jvmscope("stop", program.process.pid).returncode == 0
    program.until(lambda s: s[2] > before[2])
    program.end()


def test_help_and_a_missing_operand_name_the_verbs_that_the_agent_knows():
    """The agent's tables are in its sources, because the command answers an unknown verb itself."""
    for command, table in (
        ("control", "control/control.c: verbs"),
        ("inspect", "inspect/inspect.c: questions"),
    ):
        source, name = table.split(": ")
        text = (lab.ROOT / "src/agent" / source).read_text()
        rows = re.search(rf"\b{name}\[\] = \{{\n(.*?)^\}};", text, re.S | re.M)[1]
        known = set(re.findall(r'^    \{"([a-z]+)"', rows, re.M))
        assert len(known) > 10
        for words in ((command,), (command, 1), (command, 1, "fly")):
            done = lab.jvmscope(*words)
            listed = re.search(r"is one of: (.*)$", done.stderr, re.M)[1].split(", ")
            assert done.returncode == 2 and set(listed) == known and len(listed) == len(known)
        helped = lab.output(command, "--help")
        for word in known:
            assert re.search(rf"^  {word}( [A-Z\[gi].*?)?  +[a-z]", helped, re.M), (word, helped)
