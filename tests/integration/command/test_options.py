# SPDX-License-Identifier: Apache-2.0
"""The options of run and attach: what the command makes of them, and what the agent's own parser
reads from the result.
"""
import itertools
import json
import os
import random
import re
import subprocess

import pytest

import lab
from option_tables import OPTIONS_READ, table

WORD, YES_NO, NUMBER, DURATION, SIZE, FRACTION, TEXT, SHARE = range(8)  # enum option_kind


def read(texts):
    """Returns what the agent reads from option texts."""
    done = subprocess.run(
        [OPTIONS_READ],
        input="".join(t + "\0" for t in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


class Command:
    """Runs `jvmscope run` with a program that is called java and prints its first argument, which
    is what the agent would get.
    """

    name = "run"

    def __init__(self, folder, build):
        self.folder, self.build = folder, build
        self.java = folder / "java"
        self.java.write_text("#!/bin/sh\nprintf %s \"$1\"\n")
        self.java.chmod(0o755)

    def run(self, *words):
        env = dict(os.environ, UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
        command = [
            self.build / "jvmscope",
            "run",
            "-o",
            self.folder / "out.jfr",
            *words,
            "--",
            self.java,
        ]
        return subprocess.run(
            [str(c) for c in command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            env=env,
        )

    def options(self, *words):
        """Returns the agent's option text, or None, and the message."""
        done = self.run(*words)
        assert (
            "ERROR: AddressSanitizer" not in done.stderr and "runtime error" not in done.stderr
        ), done.stderr
        if not done.stdout:
            assert done.returncode == 2, done.stderr
            return None, done.stderr
        agent, text = done.stdout.split("=", 1)
        assert agent.startswith("-agentpath:") and agent.endswith("libhprof.so")
        return text, done.stderr


# Few other options can be combined with --always (test_always.py).
OF_ALWAYS = (
    "always",
    "keep",
    "maxsize",
    "budget",
    "on",
    "then",
    "before",
    "after",
    "onfile",
    "files",
)
# Their texts may have commas, and only some texts are right.
WITH_COMMAS = "log", "on", "then"
VALUES = {
    "if": "arg1 > 1",
    "log": "pkg.Name:1 x",
    "on": "oom",
    "then": "dump",
    "onfile": "/tmp/%t.jfr",
    "jfr": "profile",
}


class Attach:
    """Runs `jvmscope attach` on a process that is not a VM. Correct options are refused for that
    reason only, once their texts have been checked.
    """

    name = "attach"

    def __init__(self, folder, build):
        self.folder, self.build = folder, build

    def options(self, *words):
        command = [
            self.build / "jvmscope",
            "attach",
            "-o",
            self.folder / "out.jfr",
            *words,
            os.getpid(),
        ]
        done = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=120
        )
        assert (done.returncode, done.stdout) in ((1, ""), (2, "")) and not (
            self.folder / "out.jfr"
        ).exists(), done
        assert done.returncode == 2 or "not a Java VM" in done.stderr, done.stderr
        return (None if done.returncode == 2 else ""), done.stderr


def company(row):
    """Returns an option that interacts with this one, as words of the command and as the agent's
    name and value.
    """
    if not row["goes_with"]:
        return [], {}
    name, _, value = row["goes_with"].split("|")[0].partition("=")
    other = next(r for r in table() if r["name"] == name)
    value = value or a_value(other)
    words, given = company(other)
    return [*words, f"{other['flag']}={value}"], {**given, name: value}


def has_company(row, given):
    parts = [part.partition("=")[::2] for part in (row["goes_with"] or "").split("|")]
    return not row["goes_with"] or any(
        given.get(name) == word if word else given.get(name, "n") != "n" for name, word in parts
    )


def some_name(r):
    """Returns a field's or a method's name of one to ten parts, in letters of one to three
    bytes.
    """
    return ".".join(
        "".join(r.choice("abcABC$_09éЖ中") for _ in range(r.choice([1, 2, 3, 7, 30])))
        for _ in range(r.randint(2, 10))
    )


def some_value(row, r):
    if row["kind"] == WORD:
        return r.choice(row["values"].split("|"))
    if row["kind"] == YES_NO:
        return r.choice("yn")
    if row["kind"] == DURATION:
        return f"{r.randint(1, 999)}{r.choice(['ms', 's'])}"
    if row["kind"] in (NUMBER, SIZE):
        return str(
            r.randint(max(row["min"], 1), min(row["max"], 10**6))
            if row["min"] < 10**6
            else row["min"]
        )
    text = (
        "".join(
            r.choice("abcABC.$*_0é ='\\\"%{,") for _ in range(r.choice([1, 2, 3, 7, 30, 300]))
        ).strip(" ")
        or "x"
    )
    # Each text takes the place of a valid one in an option that has a grammar.
    grammar = {
        "if": lambda: "arg1 == '" + text.translate({ord(c): "x" for c in "'\\"})[:200] + "'",
        "log": lambda: "a.B:12 " + text.replace("{", "x"),
        "watch": lambda: some_name(r),
        "show": lambda: some_name(r),
        "jfr": lambda: r.choice(["default", "profile"]),
        "requests": lambda: some_name(r) + r.choice(["", "(..)"]),
    }
    return grammar.get(row["name"], lambda: text)()


@pytest.mark.parametrize("sets", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_option_sets_reach_the_agent_as_they_were_meant(tmp_path, sets):
    """The sanitized command is run with sets of all sizes, so that texts of all lengths occur."""
    build = lab.ROOT / "build-san"
    assert (build / "jvmscope").exists(), "make sanitized"
    command, r, meant, texts = Command(tmp_path, build), random.Random(18), [], []
    for _ in range(sets):
        rows = r.sample(table(), r.randint(0, len(table())))
        words, want = [], {"format": "r", "file": str(tmp_path / "out.jfr")}
        for row in rows:
            value = some_value(row, r)
            if row["separator"] and row["name"] != "log":
                value = (
                    value.replace(",", "").strip(" ") or "x"
                )  # blanks around a part are left out
            if re.fullmatch(r"[\w$]+ [\w$]+", value, re.ASCII):
                value = value.replace(" ", ".")  # as "Class method" it would be refused
            if row["name"] in OF_ALWAYS or value == "old":
                continue
            words.append(f"{row['flag']}={value}")
            want[row["name"]] = value
        for row in rows:
            if row["name"] in want and not has_company(row, want):
                words = [w for w in words if not w.startswith(row["flag"] + "=")]
                del want[row["name"]]
        words.sort(key=lambda w: w.startswith("--if="))  # behind its --trace
        captures = {row["name"] for row in table() if row["gives"]}
        text, printed = command.options(*words)
        assert text is not None, (words, printed)
        if not captures & set(want):
            want["cpu"] = "samples"
        if "requests" in want:  # their ledger needs both
            want = {"threads": "y", "cpu": "samples", **want}
        meant.append(want)
        texts.append(text)
    for want, got, text in zip(meant, read(texts), texts):
        got.pop(
            "outcome", None
        )  # the file in which the agent reports to the command how the session ended
        assert got == want, text


@pytest.fixture(params=[Command, Attach], ids=lambda c: c.name)
def command(request, tmp_path):
    return request.param(tmp_path, lab.BUILD)


def a_value(row):
    return (
        VALUES.get(row["name"])
        or {
            WORD: row["values"].split("|")[0],
            YES_NO: "y",
            NUMBER: str(max(row["min"], 1)),
            DURATION: f"{max(20, row['min'] // 10**6)}ms",
            SIZE: str(max(1 << 20, row["min"])),
            FRACTION: "0.5",
            TEXT: "pkg.Name",
            SHARE: "2.5%",
        }[row["kind"]]
    )


def test_an_option_given_twice_continues_or_is_refused(command):
    """From the table: lists continue; for any other option the second value used to replace the
    first one silently.
    """
    for row in table():
        value = a_value(row)
        text, printed = command.options(
            *company(row)[0], f"{row['flag']}={value}", f"{row['flag']}={value}"
        )
        if row["separator"]:
            assert text is not None, printed
            got = read([text])[0] if text else {row["name"]: value + row["separator"] + value}
            assert got[row["name"]] == value + row["separator"] + value, (row["name"], got)
        else:
            assert text is None and "given twice" in printed, (row["name"], text, printed)
    for words, together in (
        (("--cpu=samples", "--cpu=times"), {"cpu": "samples|times"}),
        (("--heap=sites", "--heap=dump"), {"heap": "all"}),
        (("--cpu=samples,times",), {"cpu": "samples|times"}),
        (("--cpu=times,wall",), {"cpu": "wall|times"}),
        (("--heap=dump,sites",), {"heap": "all"}),
    ):
        text, printed = command.options(*words)
        assert text is not None and (not text or together.items() <= read([text])[0].items()), (
            words,
            printed,
        )
    for text, together in (
        ("cpu=samples,times,depth=5", {"cpu": "samples|times", "depth": "5"}),
        ("heap=sites,dump", {"heap": "all"}),
        ("heap=dump,cpu=times,samples", {"cpu": "samples|times", "heap": "dump"}),
    ):
        assert together.items() <= read([text])[0].items(), text
    for words, why in (
        ("--cpu=samples,wall", "given twice"),
        ("--cpu=samples,", "not a value"),
        ("--cpu=,samples", "not a value"),
        ("--heap=sites,nosuch", "not a value"),
        ("--cpu=times,dump", "not a value"),
    ):
        text, printed = command.options(words)
        assert text is None and why in printed and printed.count("\n") <= 2, (words, printed)
    # A condition belongs to the --trace before it, and this order reaches the agent; a single
    # condition may stand anywhere.
    for words in (
        ("--trace", "a.B", "--if", "arg1 > 1", "--trace", "a.C", "--if", "arg1 > 2"),
        ("--trace", "a.B", "--trace", "a.C", "--if", "arg1 > 1"),
        ("--trace", "a.B,a.C", "--if", "arg1 > 1"),
    ):
        text, printed = command.options(*words)
        got = ",".join(
            f"{flag[2:]}={value}".replace("a.B,a.C", "a.B:a.C")
            for flag, value in zip(words[::2], words[1::2])
        )
        assert text is not None and (not text or got in text), (text, printed)
    for words, why in (
        (("--trace", "a.B", "--if", "arg1 > 1", "--if", "arg1 > 2"), "given twice for one trace"),
        (("--if", "arg1 > 1", "--if", "arg1 > 2", "--trace", "a.B"), "given twice"),
        *(
            (
                ("--if", "arg1 > 1", *traces),
                "=arg1 > 1: must follow the --trace that it applies to\n",
            )
            for traces in (
                ("--trace", "a.B"),
                ("--trace", "a.B,a.C"),
                ("--trace", "a.B", "--if", "arg1 > 2"),
                ("--trace", "a.B", "--trace", "a.C"),
            )
        ),
    ):
        text, printed = command.options(*words)
        assert (
            text is None
            and printed.startswith(f"jvmscope: {command.name}: --if=")
            and why in printed
        ), (words, printed)
    for words in (("-o", "x.jfr"), ("-t", "2s", "-t", "3s"), ("-i", "2ms", "--interval", "3ms")):
        assert command.options(*words)[0] is None, words


def test_an_option_that_is_wrong_or_empty_is_refused_before_the_program_starts(command):
    wrong = {
        WORD: ["nonsense"],
        YES_NO: ["maybe"],
        NUMBER: ["many", "1.5", "-1"],
        DURATION: ["soon", "5", "-1s"],
        SIZE: ["big", "1q", "1.5"],
        FRACTION: ["x", "nan"],
        SHARE: ["x", "1", "0%", "0.001%", "100.1%", "-1%", "nan%"],
    }
    grammar = {
        "if": ["arg1 >", "nosuch > 1"],
        "log": ["Name", "a.B:1 {"],
        "on": ["x", "request > 5", "oom &&"],
        "then": ["x", "exec:"],
        "onfile": ["x", "x.txt"],
        "watch": [
            "count",
            "a.B.x,count",
            "a.B.*",
            ".x",
            "x.",
            ",".join(f"a.B.f{i}" for i in range(65)),
        ],
        "show": ["nosuch", "a.B.x,count", "a.B.*", ".x", "x."],
        "requests": ["Shop", "a.B.c, Shop", "a.b(int x)", ".x", "x.", "java.util.List.add"],
    }
    for row in table():
        lists = [",", " , "] if row["separator"] else []
        long = ["x" * 5000] if row["kind"] != TEXT or row["name"] in grammar else []
        for value in sorted(
            {"", *long, *wrong.get(row["kind"], []), *grammar.get(row["name"], []), *lists}
        ):
            text, printed = command.options(f"{row['flag']}={value}")
            named = "|".join(
                re.escape(part) for part in [value, value.strip(), *re.split(", *", value)]
            )  # for a list, the part that is wrong
            assert text is None and re.match(
                rf"jvmscope: {command.name}: {row['flag']}(=({named}|x{{200}}\.\.\.))?: ", printed
            ), (row["flag"], value, printed)
            # Only the command's words appear: the agent's would be a name or a placeholder that no
            # help of the command shows.
            assert f" {row['name']}=" not in printed and "allowed: <" not in printed, printed
    for wrong_name in ("Hid#main", "Hid main", "a.B#c(int)"):
        text, printed = command.options(f"--trace=a.B.c,{wrong_name}")
        why = f"--trace={wrong_name}: a method is written Class.method or Class::method\n"
        assert text is None and why in printed, printed
    for words in (("-t", "30"), ("-i", "5"), ("-t", "0"), ("-t", "-1s"), ("-t", "")):
        text, printed = command.options(*words)
        assert text is None and printed.startswith(f"jvmscope: {command.name}: --"), (
            words,
            printed,
        )
    for flag, value, units in (
        ("-t", "30", "30s, 30ms"),
        ("-i", "10", "10s, 10ms"),
        ("-i", "50", "50s, 50ms, 50us"),
        ("-i", "4000", "4000ms, 4000us"),
    ):
        assert f": {value} needs a unit: {units}\n" in command.options(flag, value)[1]
    assert (
        "--depth=-1: not a value of this option; allowed: a whole number, 1 to 16384\n"
        in command.options("-d", "-1")[1]
    )


def test_a_forgotten_value_does_not_take_the_next_option_for_one(command):
    """After = a value may begin with a dash, and may be the name of an option."""
    for row in table():
        if row["bare"]:
            continue
        for following in (row["flag"], "-o", "--cpu=samples", "--help"):
            text, printed = command.options(row["flag"], following)
            assert text is None, row["flag"]
            assert printed.startswith(
                f"jvmscope: {command.name}: {row['flag']}: needs a value, and {following} is an option; as a value: {row['flag']}={following}\n"
            )
    for flag in ("--locks", "--show"):
        value = "-o.f" if flag == "--show" else "-o"
        text, printed = command.options("--trace=a.B", f"{flag}={value}")
        assert text is not None and (not text or read([text])[0][flag[2:]] == value), printed


def test_messages_show_lists_as_the_command_takes_them(command):
    """Messages have commas, not the colons with which the lists reach the agent."""
    for row in table():
        if row["separator"] == ":" and row["goes_with"]:
            text, printed = command.options(f"{row['flag']}=a.B,c.D", f"{row['flag']}=e.F")
            assert (
                text is None and f"{row['flag']}=a.B,c.D,e.F: has no effect without " in printed
            ), printed


def test_a_condition_says_what_is_wrong_with_it(command):
    quotes = (
        "condition: texts and enum constants need quotes, as in 'GLAD': at \"%s\" (character 14)\n"
    )
    for condition, why in (
        ("arg4.mood == GLAD", quotes % "GLAD"),
        ("arg4.mood == Mood.GLAD", quotes % "Mood.GLAD"),
        ("arg1 != yes && depth > 1", "as in 'yes': at \"yes && depth > 1\""),
        ("a.B.mood == GLAD", "as in 'GLAD'"),
        ("arg1 == 5x", "not a number at \"5x\""),
        ("arg1.length == GLAD", "not a number at \"GLAD\""),
        ("time > GLAD", "not a duration at"),
        ("arg1 = 5", "equal is written ==: at \"= 5\" (character 6)"),
    ):
        text, printed = command.options("--trace=a.B", f"--if={condition}")
        assert (
            text is None
            and printed.startswith(f"jvmscope: {command.name}: --if")
            and why in printed
        ), printed
    assert (
        command.options("--trace=a.B", "--if=arg4.mood == 'GLAD' || arg1 == Infinity")[0]
        is not None
    )


def test_options_at_their_limits(command):
    unit = {DURATION: "ns"}
    for value in ("0.01%", "100%"):  # the limits of --budget
        text, printed = command.options("--always", f"--budget={value}")
        assert text is not None, printed
    for row in table():
        if row["kind"] not in unit and row["kind"] not in (NUMBER, SIZE):
            continue
        for value, good in (
            (row["min"], True),
            (row["max"], True),
            (row["min"] - 1, False),
            (row["max"] + 1, False),
        ):
            if value < 0 or value >= 2**63:
                continue
            text, printed = command.options(
                *company(row)[0], f"{row['flag']}={value}{unit.get(row['kind'], '')}"
            )
            good &= (row["name"], value) != (
                "depth",
                0,
            )  # the original's output may have stacks without methods, a recording may not
            assert (text is not None) == good, (row["flag"], value, printed)
            assert good or "out of range: " in printed, printed
        # Whatever is wrong with a value, the message gives the range. The ends of the range are
        # accepted.
        ranges = {
            command.options(f"{row['flag']}={value}")[1]
            .splitlines()[0]
            .split(" in a recording")[0]
            .split(": ", 2)[2]
            for value in (
                "-1",
                "1e30"
                if row["kind"] == NUMBER
                else "1e30s"
                if row["kind"] == DURATION
                else "1e30t",
                "9" * 30 if row["kind"] == NUMBER else "x",
            )
        }
        open_ended = row["kind"] == NUMBER and row["max"] >= 2**63 - 1
        ends = {
            re.search(
                r"(?:, |: )(\S+) or more$"
                if open_ended
                else r"(?:, |: )(\S+(?: \w?i?B)?) to (\S+(?: \w?i?B)?)$",
                text,
            ).groups()
            for text in ranges
            if not open_ended or "less than 2^" not in text
        }
        assert len(ends) == 1 and not any(re.search(r"\d{7}", e) for e in [*ends][0]), (
            row["flag"],
            ranges,
        )
        assert not open_ended or any(
            text.endswith(": less than 2^64") for text in ranges
        ), ranges  # of the number that is too large
        for end in (*ends.pop(),):
            assert (
                command.options(*company(row)[0], f"{row['flag']}={end.replace(' ', '')}")[0]
                is not None
            ), (row["flag"], end)


def test_lists_have_one_separator(command):
    """Separated by commas; the separators of earlier versions are still read."""
    for row in table():
        if row["separator"] and row["name"] not in WITH_COMMAS:
            for given in ("a.B,a.C", "a.B, a.C", f"a.B{row['separator']}a.C"):
                text, printed = command.options(*company(row)[0], f"{row['flag']}={given}")
                assert text is not None and (
                    not text or read([text])[0][row["name"]] == f"a.B{row['separator']}a.C"
                ), printed


def named(part):
    """A part of goes_with in messages of the command: "cpu=times" is "--cpu=times", "trace" is
    "--trace".
    """
    name, *value = part.split("=")
    return "=".join([next(r for r in table() if r["name"] == name)["flag"], *value])


def test_an_option_that_changes_nothing_is_refused(command):
    """An option that only modifies others is refused if none of these is recorded, and accepted
    with any of them.
    """
    rows = [row for row in table() if row["goes_with"]]
    assert len(rows) >= 11
    for row in rows:
        word = f"{row['flag']}={a_value(row)}"
        parts = [part.partition("=")[::2] for part in row["goes_with"].split("|")]
        text, printed = command.options(word, "--events=y")
        assert (
            text is None
            and f"{word}: has no effect without {named(row['goes_with'].split('|')[0])}" in printed
        ), printed
        for name, value in parts:
            with_it = next(r for r in table() if r["name"] == name)
            value = (
                "y" if name == "always" else value or a_value(with_it)
            )  # in memory it cannot be combined with an output
            text, printed = command.options(
                *company(with_it)[0], f"{with_it['flag']}={value}", word
            )
            assert text is not None, (word, name, printed)


def test_quotes_reach_a_vm_that_a_script_starts(tmp_path):
    """Through JAVA_TOOL_OPTIONS, from which the VM removes quotes. The agent refuses the field and
    names it.
    """
    field = """it's.x-"quoted"-'twice'"""
    command = [
        lab.BUILD / "jvmscope",
        "run",
        "--watch",
        field,
        "-o",
        tmp_path / "out.jfr",
        "--",
        *lab.Jdk(17).command("java", "-version"),
    ]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    assert (
        f"jvmscope: {field}: nothing was watched: no class of this name is loaded\n" in done.stderr
    ), done.stderr


TEXTS = (
    "x",
    "a.b",
    "a.b.c",
    "a.b.c(..)",
    "*",
    "*.*",
    ".",
    "a.",
    ".a",
    "a..b",
    "a b",
    "a.b(",
    "a.b(I)V",
    "@",
    "@a.B",
    "implements",
    "implements a.B",
    "'",
    '"',
    "\u00e9.\u00e9.\u00e9",
    "a.b.c,d.e.f",
    "a.b.c, d.e.f",
    ",a.b.c,,",
    "-",
    "--cpu",
    "%",
    "{",
    "=",
    "a=b",
    "\\",
    "a.b.c\\",
    "1",
    "n",
    "y",
    "none",
    "auto",
    "auto,a.b.c",
    "java.lang.String.value",
    "java.util.List.add",
    "java.",
    "a.B:3 {x}",
    "a.B:3 {x.y.z}",
    "a.B.java:3",
    "arg1 > 1",
    "a.b > 1",
    "thrown",
    "thread == 'x'",
    "return.length > 1",
    "x" * 2000,
    "a.b." + "c" * 2000,
    "/no/such/folder/%t.jfr",
    "exec:x",
    "dump",
    "oom",
    "cpu > 90% for 30s",
)


@pytest.mark.jdks(17)  # JDK 8 reads at most 1023 characters of the variable that contains the words
def test_what_the_command_accepts_the_agent_accepts(jdk, tmp_path):
    """Every option that takes a text, with every text that the command accepts, in one start of a
    VM. The agent must refuse none of them.
    """
    command = Command(tmp_path, lab.BUILD)
    taken = {
        row["name"]: [
            f"{row['flag']}={text}"
            for text in TEXTS
            if command.options(*company(row)[0], f"{row['flag']}={text}")[0] is not None
        ]
        for row in table()
        if row["kind"] == TEXT and row["name"] not in (*OF_ALWAYS, "jfr")
    }  # test_flight.py has settings
    assert len(taken) >= 10 and all(len(words) >= 3 for words in taken.values()), taken
    pairs = list(
        itertools.zip_longest(taken.pop("trace"), taken.pop("if"), fillvalue="--if=thrown")
    )
    assert 30 < len(pairs) <= 63
    words = [
        "--cpu=times",
        *(w for words in [*pairs, *[pairs[0]] * (63 - len(pairs)), *taken.values()] for w in words),
    ]
    done = lab.jvmscope(
        "run", "-o", tmp_path / "out.jfr", *words, "--", *jdk.command("java", "-version")
    )
    assert done.returncode == 0 and (tmp_path / "out.jfr").exists(), done.stderr[-2000:]


def test_each_letter_of_format_has_a_row_of_properties():
    """format= is hidden from the command, so its row is read from the source."""
    values = re.search(
        r'\[OPT_FORMAT\] = \{"format", NULL, 0, OPTION_WORD, "([a-z|]+)"',
        (lab.ROOT / "src/options/table.c").read_text(),
    )
    letters = re.findall(r'\.letter = "(\w)"', (lab.ROOT / "src/options/formats.c").read_text())
    assert letters == values[1].split("|")
