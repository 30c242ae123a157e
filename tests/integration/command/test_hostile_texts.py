# SPDX-License-Identifier: Apache-2.0
"""Texts of a program that would control a terminal: every verb of every command shows them escaped,
each within its line.
"""
import json
import re
import subprocess

import lab
import fleet_lab

# Characters that act on the text around them: control characters, line separators, direction marks.
ACTING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
# A method's descriptor, which is meant for class files and not for people.
DESCRIPTOR = re.compile(r"\((\[*[BCDFIJSZ]|\[*L[\w/$]+;)*\)(\[*[BCDFIJSZV]|\[*L[\w/$]+;)(?![\w.])")
ESCAPE = "\\u001b"  # how an escape character is shown
NAME = "hostile\x1b]0;owned\x07\x1b[31m\u202e\u6f22"  # of files

LIVE = {
    "list": [[]],
    "check": [["PID"]],
    "status": [["PID"]],
    "top": [["--count", "1", "PID"]],
    "inspect": [
        ["PID", w]
        for w in ("threads", "groups", "classes", "properties", "modules", "vm", "deadlocks")
    ]
    + [
        ["PID", "class", "HostileTexts"],
        ["PID", "statics", "HostileTexts"],
        ["PID", "instances", "java.lang.Thread"],
        ["PID", "stack", "main"],
    ],
    "control": [["PID", "list"]],
    "trace": [["PID", "list"]],
    "threads deadlocks": [["PID"]],
    "dump": [["-o", "DUMP", "PID"]],
    "heap dump": [["-o", "HEAP", "PID"]],
}
# Verbs of heap that have an operand besides the file. All others are called with the file alone.
HEAP = {
    "retained": [["java.lang.Thread"]],
    "paths": [["java.lang.Thread"]],
    "objects": [["java.lang.Thread"]],
    "query": [
        ["SELECT name FROM classes WHERE name LIKE '%Guest%'"],
        ["SELECT value FROM strings"],
    ],
}
RECORDING = {
    "report": [[], ["--inverted"], ["--metric", "allocations"], ["--metric", "locks"]],
    "trace": [[], ["--exceptions"]],
    "coverage": [[], ["--methods"]],
    "threads summary": [[]],
    "threads monitors": [[]],
    "threads timeline": [[]],
    "threads critical-path": [[]],
    "threads what-if": [["--lock", "*"]],
    "threads deadlocks": [[]],
    "requests": [[]],
    "requests slow": [["--slowest", "50%"]],
    "requests show": [["1"]],
    "vm": [[]],
}
FLEET = {
    "services": [[]],
    "top": [[], ["--service", "*"]],
    "flame": [[]],
    "requests": [[]],
    "diff": [["--service", "*", "--base", "version=1", "--version", "2"]],
    "findings": [[]],
    "query": [["--method", "*"]],
    "vm": [[]],
}
# These print nothing of a program. Only a page shows it, or (slow) `requests slow` prints it.
NOT_SHOWN = {
    "slow",
    "completion",
    "manual",
    "serve",
    "attach",
    "run",
    "stop",
    "convert",
    "diff",
    "heap diff",
    "collect",
    "host",
}


def ask(*words):
    done = subprocess.run(
        [str(lab.BUILD / "jvmscope"), *map(str, words)], capture_output=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def verbs(*words):
    """The words of all commands and their verbs, as --help lists them."""
    listed = ask(*words, "--help")[1].decode()
    for name in re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)  +\S", listed, re.M):
        more = ask(*name.split(), "--help")[1].decode()
        if "\n  " + name + " " in "\n" + more:
            yield from verbs(*name.split())
        if not more.startswith(f"usage: jvmscope {name} VERB "):
            yield name


def shown(words, output):
    """Returns what a command printed, after the checks that apply to all output."""
    text = output.decode("utf-8")  # or it was cut inside a character
    acting = ACTING.search(text)
    assert not acting, (words, ascii(text[max(0, acting.start() - 60) : acting.end() + 20]))
    assert not re.search("^ *INJECTED", text, re.M), words
    descriptor = DESCRIPTOR.search(text)
    # Strings in the program's heap are shown as they are; some of the JDK's own are descriptors.
    values = words[0] == "heap" and words[1] in ("query", "strings")
    assert not descriptor or values or "--json" in words, (words, descriptor)
    return text


def check(words, may_fail=False):
    status, out, err = ask(*words)
    text = shown(words, out)
    shown(words, err)
    assert may_fail or status == 0, (words, err.decode())
    return text


def each(table, before=(), after=()):
    for verb, forms in table.items():
        for form in forms:
            yield [*verb.split(), *before, *form, *after]


def test_no_text_of_a_program_acts_on_a_terminal(tmp_path):
    listed = set(verbs())
    heap = {
        v: HEAP.get(v.split()[1], [[]])
        for v in listed
        if v.startswith("heap ") and v not in NOT_SHOWN | set(LIVE)
    }
    assert len(heap) >= 16 and {"heap " + v for v in HEAP} <= set(heap)
    known = set(LIVE) | set(heap) | {"fleet " + v for v in FLEET} | set(RECORDING) | NOT_SHOWN
    assert listed == known, "a verb is new or gone: add it to the tables above"
    jdk, out = lab.Jdk(25), tmp_path / (NAME + ".jfr")
    names = {"DUMP": tmp_path / (NAME + "-dump.jfr"), "HEAP": tmp_path / (NAME + ".hprof")}
    program = subprocess.Popen(
        [
            str(c)
            for c in (
                lab.BUILD / "jvmscope",
                "run",
                "--cpu",
                "--threads",
                "--alloc=exact",
                "--exceptions=stacks",
                "--cover",
                "--trace",
                "HostileTexts$Guest*",
                "--requests",
                "HostileTexts$Guest*.called*(..)",
                "--allow-control",
                "-o",
                out,
                "--",
                *jdk.command(
                    "java", "-Xmx256m", "-cp", lab.compiled("HostileTexts"), "HostileTexts", NAME
                ),
            )
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert program.stdout.readline() == b"ready\n"
        vms = [
            v
            for v in json.loads(ask("list", "--json")[1])
            if "HostileTexts" in (v["command"] or "") and "\x1b]0;owned" in v["command"]
        ]
        pid = next(
            v["pid"]
            for v in vms
            if v["command"].startswith("HostileTexts") or v["pid"] != program.pid
        )
        names["PID"] = pid
        lab.wait_for(
            lambda: b"waits for" in ask("threads", "deadlocks", pid)[1], 60, "the deadlock"
        )
        texts = {}
        for words in each(LIVE):
            words = [names.get(w, w) for w in words]
            texts[tuple(words[:2])] = texts.get(tuple(words[:2]), "") + check(words)
            check(
                [*words[:-1], "--json", words[-1]] if words[-1] == pid else [*words, "--json"],
                may_fail=True,
            )
        for verb in ("inspect", "threads"):
            assert any(ESCAPE in t for k, t in texts.items() if k[0] == verb), verb
        assert ESCAPE in texts[("list",)], "its command line has one"
    finally:
        program.stdin.close()
        reported = program.stderr.read()
        program.wait(timeout=60)
    # "Picked up JAVA_TOOL_OPTIONS" is the VM's own.
    shown(
        ["run"],
        b"\n".join(line for line in reported.split(b"\n") if line.startswith(b"jvmscope: ")),
    )
    store = f"sqlite:{tmp_path / 'fleet.db'}"
    with fleet_lab.collector(tmp_path, store=store) as c:
        for version in "12":
            c.send(out.read_bytes(), service="shop", version=version)
        c.send(out.read_bytes(), 400, service=NAME)
    texts = {}
    for words in [
        *each(heap, before=[names["HEAP"]]),
        *each(RECORDING, after=[out]),
        *each({"fleet " + v: f for v, f in FLEET.items()}, after=["--store", store]),
        ["diff", out, names["DUMP"]],
        ["heap", "diff", names["HEAP"], names["HEAP"]],
    ]:
        key = (
            " ".join(words[:2])
            if words[0] in ("fleet", "heap", "threads") or words[1] in ("slow", "show")
            else words[0]
        )
        texts[key] = texts.get(key, "") + check(words)
        if "--inverted" not in words:  # of which JSON has nothing
            as_json = check([*words, "--json"])
            json.loads(as_json)
    silent = [
        k
        for k in (
            "report",
            "trace",
            "coverage",
            "diff",
            "threads summary",
            "threads monitors",
            "threads timeline",
            "threads critical-path",
            "requests",
            "requests slow",
            "requests show",
            "heap histogram",
            "heap query",
            "heap strings",
            "heap threads",
            "fleet top",
            "fleet requests",
        )
        if ESCAPE not in texts[k]
    ]
    assert not silent, "these show no hostile text, so they prove nothing"
    assert (
        max(len(line) for t in texts.values() for line in t.splitlines()) < 20000
    ), "a text of 60,000 characters is cut"


def test_nothing_is_printed_past_the_one_function():
    """Each file of the command is compiled with cli/text.h, which replaces the printing functions;
    none bypasses it.
    """
    commands = [
        c
        for c in json.loads((lab.BUILD / "compile_commands.json").read_text())
        if "/src/cli/" in c["file"]
    ]
    assert len(commands) > 50
    assert not [
        c["file"] for c in commands if not re.search(r"-include\s+cli/text\.h", c["command"])
    ]
    around = re.compile(
        r"\((printf|fprintf|puts|fputs|fputc|putchar|fwrite)\)\(|#undef \w*(print|put|write)|TEXT_PLAIN_STDIO|"
        r"\b(write|writev|file_write_all|sendfile)\((1|2|STDOUT_FILENO|STDERR_FILENO)\b"
    )
    found = {
        (path.relative_to(lab.ROOT / "src/cli").as_posix(), line.strip())
        for path in (lab.ROOT / "src/cli").rglob("*.[ch]")
        if path.stem != "text"
        for line in path.read_text().splitlines()
        if around.search(line)
    }
    # Parts of JSON of any size, which has no control characters (base/json.h), and stacks whose
    # names went through text_put.
    assert found == {
        ("threads/threads.c", "r = file_write_all(STDOUT_FILENO, b->data, b->len);"),
        ("fleet/tables.c", "(fwrite)(path->data, 1, path->len, stdout);"),
    }


def test_tables_count_columns(tmp_path):
    """Wide and combining characters take the columns that a terminal gives them; a text is cut
    between characters.
    """
    stacks = tmp_path / "wide.collapsed"
    stacks.write_text("main;" + "\u6f22" * 5000 + " 3\nmain;e\u0301\u0301 2\n")
    text = check(["report", stacks])
    assert "\u6f22" * 1000 + "... (8000 more)\n" in text and "e\u0301\u0301\n" in text


def test_collapsed_stacks_are_lines_of_words(tmp_path):
    """In collapsed stacks, control characters, separators and invalid text are replaced, since
    tools split them there.
    """
    stacks, again = tmp_path / "a.collapsed", tmp_path / "b.collapsed"
    stacks.write_bytes(b"main;a\x1b[31m\xe2\x80\xae\xff;b\x9b 3\n")
    check(["convert", stacks, "-o", again])
    assert shown(["convert"], again.read_bytes()) == "main;a?[31m?\ufffd;b\ufffd 3\n"
