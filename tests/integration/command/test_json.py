# SPDX-License-Identifier: Apache-2.0
"""All JSON that the commands write about a VM and a recording in which everything is recorded. It
is read by conftest.unique, which refuses an object with a duplicate key.
"""
import json
import subprocess

import lab
import outputs
import pytest
import option_tables

# Commands with --json and what follows them, or follows the recording, the heap dump or the
# process.
OF_A_FILE = {
    "report": [],
    "coverage": [],
    "trace": [],
    "requests": [],
    "requests slow": [],
    "threads what-if": ["--lock", "Object", "--factor", "0.5"],
}
OF_A_HEAP = {
    "heap query": ["select count(*) as n from \"java.lang.String\""],
    "heap retained": ["java.lang.String"],
    "heap paths": ["java.lang.Thread"],
    "heap objects": ["java.lang.Thread"],
}
OF_A_VM = {
    "status": [],
    "check": [],
    "inspect": ["threads"],
    "control": ["list"],
    "top": ["-n", "1", "-i", "50ms"],
}
QUESTIONS = [
    ["threads"],
    ["groups"],
    ["stack", "main"],
    ["classes"],
    ["class", "Counted"],
    ["statics", "Counted"],
    ["modules"],
    ["instances", "java.lang.Thread"],
    ["object", "1"],
    ["vm"],
    ["deadlocks"],
]


def read(*words, codes=(0,)):
    """The JSON values that a command prints: one, or one per line."""
    done = lab.jvmscope(*words)
    assert done.returncode in codes, (words, done.stdout, done.stderr)
    if words[0] == "top":
        return [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stdout.strip(), (words, done.stderr)
    return json.loads(done.stdout)


def verbs_with_json():
    names = {
        name for name in (*option_tables.verbs(), "list") if not name.startswith("fleet ")
    }  # those read a store, in test_fleet.py
    return {name for name in names if " --json " in lab.jvmscope(*name.split(), "--help").stdout}


def test_the_guard_refuses_a_key_twice():
    with pytest.raises(AssertionError, match="twice"):
        json.loads('{"a": [{"b": 1, "c": 2, "b": 3}]}')


@pytest.mark.jdks(17)
def test_no_json_has_a_key_twice(jdk, tmp_path):
    recording, heap = tmp_path / "all.jfr", tmp_path / "h.hprof"
    everything = (
        "allow-control=y,trace=Counted.called,exceptions=stacks,cover=y,alloc=exact,cpu=times,threads=y,locks=java.lang.Object,monitor=y,"
        "events=y,deadlock=y,requests=Counted.round(..),include=Counted,format=r"
    )
    process = jdk.start_java(
        "Counted",
        jvm=("-Xmx64m", jdk.agent(f"{everything},file={recording}")),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    asked = set()

    def a_round(number):
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"round {number}\n"

    try:
        assert process.stdout.readline() == "ready\n"
        for number in (1, 2):
            a_round(number)
        assert lab.jvmscope("heap", "dump", "-o", heap, process.pid).returncode == 0
        for name, more in OF_A_VM.items():
            read(
                name,
                "--json",
                *(more if name == "top" else []),
                process.pid,
                *(more if name != "top" else []),
            )
            asked.add(name)
        for question in QUESTIONS:
            read("inspect", "--json", process.pid, *question)
        read("trace", "--json", process.pid, "list")
        read("list", "--json")
        asked.add("list")
        assert lab.jvmscope("stop", process.pid).returncode == 0
        slow = subprocess.Popen(
            [
                lab.BUILD / "jvmscope",
                "slow",
                "--json",
                "-t",
                "1s",
                "--requests",
                "Counted.round(..)",
                "-o",
                tmp_path / "slow.jfr",
                str(process.pid),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        number = 3
        while slow.poll() is None:
            a_round(number)
            number += 1
        assert slow.returncode == 0 and json.loads(slow.communicate()[0])
        asked.add("slow")
    finally:
        process.kill()
        process.communicate()
    there = verbs_with_json()
    for name in sorted(there - asked):
        asked.add(name)
        if name.startswith("heap "):
            read(
                *name.split(),
                "--json",
                *([heap, heap] if name == "heap diff" else [heap]),
                *OF_A_HEAP.get(name, []),
            )
        elif name == "diff":
            read("diff", "--json", recording, recording)
        elif name == "requests show":
            read("requests", "show", "--json", "1", recording)
        else:
            read(*name.split(), "--json", recording, *OF_A_FILE.get(name, []))
    read("trace", "--exceptions", "--json", recording)
    assert asked == there, asked ^ there
    for output in ("all.html", "all.json"):
        assert lab.jvmscope("convert", "-o", tmp_path / output, recording).returncode == 0
    assert outputs.page(tmp_path / "all.html")["trace"]["total"] == 2000
    json.loads((tmp_path / "all.json").read_text())
    assert lab.jvmscope("heap", "summary", "-o", tmp_path / "heap.json", heap).returncode == 0
    json.loads((tmp_path / "heap.json").read_text())
