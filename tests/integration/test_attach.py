# SPDX-License-Identifier: Apache-2.0
"""The commands on a running VM: list, attach, status, stop; and what they say when they cannot."""
import json
import re
import subprocess
import time

import pytest


@pytest.fixture
def busy(jdk):
    """Starts Busy under the JDK; answers the process once the program runs."""
    started = []

    def start(*jvm, seconds=30, prefix=None):
        if prefix:
            command = prefix + jdk.command("java", *jvm, "-cp", compiled("Busy"), "Busy", seconds)
            process = subprocess.Popen([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        else:
            process = jdk.start_java("Busy", seconds, jvm=jvm, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    from lab import compiled
    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_list_shows_version_and_program(jdk, jvmscope, busy):
    process = busy("-Xmx32m")
    vms = {vm["pid"]: vm for vm in json.loads(jvmscope("list", "--json").stdout)}
    vm = vms[process.pid]
    assert vm["command"] == "Busy 30"
    assert vm["version"].startswith("25." if jdk.version == 8 else str(jdk.version))
    assert vm["container"] and vm["attachable"]
    line = next(l for l in jvmscope("list").stdout.splitlines() if l.split()[0] == str(process.pid))
    assert "Busy 30" in line and "(container)" in line


def test_what_cannot_be_is_refused_and_the_program_goes_on(jdk, jvmscope, busy):
    process = busy("-Xmx32m", seconds=4)
    pid = process.pid
    for command, message in ((("status", pid), "nothing is being recorded in it"),
                             (("stop", pid), "nothing is being recorded in it"),
                             (("attach", "-t", "1s", "--agent", "cpu=nosuchthing", pid), "cpu"),
                             (("stop", pid), "not recording"),
                             (("attach", "-t", "1s", "--agent", "x=" + "y" * 1100, pid), "1,024 bytes")):
        done = jvmscope(*command)
        assert done.returncode == 1, command
        assert message in done.stderr and done.stderr.startswith(f"jvmscope: {pid}: "), done.stderr
    assert process.wait(30) == 0
    assert process.stdout.read() == "done\n"


def test_disabled_attach_and_agents_are_named(jdk, jvmscope, busy):
    pid = busy("-Xmx32m", "-XX:+DisableAttachMechanism").pid
    done = jvmscope("attach", "-t", "1s", pid)
    assert done.returncode == 1 and "attach is disabled" in done.stderr
    if jdk.version >= 9:
        pid = busy("-Xmx32m", "-XX:-EnableDynamicAgentLoading").pid
        done = jvmscope("attach", "-t", "1s", pid)
        assert done.returncode == 1
        assert "-XX:-EnableDynamicAgentLoading" in done.stderr and "JFR.start" in done.stderr


def test_compilers_describe_all_code_while_samples_are_taken(jdk, jvmscope, busy):
    """By the VM's flag, without its event of each compilation; afterwards the flag is what it was."""
    pid = busy("-Xmx32m", "-XX:+UnlockDiagnosticVMOptions").pid

    def flag():
        return re.search(r" DebugNonSafepoints +:?= *(\w+)", jdk.run("jcmd", pid, "VM.flags", "-all").stdout)[1]

    assert flag() == "false"
    assert jvmscope("attach", pid).returncode == 0
    assert flag() == "true"
    assert jvmscope("stop", pid).returncode == 0
    assert flag() == "false"


def test_signals_left_alone_are_not_sent(jdk, jvmscope, busy):
    process = busy("-Xmx32m", "-Xrs")
    done = jvmscope("attach", "-t", "1s", process.pid)
    assert done.returncode == 1 and "-Xrs" in done.stderr
    time.sleep(0.3)
    assert process.poll() is None


def test_pids_that_are_no_vm(jvmscope):
    other = subprocess.Popen(["sleep", "20"])
    try:
        for pid, status, message in ((other.pid, 1, "not a Java VM"), (2 ** 22 + 1, 1, "no such process"), ("x", 2, "process id")):
            done = jvmscope("attach", pid)
            assert done.returncode == status and message in done.stderr
    finally:
        other.kill()
        other.wait()
