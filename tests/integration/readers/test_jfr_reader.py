# SPDX-License-Identifier: Apache-2.0
"""What each JDK's Flight Recorder writes, read by src/jfr and compared with the JDK's own jfr
tool.
"""
import collections
import itertools
import json
import re
import shutil
import signal
import struct
import time
import zlib

import pytest

import lab
import outputs
from recording import dump, totals

# type: (paths for ours, how to find the same in the tool's JSON)
COMPARED = {
    "jdk.ActiveSetting": ("name", "value"),
    "jdk.InitialSystemProperty": ("key", "value"),
    "jdk.GCHeapSummary": ("gcId", "when", "heapSpace.committedSize", "heapUsed"),
    "jdk.ThreadStart": ("thread.javaName", "thread.javaThreadId"),
    "jdk.JavaMonitorEnter": ("monitorClass.name", "previousOwner.javaName", "stackTrace"),
    "jdk.ThreadPark": ("parkedClass.name", "eventThread.javaName", "stackTrace"),
    "jdk.ExecutionSample": ("sampledThread.javaName", "state", "stackTrace"),
    "jdk.ObjectAllocationInNewTLAB": ("objectClass.name", "allocationSize", "stackTrace"),
    "jdk.ObjectAllocationSample": ("objectClass.name", "weight", "stackTrace"),
    "jdk.CPULoad": ("machineTotal",),
    "jdk.GarbageCollection": ("gcId", "name", "cause"),
}


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    return {}


@pytest.fixture
def recording(jdk, recordings, tmp_path_factory):
    """A recording of this JDK with the profile settings, in chunks of a megabyte."""
    if jdk.version not in recordings:
        path = tmp_path_factory.mktemp("jfr") / f"jdk{jdk.version}.jfr"
        path.parent.chmod(0o755)
        done = jdk.java(
            "JfrWork",
            2500,
            jvm=[
                "-Xmx64m",
                "-XX:FlightRecorderOptions=maxchunksize=1m",
                f"-XX:StartFlightRecording=settings=profile,filename={path}",
            ],
        )
        assert done.returncode == 0 and path.exists(), done
        recordings[jdk.version] = path
    return recordings[jdk.version]


@pytest.mark.jdks(daily=1)
def test_every_event_type_is_counted_as_the_jfr_tool_does(jdk, recording):
    done = jdk.run("jfr", "summary", recording)
    theirs = {
        m[1]: int(m[2])
        for m in re.finditer(r"^ *(jdk\.\S+) +(\d+) +\d+ *$", done.stdout, re.M)
        if int(m[2])
    }
    ours = totals(recording)
    assert ours["unresolved"] == "0" and "truncated:" not in ours
    ours = {k: int(v) for k, v in ours.items() if k.startswith("jdk.")}
    for name in list(theirs):
        if name.lower() in ("jdk.metadata", "jdk.checkpoint"):
            del theirs[name]
    assert len(ours) > 40
    assert ours == theirs


def of_json(values, path):
    if path == "stackTrace":
        if values[path] is None:
            return "null"
        frames = values[path]["frames"]
        if not frames:
            return "0:"
        method = frames[-1]["method"]
        # a lambda's class is printed with dots or slashes depending on the JDK
        return "%d:%s.%s" % (len(frames), method["type"]["name"].replace("/", "."), method["name"])
    for name in path.split("."):
        if values is None:
            return "null"
        values = values[name]
    return "null" if values is None else str(values)


def comparable(path, text):
    # the tool does not decode the JVM's own UTF-8 beyond the 16-bit characters
    text = re.sub(r"worker \u00e4 \D+ (\d)", r"worker \1", text)
    if path.endswith("Total") or path == "weight":
        text = text.split("(")[0]
        # a float of 32 bits: two ways to write one number are one
        return (
            str(struct.unpack("f", struct.pack("f", float(text)))[0])
            if path.endswith("Total")
            else text
        )
    text = re.sub(r"\(-?\d+\)$", "", text)
    return text.replace("/", ".") if path in ("stackTrace",) or path.endswith(".name") else text


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21), daily=1)
def test_contents_are_those_the_jfr_tool_prints(jdk, recording):
    done = jdk.run(
        "jfr", "print", "--json", "--stack-depth", "64", "--events", ",".join(COMPARED), recording
    )
    assert done.returncode == 0, done
    theirs = collections.defaultdict(collections.Counter)
    for event in json.loads(done.stdout)["recording"]["events"]:
        paths = COMPARED[event["type"]]
        theirs[event["type"]][
            "\t".join(comparable(p, of_json(event["values"], p)) for p in paths)
        ] += 1
    assert len(theirs) >= 8
    for name, paths in COMPARED.items():
        ours = collections.Counter()
        for line in dump("--get=" + ",".join(paths), recording, name):
            ours["\t".join(comparable(p, text) for p, text in zip(paths, line.split("\t")))] += 1
        assert ours == theirs[name], name


def test_profiles_hold_the_samples_that_events_report(jdk, recording):
    """The reader that determines once per chunk where fields are agrees with the one that looks
    them up by name, for damaged files too.
    """
    for options in ([], ["--damage", "60"]):
        done = lab.subprocess.run(
            [lab.BUILD / "tests/unit/profile_twice", *options, recording],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done
        assert options or int(done.stdout.split()[0]) > 20, done.stdout


def test_pprof_has_the_samples_of_a_stack_together(jdk, recording, tmp_path):
    """They differ only in their threads, and therefore take next to no memory."""
    out = tmp_path / "s.pb.gz"
    assert lab.jvmscope("convert", recording, "-o", out, "--metric", "allocations").returncode == 0
    samples = [
        dict(outputs.fields(value))
        for field, value in outputs.fields(zlib.decompress(out.read_bytes(), 31))
        if field == 2
    ]
    stacks = [sample.get(1, b"") for sample in samples]
    assert len(set(stacks)) < len(stacks), "no stack is of two threads"
    assert len(list(itertools.groupby(stacks))) == len(set(stacks))
    assert len({(sample.get(1), sample.get(3)) for sample in samples}) == len(samples)
    total = lab.read_json("report", recording, "--json")["allocations"]["total"]
    assert sum(next(outputs.numbers(sample[2])) for sample in samples) == total


def test_order_of_time(jdk, recording):
    lines = dump("--time", recording, "jdk.ExecutionSample", "jdk.ThreadPark", "jdk.GCPhasePause")
    starts = [int(line.split()[1]) for line in lines]
    assert starts == sorted(starts) and len(starts) == len(
        dump(recording, "jdk.ExecutionSample", "jdk.ThreadPark", "jdk.GCPhasePause")
    )
    wall = time.time_ns()
    assert wall - 3600 * 10**9 < starts[0] <= starts[-1] < wall


def test_names_are_utf8(jdk, recording):
    names = dump("--get=thread.javaName", recording, "jdk.ThreadStart")
    assert "worker \u00e4 \U0001f600 3" in names


@pytest.mark.jdks(8, 17, 27)
def test_a_killed_vm(jdk, tmp_path):
    """After kill -9, the VM's repository is read as far as it is complete."""
    repository = tmp_path / "repository"
    repository.mkdir()
    process = jdk.start_java(
        "JfrWork",
        60000,
        jvm=[
            "-Xmx64m",
            f"-XX:FlightRecorderOptions=repository={repository}",
            "-XX:StartFlightRecording=settings=profile",
        ],
        stdout=-1,
        stderr=-1,
        cwd=tmp_path,
    )
    for line in process.stdout:
        if line == "ready\n":
            break
    time.sleep(3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (chunk,) = repository.rglob("*.jfr")
    done = lab.subprocess.run(
        [lab.BUILD / "tests" / "unit" / "jfr_dump", chunk],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if jdk.version >= 14:  # since then the header is refreshed every second
        assert done.returncode == 0
        assert int(re.search(r"^jdk.ThreadPark (\d+)$", done.stdout, re.M)[1]) > 10
    else:  # nothing tells what the bytes mean
        assert done.returncode == 1 and re.match(r"error: .*", done.stdout), done
    shutil.rmtree(repository)


@pytest.mark.jdks(8, 27)
def test_damage(jdk, recording):
    """Any byte changed, the file cut anywhere: no crash and no read out of bounds, with the
    sanitizers watching.
    """
    damage = lab.ROOT / "build-san" / "tests" / "unit" / "jfr_damage"
    if not damage.exists():
        pytest.skip("the sanitized build is not there (make sanitized)")
    step = str(recording.stat().st_size // 25)
    done = lab.subprocess.run(
        [damage, recording, "11", step, "24"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0 and done.stdout == "damaged 24\n", done
