# SPDX-License-Identifier: Apache-2.0
"""What src/jfr writes, read by each JDK's jfr tool and by our reader, when the writer is killed,
short of room, or limited.
"""
import collections
import os
import random
import re
import resource
import signal
import subprocess
import time

import pytest

import lab
from recording import dump, totals

STRESS = lab.BUILD / "tests" / "unit" / "jfr_stress"


def stress(path, *words, **kwargs):
    done = subprocess.run(
        [STRESS, path, *words], capture_output=True, text=True, timeout=120, **kwargs
    )
    assert done.returncode == 0, done
    return {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)", done.stdout)}


def summary(jdk, path):
    done = jdk.run("jfr", "summary", path)
    assert done.returncode == 0, done
    return {
        m[1]: int(m[2])
        for m in re.finditer(r"^ *((?:jdk|jvmscope)\.\S+) +(\d+) +\d+ *$", done.stdout, re.M)
    }


def ticks_of(path):
    """Returns the numbers of each writer's Tick events, in the order of the file."""
    ticks = collections.defaultdict(list)
    for line in dump(
        "--get=writer,number,eventThread.javaName,stackTrace", path, "jvmscope.test.Tick"
    ):
        fields = line.split("\t")
        if len(fields) != 4:
            assert line.startswith("truncated: "), line
            continue
        ticks[int(fields[0])].append(int(fields[1]))
        assert fields[2] == f"writer {fields[0]} \u00e4"
        yield_depth(fields[3], int(fields[1]))
    return ticks


def yield_depth(stack, number):
    which = number % 200
    depth, lowest = stack.split(":", 1)
    assert int(depth) == 1 + which % 40
    assert lowest == "test.pack.Class{0}.method{1}".format(
        (which * 7 + which % 40) % 100 // 10, (which * 7 + which % 40) % 100
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """One recording of several chunks that every tool reads, with what its writer counted."""
    path = tmp_path_factory.mktemp("jfr") / "several chunks.jfr"
    counted = stress(path, "ms=800", "chunk=50000", "pause=250000", "big=1")
    os.chmod(path.parent, 0o755)
    return path, counted


def test_nothing_is_lost_over_rotations(tmp_path):
    path = tmp_path / "many events.jfr"
    counted = stress(path, "ms=800", "chunk=1000000", "pause=50000", "big=1")
    assert counted["chunks"] >= 3
    for what in (
        "close",
        "lost_busy",
        "lost_room",
        "lost_size",
        "lost_shape",
        "lost_traces",
        "lost_constants",
        "unresolved",
        "error",
    ):
        assert counted[what] == 0, what
    ours = totals(path)
    assert int(ours["jvmscope.test.Tick"]) == counted["ticks"]
    assert int(ours["jdk.ExecutionSample"]) == counted["samples"]
    assert int(ours["chunks"]) == counted["chunks"]
    assert ours["unresolved"] == "0" and "truncated:" not in ours
    ticks = ticks_of(path)
    assert len(ticks) == 4
    for numbers in ticks.values():
        assert sorted(numbers) == list(range(len(numbers)))


@pytest.mark.jdks(daily=1)
def test_the_jfr_tool_reads_it(jdk, recording):
    path, counted = recording
    assert counted["chunks"] >= 3
    counts = summary(jdk, path)
    assert counts["jvmscope.test.Tick"] == counted["ticks"]
    assert counts["jdk.ExecutionSample"] == counted["samples"]
    printed = jdk.run("jfr", "print", "--stack-depth", "64", path)
    assert printed.returncode == 0 and not printed.stderr.replace("Picked up", ""), printed.stderr
    events = printed.stdout.split("\n\n")
    ticks = [e for e in events if e.startswith("jvmscope.test.Tick")]
    assert len(ticks) == counted["ticks"]
    assert sum(e.startswith("jdk.ExecutionSample") for e in events) == counted["samples"]
    seen = collections.defaultdict(set)
    for event in ticks:
        number = int(re.search(r"number = (\d+)", event)[1])
        writer = int(re.search(r"writer = (\d+)", event)[1])
        seen[writer].add(number)
        assert f'eventThread = "writer {writer} \u00e4" (javaThreadId = {writer + 1})' in event
        assert (
            len(re.findall(r"test\.pack\.Class\d+\.method\d+\(int\) +line: 1[012]", event))
            == 1 + number % 200 % 40
        )
    assert all(numbers == set(range(len(numbers))) for numbers in seen.values())
    metadata = jdk.run("jfr", "metadata", path)
    assert metadata.returncode == 0 and "class Tick" in metadata.stdout, metadata.stderr
    assert '@Label("Tick")' in metadata.stdout and '{"jvmscope", "Test"}' in metadata.stdout


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_moment(tmp_path, seed):
    """After kill -9 everything that was committed is there: each writer's numbers without a gap,
    including stacks and names.
    """
    path = tmp_path / "killed.jfr"
    process = subprocess.Popen(
        [STRESS, path, "ms=60000", "pause=20000", f"chunk={1000000 if seed % 2 else 0}", "big=1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(random.Random(seed).uniform(0.0, 1.2))
    process.send_signal(signal.SIGKILL)
    process.wait()
    for numbers in ticks_of(path).values():
        assert sorted(numbers) == list(range(len(numbers)))
    ours = totals(path)
    assert "truncated:" not in ours, ours


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_killed_and_read_by_the_jfr_tool(jdk, tmp_path):
    """Other tools read a killed recording too: all its events, with the names of what was
    flushed.
    """
    path = tmp_path / "killed.jfr"
    process = subprocess.Popen(
        [STRESS, path, "ms=60000", "pause=800000", "chunk=100000"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    ours = totals(path)
    assert summary(jdk, path)["jvmscope.test.Tick"] == int(ours["jvmscope.test.Tick"]) > 1000
    printed = jdk.run("jfr", "print", "--events", "Tick", path)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.count("jvmscope.test.Tick {") == int(ours["jvmscope.test.Tick"])
    assert printed.stdout.count("test.pack.Class") > int(ours["jvmscope.test.Tick"])


def test_killed_while_the_file_grows(tmp_path):
    """Other tools read a file that consists of whole chunks and refuse any other; the first chunk
    here has grown twice.
    """
    path = tmp_path / "grown.jfr"
    process = subprocess.run(
        [STRESS, path, "ms=60000"],
        env=dict(os.environ, LD_PRELOAD=f"{lab.BUILD}/tests/agents/libkillgrow.so"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == -signal.SIGKILL, process
    data = path.read_bytes()
    assert data[:4] == b"FLR\0" and int.from_bytes(data[8:16], "big") == len(data)
    assert int(totals(path)["jvmscope.test.Tick"]) > 0


def read_after_failure(path, counted, error):
    assert counted["error"] == error and counted["close"] == error
    assert counted["lost_room"] > 0 and counted["lost_constants"] == 0
    ours = totals(path)
    assert int(ours["jvmscope.test.Tick"]) == counted["ticks"] > 0
    assert int(ours.get("jvmscope.Lost", 0)) > 0
    assert ours["unresolved"] == "0" and "truncated:" not in ours
    ticks_of(path)


def test_file_size_limit(tmp_path):
    """RLIMIT_FSIZE: no SIGXFSZ, a reported error, and an intact file."""
    path = tmp_path / "limited.jfr"
    counted = stress(
        path,
        "ms=1000",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000000, 3000000)),
    )
    assert path.stat().st_size <= 3000000
    read_after_failure(path, counted, 27)


def test_own_limit(tmp_path):
    path = tmp_path / "limited.jfr"
    counted = stress(path, "ms=1000", "max=4000000")
    assert path.stat().st_size <= 4000000
    read_after_failure(path, counted, 27)


def test_disk_full(tmp_path):
    """A file system that fills up while the recording is written: no SIGBUS, a reported ENOSPC, and
    an intact file.
    """
    mount = tmp_path / "small"
    mount.mkdir()
    script = f"mount -t tmpfs -o size=6m none {mount} && {STRESS} {mount}/full.jfr ms=1500 && cp {mount}/full.jfr {tmp_path}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60
    )
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("mounting a small file system needs root")
    assert done.returncode == 0, done
    counted = {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)", done.stdout)}
    read_after_failure(tmp_path / "full.jfr", counted, 28)


@pytest.mark.parametrize(
    "path, error",
    [("/proc/nothing.jfr", 2), ("/no such folder/x.jfr", 2), ("/tmp", 21), ("/dev/null", 22)],
)
def test_what_cannot_be_written(path, error):
    done = subprocess.run([STRESS, path], capture_output=True, text=True, timeout=10)
    assert done.stdout == f"error={error}\n"
    assert os.path.exists("/dev/null")


def test_an_old_recording_is_not_overwritten_under_its_readers(tmp_path):
    path = tmp_path / "twice.jfr"
    stress(path, "ms=100", "threads=1")
    with open(path, "rb") as old:
        size = os.fstat(old.fileno()).st_size
        stress(path, "ms=10", "threads=1")
        assert os.fstat(old.fileno()).st_size == size
