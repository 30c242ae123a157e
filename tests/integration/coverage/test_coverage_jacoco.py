# SPDX-License-Identifier: Apache-2.0
"""Coverage compared with JaCoCo's: line by line and branch by branch for h2 under SQL, and each
kind of difference for code that shows it.
"""
import collections
import json
import pathlib
import re
import shutil
import zipfile

import lab
import pytest
import workloads

JARS = pathlib.Path("/usr/share/java")
NEEDED = [
    "org.jacoco.agent.jar",
    "org.jacoco.core.jar",
    "asm.jar",
    "asm-tree.jar",
    "asm-commons.jar",
    "asm-analysis.jar",
]


@pytest.fixture(scope="module")
def jacoco(tmp_path_factory):
    """The folder with JaCoCo's agent, its libraries and the program that prints what it saw."""
    missing = [jar for jar in NEEDED if not (JARS / jar).exists()]
    if missing:
        pytest.skip(f"JaCoCo is not there: {missing} (apt-get install libjacoco-java)")
    folder = tmp_path_factory.mktemp("jacoco")
    for jar in NEEDED[1:]:
        shutil.copy(JARS / jar, folder)
    with zipfile.ZipFile(JARS / NEEDED[0]) as packed:
        (folder / "jacocoagent.jar").write_bytes(packed.read("jacocoagent.jar"))
    path = ":".join(str(folder / jar) for jar in NEEDED[1:])
    done = lab.Jdk(17).run(
        "javac", "-cp", path, "-d", folder, lab.ROOT / "tests" / "jacoco" / "JacocoLines.java"
    )
    assert done.returncode == 0, done.stderr
    return folder


def theirs(jacoco, data, classes):
    """{(class, method): {line: (hit, branches taken, branches)}}"""
    path = ":".join([str(jacoco), *(str(jacoco / jar) for jar in NEEDED[1:])])
    done = lab.Jdk(17).run("java", "-cp", path, "JacocoLines", data, classes)
    assert done.returncode == 0, done.stderr
    seen = collections.defaultdict(dict)
    for row in done.stdout.splitlines():
        c, m, line, hit, taken, total = row.rsplit(" ", 5)
        seen[c, m][int(line)] = (hit == "1", int(taken), int(total))
    return seen


def ours(recording):
    done = lab.Jdk(17).run("jfr", "print", "--json", "--events", "jvmscope.Coverage", recording)
    seen = {}
    for event in json.loads(done.stdout)["recording"]["events"]:
        v = event["values"]
        lines = collections.defaultdict(lambda: [False, 0, 0])
        for word in (v["lines"] or "").split():
            line, hit = map(int, word.split(":"))
            lines[line][0] |= hit == 1
        for word in (v["branches"] or "").split():
            line, _, _, hit = word.split(":")
            lines[int(line)][1] += hit == "1"
            lines[int(line)][2] += 1
        seen[v["className"], v["method"] + v["descriptor"]] = {
            n: tuple(x) for n, x in lines.items()
        }
    return seen


def differences(a, b):
    """Returns (kind, method, line) for our results in a and JaCoCo's in b, for the classes that
    both have.
    """
    for key, lines in a.items():
        if key not in b:
            yield "method only ours", key, 0
            continue
        for line, (hit, taken, total) in lines.items():
            if line not in b[key]:
                yield "line only ours", key, line
                continue
            their_hit, their_taken, their_total = b[key][line]
            if hit != their_hit:
                yield "we say it ran" if hit else "they say it ran", key, line
            if total != their_total:
                yield "more branches ours" if total > their_total else "more branches theirs", key, line
            elif taken != their_taken and hit == their_hit:
                yield "other branches taken", key, line
        for line in b[key]:
            if line not in lines:
                yield "line only theirs", key, line
    classes = {c for c, _ in a}
    for key in b:
        if key[0] in classes and key not in a:
            yield "method only theirs", key, 0


def test_each_kind_of_difference(jacoco, tmp_path):
    jdk = lab.Jdk(17)
    classes = lab.compiled("CoverDiffs")
    data, out = tmp_path / "j.exec", tmp_path / "c.jfr"
    printed = [
        jdk.java("CoverDiffs", jvm=jvm).stdout
        for jvm in (
            (f"-javaagent:{jacoco}/jacocoagent.jar=destfile={data}",),
            (jdk.agent(f"cover=y,format=r,file={out}"),),
            (),
        )
    ]
    assert printed[0] == printed[1] == printed[2] and printed[0].startswith("done ")
    source = (lab.ROOT / "tests" / "java" / "CoverDiffs.java").read_text()

    def line(text):
        return source[: source.index(text)].count("\n") + 1

    found = {
        (kind, f"{c}.{m.split('(')[0]}", n)
        for kind, (c, m), n in differences(ours(out), theirs(jacoco, data, classes))
    }
    assert found == {
        # What compilers add, which JaCoCo leaves out by the shape of the code.
        ("method only ours", "CoverDiffs.<init>", 0),
        ("method only ours", "CoverDiffs$Kind.<init>", 0),
        ("method only ours", "CoverDiffs$Kind.values", 0),
        ("method only ours", "CoverDiffs$Kind.valueOf", 0),
        ("method only ours", "CoverDiffs$1.<clinit>", 0),
        # The hash codes of a switch on strings.
        ("more branches ours", "CoverDiffs.strings", line("switch (s)")),
        # Copies of finally blocks, which JaCoCo merges.
        ("more branches ours", "CoverDiffs.finallyCopies", line("n = n > 5")),
        ("line only ours", "CoverDiffs.finallyCopies", line("n = n > 5") + 1),
        # Closing resources.
        ("line only ours", "CoverDiffs.resources", line("return in.read()") + 1),
        # A line that an exception leaves: for us it ran, but JaCoCo saw no probe after it.
        ("we say it ran", "CoverDiffs.main", line("leaves(1);")),
    }


def explained(kind, method, code):
    """Why JaCoCo leaves something out, judging by the method's code."""
    c, m = method
    if kind == "method only ours":
        return (
            m == "<init>()V"
            or m.startswith(("values()", "valueOf("))
            or (m == "<init>(Ljava/lang/String;I)V" and "Enum" in code)
            or (m == "<clinit>()V" and re.search(r"\$\d+$", c))
        )
    if kind in ("line only ours", "more branches ours"):
        return (
            re.search(r"\bany\b", code)
            or "addSuppressed" in code
            or "Class java/lang/Throwable" in code
            or "String.hashCode" in code
        )
    # A line that an exception leaves, caught in the same method.
    return kind == "we say it ran" and "Exception table:" in code


# Program, argument, prefix of its classes, how many of its lines are compared at least.
@pytest.mark.slow
@pytest.mark.parametrize(
    "library, program, argument, prefix, least",
    [
        ("h2", "SqlRows", "2000", "org.h2", 40000),
        ("lucene", "Searches", "800", "org.apache.lucene", 15000),
    ],
)
def test_real_classes_line_by_line(jacoco, tmp_path, library, program, argument, prefix, least):
    """Both observe the same work in three runs each. What differs from run to run is not compared;
    of the rest there is no difference.
    """
    jdk = lab.Jdk(17)
    # The parts of Lucene that the program needs; other jars of it contain classes of the same name
    given = (
        [workloads.H2_JAR]
        if library == "h2"
        else [j for j in workloads.jars(library) if "-core-" in j or "-analyzers-common-" in j]
    )
    folder = tmp_path / "jars"
    folder.mkdir()
    for jar in map(pathlib.Path, given):
        with zipfile.ZipFile(jar) as old, zipfile.ZipFile(folder / jar.name, "w") as new:
            for (
                name
            ) in (
                old.namelist()
            ):  # without the copies of classes for later JDKs, which JaCoCo refuses
                if not name.startswith("META-INF/versions/"):
                    new.writestr(name, old.read(name))
    jars = ":".join(map(str, sorted(folder.iterdir())))
    command = [
        "-cp",
        f"{lab.compiled(program, jars=() if library == 'h2' else given)}:{jars}",
        program,
        argument,
    ]
    a, b = [], []
    for i in range(3):
        data, out = tmp_path / f"{i}.exec", tmp_path / f"{i}.jfr"
        for agent in (
            f"-javaagent:{jacoco}/jacocoagent.jar=destfile={data},includes={prefix}.*",
            jdk.agent(f"cover=y,include={prefix},format=r,file={out}"),
        ):
            done = jdk.run("java", agent, *command)
            assert done.returncode == 0, done.stderr
        a.append(ours(out))
        b.append(theirs(jacoco, data, folder))
    shaky = {
        key
        for runs in (a, b)
        for other in runs[1:]
        for key in set(runs[0]) | set(other)
        if runs[0].get(key) != other.get(key)
    }
    found = [d for d in differences(a[0], b[0]) if d[1] not in shaky]
    code = {}
    listing = (
        jdk.run("javap", "-c", "-p", "-s", "-cp", jars, *sorted({d[1][0] for d in found})).stdout
        if found
        else ""
    )
    for text in re.split(r"(?m)^Compiled from.*\n", listing):
        name = re.search(r"(?:class|interface|enum) ([\w.$]+)", text)
        for body in text.split("\n\n") if name else ():
            head = re.search(r"(?m)^  .*?([\w.$<>]+)\(.*;\n    descriptor: (\S+)", body)
            if "  static {};" in body:
                code[name[1], "<clinit>()V"] = body
            elif head:
                code[name[1], ("<init>" if head[1] == name[1] else head[1]) + head[2]] = (
                    text.split("\n")[0] + body
                )
    compared = sum(len(lines) for lines in a[0].values())
    left = [d for d in found if not explained(d[0], d[1], code.get(d[1], ""))]
    print(
        f"{compared} lines, {len(found)} differences, {len(shaky)} methods differ from run to run, left over: {left}"
    )
    assert compared > least and len(shaky) < 200 and not left
