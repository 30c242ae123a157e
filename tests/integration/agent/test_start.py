# SPDX-License-Identifier: Apache-2.0
"""How recordings begin: each step of each capture's start fails in turn (the hidden option fail=),
in many recordings of one VM.
"""
import collections
import re
import socket
import subprocess
import threading

import pytest

import lab

# All captures that go together, in two sets; `fail` names them as src/agent/capture does.
PLACES = "log=Rounds:18 {n},watch=Rounds.field,trace=Rounds.traced,if=arg1 > 5,show=Rounds.field,tostring=java.lang.Thread"
SAMPLED = f"cpu=samples,alloc=sampled,heap=dump,onoom=dump,threads=y,deadlock=y,locks=Rounds,events=y,cover=y,allow-control=y,requests=Rounds.traced(..),{PLACES}"
EXACT = "cpu=times,alloc=exact,live=exact,heap=all,monitor=y,exceptions=counts,cover=y,trace=Rounds.traced"
SETS = {
    SAMPLED: (
        "session",
        "cpu",
        "alloc",
        "heap",
        "threads",
        "events",
        "cover",
        "control",
        "trace",
        "log",
        "requests",
    ),
    EXACT: ("cpu", "alloc", "exceptions"),
}
HPROF = "cpu=times,heap=all,monitor=y,park=y"


class Rounds:
    """A program that does rounds with a known result while it is observed. At its end it prints
    whether all results were right.
    """

    def __init__(self, jdk, *jvm):
        self.process = jdk.start_java(
            "Rounds",
            jvm=("-Xmx96m", *jvm),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()

    def count(self):
        print("?", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer.endswith(" rounds\n"), (
            answer,
            self.process.poll(),
            self.process.stderr.read() if not answer else "",
        )
        return int(answer.split()[0])

    def goes_on(self):
        before = self.count()
        lab.wait_for(lambda: self.count() != before, 60, "a round of the program")

    def end(self):
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out) == (0, "done\n"), (self.process.returncode, out, err)
        return err


def attach(pid, output, words, fail):
    return lab.jvmscope(
        "attach", "-o", output, "--agent", f"{words},include=Rounds,fail={fail}", pid, timeout=300
    )


def fail_each_step(jdk, folder, sets):
    """The steps that were found, by capture."""
    found = collections.Counter()
    with Rounds(jdk) as program:
        pid = program.process.pid
        for words, captures in sets.items():
            for capture in captures:
                for step in range(1, 100):
                    out = folder / f"{capture}-{step}.jfr"
                    done = attach(pid, out, words, f"{capture}:{step}")
                    program.goes_on()
                    if done.returncode == 0:
                        break
                    assert done.returncode == 1 and "cannot record: " in done.stderr, (
                        capture,
                        step,
                        done.stderr,
                    )
                    assert not out.exists(), "nothing was recorded, and no file says otherwise"
                    found[capture] += 1
                assert done.returncode == 0, f"{capture}: a hundred steps: {done.stderr}"
                assert lab.jvmscope("stop", "-o", out, pid).returncode == 0
                report = lab.jvmscope("report", "--json", out)
                assert report.returncode == 0 or capture != "cpu", report.stderr
        program.end()
    return found


@pytest.mark.jdks(25)
def test_a_start_that_fails_at_any_step_leaves_the_program_alone(jdk, tmp_path):
    """By attach: the capture whose failure has killed servers, started after all others. check-all
    tests the others, on all JDKs, and locks=, which changes every class of the VM and changes it
    back at each step.
    """
    found = fail_each_step(jdk, tmp_path, {SAMPLED.replace("locks=Rounds,", ""): ("cpu",)})
    assert found["cpu"] >= 3, found


@pytest.mark.slow
def test_every_step_of_every_start_fails_in_turn(jdk, tmp_path):
    found = fail_each_step(jdk, tmp_path, SETS)
    assert len(found) == 12, found


def fail_at_start_up(jdk, folder, words, captures):
    """A new VM is started for each step. The start is refused in one line, or the VM continues
    without a recording.
    """
    for capture in captures:
        for step in range(1, 100):
            out = folder / f"{capture}-{step}"
            options = f"{words},include=Rounds,file={out},fail={capture}:{step}"
            done = jdk.java("Rounds", jvm=("-Xmx96m", jdk.agent(options)), stdin=subprocess.DEVNULL)
            if out.exists():
                break
            refused = done.returncode in (1, 9) and done.stdout == ""
            assert refused or (done.returncode, done.stdout) == (0, "ready\ndone\n"), (
                capture,
                step,
                done,
            )
            reported = [
                l
                for l in done.stderr.splitlines()
                if l.startswith("hprof: ") and ("cannot" in l or "nothing is recorded" in l)
            ]
            assert reported or refused, (capture, step, done.stderr)
        assert done.returncode == 0 and "nothing is recorded" not in done.stderr, (
            capture,
            done.stderr,
        )
        assert done.stdout == "ready\ndone\n"


@pytest.mark.jdks(27, slow=(11,))
def test_a_start_up_that_fails_at_any_step_leaves_the_program_alone(jdk, tmp_path):
    fail_at_start_up(jdk, tmp_path, f"format=r,{SAMPLED}", ("cpu", "log"))


@pytest.mark.jdks(8, slow=(27,))
def test_a_start_up_over_a_socket_that_fails_at_any_step(jdk):
    """net= has a thread in addition to the worker. If one of them cannot be started, the agent
    neither waits for it nor uses it.
    """

    def take(server):
        try:
            while True:
                connection, _ = server.accept()
                threading.Thread(
                    target=lambda: [None for _ in iter(lambda: connection.recv(1 << 16), b"")],
                    daemon=True,
                ).start()
        except OSError:
            return

    failed = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=take, args=(server,), daemon=True).start()
        for step in range(1, 100):
            options = f"{HPROF},net=127.0.0.1:{server.getsockname()[1]},include=Rounds,fail=session:{step}"
            done = jdk.java(
                "Rounds", jvm=("-Xmx96m", jdk.agent(options)), stdin=subprocess.DEVNULL, timeout=120
            )
            refused = done.returncode in (1, 9) and done.stdout == ""
            assert refused or (done.returncode, done.stdout) == (0, "ready\ndone\n"), (step, done)
            if "nothing is recorded" not in done.stderr and not refused:
                break
            failed += 1
    assert 2 <= failed < 99, "of which the two threads are two"


@pytest.mark.slow
def test_every_step_of_every_start_up_fails_in_turn(jdk, tmp_path):
    for words, captures in SETS.items():
        fail_at_start_up(jdk, tmp_path, f"format=r,{words}", captures)
    fail_at_start_up(
        jdk, tmp_path, f"format=a,{HPROF}", ("session", "cpu", "heap", "monitor", "alloc")
    )


@pytest.mark.jdks(17)
def test_what_cannot_be_recorded_is_reported_before_the_vm_is_touched(jdk, tmp_path):
    """The first two killed servers: sampling was on when the exceptions or the condition turned out
    to be impossible. What can be determined without a VM, the command itself refuses with status 2.
    """
    impossible = {
        ("--exceptions=stacks",): (
            1,
            "shows each exception only to an agent that was there when it started",
        ),
        ("--trace", "a.B.c", "--if", "arg1 >"): (2, "condition: "),
        ("--log", "nowhere"): (2, "nowhere"),
        ("--watch", "no-field"): (2, "no-field: names no field: pkg.Class.field"),
    }
    with Rounds(jdk) as program:
        for words, (status, why) in impossible.items():
            done = lab.jvmscope(
                "attach", "--cpu", *words, "-o", tmp_path / "x.jfr", program.process.pid
            )
            assert (
                done.returncode == status
                and why in done.stderr
                and len(done.stderr.splitlines()) == status
            ), done.stderr
            program.goes_on()
        assert not (tmp_path / "x.jfr").exists()
        assert (
            lab.jvmscope(
                "attach", "--cpu", "-t", "200ms", "-o", tmp_path / "x.jfr", program.process.pid
            ).returncode
            == 0
        )
        program.end()


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_a_vm_takes_many_recordings(jdk, tmp_path):
    """Each time a class is passed to the VM again, its NaNs double, until the VM hangs at 65,536
    constants; that would happen after 17 recordings.
    """
    with Rounds(jdk) as program:
        for i in range(20):
            done = lab.jvmscope(
                "attach",
                "--exceptions",
                "--include",
                "Rounds",
                "-t",
                "10ms",
                "-o",
                tmp_path / "x.jfr",
                program.process.pid,
            )
            assert done.returncode == 0, (i, done.stderr)
            program.goes_on()
        shown = lab.read_json("trace", "--exceptions", "--json", tmp_path / "x.jfr")
        assert shown
        program.end()


@pytest.mark.jdks(8, 21, 27)
def test_another_thread_loads_a_library_while_the_agent_visits_them(jdk, tmp_path):
    """The VM's compilers load libraries while it starts, and the program does so at any time. A
    callback of the loader that needed another of the loader's locks kept the VM from starting,
    about once in thousands of starts.
    """
    agents = lab.BUILD / "tests" / "agents"
    agent = jdk.agent(f"requests=auto,trace=TracedNative,format=r,file={tmp_path}/out.jfr")
    done = jdk.run(
        "env",
        f"LD_PRELOAD={agents}/libloaderbusy.so",
        f"LOADER_BUSY={agents}/libnothing.so",
        "java",
        agent,
        "-Xmx64m",
        "-cp",
        lab.compiled("TracedNative"),
        "TracedNative",
        agents / "libtracejni.so",
        timeout=120,
    )
    assert done.returncode == 0, done
    visits = int(re.search(r"^(\d+) visits during a load$", done.stderr, re.M)[1])
    assert visits >= 10, done.stderr
