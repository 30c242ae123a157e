# SPDX-License-Identifier: Apache-2.0
"""Tests what every command has in common: help, manual and completion come from one table, and
errors have one form.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

import lab


def commands():
    out = lab.jvmscope("--help").stdout
    return re.findall(r"^  (\w+)  ", out, re.M)


def flags(text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text)) - {"--help", "--version"}


def test_every_command_has_help_and_a_manual_page_with_the_same_options(jvmscope):
    assert {"run", "attach", "list", "status", "dump", "stop", "report", "convert", "diff"} <= set(
        commands()
    )
    completion = jvmscope("completion", "bash").stdout
    for command in commands():
        help_text = jvmscope(command, "--help")
        assert help_text.returncode == 0 and not help_text.stderr
        options = re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", help_text.stdout, re.M)
        page = lab.BUILD / f"jvmscope-{command}.1"
        assert page.exists(), f"{command} has no manual page: is it in meson's list?"
        text = page.read_text().replace("\\-", "-").replace("\\", "")
        for option in options:
            assert option in text, (command, option)
        words = re.search(rf"^\s+{command}\) words=\"(.*?)\"", completion, re.M)
        assert words and set(options) <= set(words[1].split()), command


# Commands whose results need no caveats.
MEASURE_NOTHING = {"check", "completion", "manual", "serve"}


def test_manual_pages_have_the_usual_headings(jvmscope):
    """They are in the usual order, each section has a text, there are options if the command has
    any, each command that measures something states what its results do not show, and the pages to
    which it refers exist.
    """
    names = set(commands())
    for command in names:
        text = (lab.BUILD / f"jvmscope-{command}.1.scd").read_text()
        parts = dict(re.findall(r"(?ms)^# (.*?)\n(.*?)(?=^# |\Z)", text))
        assert all(part.strip() for part in parts.values()), command
        order = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "FORMATS",
            "VERB",
            "WHAT",
            "VERBS",
            "EXAMPLES",
            "OUTPUT",
            "CAVEATS",
            "EXIT STATUS",
            "SEE ALSO",
        ]
        assert list(parts) == [name for name in order if name in parts], command
        assert {"SYNOPSIS", "DESCRIPTION", "EXIT STATUS"} <= set(parts), command
        assert ("CAVEATS" in parts) == (command not in MEASURE_NOTHING), command
        assert all(
            line.startswith(f"*jvmscope {command}*")
            for line in parts["SYNOPSIS"].split("\n")
            if line
        ), command
        assert ("OPTIONS" in parts) == bool(
            re.search(r"(?m)^  +(?:-\w, )?--[a-z]", jvmscope(command, "--help").stdout)
            and "VERBS" not in parts
            or command == "requests"
        ), command
        also = re.findall(r"\*jvmscope-?(\w*)\*\(1\)", parts["SEE ALSO"])
        assert also[-1] == "" and also[:-1] and set(also[:-1]) <= names - {command}, command
    assert "write data to" not in jvmscope("run", "--help").stdout


def test_every_format_is_in_help_manual_and_readme(jvmscope):
    """By its extension, as a user writes it."""
    names = re.findall(
        r"(?m)^FORMAT\((\w+)\)", (lab.ROOT / "src" / "export" / "format_list.h").read_text()
    )
    source = "".join(
        (lab.ROOT / "src" / "export" / f).read_text()
        for f in os.listdir(lab.ROOT / "src" / "export")
        if f.endswith(".c")
    )
    extensions = set(re.findall(r'\.extension = "(\.[a-z.]+)"', source))
    assert (
        len(extensions) >= len(names) > 7
        and {".trcxml", ".pftrace", ".json", ".html"} <= extensions
    )
    page = re.sub(r"\\(f[A-Z]|&)", "", (lab.BUILD / "jvmscope-convert.1").read_text())
    for where, text in (
        ("help", jvmscope("convert", "--help").stdout),
        ("manual", page),
        ("README.md", (lab.ROOT / "README.md").read_text()),
    ):
        missing = {e for e in extensions if not re.search(rf"\{e}(?![\w.])", text)}
        assert not missing, (where, missing)


def test_every_verb_has_help_in_each_way(jvmscope):
    """COMMAND --help lists verbs, and each has its own text by `help COMMAND VERB` and `COMMAND
    VERB --help`.
    """
    for command in ("threads", "heap", "requests", "fleet"):
        listed = jvmscope("help", command).stdout
        assert listed == jvmscope(command, "--help").stdout
        assert listed.startswith(f"usage: jvmscope {command} "), listed
        verbs = re.findall(rf"(?m)^  {command} (\S+)  ", listed)
        assert len(verbs) >= 2, listed
        for verb in verbs:
            text = jvmscope("help", command, verb)
            assert text.returncode == 0 and text.stdout.startswith(
                f"usage: jvmscope {command} {verb} "
            ), text
            assert text.stdout == jvmscope(command, verb, "--help").stdout
            assert (
                f"\n  jvmscope {command} {verb}" in text.stdout
            ), f"{command} {verb} has no example"
        if command == "requests":  # which takes a file too
            continue
        wrong = jvmscope("help", command, "nosuch")
        assert (wrong.returncode, wrong.stdout) == (2, "") and wrong.stderr.startswith(
            f"jvmscope: {command}: nosuch: no such verb: "
        ), wrong


def test_capture_flags_are_the_agents(jvmscope):
    """Every flag of run and attach is a row of the agent's table, and every row with a flag is a
    flag there.
    """
    source = (lab.ROOT / "src" / "options" / "table.c").read_text()
    table = set(re.findall(r'"[\w-]+", "(--[a-z-]+)"', source))
    for command in ("run", "attach"):
        shown = set(
            re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", jvmscope(command, "--help").stdout, re.M)
        )
        own = {"--agent", "--push", "--label", "--token-file"} | (
            {"--all", "--match"} if command == "attach" else set()
        )
        assert shown - own <= table
        assert {"--cpu", "--interval", "--depth", "--output", "--time"} <= shown


def test_errors_are_one_line_and_say_what_and_why(jvmscope, tmp_path):
    empty = tmp_path / "empty.jfr"
    empty.touch()
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(range(256)) * 10)
    full = tmp_path / "a.collapsed"
    full.write_text("a.b;c.d 3\n")
    rows = (
        (1, ("report", tmp_path / "none"), "none: cannot read: No such file"),
        (1, ("report", tmp_path), "cannot read: Is a directory"),
        (1, ("report", empty), "empty.jfr: cannot read: the file is empty"),
        (1, ("report", noise), "noise.bin: cannot read: not a recording"),
        (
            1,
            ("report", "--metric", "locks", full),
            "holds none of this metric: locks, which --monitors records; it holds samples",
        ),
        (2, ("report",), "report: missing operand: FILE"),
        (2, ("report", full, full), "one operand too many"),
        (2, ("report", "--nosuch", full), "report: --nosuch: no such option"),
        (2, ("report", "--limit", "x", full), "report: --limit=x: not a whole number"),
        (2, ("convert", full), "-o OUT is missing"),
        (
            2,
            ("convert", full, "-o", tmp_path / "x.unknown"),
            "no format has this extension: formats are ",
        ),
        (
            2,
            ("convert", full, "-o", tmp_path / "x.info"),
            "only jvmscope coverage -o writes this format, from a recording: formats are ",
        ),
        (
            1,
            ("convert", full, "-o", tmp_path / "none" / "x.pb.gz"),
            "x.pb.gz: cannot write: No such file",
        ),
        (2, ("nosuch",), "nosuch: no such command"),
        (2, ("hepl",), "hepl: no such command: did you mean help?"),
        (2, ("reprot",), "reprot: no such command: did you mean report?"),
        (
            1,
            ("run", "-o", tmp_path / "x.jfr", "--", "/nonexistent/java"),
            "/nonexistent/java: cannot run: No such file",
        ),
        (
            2,
            ("run", "-o", tmp_path / "x.zip", "--", "java"),
            "no format has this extension: formats are ",
        ),
        (
            2,
            ("run", "-o", tmp_path / "x.info", "--", "java"),
            "only jvmscope coverage -o writes this format, from a recording: formats are ",
        ),
    )
    for status, command, message in rows:
        done = jvmscope(*command)
        assert done.returncode == status, (command, done.stderr)
        assert done.stderr.startswith("jvmscope: ") and message in done.stderr, (
            command,
            done.stderr,
        )
        assert not done.stdout
    assert not list(tmp_path.glob("x.*")), "a failed command left a file"


def test_a_misspelt_word_gets_the_nearest_one(jvmscope):
    for words, meant in (
        (["reprot"], "report"),
        (["thread"], "threads"),
        (["threads", "sumary"], "summary"),
        (["report", "--limt", "3", "x"], "--limit"),
        (["run", "--treads", "--", "java"], "--threads"),
        (["attach", "--mach=x"], "--match"),
        (["report", "--qqqqqq", "x"], None),
        (["run", "--tr", "--", "java"], "--trace"),
        (["xyzzy"], None),
        (["foo"], None),
        (["report", "-" * 100, "x"], None),
    ):
        done = jvmscope(*words)
        assert done.returncode == 2, done
        line = done.stderr.splitlines()[0]
        assert "no such" in line and line.partition("did you mean ")[2] == (
            f"{meant}?" if meant else ""
        ), line


def test_a_full_disk_is_an_error(jvmscope, tmp_path):
    source = tmp_path / "a.collapsed"
    source.write_text("".join(f"a.b;c.d{i} 3\n" for i in range(20000)))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [lab.BUILD / "jvmscope", "report", "--json", source],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "No space left" in done.stderr


def test_no_progress_in_a_pipe(jvmscope, tmp_path):
    source = tmp_path / "big.collapsed"
    source.write_text("".join(f"a.b;c.d{i % 977};e.f{i} 1\n" for i in range(400000)))
    done = jvmscope("report", source)
    assert done.returncode == 0 and not done.stderr
    assert len(done.stdout.splitlines()) < 60


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_understood(shell, jvmscope):
    script = jvmscope("completion", shell).stdout
    if not shutil.which(shell):
        assert "jvmscope" in script  # this shell is not installed
        return
    assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0


def test_bash_completes(jvmscope):
    ask = '. <("$0" completion bash); COMP_WORDS=(jvmscope "$@"); COMP_CWORD=$#; _jvmscope; echo "${COMPREPLY[*]}"'
    for words, expected in (
        (["rep"], "report"),
        (["report", "--inv"], "--inverted"),
        (["attach", "--interv"], "--interval"),
    ):
        done = subprocess.run(
            ["bash", "-c", ask, lab.BUILD / "jvmscope", *words], capture_output=True, text=True
        )
        assert done.stdout.strip() == expected


TRANSCRIPTS = lab.ROOT / "doc" / "examples"
# Commands whose output is one line about something outside, or whose answer takes as long as an
# option says.
NOT_RERUN = {"run", "attach", "slow", "serve", "collect", "host", "fleet"}


def transcript(text):
    """The commands that a text shows after "$ ", each with the lines that it prints there."""
    parts = [part.splitlines() for part in re.split(r"(?m)^\$ ", text)[1:]]
    return {command: lines for command, *lines in parts}


def headings(lines):
    """The words of each table's heading. A heading is a line of three or more columns without a
    figure; dots stand for what was left out.
    """
    return [
        set(line.removesuffix("...").split())
        for line in lines
        if len(re.findall(r"\S {2,}(?=\S)", line)) >= 2 and not re.search(r"\d", line)
    ]


def readme():
    """Returns the commands of the README in the same way."""
    shown = {}
    for block in re.findall(r"(?m)(?:^    .*\n|^\n)+", (lab.ROOT / "README.md").read_text()):
        shown |= transcript(re.sub(r"(?m)^    ", "", block))
    return shown


def assert_has_headings(command, lines, printed):
    rows = [set(line.split()) for line in printed.splitlines()]
    for heading in headings(lines):
        assert any(heading <= row for row in rows), (command, heading, printed)


def test_commands_have_a_transcript_in_their_manual_page():
    there = {path.stem for path in TRANSCRIPTS.glob("*.txt")}
    assert there == set(commands()) - {"completion", "manual"}
    for name in there:
        assert "# OUTPUT\n" in (lab.BUILD / f"jvmscope-{name}.1.scd").read_text(), name


@pytest.mark.jdks(17)
def test_the_transcripts_in_manual_pages_can_be_repeated(jdk, tmp_path):
    """All commands on one program, its recordings and dumps succeed, and their tables have the
    headings that the pages show.
    """
    assert (
        jdk.run("javac", "-g", "-d", tmp_path, lab.ROOT / "examples" / "Shop.java").returncode == 0
    )
    process = jdk.start(
        "java",
        "-Xmx128m",
        jdk.agent(
            f"format=r,file={tmp_path / 'live.jfr'},cpu=samples,threads=y,requests=Shop.serve(..),alloc=sampled,events=y,cover=y,"
            "trace=Shop$Tax.rate,if=time > 5ms,allow-control=y"
        ),
        "-cp",
        tmp_path,
        "Shop",
        "600",
        stdout=subprocess.DEVNULL,
    )

    def run(*args):
        done = lab.jvmscope(*(arg.replace("4711", str(process.pid)) for arg in args), cwd=tmp_path)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    def requests():
        done = lab.jvmscope("status", "--json", process.pid)
        return done.returncode == 0 and json.loads(done.stdout).get("requests.begun", 0) > 2000

    lab.wait_for(requests, 120, "2,000 orders")
    shown = {}
    for path in sorted(TRANSCRIPTS.glob("*.txt")):
        if path.stem not in NOT_RERUN:
            # This recording has everything that the others have.
            shown |= {
                re.sub(r" waits\.jfr$", " shop.jfr", command): lines
                for command, lines in transcript(path.read_text()).items()
            }
    # It also has everything that the README reads from five recordings.
    shown |= {
        re.sub(r"\S+\.jfr$", "shop.jfr", command): lines
        for command, lines in readme().items()
        if re.search(r" [a-z]+\.jfr$", command)
    }
    live = [c for c in shown if "4711" in c]
    for command in (
        sorted(live, key=lambda c: "stop" in c)
        + ["jvmscope heap dump -o later.hprof 4711"]
        + sorted(set(shown) - set(live))
    ):
        if command.startswith(
            "jvmscope heap dump -o later"
        ):  # what is compared with the first dump and the first recording
            assert run("attach", "--cpu", "-t", "1s", "-o", "after.jfr", "4711") == ""
        printed = run(*shlex.split(command)[1:])
        if (
            " inspect "
            not in command
            # tables whose columns depend on what the threads do, and on what is compiled, at that
            # moment
        ):
            assert_has_headings(command, shown.get(command, ()), printed)
    assert sum(len(headings(lines)) for lines in shown.values()) > 15


@pytest.mark.jdks(17)
def test_the_recordings_of_the_readme_can_be_repeated(jdk, tmp_path):
    assert "`javac -g -d . examples/Shop.java`" in (lab.ROOT / "README.md").read_text()
    assert (
        jdk.run("javac", "-g", "-d", tmp_path, lab.ROOT / "examples" / "Shop.java").returncode == 0
    )

    def record(command):
        own, _ = command.split(" -- java Shop ")
        done = lab.jvmscope(
            *shlex.split(own)[1:],
            "--",
            *jdk.command("java", "-cp", tmp_path, "Shop", 1),
            cwd=tmp_path,
        )
        assert done.returncode == 0 and re.fullmatch(r"\d+ sessions\n", done.stdout), (
            command,
            done.stdout,
            done.stderr,
        )
        assert f"jvmscope: wrote {re.search(r'-o (.+)', own)[1]} (" in done.stderr, (
            command,
            done.stderr,
        )

    recording = [command for command in readme() if " -- java Shop " in command]
    assert len(recording) == 5
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(record, recording))


def test_help_runs_nothing(jvmscope, tmp_path):
    """What follows the command is left out, above all the program of run."""
    there = tmp_path / "there"
    for words in (
        ("run", "touch", there),
        ("run", "-o", "x.jfr", "--", "sh", "-c", f"echo > {there}"),
        ("run", "java", "-jar", "app.jar"),
        ("attach", "-t", "1s", "1"),
        ("heap", "dump", "-o", there, "1"),
        ("requests", "slow", there),
        ("stop", "1"),
    ):
        done = jvmscope("help", *words)
        name = " ".join(words[: 2 if words[0] in ("heap", "requests") else 1])
        assert done.returncode == 0 and done.stderr == "", (words, done)
        assert done.stdout.startswith(f"usage: jvmscope {name} "), (words, done)
        assert done.stdout == jvmscope(*name.split(), "--help").stdout
    assert not there.exists()
    everything = jvmscope("--help").stdout
    for words in (("help",), ("--",), ("help", "help"), ("--", "help")):
        done = jvmscope("help", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, everything, ""), words
    for words in (("--", "run"), ("help", "run"), ("--", "run", "touch", there)):
        assert jvmscope("help", *words).stdout == jvmscope("run", "--help").stdout, words
    assert not there.exists()
