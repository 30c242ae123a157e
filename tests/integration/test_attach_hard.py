# SPDX-License-Identifier: Apache-2.0
"""attach where there is no room or no right: one line that says why, and the program goes on."""
import pathlib
import re
import subprocess

import lab
import pytest

READ_ONLY = "for d in /tmp /var/tmp /dev/shm; do mount --bind $d $d && mount -o remount,ro,bind $d; done"
FULL = ("mount -t tmpfs -o size=256k none /tmp && mount --bind /tmp /dev/shm && "
        "dd if=/dev/zero of=/tmp/filler bs=4k 2>/dev/null; test -s /tmp/filler")


@pytest.fixture
def vm(jdk):
    """Starts Busy under the JDK after a shell command in the mount namespace that it has of its own; answers the process once it runs."""
    started = []

    def start(before=":"):
        java = f"{before} && exec java -XX:-UsePerfData -Xmx32m -cp {lab.compiled('Busy')} Busy 60"
        process = jdk.start("sh", "-c", java, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def refused(process, *command, kept=False):
    """The one line of a command that must fail; `kept`: another one names where the recording still is, and it is there."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and not done.stdout, done
    line, *more = done.stderr.splitlines()
    assert line.startswith("jvmscope: ") and len(more) == kept, done.stderr
    if kept:
        recording = pathlib.Path(re.match("jvmscope: the recording is still at: ([^:]+)", more[0])[1])
        assert recording.stat().st_size > 0
        recording.unlink()
    assert process.poll() is None
    return line


@pytest.mark.jdks(8, 25)
def test_read_only_file_systems(vm):
    process = vm(READ_ONLY)
    assert "read-only" in refused(process, lab.BUILD / "jvmscope", "attach", "-t", "1s", process.pid)


@pytest.mark.jdks(8, 25)
def test_full_tmp_of_the_vm(vm, tmp_path):
    process = vm(FULL)
    said = refused(process, lab.BUILD / "jvmscope", "attach", "--cpu", "-t", "1s", "-o", tmp_path / "out.jfr", process.pid)
    assert "No space left" in said or "no space" in said, said
    assert not (tmp_path / "out.jfr").exists()


@pytest.mark.jdks(17)
def test_full_disk_of_the_output(vm, tmp_path):
    process = vm()
    script = (f"mount -t tmpfs -o size=32k none {tmp_path} && exec {lab.BUILD}/jvmscope attach --cpu -t 1s -o {tmp_path}/out.jfr "
              f"{process.pid}")
    said = refused(process, "unshare", "--mount", "--propagation", "private", "sh", "-c", script, kept=True)
    assert f"{tmp_path}/out.jfr" in said and "No space left" in said, said


@pytest.mark.jdks(17)
def test_output_and_vm_of_others(vm, tmp_path):
    process = vm()
    said = refused(process, lab.BUILD / "jvmscope", "attach", "-t", "1s", "-o", "/proc/no.jfr", process.pid, kept=True)
    assert "/proc/no.jfr" in said, said
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    library = tmp_path / "bin"
    said = refused(process, *command, copy_for_all(library), "attach", "-t", "1s", "-o", "/tmp/no.jfr", process.pid)
    assert "another user" in said, said


def copy_for_all(folder):
    """The command where every user may run it."""
    subprocess.run(["install", "-D", "-m", "755", "-t", folder, lab.BUILD / "jvmscope", lab.BUILD / "libhprof.so"], check=True)
    for parent in (folder, *list(folder.parents)[:-2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    return folder / "jvmscope"
