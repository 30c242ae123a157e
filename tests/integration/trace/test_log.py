# SPDX-License-Identifier: Apache-2.0
"""log= and watch=: locals, fields, reads and writes of a program whose values are known; what
cannot be read is reported and harms nothing.
"""
import itertools
import json
import re
import struct
import subprocess
import threading

import lab
import pytest

SOURCE = (lab.ROOT / "tests" / "java" / "Logged.java").read_text()


def line(text):
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def record(jdk, jvmscope, out, *options, classes=None, main="Logged"):
    words = ",".join(o.replace(",", "\\,") for o in options)
    done = jdk.run(
        "java",
        "-Xmx64m",
        jdk.agent(f"format=r,{words},file={out}"),
        "-cp",
        classes or lab.compiled("Logged"),
        main,
    )
    assert done.returncode == 0 and done.stdout == "done 261\n", (done.stdout, done.stderr)
    listed = jvmscope("trace", "--json", out)
    assert listed.returncode == 0, listed.stderr
    events = json.loads(listed.stdout)["events"]
    assert [e["start_ns"] for e in events] == sorted(e["start_ns"] for e in events)
    return events


def texts(events, place):
    return [e["text"] for e in events if e["kind"] == "log" and e["place"] == place and e["thread"]]


def notes(events):
    return [f"{e['place']} {e['text']}" for e in events if e["kind"] == "log" and not e["thread"]]


def test_locals_and_fields_at_lines(jdk, jvmscope, tmp_path):
    end, loop, static, made = (
        line(f"// {t}") for t in ("at the end", "in the loop", "static", "constructor")
    )
    events = record(
        jdk,
        jvmscope,
        tmp_path / "l.jfr",
        f"log=Logged:{end} n={{n}}, {{text}} {{square}} {{half}} {{this.count}} {{count}} {{NAME}} {{numbers}};"
        f"Logged:{loop} {{i}}/{{total}}; Logged.java:{static} {{z}}{{c}}{{f}} {{#0:I}} {{this}};"
        f"Logged:{made} {{this}} {{wide}}; Logged:9999 {{x}}",
    )
    at_end = texts(events, f"Logged.work:{end}")
    assert [re.sub("@[0-9a-f]+", "@", t) for t in at_end] == [
        "n=3, abc 9 1.5 2 2 the name int[2]@{1, 2}",
        "n=4,  16 2.0 3 3 the name int[2]@{1, 2}",
    ]
    assert texts(events, f"Logged.work:{loop}") == ["0/0", "1/0", "0/1", "1/1"]
    assert texts(events, f"Logged.early:{static}") == ["truex1.5 1 {this}"]
    assert [re.sub("@[0-9a-f]+", "@", t) for t in texts(events, f"Logged.<init>:{made}")] == [
        "Logged@ 3",
        "Logged$Below@ 3",
    ]
    assert notes(events) == [
        f"Logged.early:{static} note: this is not available there",
        "Logged:9999 note: nothing was logged: the class is loaded and has no code for this line",
    ]


def test_a_comma_before_a_place_separates_logpoints(jdk, jvmscope, tmp_path):
    """Other commas belong to the text, as before, even if they precede something that resembles a
    place.
    """
    end, loop = (line(f"// {t}") for t in ("at the end", "in the loop"))
    for i, (between, text) in enumerate(
        ((", ", "n={n}"), (",", "n={n}, x:1 to {n}, Logged:no {n}:1 y,{n}"), ("; ", "n={n}"))
    ):
        words = f"log=Logged:{end} {text}{between}Logged.java:{loop} {{i}}/{{total}}{between}Logged:9999"
        events = record(jdk, jvmscope, tmp_path / f"{i}.jfr", words)
        assert texts(events, f"Logged.work:{end}") == [text.format(n=n) for n in (3, 4)]
        assert texts(events, f"Logged.work:{loop}") == ["0/0", "1/0", "0/1", "1/1"]
        assert [n.split()[0] for n in notes(events)] == ["Logged:9999"]


def test_reads_and_writes_of_fields(jdk, jvmscope, tmp_path):
    events = record(
        jdk,
        jvmscope,
        tmp_path / "w.jfr",
        "watch="
        + ":".join(
            f"Logged.{f}"
            for f in ("count", "count", "real", "total", "wide", "flag", "ref", "nosuch")
        )
        + ":Elsewhere.count",
    )
    assert notes(events) == [
        "Logged.nosuch note: nothing was watched: the class is loaded and declares no field of this name",
        "Elsewhere.count note: nothing was watched: no class of this name is loaded",
    ]
    events = [e for e in events if e["kind"] != "log"]
    assert {e["thread"] for e in events} == {"main"}

    def of(field):
        return [
            (e["write"], e["before"], e.get("after", "-"))
            for e in events
            if e["field"] == f"Logged.{field}"
        ]

    bump = [(False, 1, "-"), (True, 1, 11), (False, 11, "-")]
    assert of("count") == [
        (True, 0, 1),
        (False, 1, "-"),
        (True, 1, 2),
        (False, 2, "-"),
        (True, 2, 3),
        (True, 0, 1),
        *bump,
    ]
    assert of("real") == [(True, 0, 2.5), (False, 2.5, "-"), (True, 2.5, 3.5)]
    assert of("total")[-1] == (True, 2, 261) and len(of("total")) == 9
    assert of("wide") == [(True, 0, 3), (True, 3, {"number": str(1 << 60)}), (True, 0, 3)]
    assert of("flag") == [(True, False, True)]
    assert of("ref") == [(True, None, "made"), (True, "made", None), (True, None, "made")]
    places = {e["place"] for e in events if e["field"] == "Logged.count"}
    assert f"Logged$Below.bump:{line('count += 10')}" in places and not any(
        "Shadow" in p for p in places
    )
    statics = {e["object"] for e in events if e["field"] == "Logged.total"}
    assert statics == {None} and all(
        re.match(r"Logged(\$Below)?@", e["object"]) for e in events if e["field"] == "Logged.count"
    )


@pytest.mark.jdks(8, 17, 25)
def test_what_a_watch_does_not_see_is_reported(jdk, jvmscope, tmp_path):
    """Accesses by reflection produce no row. The help, the document and the end of a recording
    without rows say so.
    """

    def run(*args):
        out = tmp_path / f"{len(args)}.jfr"
        done = jdk.run(
            lab.BUILD / "jvmscope",
            "run",
            "--watch",
            "WatchedUnseen.x",
            "-o",
            out,
            "--",
            "java",
            "-cp",
            lab.compiled("WatchedUnseen"),
            "WatchedUnseen",
            *args,
        )
        assert done.returncode == 0 and done.stdout == "done\n", done
        return out, done.stderr

    out, printed = run()
    assert "reflection, VarHandle, Unsafe and JNI are not seen" in printed, printed
    out, printed = run("abc")
    assert "not seen" not in printed, printed
    listed = jvmscope("trace", "--json", out)
    assert [(e["write"], e["after"]) for e in json.loads(listed.stdout)["events"]] == [
        (True, 3)
    ], listed.stdout
    stated = [
        jvmscope("run", "--help").stdout,
        (lab.ROOT / "doc" / "trace.md").read_text(),
        (lab.BUILD / "jvmscope-trace.1").read_text(),
    ]
    assert all(
        word in re.sub(r"\s+", " ", text)
        for text in stated
        for word in ("reflection", "VarHandle", "Unsafe", "JNI")
    ), stated


def compiled(tmp_path, *flags):
    done = lab.Jdk(17).run(
        "javac",
        "-nowarn",
        "-Xlint:-options",
        *flags,
        "--release",
        "8",
        "-d",
        tmp_path,
        lab.ROOT / "tests" / "java" / "Logged.java",
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.jdks(8, 17, 27)
def test_without_a_table_of_locals(jdk, jvmscope, tmp_path):
    end = line("// at the end")
    classes = compiled(tmp_path, "-g:source,lines")
    events = record(
        jdk,
        jvmscope,
        tmp_path / "l.jfr",
        f"log=Logged:{end} {{n}} {{#1:I}} {{#2:L}} {{#3:J}} {{count}} {{#99:I}}",
        classes=classes,
    )
    assert texts(events, f"Logged.work:{end}") == ["{n} 3 abc 9 2 {#99:I}", "{n} 4  16 3 {#99:I}"]
    assert any("n is not known: the class has no table of locals" in n for n in notes(events))
    # A slot of another type: the verifier rejects the class, which remains as it was.
    events = record(
        jdk, jvmscope, tmp_path / "bad.jfr", f"log=Logged:{end} {{#1:J}}", classes=classes
    )
    assert texts(events, f"Logged.work:{end}") == []
    assert (
        len(notes(events)) == 1
        and "Logged note: the VM does not take the class with its logpoints" in notes(events)[0]
    )


@pytest.mark.jdks(8, 17, 27)
def test_a_method_without_locals_has_no_table_of_them(jdk, jvmscope, tmp_path):
    """Compiling the class again would not help, and a limit of lines shows records."""
    name, end, out = line("static final String NAME"), line("// at the end"), tmp_path / "l.jfr"
    events = record(jdk, jvmscope, out, f"log=Logged:{name} {{x}} {{y}}, Logged:{end} n={{n}}")
    found = [n for n in notes(events) if n.startswith(f"Logged.<clinit>:{name} ")]
    assert found and all("is neither a local that is live there" in n for n in found), notes(events)
    shown = lab.output("trace", "-n", "2", out)
    assert shown.count("note: ") == len(found) and re.search("n=3$", shown, re.M), shown


def with_source_map(path, text):
    """Adds a SourceDebugExtension to a class file."""
    data = path.read_bytes()
    count, at = struct.unpack(">H", data[8:10])[0], 10
    i = 1
    while i < count:
        tag = data[at]
        at += (
            3 + struct.unpack(">H", data[at + 1 : at + 3])[0]
            if tag == 1
            else {3: 5, 4: 5, 5: 9, 6: 9, 15: 4}.get(tag, 3 if tag in (7, 8, 16, 19, 20) else 5)
        )
        i += 2 if tag in (5, 6) else 1
    name = b"SourceDebugExtension"
    body = at + 6
    body += 2 + 2 * struct.unpack(">H", data[body : body + 2])[0]
    for _ in range(2):  # fields, methods
        n = struct.unpack(">H", data[body : body + 2])[0]
        body += 2
        for _ in range(n):
            attributes = struct.unpack(">H", data[body + 6 : body + 8])[0]
            body += 8
            for _ in range(attributes):
                body += 6 + struct.unpack(">I", data[body + 2 : body + 6])[0]
    attributes = struct.unpack(">H", data[body : body + 2])[0]
    path.write_bytes(
        data[:8]
        + struct.pack(">H", count + 1)
        + data[10:at]
        + b"\1"
        + struct.pack(">H", len(name))
        + name
        + data[at:body]
        + struct.pack(">H", attributes + 1)
        + data[body + 2 :]
        + struct.pack(">HI", count, len(text))
        + text
    )


@pytest.mark.jdks(8, 17, 27)
def test_source_maps(jdk, jvmscope, tmp_path):
    end, loop = line("// at the end"), line("// in the loop")
    classes = compiled(tmp_path, "-g")
    with_source_map(
        classes / "Logged.class",
        f"SMAP\nLogged.java\nJSP\n*S JSP\n*F\n+ 0 page.jsp\nshop/page.jsp\n+ 1 other.jsp\nother.jsp\n*L\n"
        f"3#0,2:{loop}\n7:{end}\n3#1:{end}\n*E\n".encode(),
    )
    events = record(
        jdk, jvmscope, tmp_path / "l.jfr", "log=shop/page.jsp:7 {n};page.jsp:3 {i}", classes=classes
    )
    assert texts(events, f"Logged.work:{end}") == ["3", "4"] and texts(
        events, f"Logged.work:{loop}"
    ) == ["0", "1", "0", "1"]
    assert notes(events) == []


@pytest.mark.jdks(17, 25)
def test_attach_and_stop_leave_the_program_as_it_was(jdk, jvmscope, tmp_path):
    out = tmp_path / "a.jfr"
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach",
            "--log",
            "TracedForever:5 one {n}",
            "--trace",
            "TracedForever.two",
            "-t",
            "1s",
            "-o",
            out,
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        listed = lab.read_json("trace", "--json", out)
        assert len(listed["events"]) > 10 and all(
            re.fullmatch(r"one \d+", e["text"]) for e in listed["events"]
        )
        assert len(listed["calls"]) > 10 and {c["method"] for c in listed["calls"]} == {
            "TracedForever.two(I)I"
        }
        process.stdin.close()
        assert process.wait(20) == 0 and process.stdout.read() == "done\n"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "option, message",
    [
        ("log=Logged", "a place such as pkg.Class:12 is missing"),
        ("log=Logged:0 x", "a place"),
        ("log=Logged:5 {n", "} is missing"),
        ("log=Logged:5 {}", "a name is missing"),
        ("log=Logged:5 {a b}", "not a local"),
        ("log=Logged:5 {#1}", "not a slot"),
        ("log=Logged:5 {#1:Q}", "not a slot"),
        ("log=;", "contains only separators"),
        ("log=Logged:99999 x", "a place"),
        ("watch=count", "pkg.Class.field"),
        ("watch=Logged.*", "pkg.Class.field"),
        ("watch=:", "contains only separators"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(tmp_path, option, message):
    jdk = lab.Jdk(17)
    done = jdk.java("Logged", jvm=(jdk.agent(f"format=r,{option},file={tmp_path}/never.jfr"),))
    assert not list(tmp_path.iterdir())
    assert (
        done.returncode == 1
        and done.stdout == ""
        and len(done.stderr.splitlines()) == 1
        and message in done.stderr
    ), done.stderr


@pytest.mark.jdks(8, 11, 17, 21, 25, 27)
def test_a_line_reaches_fields_lengths_statics_and_the_thread(jdk, jvmscope, tmp_path):
    """These are inherited and private fields, those of objects below the declared type, and paths
    on which there is null.
    """
    out = tmp_path / "l.jfr"
    source = (lab.ROOT / "tests" / "java" / "Reached.java").read_text()
    at = source[: source.index("// a line")].count("\n") + 1
    values = (
        "this.next.level",
        "this.name.length",
        "this.boxed",
        "this.next.name",
        "Reached$Base.turn",
        "Reached$Base.last.name",
        "thread",
        "this.parts.length",
        "Reached$Base.none",
        "this.level.x",
    )
    done = jdk.run(
        "java",
        "-Xmx64m",
        jdk.agent(
            f"format=r,log=Reached$Base:{at} {'|'.join(f'{{{v}}}' for v in values)},file={out}"
        ),
        "-cp",
        lab.compiled("Reached"),
        "Reached",
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    events = lab.read_json("trace", "--json", out)["events"]
    got = [e["text"].split("|") for e in events if e["kind"] == "log" and e["thread"]]
    none = "(no such field)"
    want = [
        [
            str(10 * i) if i < 5 else "null",
            "null" if i == 3 else "2",
            none if i % 2 else str(1000 + i),
            f"n{10 * i}" if i < 5 else "null",
            str(100 + i),
            "null" if i in (3, 8, 9) else f"n{i}",
            "main",
            none if i % 2 else "3",
            none,
            "{this.level.x}",
        ]
        for i in range(10)
    ]
    assert got == want
    # A field that some of the objects have is not a mistake. A field that none of them had is
    # reported, once.
    assert notes(events) == [
        f"Reached$Base.take:{at} note: this.level.x begins at a value that has no fields",
        f"Reached$Base.take:{at} note: Reached$Base.none: there was no such field",
    ]


@pytest.mark.jdks(8, 25)
def test_a_name_that_matches_nothing_is_reported_at_once_and_only_once(jdk, jvmscope, tmp_path):
    """The logpoint is refused while the program runs, and the message has its place."""
    at = (lab.ROOT / "tests/java/TracedForever.java").read_text().splitlines().index(
        "        return n + 1;"
    ) + 1
    words = [
        "run",
        "--log",
        f"TracedForever:{at} {{nosuch}} {{n.nosuch}} {{TracedForever.nosuch}}",
        "-o",
        tmp_path / "l.jfr",
        "--",
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("TracedForever"), "TracedForever"),
    ]
    with subprocess.Popen(
        [lab.BUILD / "jvmscope", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        late = threading.Timer(30, process.kill)
        late.start()
        try:
            printed = list(
                itertools.islice((s for s in process.stderr if "jvmscope: note: --log" in s), 3)
            )
            assert len(printed) == 3 and process.poll() is None, printed
            process.stdin.close()
            rest = process.stderr.read()
        finally:
            late.cancel()
            process.kill()
    place = f"jvmscope: note: --log TracedForever.one:{at}: "
    assert sorted(line.removeprefix(place).split(" ")[0] for line in printed) == [
        "n.nosuch",
        "nosuch",
        "{TracedForever.nosuch}:",
    ], printed
    assert "nosuch" not in rest and "wrote" in rest, rest
    assert (
        len(notes(json.loads(jvmscope("trace", "--json", tmp_path / "l.jfr").stdout)["events"]))
        == 3
    )


@pytest.mark.jdks(8, 27)
def test_records_and_stacks_that_are_missing_are_counted(jdk, jvmscope, tmp_path):
    """`lost` in JSON counts what the lists of each capture lack."""
    at = (lab.ROOT / "tests" / "java" / "ThrowsOn.java").read_text().splitlines().index(
        "    static void call(int which, int i) {"
    ) + 2
    for options, kind, there in (
        (f"log=ThrowsOn:{at} {{which}}", "log", 70),
        ("exceptions=stacks", "exception", 120),
    ):
        found = {}
        for limit in (1000000, 30):
            out = tmp_path / f"{kind}-{limit}.jfr"
            done = jdk.java(
                "ThrowsOn", 10, jvm=[jdk.agent(f"format=r,{options},limit={limit},file={out}")]
            )
            assert done.returncode == 0 and done.stdout == "70\n", done.stderr
            found[limit] = json.loads(jvmscope("trace", "--json", out).stdout)
        whole, cut = found[1000000], found[30]
        events = [e for e in whole["events"] if e["kind"] == kind and "ThrowsOn" in e["place"]]
        assert len(events) + whole["lost"] >= there and len(cut["events"]) == 30
        assert (
            cut["lost"]
            == sum(o["amount"] for o in cut["losses"])
            == len(whole["events"]) + whole["lost"] - 30
        ), (cut["losses"], whole["lost"])


@pytest.mark.jdks(8, 25)
def test_a_note_from_before_the_recording_has_no_time(jdk, jvmscope, tmp_path):
    """A note about a logpoint is written while the probes are inserted, before the recording
    begins.
    """
    out = tmp_path / "n.jfr"
    process = jdk.start_java(
        "TracedForever", jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach", "-t", "200ms", "--log", "TracedForever:5 {nosuch}", "-o", out, process.pid
        )
        assert done.returncode == 0, done.stderr
        _, note, *others = lab.output("trace", out).splitlines()
        assert re.match(
            r" +- +-  +TracedForever\.one:5 note: nosuch is neither a local", note
        ), note
        assert others and all(re.match(r" +\d+\.\d+ +main ", line) for line in others), others
        assert " note: " not in lab.output("trace", "--from", "1ms", out)
    finally:
        process.communicate("\n")


@pytest.mark.jdks(8, 25)
def test_watch_and_log_accept_and_print_names_as_trace_does(jdk, jvmscope, tmp_path):
    """A char is quoted as in calls, the class that declares a field is named, and a place may be
    written with its method, pkg.Class.method:LINE, as in results.
    """
    out = tmp_path / "w.jfr"
    source = (lab.ROOT / "tests/java/WatchedMore.java").read_text()
    at = source[: source.index("// logged")].count("\n") + 1
    events = record(
        jdk,
        jvmscope,
        out,
        f"log=WatchedMore.next:{at} next {{n}};WatchedMore.main:{at} main",
        "watch=WatchedMore.letter:WatchedMore$Sub.number:WatchedMore$Sub.own",
        classes=lab.compiled("WatchedMore"),
        main="WatchedMore",
    )
    letters = [
        (e["before"]["object"], e["after"]["object"])
        for e in events
        if e["kind"] == "access" and e["field"] == "WatchedMore.letter"
    ]
    assert letters[1] == ("'a'", "'\\''"), letters
    assert re.search(
        r"write WatchedMore\.letter of .* 'a' -> '\\''  at ", lab.output("trace", out), re.M
    )
    assert texts(events, f"WatchedMore.next:{at}") == ["next 250", "next 251"]
    assert notes(events) == [
        f"WatchedMore.main:{at} note: nothing was logged: the class is loaded and has no code for this line",
        "WatchedMore$Sub.number note: nothing was watched: the class inherits this field: "
        "--watch WatchedMore.number names it",
    ]
