# SPDX-License-Identifier: Apache-2.0
"""cpu=times together with other agents, and with calls that began before the recording or continue
after it.
"""
import json
import pathlib
import re
import signal
import subprocess
import zipfile

import hprof_times
import lab
import pytest


class Middle:
    """TimesMiddle, running."""

    def __init__(self, jdk):
        self.process = jdk.start_java(
            "TimesMiddle", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout.readline() == "in 0\n"
        self.depth = 0

    def say(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self.depth += {"enter": 1, "leave": -1}.get(word, 0)
        want = (
            f"in {self.depth}\n"
            if word == "enter"
            else "done enter\n"
            if word == "leave"
            else f"done {word}\n"
        )
        assert self.process.stdout.readline() == want

    def record(self, out, clock, during):
        """Records while `during` runs; {method: calls}."""
        pid = self.process.pid
        attached = subprocess.Popen(
            [
                lab.BUILD / "jvmscope",
                "attach",
                "--agent",
                f"cpu=times,clock={clock},include=TimesMiddle",
                "-t",
                "100s",
                "-o",
                out,
                str(pid),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )

        def records():
            assert attached.poll() is None, attached.communicate()[1]
            return re.search(r"^state +recording$", lab.jvmscope("status", pid).stdout, re.M)

        lab.wait_for(records, 60, "the start of the recording")
        during()
        attached.send_signal(signal.SIGINT)
        assert attached.communicate(timeout=60) and attached.returncode == 0
        times = json.loads(lab.jvmscope("report", "--json", out).stdout)["times"]
        return {m["method"].split(".")[-1]: m["calls"] for m in times["methods"] if m["calls"]}


@pytest.mark.parametrize("clock", ["cpu", "elapsed"])
@pytest.mark.jdks(8, 17, 25)
def test_recordings_begin_and_end_in_the_middle_of_calls(jdk, tmp_path, clock):
    middle = Middle(jdk)
    try:
        middle.say("enter")
        middle.say(1000)

        def first():
            middle.say(2000)
            middle.say("enter")
            middle.say(300)
            middle.say("leave")
            middle.say("leave")  # of a call that began before the recording
            middle.say(40)
            middle.say("enter")  # and stays when the recording ends
            middle.say(5)

        # inner and work run new code; level(0) and level(1) are code from before the recording.
        assert middle.record(tmp_path / "first.jfr", clock, first) == {
            "inner": 2345,
            "work": 4,
            "level": 2,
        }
        middle.say(700)

        def second():
            middle.say(100)
            middle.say("leave")  # of a call that has probes of the previous recording
            middle.say(11)
            middle.say("enter")
            middle.say(1)
            middle.say("leave")

        assert middle.record(tmp_path / "second.jfr", clock, second) == {
            "inner": 112,
            "work": 3,
            "level": 1,
        }
        out, err = middle.process.communicate("leave\n", timeout=30)
        assert (out, middle.process.returncode) == ("end\n", 0), err
    finally:
        middle.process.kill()
        middle.process.communicate()


def jacoco(folder):
    """JaCoCo's agent, which Debian has inside another jar."""
    packed = pathlib.Path("/usr/share/java/org.jacoco.agent.jar")
    if not packed.exists():
        pytest.skip(f"{packed} is missing; install it: apt-get install libjacoco-java")
    with zipfile.ZipFile(packed) as jar:
        (folder / "jacocoagent.jar").write_bytes(jar.read("jacocoagent.jar"))
    return folder / "jacocoagent.jar"


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.jdks(8, 17)
def test_another_agent_that_changes_classes(jdk, tmp_path, order):
    """JaCoCo is loaded before or after our agent: our counts remain exact, and so does its
    coverage.
    """
    n = 500
    other = f"-javaagent:{jacoco(tmp_path)}=destfile={tmp_path}/jacoco.exec,includes=TimesTruth*"
    ours = jdk.agent(f"cpu=times,cutoff=0,depth=2,verbose=n,file={tmp_path}/times.txt")
    done = jdk.java("TimesTruth", n, jvm=[other, ours] if order == "before" else [ours, other])
    assert (done.returncode, done.stdout) == (0, f"done {n}\n"), done.stderr
    wrong = hprof_times.wrong_counts((tmp_path / "times.txt").read_text(errors="replace"), jdk, n)
    assert not wrong, f"(found, expected): {wrong}"
    assert b"TimesTruth" in (tmp_path / "jacoco.exec").read_bytes()


@pytest.mark.jdks(21, 25, 27)
@pytest.mark.parametrize(
    "options",
    [
        "cpu=times,alloc=exact",
        "cpu=times,alloc=exact,live=exact,threads=y,cover=y,exceptions=counts,events=y",
    ],
)
def test_virtual_threads_go_on_with_exact_allocations(jdk, options, tmp_path):
    """No stack can be taken while a virtual thread is mounted, because JVM TI waits for the end of
    the mount. The probe there must therefore run no method that allocates.
    """
    out = tmp_path / "v.jfr"
    done = jdk.java(
        "VirtualRounds",
        jvm=("-Xmx64m", jdk.agent(f"format=r,file={out},{options}")),
        release=21,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "rounds 1000\n"), done.stderr
    calls = lab.read_json("report", "--json", "--metric", "times", "-n", 10**6, out)["times"][
        "methods"
    ]
    assert {m["calls"] for m in calls if m["method"] == "VirtualRounds.round"} == {1000}, options
