# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that read recordings and of those that make requests of a VM: each given
twice, wrong, empty and at its limits, as the command's own help lists them. Neither a VM nor a file
exists, because wrong options are refused before either is searched for.
"""
import json
import os
import random
import re
import subprocess

import lab
import pytest
from option_tables import ASKING, OWN, table, verbs, verbs_of

FILE = "no-such-file.jfr"
HELP_ROW = re.compile(r"^  (?:-\w, |    )(--[a-z-]+)(?: \S+)? +(\S.*)")
OPTION = re.compile(r"^  (?:-(\w), |    )(--[a-z-]+)(?: (\S+))?")


def run(*words):
    done = lab.jvmscope(*words)
    return done.returncode, done.stdout, done.stderr


PUSH = {"--push": "http://127.0.0.1:1/ingest"}


# Commands of the fleet, with options that make them end at once if nothing else is wrong: a store,
# a spool and a collector that do not exist. `fleet` stands for all of its verbs.
STORE = "sqlite:/no/such/folder/fleet.db"
FLEET = {
    "collect": {"--store": STORE},
    "host": {"--to": "http://127.0.0.1:1", "--spool": "/no/such/folder/spool"},
    "fleet": {"--store": STORE},
    "fleet diff": {"--store": STORE, "--base": "version=1"},
    "fleet query": {"--store": STORE, "--method": "A.b"},
}


def test_no_command_is_left_out():
    there = set(re.findall(r"(?m)^  (\w+) ", run("--help")[1]))
    assert there - {v.split()[0] for v in verbs()} == {
        "completion",
        "manual",
    }  # which have no options
    for name in ("completion", "manual"):
        assert not [
            m
            for m in map(OPTION.match, run(name, "--help")[1].splitlines())
            if m and m[2] != "--help"
        ], name


def test_serve_notes_an_option_for_heap_dumps_without_one(tmp_path):
    stacks, dump = tmp_path / "a.collapsed", tmp_path / "a.hprof"
    stacks.write_text("a.b;c.d 3\n")
    dump.write_bytes(b"JAVA PROFILE 1.0.2\0" + bytes(100))
    note = "--query-limit: note: has no effect, because none of the files is a heap dump\n"
    for files, noted in (([stacks], True), ([dump], False), ([stacks, dump], False)):
        process = subprocess.Popen(
            [lab.BUILD / "jvmscope", "serve", "--query-limit", "1s", *files],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline().startswith("http://"), files
        process.terminate()
        printed = process.communicate()[1]
        assert (note in printed) == noted, (files, printed)


def test_files_that_are_none_are_refused(tmp_path):
    """Standard input, which only heap reads, and a misspelt verb before a file."""
    for verb in ("report", "coverage", "requests", "requests slow", "vm", "serve", "convert"):
        out = ("-o", tmp_path / "x.html") if verb == "convert" else ()
        code, out, printed = run(*verb.split(), *out, "-")
        assert (code, out) == (2, ""), (verb, printed)
        assert "- is not a file: recordings are not read from standard input" in printed, verb
    for verb in ("report", "coverage", "requests", "requests slow", "vm", "trace"):
        done = subprocess.run(
            [lab.BUILD / "jvmscope", *verb.split(), "/dev/stdin"],
            input="",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (1, ""), (verb, done)
        assert "it is a pipe or a device, not a file" in done.stderr, (verb, done)
    for words in (("bogus", "app.jfr"), ("solw", "app.jfr")):
        code, out, printed = run("requests", *words)
        assert (code, out) == (
            2,
            "",
        ) and f"requests: {words[0]}: no such verb: " in printed, printed
    assert "did you mean slow?" in printed
    code, out, printed = run("requests", tmp_path / "bogus")
    assert (code, out) == (1, "") and "No such file" in printed


def test_a_ring_is_not_named_like_another_format(tmp_path):
    for name in ("x.html", "x.collapsed", "x.hprof", "x.pb.gz", "Y.HTML", "y.Pb.gz"):
        page = tmp_path / name
        page.write_text("of before")
        for command, program in (("attach", os.getpid()), ("run", "true")):
            code, out, printed = run(command, "--always", "-o", page, program)
            assert code != 0 and out == "", (command, name, printed)
            if command == "run":
                assert "--always records into a ring, which has none of the formats" in printed
                assert "jvmscope dump -o FILE" in printed
        assert page.read_text() == "of before"


def test_trace_of_a_vm_takes_its_own_option_alone():
    """Options that select calls are refused where they have no effect; they used to be accepted and
    ignored.
    """
    pid = os.getpid()
    for words in (("--thread=x",), ("--method=x",), ("--min=5ms",), ("-n", "3"), ("--exceptions",)):
        code, out, printed = run("trace", *words, pid, "add", "a.B.c")
        assert (code, out) == (2, "") and "chooses calls of a recording" in printed, (
            words,
            printed,
        )
    for words in (("--if", "arg1 > 1", "--if", "arg1 > 2"), ("--if", "")):
        assert run("trace", pid, "add", "a.B.c", *words)[0] == 2
    for words in ((pid, "list"), (pid, "remove", "a.B.c"), (FILE,)):
        code, out, printed = run("trace", "--if", "arg1 > 1", *words)
        assert code == 2 and "--if: belongs to `trace PID add PATTERN`" in printed, (words, printed)


def test_a_selection_that_selects_nothing_changes_what_is_shown_or_is_refused(tmp_path):
    """--exceptions used to ignore three options of trace."""
    jdk, out = lab.Jdk(17), tmp_path / "t.jfr"
    done = jdk.java(
        "Throws",
        jvm=(
            "-Xmx64m",
            jdk.agent(
                f"format=r,cpu=samples,threads=y,exceptions=stacks,events=y,requests=Throws.deep:Throws.divide,trace=Throws.*,file={out}"
            ),
        ),
    )
    assert done.returncode == 0, done.stderr
    nothing = {
        "--thread": "nosuch",
        "--method": "nosuch",
        "--class": "nosuch",
        "--lock": "nosuch",
        "--name": "nosuch",
        "--end": "nosuch",
        "--request": "nosuch",
        "--min": "100h",
        "--over": "100h",
        "--from": "100h",
    }
    alike, tried = [], set()
    for words in (
        ["report"],
        ["convert", "-o", "/dev/stdout"],
        ["trace"],
        ["trace", "--exceptions"],
        ["requests"],
        ["vm"],
        *(name.split() for command in ("threads", "requests") for name, _ in verbs_of(command)),
    ):
        operands = ["1", out] if words == ["requests", "show"] else [out]
        whole = run(*words, *operands)
        if whole[0] != 0:
            continue
        for _, flag, _ in [
            m.groups()
            for m in map(
                OPTION.match,
                run(*[w for w in words if w != "--exceptions"], "--help")[1].splitlines(),
            )
            if m
        ]:
            if flag in nothing:
                tried.add((" ".join(words), flag))
                if run(*words, flag, nothing[flag], *operands)[:2] == whole[:2]:
                    alike.append((words, flag))
    assert not alike, alike
    assert {
        ("trace --exceptions", "--thread"),
        ("trace --exceptions", "--min"),
        ("trace", "--method"),
        ("report", "--thread"),
        ("threads summary", "--from"),
        ("requests", "--from"),
    } <= tried, tried


# Options that choose what is shown of a recording, with values that change it. Those that select a
# part of the recording are in the test above.
SHAPING = {
    "--idle": [],
    "--inverted": [],
    "--limit": ["1"],
    "--methods": [],
    "--metric": ["allocations"],
    "--sources": ["/usr"],
    "--stacks": ["0"],
    "--exceptions": [],
}


@pytest.mark.jdks(17)
def test_an_option_that_changes_nothing_is_refused_or_noted(jdk, tmp_path):
    """In each form of each verb that reads recordings: as text, as JSON, of each metric and as a
    file. Only what the option's own help says of JSON and of files may be without a message.
    """
    full, few = tmp_path / "full.jfr", tmp_path / "few.jfr"
    every = "threads=y,monitor=y,exceptions=stacks,events=y,cover=y,requests=EveryView.answer,trace=EveryView.answer"
    for file, options in ((full, f"cpu=wall,alloc=sampled,{every}"), (few, "cpu=samples")):
        done = jdk.java("EveryView", jvm=[jdk.agent(f"format=r,{options},file={file}")])
        assert done.returncode == 0, done.stderr
    collapsed = tmp_path / "few.collapsed"
    assert run("convert", "-o", collapsed, few)[0] == 0

    def answer(*words):
        """Also the file that is written, without the time in it."""
        answered = run(*words)
        written = b"".join(p.read_bytes() for p in sorted(tmp_path.glob("x.*")))
        for p in tmp_path.glob("x.*"):
            p.unlink()
        return *answered, re.sub(rb'timestamp="\d+"', b"", written)

    silent, tried = [], set()
    verbs = [
        "report",
        "coverage",
        "trace",
        "requests",
        "vm",
        *(name for c in ("threads", "requests") for name, _ in verbs_of(c)),
    ]
    for verb in verbs:
        shown = [m for m in map(HELP_ROW.match, run(*verb.split(), "--help")[1].splitlines()) if m]
        flags = {m[1]: m[2] for m in shown}
        forms = [(), *[("--json",)] * ("--json" in flags)]
        if "--metric" in flags:
            forms += [(*form, f"--metric={m}") for form in forms for m in ("wall", "allocations")]
        if "--output" in flags:
            forms += [("-o", tmp_path / f"x{e}") for e in (".html", ".info", ".xml")]
        for file in (full, few, collapsed):
            operands = ["1", file] if verb == "requests show" else [file]
            for form in forms:
                whole = answer(*verb.split(), *form, *operands)
                for flag in flags.keys() & SHAPING.keys():
                    if whole[0] != 0 or any(str(w).startswith(flag) for w in form):
                        continue
                    documented = "JSON" in flags[flag] and "--json" in form
                    documented |= "files of -o" in flags[flag] and "-o" in form
                    changed = answer(*verb.split(), flag, *SHAPING[flag], *form, *operands)
                    tried.add((verb, flag, form[:1]))
                    # What was read may be all that there is, and then nothing refers to the option.
                    text = run(*verb.split(), *operands)[1] if "--json" in form else whole[1]
                    all_shown = flag == "--limit" and "more" not in whole[1]
                    all_shown |= verb == "threads critical-path" and f"({flag} shows" not in text
                    if changed[1:] == whole[1:] and not documented and not all_shown:
                        silent.append((verb, flag, form, file.name))
    assert not silent, silent
    expected = {
        ("report", "--idle", ()),
        ("report", "--idle", ("--metric=allocations",)),
        ("report", "--stacks", ("--json",)),
        ("report", "--inverted", ("--json",)),
        ("coverage", "--methods", ()),
        ("requests slow", "--stacks", ()),
    }
    assert not expected - tried


@pytest.mark.jdks(17)
def test_a_least_length_is_one_option(jdk, tmp_path):
    """--min refused other values, left out silently or not, and failed or not where nothing was as
    long, in each command in another way.
    """
    out = tmp_path / "a.jfr"
    every = "threads=y,monitor=y,exceptions=stacks,trace=EveryView.answer:EveryView.work"
    done = jdk.java("EveryView", jvm=[jdk.agent(f"format=r,{every},file={out}")])
    assert done.returncode == 0, done.stderr
    tried = {
        verb
        for verb in verbs()
        if "--min"
        in [o[2] for o in map(OPTION.match, run(*verb.split(), "--help")[1].splitlines()) if o]
    }
    assert tried == {"trace", "threads summary", "threads monitors", "threads timeline"}, tried
    for verb in sorted(tried):
        words, what = verb.split(), "calls" if verb == "trace" else "waits"
        for wrong in ("0s", "0ns"):
            code, printed, why = run(*words, "--min", wrong, out)
            assert (code, printed) == (2, "") and "out of range: 1ns to 100000d" in why, (verb, why)
        for as_json in ([], ["--json"]):
            code, printed, why = run(*words, *as_json, "--min", "100h", out)
            assert (code, printed) == (1, ""), (verb, printed)
            noun = "call" if verb == "trace" else "wait"
            assert why == f"jvmscope: {out}: no {noun} is selected by: --min\n", (verb, why)
        every, few = (
            json.loads(run(*words, "--json", "--min", least, out)[1])["shorter"]
            for least in ("1ns", "4ms")
        )
        assert every == 0 and few > 20, (verb, every, few)
        shown = run(*words, "--min", "4ms", out)[1]
        assert f" {few} {what} shorter than 4ms are left out (--min)\n" in shown, (verb, shown)
        assert "shorter than" not in run(*words, "--min", "1ns", out)[1], verb
    # The rest is what is shown: calls, and threads that have such a wait.
    calls = [json.loads(run("trace", "--json", *m, out)[1]) for m in ([], ["--min", "4ms"])]
    assert calls[1]["calls_all"] + calls[1]["shorter"] == calls[0]["calls_all"]
    left = run("trace", "--min", "4ms", out)[1]
    assert f" {calls[0]['events_all']} events between the calls are left out (--min)\n" in left
    shown = run("threads", "summary", "--min", "1s", out)[1]
    for row in re.findall(r"(?m)^ +(\d+) +\S+ \S+ +(\d+) +\S+ \S+ +(\d+) +\S+ \S+  \S", shown):
        assert row != ("0", "0", "0"), shown
    assert re.search(r"(?m)^ \d+ threads? without such a wait (is|are) not shown$", shown), shown


@pytest.mark.jdks(17)
def test_what_follows_a_recording_is_reported_by_every_verb(jdk, tmp_path):
    """Traced calls, coverage and the formats that show threads used to leave it out silently."""
    good, bad = tmp_path / "good.jfr", tmp_path / "bad.jfr"
    done = jdk.java(
        "EveryView",
        jvm=[
            jdk.agent(
                "format=r,cpu=samples,threads=y,monitor=y,requests=EveryView.answer,exceptions=stacks,events=y,cover=y,"
                f"trace=EveryView.answer,file={good}"
            )
        ],
    )
    assert done.returncode == 0, done.stderr
    bad.write_bytes(good.read_bytes() + random.Random(1).randbytes(5000))
    where = f"what follows a chunk is not a chunk (at byte {good.stat().st_size})"
    threads = ("summary", "monitors", "timeline", "critical-path", "what-if", "deadlocks")
    verbs = [f"threads {v}" for v in threads] + [
        "report",
        "trace",
        "trace --exceptions",
        "coverage",
        "vm",
        "requests",
        "requests slow",
        "requests show 1",
        f"diff {good}",
    ]
    help_of_convert = run("convert", "--help")[1]
    formats = re.findall(r"(?m)^  (\.[a-z.]+) ", help_of_convert)
    assert len(formats) >= 10
    verbs += [f"convert -o {tmp_path}/x{f}" for f in formats]
    for verb in verbs:
        warning = f"jvmscope: {bad}: only part of it could be read: {where}\n"
        assert run(*verb.split(), bad)[2].count(warning) == 1, verb
        assert "only part" not in run(*verb.split(), good)[2], verb
        if verb.startswith("convert"):
            continue
        # An answer without a row is an empty list, which has no room for more.
        found = set(damages(json.loads(run(*verb.split(), "--json", bad)[1])))
        whole = set(damages(json.loads(run(*verb.split(), "--json", good)[1])))
        assert found - {None} == {where} and whole == {None}, (verb, found, whole)


def damages(answer):
    """Returns all members `damage` of a JSON answer."""
    if isinstance(answer, list):
        return [d for one in answer for d in damages(one)]
    if not isinstance(answer, dict):
        return []
    here = [answer["damage"]] if "damage" in answer else []
    return here + damages(list(answer.values()))


def test_words_about_values_name_what_differs():
    printed = run("run", "--cpu=samples", "--cpu=samples", "--", "/no/such/program")[2]
    assert "--cpu=samples: given twice\n" in printed, printed
    printed = run("run", "--cpu=wall", "--cpu", "--", "/no/such/program")[2]
    assert (
        "--cpu=samples: given twice, the first time as --cpu=wall: of these only samples and times, or wall and times, go together\n"
        in printed
    ), printed
    shown = ("--trace=a.B.c", "--to-string=a.C,a.D", "--show=a.X.f,a.D.f")
    printed = run("run", *shown, "--", "/no/such/program")[2]
    assert "--show=a.D.f: has no effect, because --to-string names this class" in printed, printed
    printed = run("trace", "--limit", "0x10", "x.jfr")[2]
    assert "--limit=0x10: not a whole number; allowed: 1 or more\n" in printed, printed
    printed = run(
        "run", "--trace=a.B.c", "--if=arg1 > 1", "--if=arg1 > 2", "--", "/no/such/program"
    )[2]
    assert (
        "--if=arg1 > 2: given twice for one trace, the first time as --if=arg1 > 1\n" in printed
    ), printed
    printed = run("run", "--always", "--budget=5", "--", "/no/such/program")[2]
    assert "--budget: 5 needs a percent sign: 5%\n" in printed, printed
    for share in ("0", "0.001", "101", "9" * 99):  # which a percent sign would not correct
        printed = run("run", "--always", f"--budget={share}", "--", "/no/such/program")[2]
        assert (
            f"--budget={share}: not a value of this option; allowed: a share, 0.01% to 100%\n"
            in printed
        ), printed
    printed = run("convert", "-o", "x.otlp", "--label", "a=b", "--label", "c=d,a=c", "x.jfr")[2]
    assert "--label=a=c: the key is given twice" in printed, printed


def test_a_missing_folder_is_reported_before_the_program_starts(tmp_path):
    """Previously a script that ran java started, and then ended with the agent's message."""
    for program in ("java", "sh"):
        code, out, printed = run(
            "run", "-o", tmp_path / "no" / "x.jfr", "--", program, "-c", "echo started"
        )
        assert (code, out, printed) == (
            1,
            "",
            f"jvmscope: {tmp_path}/no/x.jfr: cannot write: No such file or directory\n",
        ), (program, printed)


def test_what_cannot_be_fetched_is_named_as_the_user_named_it(jdk, tmp_path):
    """The message used to name /proc/self/fd/4."""
    process = jdk.start_java(
        "Busy",
        600,
        jvm=[jdk.agent(f"format=r,cpu=samples,file={tmp_path}/a.jfr")],
        stdout=subprocess.PIPE,
    )
    lab.read_until(process.stdout, "ready")
    for extension in (".pftrace", ".json", ".trcxml"):
        out = tmp_path / f"x{extension}"
        code, _, printed = (
            run("stop", "-o", out, process.pid)
            if extension == ".trcxml"
            else run("dump", "-o", out, process.pid)
        )
        assert (
            code == 1
            and f"{out}: cannot write: the recording holds nothing about threads" in printed
            and "/proc/" not in printed
        ), printed


class Verb:
    def __init__(self, name):
        self.name, self.words = name, name.split()
        code, text, _ = run(*self.words, "--help")
        assert code == 0
        two = {"diff": [FILE, FILE], "heap diff": [FILE, FILE], "requests show": ["1", FILE]}
        self.operands = (
            OWN[name]
            if name in OWN
            else [os.getpid(), *ASKING[name]]
            if name in ASKING
            else two.get(name, [FILE])
        )
        self.completing = (
            {"-o": "/no/such/folder/x.otlp"}
            if name == "convert"
            else PUSH
            if name in ("run", "attach")
            else FLEET.get(name, FLEET.get(self.words[0], {}))
        )
        if self.completing and name not in ("convert", *OWN):
            self.operands = []
        agents = {row["flag"] for row in table()} | {"--output", "--time"} if name in OWN else ()
        self.options = [
            m.groups() for m in map(OPTION.match, text.splitlines()) if m and m[2] not in agents
        ]
        assert self.options, text

    def refused(self, *words):
        """Returns the reason for which these words are refused, or None if they are not refused
        here.
        """
        given = {"-o" if w.startswith(("-o", "--output")) else w.split("=")[0] for w in words}
        given |= {"--store"} & self.completing.keys() if "--collector" in given else set()
        completing = [
            w for flag, value in self.completing.items() if flag not in given for w in (flag, value)
        ]
        operands = [] if given & {"--all", "--match"} else self.operands
        code, out, printed = run(*self.words, *words, *completing, *operands)
        assert code in (1, 2, 127) and out == "", (self.name, words, code, out, printed)
        reported = printed.startswith(f"jvmscope: {self.name}: ") or printed.startswith(
            f"jvmscope: {self.words[0]}: "
        )
        return printed if code == 2 and reported else None


# By the word that the help shows for a value: a valid value, wrong ones, and values at the limits,
# which may be refused with the limit.
VALUES = {
    "N": ("3", ["x", "-1", "1.5", "3x", "9223372036854775808"], ["0", "9223372036854775807"]),
    "F": ("0.5", [], []),
    "TIME": ("5s", ["x", "-1s", "5", "5 s", "1e30s"], ["0", "0s", "1ns", "100000h"]),
    "SIZE": ("64m", ["x", "-1", "1q", "99999999999g"], ["0", "1m", "1t"]),
    "OUT": ("x.html", [], []),
    "WORDS": ("depth=32", [], ["x", "depth=0"]),
    "PORT": ("8080", ["x", "-1", "65536"], []),
    "SHARE": ("1%", ["x", "-1%", "0%", "101%", "1"], []),
    # Of the fleet.
    "ADDRESS:PORT": (
        "127.0.0.1:0",
        ["x", "127.0.0.1", ":1", "127.0.0.1:65536", "127.0.0.1:-1", "nosuch:80", "0.0.0.0:1"],
        ["[::1]:65535"],
    ),
    "TENANT=TOKEN": ("shop=x", ["a b=x", "shop=", "=x"], []),
    "TIME,TIME,TIME": (
        "2d,30d,400d",
        ["x", "2d", "2d,30d", "30d,2d,400d", "1m,2d,3d", "2d,30d,400d,500d"],
        ["1h,1h,1h"],
    ),
    "KEY=VALUE": ("a=b", ["x", "=x"], ["a=" + "x" * 5000]),
    "AMOUNT": ("0.05", ["x", "-1", "nan", "inf", "1e400", "5EUR"], ["0", "1e300"]),
    "WHEN": ("90m", ["x", "2026-13-01", "90 m", "-1"], ["0", "now", "2026-11-24"]),
    "OPTIONS": ("--cpu", ["--no-such-option", "--cpu --cpu=9x", "--cpu " * 99], []),
}
# Lists, which most commands continue when they are given again.
LISTS = {
    "--base",
    "--class",
    "--classes",
    "--exclude",
    "--host",
    "--instance",
    "--label",
    "--lock",
    "--match",
    "--method",
    "--name",
    "--package",
    "--request",
    "--service",
    "--sources",
    "--thread",
    "--token",
    "--version",
}
WRONG = {
    "--push": ["x", "ftp://x/ingest", "http://127.0.0.1:1"],
    "--to": ["x", "ftp://x"],
    "--collector": ["x", "ftp://x"],
    "--store": ["x", "nosuch:x"],
}
GOOD = {
    "--push": PUSH["--push"],
    "--to": "http://127.0.0.1:1",
    "--collector": "http://127.0.0.1:1",
    "--store": STORE,
}


def good(value, flag=""):
    return (
        value.split("|")[0]
        if "|" in value
        else GOOD[flag]
        if value == "URL" and flag in GOOD
        else VALUES.get(value, "x")[0]
    )


def wrong(value, flag=""):
    if "|" in value:
        return ["", "nonsense", good(value) + "|"]
    texts = WRONG[flag] if value == "URL" and flag in WRONG else VALUES.get(value, ("", [], []))[1]
    long = (
        ["9" * 6000] if texts and value not in ("SIZE", "OPTIONS", "TENANT=TOKEN") else []
    )  # refused with a message that does not repeat all of it
    return ["", *long, *texts]


# Values for which every refusal says what is allowed.
RANGED = ("N", "TIME", "SIZE", "PORT", "SHARE")


def has_range(printed):
    """A range that a person can read: no number of it has more than six digits."""
    ranges = r": (above )?\d+\S*( \w?i?B)? to \d+\S*( \w?i?B)?$|: \d+ or more$|: less than 2\^63$"
    first = printed.splitlines()[0]
    found = re.search(ranges + "|: a unit is missing: ", first)
    return found and not re.search(r"\d{7}", found[0])


def limits(value):
    return VALUES.get(value, ("", [], []))[2]


@pytest.mark.parametrize("name", verbs())
def test_every_option_twice_wrong_and_at_its_limits(name):
    verb = Verb(name)
    for letter, flag, value in verb.options:
        if not value:
            printed = verb.refused(f"{flag}=x")
            assert printed and "takes no value" in printed, (flag, printed)
            printed = verb.refused(flag, flag)
            assert printed and f"{flag}: given twice" in printed, (flag, printed)
            continue
        # A forgotten value does not take the next option for one.
        for option in (f"-{letter}" if letter else flag, flag):
            for following in (
                flag,
                f"{flag}={good(value, flag)}",
                "--help",
                *([f"-{letter}"] if letter else []),
            ):
                printed = verb.refused(option, following)
                assert (
                    printed
                    and f"{option}: needs a value, and {following} is an option; as a value: {flag}={following}\n"
                    in printed
                ), (option, printed)
        printed = verb.refused(flag, good(value, flag), f"{flag}={good(value, flag)}")
        goes_on = printed is None and (flag in LISTS or (verb.name, flag) == ("slow", "--agent"))
        needs_other = printed and ("without --push" in printed or "without -o" in printed)
        assert goes_on or needs_other or printed and "given twice" in printed, (
            flag,
            printed,
        )
        for given in wrong(value, flag):
            printed = verb.refused(f"{flag}={given}")
            assert (
                printed
                and flag in printed
                and len(printed.splitlines()) <= 2
                and len(printed) < 2100
            ), (
                flag,
                given,
                printed,
            )
            assert value not in RANGED or has_range(printed), (flag, given, printed)
            assert not letter or not given or verb.refused(f"-{letter}{given}"), (letter, given)
        for given in limits(value):
            printed = verb.refused(flag, given)
            assert printed is None or any(
                w in printed for w in ("too long", "no such option", "out of range")
            ), (flag, given, printed)
            assert printed is None or value not in RANGED or has_range(printed), (
                flag,
                given,
                printed,
            )
    printed = verb.refused("--no-such-option")
    assert printed and "no such option" in printed


def test_nothing_lies_before_the_start_of_a_recording():
    """It is refused in the same words everywhere, as are other amounts for which 0 used to mean
    that the option was absent.
    """
    refused = set()
    for verb in map(Verb, verbs()):
        for _, flag, value in verb.options:
            zero = {"TIME": "0s", "N": "0"}.get(value)
            printed = zero and verb.refused(flag, zero)
            if printed:
                assert f": {flag}={zero}: out of range: " in printed and has_range(printed), (
                    verb.name,
                    printed,
                )
                refused.add((verb.name, flag))
    ranges = {
        "report",
        "diff",
        "convert",
        "trace",
        "requests",
        "requests slow",
        "vm",
        *(f"threads {v}" for v in ("summary", "monitors", "timeline", "critical-path", "what-if")),
    }
    # No table has 0 rows, and 0 does not stand for all of them.
    assert {v.name for v in map(Verb, verbs()) if any(o[1] == "--limit" for o in v.options)} == {
        name for name, flag in refused if flag == "--limit"
    }, refused
    assert {name for name, flag in refused if flag == "--to"} >= ranges, refused
    assert {
        ("requests slow", "--over"),
        ("slow", "--over"),
        ("dump", "--last"),
        ("trace", "--limit"),
        ("vm", "--limit"),
        ("heap summary", "--limit"),
        ("serve", "--query-limit"),
        ("top", "--count"),
        ("top", "--rows"),
    } <= refused, refused
    for size in ("0", "1", "1m"):
        printed = Verb("heap summary").refused("--memory", size)
        assert printed and f"--memory={size}: out of range: 16.0 MiB to " in printed, printed
    assert Verb("heap summary").refused("--memory", "16m") is None


def test_a_verb_lists_its_own_options_alone():
    """Options of another verb are refused; they used to be listed, accepted and ignored."""
    for name, flags in (
        ("threads deadlocks", ("--limit=3", "--thread=x", "--factor=1")),
        ("threads timeline", ("--idle", "--end=x", "--method=x")),
        ("threads summary", ("--factor=0.5", "--end=x")),
        ("threads critical-path", ("--factor=0.5", "--class=x")),
    ):
        verb = Verb(name)
        for flag in flags:
            printed = verb.refused(flag)
            assert (
                printed
                and "no such option" in printed
                and flag.split("=")[0] not in [o[1] for o in verb.options]
            ), (name, flag, printed)


def test_help_of_control_wherever_it_is_asked_for():
    want = run("control", "--help")
    assert want[0] == 0 and want[1].startswith("usage: jvmscope control ")
    assert run("control", "4711", "--help") == want


def test_manual_pages_have_no_empty_explanations():
    for command in re.findall(r"(?m)^  (\w+) ", run("--help")[1]):
        page = lab.BUILD / f"jvmscope-{command}.1.scd"
        text = page.read_text() if page.exists() else ""
        assert (
            "As above" not in text
            and "\n\t\n" not in text
            and "\\t" not in text
            and "\n?" not in text
        ), command


def test_host_refuses_at_its_start_what_attach_would_refuse():
    """It used to accept an option that was given twice, and then leave out every VM."""
    for record, why in (
        ("--cpu --cpu", "given twice"),
        ("--alloc=bogus", "allowed: sampled|exact"),
        ("--all", "only one of a PID"),
        ("--nosuch", "no such option"),
    ):
        code, out, printed = run(
            "host", *(w for o in FLEET["host"].items() for w in o), "--record", record
        )
        assert code == 2 and "--record takes options of attach" in printed and why in printed, (
            record,
            printed,
        )
    assert (
        "--record"
        not in run(
            "host", *(w for o in FLEET["host"].items() for w in o), "--record", "--cpu --alloc"
        )[2]
    )


def test_a_heap_dump_that_stands_last_is_noticed():
    for verb in ("paths", "objects", "retained", "query"):
        code, out, printed = run("heap", verb, "java.lang.String", lab.BUILD / "jvmscope")
        assert (
            code == 2 and "java.lang.String: no such file: the heap dump comes first" in printed
        ), printed
