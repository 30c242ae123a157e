# SPDX-License-Identifier: Apache-2.0
"""The agent under hard conditions: ends of the VM, full disks, read-only folders, class unloading,
attaching in the middle.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

import lab


def record(jdk, tmp_path, options="cpu=samples"):
    return jdk.agent(f"{options},format=r,file={tmp_path}/out.jfr")


def events(path, name="jdk.ExecutionSample"):
    """Returns how many events of a type the JDK's own tool finds."""
    done = lab.Jdk(17).run("jfr", "summary", path)
    assert done.returncode == 0, done.stderr + done.stdout
    found = re.search(rf"^ *{re.escape(name)} +(\d+) ", done.stdout, re.M)
    return int(found[1]) if found else 0


def start_hot(jdk, tmp_path, *args, jvm=(), **kwargs):
    return jdk.start_java(
        "Hot", *args, jvm=jvm, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs
    )


@pytest.mark.parametrize(
    "number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
@pytest.mark.jdks(8, 17, 27)
def test_end_by_signal(jdk, tmp_path, number, status):
    process = start_hot(jdk, tmp_path, "counted", 120000, jvm=[record(jdk, tmp_path)])
    lab.use_cpu(process, 1)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert err == ""
    assert events(tmp_path / "out.jfr") >= 30


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_kill_9(jdk, tmp_path):
    """Other tools can read the samples up to a moment before the end; about 50 ms are lost."""
    process = start_hot(jdk, tmp_path, "counted", 120000, jvm=[record(jdk, tmp_path)])
    lab.use_cpu(process, 1)
    process.kill()
    process.communicate(timeout=30)
    assert process.returncode == -9
    assert events(tmp_path / "out.jfr") >= 50


@pytest.mark.jdks(8, 17, 27)
def test_system_exit_and_halt(jdk, tmp_path):
    for program in ("exit", "halt"):
        done = jdk.java("Ends", program, jvm=[record(jdk, tmp_path)])
        assert (done.returncode, done.stdout, done.stderr) == (7, "before\n", "")
        assert events(tmp_path / "out.jfr") >= 10


@pytest.mark.jdks(8, 27)
def test_uncaught_exception_keeps_status_and_output(jdk, tmp_path):
    plain = jdk.java("Ends", "throw")
    done = jdk.java("Ends", "throw", jvm=[record(jdk, tmp_path)])
    assert (done.returncode, done.stdout, done.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_class_unloading(jdk, tmp_path):
    """Classes are loaded, run and unloaded all the time, with collections; names of unloaded
    classes are known or marked as unknown.
    """
    done = jdk.java(
        "Unload",
        100_000,
        60,
        jvm=["-Xmx64m", record(jdk, tmp_path, "cpu=samples,interval=1")],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    assert int(re.search(r"unloaded (\d+)", done.stdout)[1]) > 20
    assert events(tmp_path / "out.jfr") >= 100


@pytest.mark.jdks(8, 17, 27)
def test_full_disk(jdk, tmp_path):
    """The program is not affected, and the file stays readable."""
    limit = 256 * 1024
    java = f"java {record(jdk, tmp_path, 'cpu=samples,interval=1')} -cp {lab.compiled('Hot')} Hot exceptions 3000"
    done = jdk.run("bash", "-c", f"ulimit -f {limit // 1024} && trap '' XFSZ && exec {java}")
    assert done.returncode == 0, done.stderr
    assert "cpu_ns" in done.stdout
    printed = f"hprof: {tmp_path}/out.jfr: File too large: \\d+ events were lost\n"
    assert re.fullmatch(printed, done.stderr) or (
        done.stderr == "" and (tmp_path / "out.jfr").stat().st_size < limit
    ), done
    events(tmp_path / "out.jfr")


@pytest.mark.jdks(17)
def test_folder_that_cannot_be_written(jdk):
    done = jdk.java("Exits", 0, jvm=[jdk.agent("cpu=samples,format=r,file=/proc/no.jfr")])
    assert done.returncode == 9
    assert re.match(r"hprof: /proc/no.jfr: \w+", done.stderr)
    assert len(done.stderr.splitlines()) == 1


def attach(process, *args):
    return lab.jvmscope("attach", *args, process.pid, timeout=60)


def ready(process):
    """Waits until a VM has started: before that, SIGQUIT, which attach sends to it, would
    kill it.
    """
    lab.use_cpu(process, 0.3)
    time.sleep(0.5)
    return process


@pytest.mark.jdks(8, 17, 27)
def test_attach_in_the_middle(jdk, tmp_path, record_property):
    """Two recordings of a VM that is busy throughout: each has as many samples as its threads used
    CPU time during it, by the kernel's count, which test_cpu_time compares with the process's
    own.
    """
    process = ready(start_hot(jdk, tmp_path, "threads", 15000, 200))
    try:
        for name in ("first.jfr", "second.jfr"):
            done = attach(process, "--cpu", "-o", tmp_path / name)
            assert done.returncode == 0, done.stderr
            lab.use_cpu(process, 1)
            done = lab.jvmscope("stop", "-o", tmp_path / name, process.pid)
            assert done.returncode == 0, done.stderr
            samples = lab.read_json("report", "--json", tmp_path / name)["samples"]
            used = samples["cpu_time_ns"]["java"] / 1e9
            # One event may stand for several samples: the kernel sends a signal only to a thread
            # that runs at its tick, and 200 threads share the processors.
            ratio = samples["total"] / (used / 0.010)
            record_property(name, f"{ratio:.2f} of the samples expected, of {used:.2f} s")
            assert used > 0.5 and 0.8 <= ratio <= 1.2, (used, samples["total"])
            assert 0 < events(tmp_path / name) <= samples["total"]
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    report = lab.output("report", tmp_path / "first.jfr")
    assert "Hot.countedLoop" in report


def figures(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "memory": int(re.search(r"RssAnon:\s+(\d+)", status)[1]),
    }


def recording(process, tmp_path):
    """Runs one cycle, in which a recording is started and stopped."""
    done = attach(process, "--cpu", "-t", "5ms", "-o", tmp_path / "out.jfr")
    assert done.returncode == 0, done.stderr


def nothing(process, tmp_path):
    """Loads as many agents as a recording sends messages, because to the VM each message is an
    agent. These agents do nothing.
    """
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"/tmp/.java_pid{process.pid}")
            s.sendall(
                f"1\0load\0{lab.BUILD}/tests/agents/libnothing.so\0true\0{'x' * 100}\0".encode()
            )
            answer = s.recv(100)
            assert answer.startswith(b"0"), answer


def cycles(jdk, tmp_path, warm, n, cycle=recording):
    """Returns by how much the process grows in n cycles, after a recording and `warm` cycles. Uses
    -Xint, so that the memory of the compilers does not count.
    """
    process = jdk.start_java(
        "Collects",
        jvm=["-Xms24m", "-Xmx24m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-Xint"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ready(process)
        recording(process, tmp_path)
        for i in range(warm + n):
            cycle(process, tmp_path)
            if i == warm - 1:
                before = figures(process.pid)
        # The agent's threads answer before they end, which on a busy machine is later.
        after = lab.wait_for(
            lambda: (now := figures(process.pid))["threads"] <= before["threads"] and now,
            60,
            "the end of the agent's threads",
        )
    finally:
        process.kill()
        process.wait()
    return {key: after[key] - before[key] for key in before}


@pytest.mark.jdks(8, 21)
def test_attach_cycles(jdk, tmp_path, record_property):
    growth = cycles(jdk, tmp_path, 6, 10)
    record_property("growth", str(growth))
    assert growth["threads"] <= 0 and growth["descriptors"] <= 0
    assert growth["memory"] <= 1024


@pytest.mark.slow
def test_a_thousand_attach_cycles(jdk, tmp_path, record_property):
    """The VM keeps a note of each agent that attach loads. That much memory is not ours, and is
    measured separately.
    """
    growth = cycles(jdk, tmp_path, 200, 1000)
    alone = cycles(jdk, tmp_path, 200, 1000, nothing)
    record_property("growth", f"{growth}, with agents that do nothing {alone}")
    assert growth["threads"] <= 0 and growth["descriptors"] <= 0
    assert growth["memory"] <= 1024


@pytest.mark.jdks(21)
def test_what_hangs_explains_itself(jdk, capsys):
    """A hang that happens once in thousands of starts leaves the stacks of all threads in the
    output of the test that failed.
    """
    with pytest.raises(subprocess.TimeoutExpired):
        jdk.java("Busy", 60, timeout=lab.Program.USUAL)
    reported = capsys.readouterr().out
    assert (
        re.search(r"^\d+ VM Thread: S ", reported, re.M)
        and "VMThread::" in reported
        and "Busy 60" in reported
    ), reported[:2000]
