# SPDX-License-Identifier: Apache-2.0
"""What `jvmscope trace` lists between the calls: how it is filtered, and how its rows look."""
import re
import subprocess

import pytest

import lab

SOURCE = (lab.ROOT / "tests" / "java" / "NamelessForever.java").read_text()
LINE = SOURCE[: SOURCE.index("// logged")].count("\n") + 1
KINDS = {"log", "access", "exception"}


@pytest.fixture
def recorded(jdk, tmp_path):
    """Returns a recording without calls, of a thread without a name, and what the thread is
    called.
    """
    out = tmp_path / "r.jfr"
    log = f"log=NamelessForever:{LINE} at the line;NamelessForever:9999 x"
    options = f"{log},watch=NamelessForever.last,exceptions=stacks,events=y"
    process = jdk.start_java(
        "NamelessForever",
        jvm=("-Xmx64m", jdk.agent(f"format=r,{options},file={out}")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    name = f"thread #{process.stdout.readline().strip()}"
    lab.wait_for(
        lambda: "records" in lab.output("status", process.pid), 60, "a record of the logpoint"
    )
    process.communicate("\n", timeout=60)
    return out, name


def kinds(path, *options):
    events = lab.read_json("trace", "--json", *options, path)["events"]
    return {e["kind"] for e in events if e["kind"] != "vm"}, events


@pytest.mark.jdks(8, 17, 25)
def test_rows_are_chosen_by_thread_and_by_the_method_in_which_they_stand(recorded, jvmscope):
    path, name = recorded
    found, events = kinds(path, "--thread", name)
    assert found == KINDS and {e["thread"] for e in events} == {name}
    for pattern in ("NamelessForever.call", "call", f"NamelessForever.call:{LINE}", "Nameless*.c*"):
        found, events = kinds(path, "--method", pattern)
        assert found == {"log", "access"} and all(
            e["place"].startswith("NamelessForever.call:") for e in events
        ), (pattern, found)
    assert kinds(path, "--method", "NamelessForever.fail")[0] == {"exception"}
    assert kinds(path, "--method", "fail,call")[0] == KINDS
    assert lab.output("trace", "--method", "call", path).count(f"call:{LINE} at the line") > 0
    for option, wrong in (("--method", "nosuch"), ("--thread", "thread #999999")):
        done = jvmscope("trace", option, wrong, path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"jvmscope: {path}: no call matches {option}: {wrong}\n"


@pytest.mark.jdks(8, 17, 25)
def test_rows_are_whole(recorded, jvmscope):
    path, name = recorded
    shown = lab.output("trace", path)
    lines = shown.splitlines()
    assert not [l for l in lines if l != l.rstrip()]
    # Truncated texts are marked.
    threads = {l[26:42] for l in lines[1:]}
    assert not [t for t in threads if len(t.rstrip()) == 16 and not t.endswith("...")], threads
    assert re.search(r", out of 1 call, caught at NamelessForever\.call:", shown)
    # A note has no thread, and notes from before the recording have no time.
    (note,) = [l for l in lines if "NamelessForever:9999 note: " in l]
    assert re.match(r" +(-|\d+\.\d+) +-  +NamelessForever:9999", note), note
    assert not re.search(r"^ +-\d", shown, re.M) and "A negative START" not in shown
