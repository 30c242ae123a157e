# SPDX-License-Identifier: Apache-2.0
"""What the build produces, and what it needs of the machine."""
import ast
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest

import lab
from documents import links, links_lead_to_files


def test_version_and_help(jvmscope):
    assert jvmscope("--version").stdout.startswith("jvmscope ")
    assert jvmscope("--help").returncode == 0
    assert jvmscope().returncode == 2
    wrong = jvmscope("nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("jvmscope: nonsense: no such command")


def test_each_jdk_of_the_matrix_answers(jdk):
    done = jdk.run("java", "-version")
    assert done.returncode == 0
    version = done.stderr.split('"')[1]
    assert version.startswith("1.8." if jdk.version == 8 else f"{jdk.version}")


@pytest.mark.jdks(17)
def test_the_command_runs_where_its_libraries_are_not_installed(jdk, tmp_path):
    """The chroot of the JDKs is another distribution, which lacks libraries that the command
    uses.
    """
    stacks = tmp_path / "a.collapsed"
    stacks.write_text("main;work 5\nmain;rest 7\n")
    for library in ("json-c", "microhttpd"):
        assert not list(
            lab.chroot().glob(f"usr/lib/*/lib{library}.so*")
        ), f"{library} is there after all"
    report = jdk.run(lab.BUILD / "jvmscope", "report", "--json", stacks)
    assert (report.returncode, report.stderr) == (0, "")
    assert report.stdout == lab.output("report", "--json", stacks)
    server = jdk.start(lab.BUILD / "jvmscope", "serve", stacks, stdout=subprocess.PIPE)
    with urllib.request.urlopen(server.stdout.readline().strip(), timeout=30) as page:
        assert page.status == 200
    server.terminate()
    assert server.wait(timeout=30) == 0


def includes(source):
    """Yields each file below `source` with each header below it that it includes, as paths relative
    to `source`.
    """
    for path in sorted(source.rglob("*.[ch]")):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            sibling = (path.parent / name).resolve()
            target = sibling if sibling.exists() else source / name
            if target.exists():
                yield path.relative_to(source), target.resolve().relative_to(source)


def included_rooms(source):
    """Returns, by room, the rooms whose headers each room of `source` includes."""
    rooms = {folder.name: set() for folder in source.iterdir() if folder.is_dir()}
    for path, target in includes(source):
        rooms[path.parts[0]].add(target.parts[0])
    return {room: used - {room} for room, used in rooms.items()}


def included_folders(source, depth=None):
    """Returns, by folder, the folders of the same room whose headers each folder includes; of
    folders that are deeper than `depth`, the one around them at this depth.
    """

    def folder(path):
        return "/".join(path.parent.parts[:depth])

    folders = {folder(path.relative_to(source)): set() for path in source.rglob("*.[ch]")}
    for path, target in includes(source):
        if path.parts[0] == target.parts[0]:
            folders[folder(path)].add(folder(target))
    return {name: used - {name} for name, used in folders.items()}


def in_cycles(used):
    """Returns the keys that lead back to themselves."""

    def reached(start):
        found, left = set(), list(used[start])
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                left += used[name]
        return found

    return {name for name in used if name in reached(name)}


def documented_rooms(text):
    """Returns the table of rooms in doc/architecture.md, in its order: which rooms each one may
    include.
    """
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]*)\|", text, re.M)
    return {room: {name.strip() for name in used.split(",") if name.strip()} for room, used in rows}


def documented_folders(text):
    """Returns the table of a room's folders, in the same form."""
    rows = re.findall(r"^\| `(\w+/\w*)` \| ([\w, ]*)\|", text, re.M)
    return {
        folder.rstrip("/"): {
            f"{folder.partition('/')[0]}/{name.strip()}" for name in used.split(",") if name.strip()
        }
        for folder, used in rows
    }


def test_what_make_install_installs(tmp_path):
    """The command, the agents with the header of JVMPI, manual pages and shell completions, and
    nothing that only the build needs.
    """
    subprocess.run(
        ["meson", "install", "--no-rebuild", "--quiet", "-C", lab.BUILD, "--destdir", tmp_path],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    files = {p.name: p for p in tmp_path.rglob("*") if p.is_file()}
    pages = {p.name for p in lab.BUILD.glob("*.1")}
    completions = {"_jvmscope": "zsh", "jvmscope.fish": "fish"}
    assert set(files) - pages == {
        "jvmscope",
        "libhprof.so",
        "libjvmpi.so",
        "jvmpi.h",
        *completions,
    }
    [bash] = tmp_path.rglob("bash-completion/completions/jvmscope")
    scripts = [(bash, "bash"), *((files[name], shell) for name, shell in completions.items())]
    for script, shell in scripts:
        assert script.read_text() == lab.output("completion", shell)


def downward(documented):
    """Returns what the rows of a table include that no row before them describes."""
    order = list(documented)
    upward = {name: used - set(order[:n]) for n, (name, used) in enumerate(documented.items())}
    return {name: used for name, used in upward.items() if used}


def test_rooms_include_only_what_the_architecture_allows():
    """The table has every room and exactly the arrows that the code has, and no room includes one
    that is below it.
    """
    documented = documented_rooms((lab.ROOT / "doc" / "architecture.md").read_text())
    assert downward(documented) == {}, "these arrows lead down the table, or to no room"
    assert documented == included_rooms((lab.ROOT / "src").resolve())


def test_the_agent_s_folders_include_only_what_the_architecture_allows():
    """The folders of the agent, the largest room, include each other only as doc/architecture.md
    allows.
    """
    documented = documented_folders((lab.ROOT / "doc" / "architecture.md").read_text())
    assert downward(documented) == {}, "these arrows lead down the table, or to no folder"
    folders = included_folders((lab.ROOT / "src").resolve(), 2)
    assert documented == {
        name: used for name, used in folders.items() if name.partition("/")[0] == "agent"
    }


def test_no_folder_is_included_by_those_that_it_includes():
    """No room has a cycle of folders, at any depth."""
    assert in_cycles(included_folders((lab.ROOT / "src").resolve())) == set()


def picture_of_rooms(text):
    """Returns the picture in doc/architecture.md: of each room its level, its column and the rooms
    to which its arrow leads.
    """
    picture = {}
    for line in re.findall(r"(?m)^ +\d +│.*$", text):
        level, *cells = line.split("│")
        for column, cell in zip(("the command", "both", "the agents"), cells, strict=True):
            for drawn in re.split(r" {2,}", cell.strip()) if cell.strip() else ():
                room, _, arrows = drawn.partition(" ► ")
                assert room not in picture, f"{room} is in the picture twice"
                picture[room] = (int(level), column, set(arrows.split()))
    return picture


def test_the_picture_of_the_rooms_is_the_code_s():
    """Each room is at its level, in the column of the programs into which it is linked, with the
    arrows that are not implied by others.
    """
    text = (lab.ROOT / "doc" / "architecture.md").read_text()
    used = included_rooms((lab.ROOT / "src").resolve())
    linked = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", text, re.M))

    def level(room):
        return 1 + max(map(level, used[room])) if used[room] else 0

    def column(room):
        agents, command = (
            "agents" in linked[room] or "libjvmpi" in linked[room],
            "command" in linked[room],
        )
        return (
            "both"
            if (agents and command) or linked[room] == "all"
            else "the agents"
            if agents
            else "the command"
        )

    assert picture_of_rooms(text) == {
        room: (
            level(room),
            column(room),
            {u for u in below - {"base"} if not any(u in used[other] for other in below)},
        )
        for room, below in used.items()
    }


def test_the_includes_of_a_room_are_found(tmp_path):
    """A header in the same folder, one below the sources' root, and one of the system, with and
    without spaces.
    """
    for room in ("base", "upper"):
        (tmp_path / room / "inner").mkdir(parents=True)
    (tmp_path / "base" / "buf.h").write_text("#include <stdio.h>\n")
    (tmp_path / "upper" / "own.h").write_text("")
    (tmp_path / "upper" / "inner" / "file.c").write_text(
        '#include "../own.h"\n  # include "base/buf.h"\n#include "jvmti.h"\n'
    )
    assert included_rooms(tmp_path) == {"base": set(), "upper": {"base"}}
    assert included_folders(tmp_path) == {"base": set(), "upper": set(), "upper/inner": {"upper"}}
    assert included_folders(tmp_path, 1) == {"base": set(), "upper": set()}
    assert in_cycles(included_folders(tmp_path)) == set()
    (tmp_path / "upper" / "own.h").write_text('#include "upper/inner/deep.h"\n')
    (tmp_path / "upper" / "inner" / "deep.h").write_text("")
    assert in_cycles(included_folders(tmp_path)) == {"upper", "upper/inner"}
    assert documented_rooms("| `base` | | x |\n| `upper` | base, other | x |\n") == {
        "base": set(),
        "upper": {"base", "other"},
    }
    folders = documented_folders("| `upper/inner` | | x |\n| `upper/` | inner, other | x |\n")
    assert folders == {"upper/inner": set(), "upper": {"upper/inner", "upper/other"}}
    assert downward(folders) == {"upper": {"upper/other"}}


def test_measured_figures_are_in_the_order_of_the_topics(tmp_path):
    """doc/measured.md is what bench/run makes of its parts: in groups, each topic once, each
    section with a heading of its own.
    """
    lines = [
        line for line in (lab.ROOT / "bench" / "topics").read_text().splitlines() if line[0] != "#"
    ]
    topics = [line for line in lines if line[0] not in "=-"]
    by_hand = {line.removeprefix("- ") for line in lines if line[0] == "-"}
    assert lines[0][0] == "=" and len(set(topics)) == len(topics)
    assert set(topics) == {
        p.name
        for p in (lab.ROOT / "bench").iterdir()
        if p.is_file() and not p.suffix and os.access(p, os.X_OK)
    } - {"run", "quick"}
    parts = list((lab.ROOT / "doc" / "measured").glob("*.md"))
    assert by_hand <= {p.stem for p in parts} <= set(topics) | by_hand
    assert all(p.read_text().startswith("## ") for p in parts)
    measured = (lab.ROOT / "doc" / "measured.md").read_text()
    headings = re.findall(r"(?m)^##? .*", measured)
    assert len(set(headings)) == len(headings)
    shutil.copytree(
        lab.ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(lab.ROOT / "doc" / "measured", tmp_path / "doc" / "measured")
    subprocess.run([tmp_path / "bench" / "run", "--join"], check=True)
    assert measured == (tmp_path / "doc" / "measured.md").read_text()


def test_bench_quick_names_what_got_slower(capsys):
    """A figure is slower if it is above the saved one by more than the noise, and the ranges do not
    overlap.
    """
    loader = importlib.machinery.SourceFileLoader("quick", str(lab.ROOT / "bench" / "quick"))
    quick = importlib.util.module_from_spec(importlib.util.spec_from_loader("quick", loader))
    loader.exec_module(quick)
    then, calm = (0.98, 1.0, 1.02), (0.99, 1.0, 1.01)
    assert quick.verdict(then, (1.17, 1.2, 1.23), calm) == "SLOWER"
    assert quick.verdict(then, (0.8, 0.82, 0.84), calm) == "quicker"
    assert quick.verdict(then, (1.03, 1.04, 1.05), calm) == "", "less than 5 %"
    assert quick.verdict(then, (1.01, 1.2, 1.4), calm) == "", "the middle halves overlap"
    assert quick.verdict(then, (1.17, 1.2, 1.23), (1.1, 1.25, 1.3)) == "", "no more than its A/A"
    steps = {
        "same": quick.Step("gzip", []),
        "slow": quick.Step("gzip", []),
        "added": quick.Step("gzip", []),
    }
    for name, step in steps.items():
        step.figures, step.again = [2.0 if name == "slow" else 1.0] * 3, [1.0] * 3
    assert quick.report(steps, {"figures": {"same": then, "slow": then}}) == ["slow"]
    rows = {
        line.split(" | ")[0][2:]: line.split(" | ")[-1].strip("| ")
        for line in capsys.readouterr().out.splitlines()
    }
    assert (rows["same"], rows["slow"], rows["added"]) == ("", "SLOWER", "new")
    saved = json.loads(quick.SAVED.read_text())
    assert all(0 < low <= median <= high for low, median, high in saved["figures"].values())


def test_overhead_quotes_what_was_measured():
    """Each figure in doc/overhead.md is in the section of doc/measured.md that its row names."""
    sections = dict(
        re.findall(
            r"(?ms)^## (.*?)\n(.*?)(?=^##? |\Z)", (lab.ROOT / "doc" / "measured.md").read_text()
        )
    )

    def figures(text):
        return set(re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")))

    rows = re.findall(
        r"(?m)^\| (?!what|---)(.*?) \| (.*?) \| (.*?) \|$",
        (lab.ROOT / "doc" / "overhead.md").read_text(),
    )
    assert len(rows) > 12
    for what, costs, named in rows:
        costs = re.sub(r"\b(JDK \d+(?: and \d+\b(?!\.))?)", "", costs)
        assert figures(costs) <= figures(
            " ".join(sections[name] for name in named.split("; "))
        ), what


def test_tests_wait_with_a_limit():
    """A loop that sleeps, or only checks a condition, must be lab.wait_for: a copy of it might lack
    the time limit.
    """

    def waits(loop):
        return all(isinstance(s, ast.Pass) for s in loop.body) or any(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "sleep"
            for n in ast.walk(loop)
        )

    found = [
        f"{path.relative_to(lab.ROOT)}:{loop.lineno}"
        for path in sorted((lab.ROOT / "tests").rglob("*.py"))
        for loop in ast.walk(ast.parse(path.read_text()))
        if isinstance(loop, ast.While) and waits(loop)
    ]
    assert len(found) == 1 and found[0].startswith("tests/lab.py:"), found


LEAVES = """
import pathlib, subprocess

def test_leaves_a_file():
    process = subprocess.Popen(["true"])
    process.wait()
    pathlib.Path(f"/dev/shm/jvmscope-{process.pid}-left").touch()

def test_leaves_none():
    pass
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_leaves_a_file_fails(tmp_path, workers):
    test = tmp_path / "test_leaves.py"
    test.write_text(LEAVES)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "conftest",
            *(["-n", str(workers)] if workers else []),
            test,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(lab.ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    left = re.findall(r"^LEFT BEHIND (\S+) \(first seen after (.*)\)$", done.stdout, re.M)
    for path, _ in left:
        pathlib.Path(path).unlink()
    assert len(left) == 1 and left[0][1].endswith("test_leaves.py::test_leaves_a_file"), (
        done.stdout + done.stderr
    )
    assert done.returncode == 1 and done.stdout.endswith(
        "2 passed, 1 failed, 0 skipped\n"
    ), done.stdout


def imports_of_tests(text):
    """The tests that the source of a test imports, anywhere in it."""
    named = [
        name
        for n in ast.walk(ast.parse(text))
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for name in (
            [n.module or ""] if isinstance(n, ast.ImportFrom) else [a.name for a in n.names]
        )
    ]
    return [name for name in named if name.split(".")[-1].startswith("test_")]


def test_no_test_imports_another():
    """Code that several tests need is in tests/*.py. A test that is imported would run with the
    other test's imports, and could not be moved.
    """
    assert imports_of_tests("import os, test_a\ndef f():\n    from test_b import x\n") == [
        "test_a",
        "test_b",
    ]
    found = {
        path.name: imports_of_tests(path.read_text()) for path in (lab.ROOT / "tests").rglob("*.py")
    }
    assert not {name: of for name, of in found.items() if of}


def test_sources_are_formatted():
    """clang-format, black and prettier would change nothing."""
    files = subprocess.run(
        ["git", "ls-files", "*.c", "*.h", "*.py", "*.ts", "*.tsx", "*.mjs"],
        cwd=lab.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    c = [f for f in files if f.endswith((".c", ".h")) and not f.startswith("src/agent/probe/")]
    python = [f for f in files if f.endswith(".py")]
    page = [f for f in files if f.endswith(("ts", "tsx", "mjs"))]
    prettier = [lab.ROOT / "web/node_modules/.bin/prettier", "--config", "web/package.json"]
    for command, of in [
        (["clang-format", "--dry-run", "-Werror"], c),
        (["black", "--quiet", "--check"], python),
        ([*prettier, "--log-level", "warn", "--check"], page),
    ]:
        assert len(of) > 50, command
        done = subprocess.run([*command, *of], cwd=lab.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_sources_keep_the_rules_of_style():
    """tools/style finds nothing in the sources, and finds each kind of offence where there is
    one.
    """
    done = subprocess.run([lab.ROOT / "tools/style"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    path = str(lab.ROOT / "tools/style")
    style = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(
            "style", importlib.machinery.SourceFileLoader("style", path)
        )
    )
    style.__spec__.loader.exec_module(style)
    good = "/* Says it. */\nint lend_library(int n)\n{\n    return n;\n}\n"
    assert style.check("src/proto/lend.c", good) == []
    for bad in (
        "int was_told(int n)",
        "/* It was told. */",
        "if (c == '/')\n c = '.';",
        "x" * 101,
        "\n" * 700,
        '#include "jfr/reader_internal.h"',
        'void lend_key(struct json *j)\n{\n    json_key(j, "a");\n    json_begin_array(j);\n}',
    ):
        found = style.check("src/proto/lend.c", good + bad + "\n{\n}\n")
        assert len(found) == 1, (bad, found)
    assert (
        style.check(
            "src/proto/lend.c",
            'void lend_key(struct json *j)\n{\n    if (j)\n        json_key(j, "a");\n    json_u64(j, 1);\n}',
        )
        == []
    )
    header = (
        "/* Lends. */\nint lend_library(int n);\nint library(int n);\n"
        "static inline int lend_twice(int n)\n{\n}\nstatic inline int twice(int n)\n{\n}\n"
    )
    texts = {"src/proto/lend.h": header, "src/proto/lend.c": good + "int library(int n)\n{\n}\n"}
    found = list(style.prefix_findings(texts))
    assert [f.split(": ")[1] for f in found] == ["twice", "library"], found
    pair = "/*\n * Begin and end. The\n * second one waits. */\nvoid lend_begin(void);\n"
    assert [len(style.check(f"src/proto/lend.{of}", pair)) for of in "hc"] == [1, 0]
    returns = (
        ("/* Returns the end. */\nvoid lend(int n);\n", 1),
        ("/* Returns at once when n is 0. */\nvoid lend(int n);\n", 0),
        ("/*\n * Lends.\n * Returns the end.\n */\nstatic bool lend(int n)\n{\n}\n", 1),
        ("/* Returns whether it ends. */\nstatic bool lend(int n)\n{\n}\n", 0),
        ("/* Returns 0 or -EIO. */\nint lend(int n)\n{\n    return -ENOMEM;\n}\n", 1),
        ("/* Returns 0 or -EIO. */\nint lend(int n)\n{\n    return n == -ENOMEM;\n}\n", 0),
        ("/* Returns 0, -EIO or -ENOMEM. */\nint lend(int n)\n{\n    return -ENOMEM;\n}\n", 0),
    )
    for text, n in returns:
        found = list(style.return_findings({"src/proto/lend.c": text}))
        assert len(found) == n, (text, found)
    declared = {"src/proto/lend.h": "/* Returns 0 or -EIO. */\nint lend(int n) must_check;\n"}
    declared["src/proto/lend.c"] = "int lend(int n)\n{\n    return -ENOMEM;\n}\n"
    assert len(list(style.return_findings(declared))) == 1
    bad = ["src/jfr/reader.c.orig", "src/jfr/nowhere.c", "doc/heap.md~"]
    assert [found.split(":")[0] for found in style.unbuilt([*style.files(), *bad])] == bad
    probe = "src/agent/probe/java/lang/JvmscopeTrace.java"
    assert [len(style.check(probe, "x" * n)) for n in (120, 121)] == [0, 1]
    figures = style.figures("HEAD")
    assert (
        figures["lines above 100 columns"] == figures["external functions without prefix"] == 0
    ), figures
    assert (
        sum(n for name, n in figures.items() if name.startswith("lines of src/"))
        == figures["lines of src"]
        > 100_000
    )


def test_links_of_the_documents_lead_to_files():
    """Every relative link, and every document is in the index of doc/README.md."""
    assert links_lead_to_files(lab.ROOT) > 50
    index = {target for path, target in links(lab.ROOT) if path == lab.ROOT / "doc" / "README.md"}
    assert {path.name for path in (lab.ROOT / "doc").glob("*.md")} - {"README.md"} - index == set()


def anchors(text):
    """The names by which links reach the headings of a document, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"(?m)^#+ (.*)", text)
    }


def test_links_into_documents_lead_to_headings():
    assert anchors("# A (b), `c=d`: e\ntext\n## F\n") == {"a-b-cd-e", "f"}
    documents = [*lab.ROOT.glob("*.md"), *(lab.ROOT / "doc").glob("*.md")]
    links = [
        (path, *target)
        for path in documents
        for target in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", path.read_text())
    ]
    assert len(links) > 8
    broken = [
        (path.name, file, anchor)
        for path, file, anchor in links
        if anchor not in anchors((path.parent / file if file else path).read_text())
    ]
    assert broken == []


def wide_lines(text, width=122):
    """Lines of prose that are too wide. Tables and code are not prose, and links to the web cannot
    be wrapped.
    """
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    return [
        line
        for line in text.splitlines()
        if len(line) > width and not re.match(r"\||    ", line) and "](http" not in line
    ]


def merged_commands(text):
    """Lines with a prompt in the middle: rewrapping once joined a command to the previous line."""
    return [line for line in text.splitlines() if re.search(r"\S \$ \S", line)]


def test_commands_in_documents_have_lines_of_their_own():
    """No line of a document or of doc/examples has a prompt in the middle."""
    assert (
        merged_commands("    $ jvmscope list\n    4711 Shop\n    $ kill 4711   # costs 3 $\n") == []
    )
    assert merged_commands("    $ jvmscope list 4711 Shop $ kill 4711\n") and merged_commands(
        "    java Shop $ jvmscope list\n"
    )
    documents = [lab.ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + [
        *(lab.ROOT / "doc").rglob("*.md"),
        *(lab.ROOT / "doc").rglob("*.txt"),
    ]
    assert len(documents) > 50
    assert [
        (path.name, line[:60]) for path in documents for line in merged_commands(path.read_text())
    ] == []


def test_prose_of_documents_has_one_width():
    """Lines of at most 122 columns, outside of tables, code and links to the web."""
    wide = "word " * 25
    assert wide_lines(f"{wide}\n") == [wide]
    assert (
        wide_lines(f"| {wide} |\n    {wide}\n```\n{wide}\n```\n[a](https://b/{'c' * 120}) d\n")
        == []
    )
    documents = [lab.ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + [
        *(lab.ROOT / "doc").glob("*.md")
    ]
    assert len(documents) > 30
    wide = [(path.name, line[:60]) for path in documents for line in wide_lines(path.read_text())]
    assert wide == []
