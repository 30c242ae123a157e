# SPDX-License-Identifier: Apache-2.0
"""Two builds of the agent meet in one VM, as after an upgrade, or with commands from two folders.
The VM keeps the first one.
"""
import pathlib
import shutil
import subprocess

import pytest

import lab

# They define classes of Java and call native methods, which the VM looks up by name.
PROBES = ["--threads", "--trace", "Busy.work"]


@pytest.fixture
def other(tmp_path):
    """The command and the agent in another folder."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name in ("jvmscope", "libhprof.so"):
        shutil.copy(lab.BUILD / name, folder / name)
    return folder


def agents(pid):
    """Returns the agents that a VM has mapped, by their folders' names."""
    return {
        line.split("/")[-2]
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        if "libhprof" in line
    }


@pytest.mark.jdks(8, 17, 25)
def test_the_vm_keeps_the_agent_that_it_loaded_first(jdk, jvmscope, other, tmp_path):
    with jdk.start_java("Busy", 300, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        done = subprocess.run(
            [
                other / "jvmscope",
                "attach",
                "--threads",
                "-t",
                "200ms",
                "-o",
                tmp_path / "a.jfr",
                str(process.pid),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        for i in range(2):
            done = jvmscope(
                "attach", *PROBES, "-t", "300ms", "-o", tmp_path / f"b{i}.jfr", process.pid
            )
            assert done.returncode == 0, done.stderr
            assert agents(process.pid) == {"other"}
            assert '"thread":"main"' in lab.output(
                "threads", "timeline", "--json", tmp_path / f"b{i}.jfr"
            )
        # If something other than our command loads the second agent, it unloads itself at once.
        asked = (
            jdk.run(
                "jcmd",
                process.pid,
                "JVMTI.agent_load",
                lab.BUILD / "libhprof.so",
                "cpu=times,file=/dev/null",
            )
            if jdk.version > 8
            else None
        )
        assert asked is None or "return code: 0" not in asked.stdout, asked
        assert jvmscope("status", process.pid).returncode == 0
        assert process.poll() is None
        process.kill()
        _, err = process.communicate()
    assert "Exception" not in err and "fatal" not in err, err


@pytest.mark.jdks(8, 25)
def test_two_builds_at_the_start(jdk, other, tmp_path):
    done = jdk.java(
        "Busy",
        "0",
        jvm=[
            f"-agentpath:{other}/libhprof.so=cpu=samples,file={tmp_path}/a.txt",
            jdk.agent(f"cpu=times,file={tmp_path}/b.txt"),
        ],
    )
    assert done.returncode == 1 and "ready" not in done.stdout
    assert (
        done.stderr.strip()
        == f"hprof: another build of the agent is loaded in this VM, which keeps it: {other}/libhprof.so"
    ), done.stderr
