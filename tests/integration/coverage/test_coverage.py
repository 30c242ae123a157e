# SPDX-License-Identifier: Apache-2.0
"""cover=y: every line and branch of a program is reported as the program's own comments say."""
import json
import re
import subprocess
import xml.dom.minidom
import zipfile

import pytest

import lab

SOURCE = lab.ROOT / "tests" / "java" / "Covered.java"


def expected():
    """line -> (ran, taken, branches) from the comments of the source."""
    marks = {}
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        m = re.search(r"// ([RN])(?: (\d+)/(\d+))?$", text)
        if m:
            marks[number] = (m[1] == "R", int(m[2] or 0), int(m[3] or 0))
    return marks


def record(jdk, tmp_path, *options, name="c.jfr", program="Covered", jvm=()):
    out = tmp_path / name
    done = jdk.java(
        program,
        jvm=(
            jdk.agent(f"cover=y,format=r,file={out}" + "".join("," + o for o in options)),
            "-Xmx64m",
            *jvm,
        ),
    )
    assert done.returncode == 0, done.stderr
    return out, done


def found(jvmscope, *recordings):
    done = jvmscope("coverage", "--json", *recordings)
    assert done.returncode == 0, done.stderr
    lines = {}
    for c in json.loads(done.stdout)["classes"]:
        assert c["source"] == "Covered.java" and c["class"].startswith("Covered")
        for l in c["by_line"]:
            hit, taken, branches = lines.get(l["line"], (False, 0, 0))
            lines[l["line"]] = (
                hit or l["hit"],
                taken + l.get("taken", 0),
                branches + l.get("branches", 0),
            )
    return lines


def test_each_line_and_branch_as_it_ran(jdk, jvmscope, tmp_path):
    recording, done = record(jdk, tmp_path)
    assert done.stdout == "done 9\n"
    lines = found(jvmscope, recording)
    want = expected()
    # Class Unused is never loaded: nothing is known of it. Lines without a comment are declarations
    # that javac gives a line.
    unused = {
        n
        for n, text in enumerate(SOURCE.read_text().splitlines(), 1)
        if "class Unused" in text
        for n in range(n, n + 4)
    }
    wrong = {
        n: (lines.get(n), mark)
        for n, mark in want.items()
        if n not in unused and lines.get(n) != mark
    }
    assert not wrong, f"(found, expected): {wrong}"
    assert not unused & set(lines)


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_runs_add_up_and_totals_are_stable(jdk, jvmscope, tmp_path):
    a, _ = record(jdk, tmp_path, name="a.jfr")
    b, _ = record(jdk, tmp_path, name="b.jfr")
    assert found(jvmscope, a) == found(jvmscope, b) == found(jvmscope, a, b)


def test_outputs_for_other_tools(jvmscope, tmp_path):
    recording, _ = record(lab.Jdk(17), tmp_path)
    for extension in (".info", ".xml", ".html"):
        done = jvmscope(
            "coverage", recording, "--sources", SOURCE.parent, "-o", tmp_path / f"out{extension}"
        )
        assert done.returncode == 0, done.stderr
    info = (tmp_path / "out.info").read_text()
    lines = {n: hit for n, hit in re.findall(r"^DA:(\d+),(\d)$", info, re.M)}
    assert sum(h == "1" for h in lines.values()) > 30 and f"SF:{SOURCE.parent}/Covered.java" in info
    root = xml.dom.minidom.parse(str(tmp_path / "out.xml")).documentElement
    assert int(root.getAttribute("lines-valid")) >= len(lines)
    page = (tmp_path / "out.html").read_text()
    assert (
        "static int shortCircuit" in page
        and 'title="2 of 4 branches"' in page
        and "<script" not in page
    )
    table = jvmscope("coverage", "--methods", recording).stdout
    assert re.search(r"0\.0 %.*neverCalled", table) and re.search(r"100\.0 %.*recursive", table)


def test_folders_of_several_modules(jvmscope, tmp_path):
    """Lists accumulate, by commas or by giving the option again. A folder's name may have a comma."""
    recording, _ = record(lab.Jdk(17), tmp_path)
    other, comma = tmp_path / "other", tmp_path / "a,b"
    other.mkdir()
    comma.mkdir()
    (comma / "Covered.java").write_text("// of the folder with a comma\n")
    info, xml_file = tmp_path / "out.info", tmp_path / "out.xml"
    for words, found in (
        (("-s", other, "-s", SOURCE.parent), SOURCE.parent),
        (("-s", f"{other},{SOURCE.parent}"), SOURCE.parent),
        (("-s", comma, "-s", SOURCE.parent), comma),
        (("-s", f"{other},{comma}"), comma),
    ):
        assert jvmscope("coverage", *words, "-o", info, recording).returncode == 0, words
        assert f"SF:{found}/Covered.java" in info.read_text(), words
    done = jvmscope("coverage", "-s", f"{other},{SOURCE.parent}", "-o", xml_file, recording)
    assert done.returncode == 0, done
    root = xml.dom.minidom.parse(str(xml_file)).documentElement
    named = [s.firstChild.data for s in root.getElementsByTagName("source")]
    assert named == [str(other), str(SOURCE.parent)]
    done = jvmscope("coverage", "-s", f"{other},{tmp_path}/nosuch", "-o", info, recording)
    assert (done.returncode, done.stdout) == (2, "") and "/nosuch: cannot read the sources" in (
        done.stderr
    )
    # Classes that were never loaded, of two folders.
    for name in ("First", "Second"):
        folder = tmp_path / name
        folder.mkdir()
        source = folder / f"{name}.java"
        source.write_text(f"class {name} {{ static int one() {{ return 1; }} }}\n")
        lab.Jdk(17).run("javac", "-d", folder, source)
    both = (("--classes", f"{tmp_path}/First,{tmp_path}/Second"),)
    both += (("--classes", tmp_path / "First", "--classes", tmp_path / "Second"),)
    for words in both:
        done = jvmscope("coverage", "--json", *words, recording)
        shown = {c["class"] for c in json.loads(done.stdout)["classes"]}
        assert {"First", "Second"} <= shown, (words, shown)
    done = jvmscope("coverage", "--classes", f"{tmp_path}/First,{tmp_path}/Third", recording)
    assert done.returncode == 1 and "/Third: cannot read: No such file" in done.stderr, done


def test_refusals(jvmscope, tmp_path):
    done = lab.Jdk(17).java("Covered", jvm=(lab.Jdk(17).agent(f"cover=y,file={tmp_path}/x.txt"),))
    assert done.returncode == 1 and "format=r" in done.stderr
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert jvmscope("coverage", empty).returncode == 1
    assert jvmscope("coverage").returncode == 2


@pytest.mark.jdks(17)
def test_what_adds_nothing_is_refused(jdk, jvmscope, tmp_path):
    """A file without coverage among others, and options that have no effect together."""
    recording, _ = record(jdk, tmp_path)
    other = tmp_path / "samples.jfr"
    done = jdk.java("Covered", jvm=(jdk.agent(f"cpu=samples,format=r,file={other}"),))
    assert done.returncode == 0, done.stderr
    for files in ((recording, other), (other, recording), (other,)):
        done = jvmscope("coverage", *files)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == f"jvmscope: {other}: holds no coverage: record it with --cover\n"
    page = tmp_path / "c.html"
    for options, words in (
        (("--sources", tmp_path), "--sources has no effect without -o"),
        (("--sources", tmp_path / "nosuch", "-o", page), "cannot read the sources"),
        (("-o", page, "--json"), "--json prints, and -o writes a file"),
    ):
        done = jvmscope("coverage", *options, recording)
        assert done.returncode == 2 and words in done.stderr and done.stdout == "", options
        assert not page.exists()


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_attach_in_the_middle(jdk, jvmscope, tmp_path):
    """The second of two recordings sees again what the first one has seen, although the JIT has
    removed those probes since. On one JDK this is done for every loaded class, because the VM
    changes these in parts with pauses in between. A third recording of a single method has nothing
    of the others, which were recorded before: neither methods that did not run, nor counts in its
    status.
    """
    chosen = [] if jdk.version == 17 else ["--include", "TracedForever"]
    outs, few = [tmp_path / "late.jfr", tmp_path / "again.jfr"], tmp_path / "few.jfr"
    all_captures = ["--cover"] + (["--alloc=exact"] if chosen else []) + ["--trace"]
    process = jdk.start_java(
        "TracedForever", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for out in outs:
            done = jvmscope(
                "attach",
                *all_captures,
                "TracedForever",
                *chosen,
                "-t",
                "250ms",
                "-o",
                out,
                process.pid,
            )
            assert done.returncode == 0, done.stderr
        done = jvmscope(
            "attach",
            *all_captures,
            "TracedForever.two",
            "--include",
            "TracedForever.two",
            "-o",
            few,
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        status = json.loads(jvmscope("status", "--json", process.pid).stdout)
        assert (
            status["cover.methods"] == status["trace.methods"] == 1
            and status.get("alloc.places", 0) < 10
        ), status
        assert jvmscope("stop", process.pid).returncode == 0
        process.stdin.close()
        assert process.wait(20) == 0 and process.stdout.read() == "done\n"
    finally:
        process.kill()
        process.wait()
    for out in outs:
        done = jvmscope("coverage", "--json", out)
        methods = {
            m["method"]: m["hit"]
            for c in json.loads(done.stdout)["classes"]
            for m in c["by_method"]
            if c["class"] == "TracedForever"
        }
        assert methods["one"] and methods["two"] and not methods["<init>"]
    classes = json.loads(jvmscope("coverage", "--json", few).stdout)["classes"]
    assert [(c["class"], [m["method"] for m in c["by_method"]]) for c in classes] == [
        ("TracedForever", ["two"])
    ]


def test_no_method_is_kept_from_the_jit(tmp_path):
    """C1 gives up on a method whose `finally` covers its own handler when a probe there may
    throw.
    """
    jdk = lab.Jdk(17)
    _, done = record(
        jdk,
        tmp_path,
        jvm=(
            "-Xcomp",
            "-XX:TieredStopAtLevel=1",
            "-XX:+PrintCompilation",
            "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=compileonly,Covered::*",
        ),
    )
    assert "Covered::manyLocals" in done.stdout and "COMPILE SKIPPED" not in done.stdout


def test_classes_never_loaded_count_with_their_files(jvmscope, tmp_path):
    """--classes: the points that the agent would have counted, none of which has run; from folders,
    jars and single files.
    """
    jdk, classes = lab.Jdk(17), lab.compiled("Covered")
    recording, _ = record(jdk, tmp_path)
    other = tmp_path / "other.jfr"
    process = jdk.start_java(
        "Counted",
        jvm=(jdk.agent(f"cover=y,format=r,file={other}"),),
        stdin=subprocess.DEVNULL,
        stdout=-1,
    )
    process.communicate(timeout=120)
    (tmp_path / "some" / "lib").mkdir(parents=True)
    for name, how in (
        ("packed.jar", zipfile.ZIP_DEFLATED),
        ("some/lib/stored.jar", zipfile.ZIP_STORED),
    ):
        with zipfile.ZipFile(tmp_path / name, "w", how) as jar:
            for file in sorted(classes.glob("*.class")):
                jar.write(file, file.name)
            jar.writestr("module-info.class", "not read")

    def shown(*args):
        done = jvmscope("coverage", "--json", *args)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return json.loads(done.stdout)

    known, all_of = shown(recording), shown("--classes", classes, recording)
    unused = next(c for c in all_of["classes"] if c["class"] == "Covered$Unused")
    assert unused["lines"] > 0 and unused["lines_hit"] == unused["methods_hit"] == 0
    assert [c for c in all_of["classes"] if c is not unused] == known["classes"]
    assert all(
        all_of["total"][k] == known["total"][k] + unused[k]
        for k in ("lines", "methods", "branches", "lines_hit")
    )
    for path in (tmp_path / "packed.jar", tmp_path / "some", classes / "Covered$Unused.class"):
        assert shown("--classes", path, recording) == all_of, path
    # For classes that ran elsewhere, the same lines and branches as there.
    fresh = {c["class"]: c for c in shown("--classes", classes, other)["classes"]}
    for c in all_of["classes"]:
        assert fresh[c["class"]]["lines_hit"] == 0
        for key in ("lines", "methods", "branches"):
            assert fresh[c["class"]][key] == c[key], (c["class"], key)
        assert [(l["line"], l.get("branches")) for l in fresh[c["class"]]["by_line"]] == [
            (l["line"], l.get("branches")) for l in c["by_line"]
        ]
    # What cannot be read is reported.
    (tmp_path / "some" / "Bad.class").write_bytes(b"\xca\xfe\xba\xbe bad")
    done = jvmscope("coverage", "--classes", tmp_path / "some", recording)
    assert done.returncode == 0 and "note: left out 1 class file that cannot be read" in done.stderr
    for path, why in (
        (tmp_path / "none", "No such file"),
        (recording, "not a folder, jar or class file"),
    ):
        done = jvmscope("coverage", "--classes", path, recording)
        assert done.returncode == 1 and why in done.stderr and not done.stdout, done.stderr
