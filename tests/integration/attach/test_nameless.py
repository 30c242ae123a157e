# SPDX-License-Identifier: Apache-2.0
"""A thread without a name is called "thread #24" wherever a thread is shown, and every verb that
takes a thread understands that."""
import json
import re
import subprocess

import pytest

import lab


@pytest.fixture
def program(jdk, tmp_path):
    """The program with an agent that was there from the start, and how its thread is called."""
    agent = jdk.agent(f"format=r,allow-control=y,file={tmp_path / 'c.jfr'}")
    process = jdk.start_java(
        "NamelessForever",
        jvm=("-Xmx64m", agent),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield process, f"thread #{process.stdout.readline().strip()}"
    process.communicate("\n", timeout=60)


@pytest.mark.jdks(8, 17, 25)
def test_it_is_shown_by_its_number(program, jvmscope):
    process, name = program
    threads = lab.read_json("inspect", "--json", process.pid, "threads")["threads"]
    (nameless,) = [t for t in threads if t["name"] == name]
    assert f"thread #{nameless['java_id']}" == name and all(t["name"] for t in threads)
    stack = lab.read_json("inspect", "--json", process.pid, "stack", name)
    assert stack["thread"]["id"] == nameless["id"]
    assert "NamelessForever" in {f["class"] for f in stack["frames"]}
    groups = lab.output("inspect", "--json", process.pid, "groups")
    assert f'"{name}"' in groups and '""' not in groups
    states = lab.read_json("top", "--json", "--states", "-n", 1, "-r", 200, process.pid)
    assert {t["tid"]: t["name"] for t in states["busiest"]}[nameless["tid"]] == name
    table = lab.output("top", "-n", 1, "-i", "50ms", "-r", 200, process.pid)
    rows = re.findall(r"^ +(\d+) +\S+ %  (.*)$", table, re.M)
    # JDK 8 gives such a thread the name of the process.
    assert dict(rows)[str(nameless["tid"])] in ("a thread without a name", "java")


@pytest.mark.jdks(8, 17, 25)
def test_it_is_held_by_its_number(program, jvmscope):
    process, name = program

    def control(*words):
        return json.loads(lab.output("control", process.pid, *words, "--json"))

    assert control("suspend", name)["done"].startswith(f"{name} is suspended at ")
    assert [h["thread"] for h in control("list")["held"]] == [name]
    assert control("resume", name)["done"] == f"{name} runs"
    assert control("list")["held"] == []
    number = int(name.split("#")[1])
    refused = jvmscope("control", process.pid, "suspend", f"thread #{number + 1000}")
    assert refused.returncode == 1 and "no live thread of this name or number" in refused.stderr
    # The number belongs to a thread without a name alone.
    assert jvmscope("inspect", process.pid, "stack", "thread #1").returncode == 1
