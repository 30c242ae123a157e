# SPDX-License-Identifier: Apache-2.0
"""Samples of what the agent does on a thread of the program belong to the profiler: the VM's events
run functions of the agent, which ask the VM to retransform classes, and its last shutdown hook ends
the recording.
"""
import re
import subprocess

import pytest

import lab

# The first of these are called by the agent alone; the last runs the agent's hook at the VM's end.
AGENTS = re.compile(r"jvmti_\w+|JvmtiEnv::\w+|Jvmscope\w+|java\.lang\.Shutdown\.runHooks$")
OPTIONS = ("--cpu", "-i", "1ms", "--threads", "--alloc", "--requests", "--events")


def record(jdk, out):
    done = lab.jvmscope(
        "run",
        *OPTIONS,
        "--trace=Rounds.traced",
        "-o",
        out,
        "--",
        *jdk.command("java", "-Xmx96m", "-cp", lab.compiled("Rounds"), "Rounds"),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.jdks(17, 21, 25)
def test_what_the_agent_does_for_an_event_of_the_vm_is_the_profilers(jdk, tmp_path):
    recording = record(jdk, tmp_path / "r.jfr")
    lab.output("convert", "-o", tmp_path / "r.collapsed", recording)
    lines = [line.rsplit(" ", 1) for line in (tmp_path / "r.collapsed").read_text().splitlines()]
    assert [stack for stack, _ in lines if AGENTS.search(stack)] == []
    own = {stack: int(n) for stack, n in lines if "[jvmscope]" in stack}
    assert all(stack.endswith("[jvmscope]") for stack in own), own
    start = [stack for stack in own if stack.endswith("post_vm_initialized;[jvmscope]")]
    assert start, own
    report = lab.output("report", recording)
    assert f"of the profiler itself: {sum(own.values())} (" in report, (own, report)
