# SPDX-License-Identifier: Apache-2.0
"""Traces of the whole JDK: what the probes do must neither be traced itself nor run code of the
program.
"""
import json
import subprocess
import threading

import lab
import pytest

# A final dot is that of a package. The others take long on a running program, whose classes are
# changed for each recording.
FEW, MANY = "java.lang.", "*"
PATTERNS = [FEW, "java.lang.*", "java.*", MANY]
STEPS, WORKERS = 100, 2
ROUND = ["4944 1 {step=7} 3 50"] * (1 + WORKERS)


def check(jvmscope, out, at_start):
    """Calls of step(): each is in the recording, or is among the calls that are reported as lost."""
    done = jvmscope("trace", "--json", "--method", "TracedWhole.step", out)
    assert done.returncode == 0, done.stderr
    trace = json.loads(done.stdout)
    losses = {l["reason"]: l["amount"] for l in trace["losses"]}
    seen = len(trace["calls"])
    steps = STEPS * (1 + WORKERS)
    assert steps - sum(losses.values()) <= seen <= steps, losses
    assert (
        sum(c["exception"] == "java.lang.IllegalStateException" for c in trace["calls"])
        <= 1 + WORKERS
    )
    # If a call that began while another one was being recorded took its place, one of them has no
    # end.
    assert not at_start or "the beginning or the end was not seen" not in losses, losses
    everything = json.loads(jvmscope("trace", "--json", "-n", 1, out).stdout)
    assert everything["calls_all"] > 2 * steps, "of the JDK's methods there are calls too"


def patterns(quick):
    return pytest.mark.parametrize(
        "pattern", [pytest.param(p, marks=() if p == quick else pytest.mark.slow) for p in PATTERNS]
    )


@patterns(MANY)
def test_the_whole_jdk_from_the_start(jdk, jvmscope, tmp_path, pattern):
    done = jvmscope(
        "run",
        "--trace",
        f"{pattern},TracedWhole.step",
        "-o",
        tmp_path / "w.jfr",
        "--",
        *jdk.command("java", "-cp", lab.compiled("TracedWhole"), "TracedWhole", 1),
    )
    assert done.returncode == 7 and done.stdout.splitlines() == ["ready", *ROUND, "late", "15"], (
        done.stdout + done.stderr
    )
    check(jvmscope, tmp_path / "w.jfr", True)


@patterns(FEW)
def test_the_whole_jdk_of_a_running_program(jdk, jvmscope, tmp_path, pattern):
    process = jdk.start_java("TracedWhole", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def play():
        process.stdin.write("\n")
        process.stdin.flush()
        return lab.read_until(process.stdout, "15\n").splitlines()

    limit = threading.Timer(200, process.kill)  # a program that hangs
    limit.start()
    with process:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach",
            "--trace",
            f"{pattern},TracedWhole.step",
            "-o",
            tmp_path / "w.jfr",
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        assert play() == [*ROUND, "late", "15"]
        done = jvmscope("stop", process.pid)
        assert done.returncode == 0, done.stderr
        check(jvmscope, tmp_path / "w.jfr", False)
        assert play() == [*ROUND, "15"]
        process.stdin.close()
        assert process.stdout.read() == ""
    limit.cancel()
    assert process.returncode == 7
