# SPDX-License-Identifier: Apache-2.0
"""The commands on a running VM: list, attach, status, stop; and their messages when they fail."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

import lab


@pytest.fixture
def busy(jdk):
    """Starts Busy under the JDK; returns the process once the program is running."""
    started = []

    def start(*jvm, seconds=30, prefix=None):
        if prefix:
            command = prefix + jdk.command("java", *jvm, "-cp", compiled("Busy"), "Busy", seconds)
            process = subprocess.Popen(
                [str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        else:
            process = jdk.start_java(
                "Busy", seconds, jvm=jvm, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
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
    vms = {vm["pid"]: vm for vm in lab.read_json("list", "--json")}
    vm = vms[process.pid]
    assert vm["command"] == "Busy 30"
    assert vm["version"].startswith("1.8.0" if jdk.version == 8 else str(jdk.version))
    assert vm["other_root"] and not vm["container"] and vm["attachable"]
    line = next(l for l in lab.output("list").splitlines() if l.split()[0] == str(process.pid))
    assert line.endswith("Busy 30  (another root)")


@pytest.mark.jdks(daily=1)
def test_what_cannot_be_is_refused_and_the_program_goes_on(jdk, jvmscope, busy):
    process = busy("-Xmx32m", seconds=4)
    pid = process.pid
    done = jvmscope("attach", "-t", "1s", "--agent", "cpu=nosuchthing", pid)
    assert done.returncode == 2 and done.stderr.startswith(
        "jvmscope: attach: --cpu=nosuchthing: not a value"
    ), done.stderr
    assert jvmscope("status", pid).returncode == 1
    for command, message in (
        (("status", pid), "nothing is being recorded in it"),
        (("stop", pid), "nothing is being recorded in it"),
        (("attach", "-t", "1s", "--cover", "--include", "y" * 1100, pid), "1,024 bytes"),
    ):
        done = jvmscope(*command)
        assert done.returncode == 1, command
        assert message in done.stderr and done.stderr.startswith(f"jvmscope: {pid}: "), done.stderr
    assert process.wait(30) == 0
    assert process.stdout.read() == "done\n"


@pytest.mark.jdks(8, 25)
def test_an_interruption_at_any_moment_leaves_nothing_recording(jdk, jvmscope, busy, tmp_path):
    """Ctrl-C before the command makes any request, while the VM starts the recording, and
    afterwards: in each case the recording has ended, or never began.
    """
    from lab import BUILD

    out, process = tmp_path / "i.jfr", busy("-Xmx32m")
    ended = []
    for step in range(24):
        out.unlink(missing_ok=True)
        command = [BUILD / "jvmscope", "attach", "--cpu", "-t", "100s", "-o", out, str(process.pid)]
        attached = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(step * 0.004)  # at random moments; the assertions hold at each of them
        attached.send_signal(signal.SIGINT)
        err = attached.communicate(timeout=60)[1]
        ended.append(attached.returncode)
        assert attached.returncode in (0, -signal.SIGINT), err
        assert (
            "nothing is being recorded" in jvmscope("status", process.pid).stderr
            or "idle" in jvmscope("status", process.pid).stdout
        )
        assert (attached.returncode == 0) == out.exists()
        if attached.returncode == 0:
            assert (
                out.read_bytes()[:4] == b"FLR\0"
                and "not ended" not in jvmscope("report", out).stderr
            )
    assert 0 in ended, ended


def waiting_attach(jdk, out):
    """The program never finishes ending, and an attach waits for that."""
    program = jdk.start_java(
        "EndsNever", jvm=("-Xmx32m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdout.readline() == "ready\n"
    command = [
        lab.BUILD / "jvmscope",
        "attach",
        "--cpu",
        "-t",
        "1000s",
        "-o",
        out,
        str(program.pid),
    ]
    attached = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lab.wait_for(
        lambda: re.search(r"^state +recording$", lab.jvmscope("status", program.pid).stdout, re.M),
        60,
        "the recording",
    )
    lab.use_cpu(program, 0.3)
    return program, attached


@pytest.mark.jdks(8, 25)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_waits_for_a_vm_that_never_ends_is_ended_by_a_signal(jdk, tmp_path, number):
    program, attached = waiting_attach(jdk, tmp_path / "x.jfr")
    try:
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "hook\n"
        attached.send_signal(number)
        printed = attached.communicate(timeout=60)[1]
        assert attached.returncode == 0, printed
        assert "EndsNever.main" in lab.output("report", tmp_path / "x.jfr")
        assert program.poll() is None
    finally:
        attached.kill()
        attached.communicate()


def waits_for_an_answer(pid):
    """Whether a command sleeps while it is connected to a VM, which means that its request is sent.
    The first signal alone does not mean that: on a busy machine, a second one that follows at once
    ends the command before it has sent anything.
    """
    state = re.search(r"State:\s+(\w)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]
    opened = pathlib.Path(f"/proc/{pid}/fd").iterdir()
    return state == "S" and any("socket:" in os.path.realpath(fd) for fd in opened)


@pytest.mark.jdks(17)
def test_a_command_whose_vm_gives_no_answer_is_ended_by_the_second_signal(jdk, tmp_path):
    """Another tool has stopped the one thread by which the VM answers. It used to ignore every
    SIGTERM.
    """
    program, attached = waiting_attach(jdk, tmp_path / "x.jfr")
    try:
        with lab.thread_stopped(lab.thread_named(program.pid, "Attach Listener")):
            attached.terminate()
            lab.wait_for(
                lambda: waits_for_an_answer(attached.pid), 60, "the request that follows the signal"
            )
            assert attached.poll() is None, "there is no answer, so the recording has not ended"
            attached.terminate()
            attached.communicate(timeout=20)
            assert attached.returncode == -signal.SIGTERM
    finally:
        attached.kill()
        attached.communicate()
    # The VM carries out the request, whoever has removed what the ended command has left.
    lab.wait_for(
        lambda: re.search(r"^state +idle$", lab.jvmscope("status", program.pid).stdout, re.M),
        60,
        "the end of the recording",
    )
    assert "EndsNever.main" in lab.output("report", tmp_path / "x.jfr")


def test_disabled_attach_and_agents_are_named(jdk, jvmscope, busy):
    pid = busy("-Xmx32m", "-XX:+DisableAttachMechanism").pid
    done = jvmscope("attach", "-t", "1s", pid)
    assert (
        done.returncode == 1
        and "attach is disabled" in done.stderr
        and "jvmscope run" in done.stderr
    )
    if jdk.version >= 9:
        pid = busy("-Xmx32m", "-XX:-EnableDynamicAgentLoading").pid
        done = jvmscope("attach", "-t", "1s", pid)
        assert done.returncode == 1
        assert "-XX:-EnableDynamicAgentLoading" in done.stderr and "JFR.start" in done.stderr


@pytest.mark.jdks(daily=1)
def test_compilers_describe_all_code_while_samples_are_taken(jdk, jvmscope, busy, tmp_path):
    """The VM's flag, rather than the event of each compilation, makes the VM describe code between
    safepoints. Afterwards the flag has its old value.
    """
    pid = busy("-Xmx32m", "-XX:+UnlockDiagnosticVMOptions").pid

    def flag():
        return re.search(
            r" DebugNonSafepoints +:?= *(\w+)", jdk.run("jcmd", pid, "VM.flags", "-all").stdout
        )[1]

    assert flag() == "false"
    assert jvmscope("attach", pid, cwd=tmp_path).returncode == 0
    assert flag() == "true"
    assert jvmscope("stop", pid).returncode == 0
    assert flag() == "false"


# With cpu=old the text has no heading of its own: it begins with whatever section comes first.
@pytest.mark.parametrize(
    "words,first",
    [
        ("cpu=times", "JAVA PROFILE 1.0"),
        ("heap=dump,format=b", "JAVA PROFILE 1.0"),
        ("cpu=old", "count callee caller time"),
        ("cpu=old,heap=sites", "TRACE 3"),
        ("cpu=old,heap=dump", "TRACE 3"),
        ("cpu=old,heap=all,thread=y", "TRACE 3"),
        ("cpu=old,heap=all,monitor=y,park=y", "WAIT|TRACE 3"),
    ],
    ids=lambda v: v.replace("=", " "),
)
@pytest.mark.jdks(8, 25)
def test_every_output_of_hprof_is_reported_and_fetched(jdk, jvmscope, busy, tmp_path, words, first):
    """A recording of cpu=old begins with other bytes, and used to be refused as not being a
    recording.
    """
    pid = busy("-Xmx32m", jdk.agent(f"{words},file={tmp_path}/o.txt")).pid
    done = jvmscope("dump", "-o", tmp_path / "copy.hprof.txt", pid)
    assert done.returncode == 0, done.stderr
    done = jvmscope("stop", pid)
    assert done.returncode == 0 and f"wrote {tmp_path}/o.txt" in done.stderr, done.stderr
    heads = [(tmp_path / name).read_bytes()[:64] for name in ("o.txt", "copy.hprof.txt")]
    assert all(re.match(first.encode(), head) for head in heads), heads


def test_no_sigquit_is_sent_to_a_vm_with_xrs(jdk, jvmscope, busy, tmp_path):
    """With -Xrs HotSpot listens at once, so no signal has to wake it."""
    process = busy("-Xmx32m", "-Xrs")
    path = f"/proc/{process.pid}/root/tmp/.java_pid{process.pid}"
    lab.wait_for(lambda: os.path.exists(path), 60, "the socket")
    attach = ("attach", "--cpu", "-t", "1s", "-o", tmp_path / "x.jfr", process.pid)
    done = jvmscope(*attach)
    assert done.returncode == 0 and f"wrote {tmp_path}/x.jfr" in done.stderr, done.stderr
    assert "Busy.work" in jvmscope("report", tmp_path / "x.jfr").stdout
    assert jvmscope("status", process.pid).returncode == 0
    os.unlink(path)
    refused = (
        "it runs with -Xrs and does not take SIGQUIT, and no attach listener has its socket in /tmp"
    )
    done = jvmscope(*attach)
    assert done.returncode == 1 and refused in done.stderr, done.stderr
    # the state after a VM was killed: nobody listens
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
        done = jvmscope(*attach)
    os.unlink(path)
    assert done.returncode == 1 and refused in done.stderr, done.stderr
    time.sleep(0.3)
    assert process.poll() is None


def test_pids_that_are_no_vm(jvmscope):
    other = subprocess.Popen(["sleep", "20"])
    try:
        for pid, status, message in (
            (other.pid, 1, "not a Java VM"),
            (2**22 + 1, 1, "no such process"),
            ("x", 2, "process id"),
        ):
            done = jvmscope("attach", pid)
            assert done.returncode == status and message in done.stderr
    finally:
        other.kill()
        other.wait()


@pytest.mark.jdks(17)
def test_a_thread_is_no_process(jvmscope, busy, tmp_path):
    """Every command that takes a process id says whose thread it is. check used to answer as for a
    VM, and attach used to report that the VM had ended.
    """
    pid = busy("-Xmx32m").pid
    thread = max(map(int, os.listdir(f"/proc/{pid}/task")))
    assert thread != pid
    commands = [
        ("attach", "-t", "1s", "-o", tmp_path / "x.jfr"),
        ("attach", "--on", "oom"),
        ("check",),
        ("dump", "-o", tmp_path / "x.jfr"),
        ("heap", "dump", "-o", tmp_path / "x.hprof"),
        ("slow", "-t", "1s", "-o", tmp_path / "x.jfr"),
        ("status",),
        ("stop",),
        ("threads", "deadlocks"),
        ("top", "-n", "1"),
        ("top", "--states", "-n", "1"),
    ]
    verbs = {"inspect": ("vm",), "control": ("list",), "trace": ("list",)}
    for words in (*[(*c, thread) for c in commands], *[(v, thread, *w) for v, w in verbs.items()]):
        done = jvmscope(*words)
        assert done.returncode == 1, (words, done)
        assert (
            done.stderr == f"jvmscope: {thread}: is a thread of {pid}: use the id of the process\n"
        ), (words, done)
    names = re.findall(r"^  (\w+) ", lab.output("help"), re.M)
    taking = {n for n in names if re.search(r"^usage:.*\bPID\b", lab.output("help", n), re.M)}
    assert {"attach", "top", "inspect"} <= taking <= {c[0] for c in commands} | set(verbs), taking
