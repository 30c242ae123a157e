# SPDX-License-Identifier: Apache-2.0
"""A part of a recording by threads or classes (`convert --thread`, `--class`) does not show what it
lacks: a thread that was left out has no states, and nothing is traced from thread to thread.
"""
import functools
import json
import re
import subprocess

import pytest

import lab

THREADS, CLASSES = "what other threads did is not in this part", "events of some classes"


def answer(verb, path, *args):
    done = lab.jvmscope("threads", *verb.split(), "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@functools.cache
def recorded(version):
    """Threads that hand over a lock, are notified and unparked, while main waits for their end."""
    jdk, out = lab.Jdk(version), f"{lab.SCRATCH}/selected-{version}.jfr"
    done = jdk.java(
        "PartsOfTime", jvm=[jdk.agent(f"threads=y,cpu=samples,format=r,file={out}")], timeout=60
    )
    assert done.returncode == 0, done.stderr
    return out


def slices(path, category="state", time="name"):
    """The slices of the .json that `convert` writes of a recording, by thread."""
    out = path.with_suffix(".json")
    assert lab.jvmscope("convert", path, "-o", out).returncode == 0
    events = json.loads(out.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    found = {}
    for e in events:
        if e["ph"] == "X" and e["cat"] == category:
            found.setdefault(names[e["tid"]], []).append((e[time], e["dur"]))
    return found


def waits(rows):
    """How long each wait took. When a thread was notified is unknown where the notifying thread was
    left out, so waiting and getting the monitor back are one wait here.
    """
    took, running = [], True
    for name, us in rows:
        if name.startswith("run"):
            running = True
        elif running:
            took.append(us)
            running = False
        else:
            took[-1] += us
    return took


@functools.cache
def recorded_collecting(version):
    """Threads and the VM's own activity, with thirty collections and more."""
    jdk, out = lab.Jdk(version), f"{lab.SCRATCH}/selected-collecting-{version}.jfr"
    done = jdk.java(
        "VmActivity",
        "1",
        jvm=["-Xmx100m", "-Xmn16m", jdk.agent(f"threads=y,events=y,format=r,file={out}")],
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return out


def pauses(path):
    """The pauses as .json and .pftrace have them, in nanoseconds."""
    rows = slices(path, "pause").get("pauses for collections", [])
    out = path.with_suffix(".pftrace")
    assert lab.jvmscope("convert", path, "-o", out).returncode == 0
    schema = f"--proto_path={lab.ROOT / 'tests' / 'data'}"
    text = subprocess.run(
        ["protoc", schema, "--decode=Trace", "perfetto.proto"],
        input=out.read_bytes(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    track, times = re.search(r'uuid: (\d+)\s+name: "pauses for collections"', text), []
    for packet in text.split("packet {")[1:] if track else ():
        at = re.search(r"timestamp: (\d+)", packet)
        if at and f"track_uuid: {track[1]}\n" in packet:
            times.append(int(at[1]))
    took = [end - start for start, end in zip(times[::2], times[1::2])]
    assert took == [round(us * 1000) for _, us in rows]
    return took


def activity(path, *args):
    return lab.read_json("vm", "--json", *args, path)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize(
    "selection",
    [("--thread", "main"), ("--class", "VmActivity"), ("--thread", "Signal Dispatcher")],
)
def test_a_part_has_what_the_vm_did(jdk, selection, tmp_path):
    """A pause stops the selected threads as well, and nothing of the VM's activity is of a thread
    that can be selected, so a part has all of it.
    """
    path, whole, part = (
        recorded_collecting(jdk.version),
        tmp_path / "whole.jfr",
        tmp_path / "part.jfr",
    )
    assert lab.jvmscope("convert", path, "-o", whole).returncode == 0
    done = lab.jvmscope("convert", *selection, path, "-o", part)
    if "Signal Dispatcher" in selection and done.returncode:
        # What the VM did is no reason to write a part without any event of the thread.
        assert "the selection has no events" in done.stderr and not part.exists(), done
        return
    assert done.returncode == 0 and "the VM's own activity" not in done.stderr, done
    expected, found = activity(whole), activity(part)
    assert expected["collections"]["pauses"] >= 10
    assert expected == found
    took = pauses(whole)
    assert len(took) >= 10 and pauses(part) == took


@pytest.mark.jdks(17)
def test_a_part_of_the_time_has_a_pause_that_began_before_it(jdk, tmp_path):
    """It lasts into the part. `vm` counts pauses where they begin, with --from as in a part."""
    path, whole, part = (
        recorded_collecting(jdk.version),
        tmp_path / "whole.jfr",
        tmp_path / "part.jfr",
    )
    assert lab.jvmscope("convert", path, "-o", whole).returncode == 0
    rows = slices(whole, "pause", "ts")["pauses for collections"]
    at, us = max(rows[5:], key=lambda row: row[1])
    middle = round((at + us / 2) * 1000)
    assert lab.jvmscope("convert", "--from", f"{middle}ns", path, "-o", part).returncode == 0
    later = [us for start, us in rows if start > at]
    took = pauses(part)
    assert took[0] == pytest.approx(us * 500, abs=1000) and len(took) == 1 + len(later)
    vm = activity(path, "--from", f"{middle}ns")["collections"]
    assert activity(part)["collections"]["pauses"] == vm["pauses"] == len(later)


@pytest.mark.jdks(8, 17)
def test_what_has_no_place_for_pauses_says_so(jdk, tmp_path):
    """Also where pauses are all that is known of the VM."""
    path = tmp_path / "threads.jfr"
    done = jdk.java(
        "SmallCollections", "20", jvm=[jdk.agent(f"threads=y,format=r,file={path}")], timeout=60
    )
    assert done.returncode == 0, done.stderr
    for extension, lacks in ((".trcxml", True), (".json", False), (".pftrace", False)):
        done = lab.jvmscope("convert", path, "-o", tmp_path / f"x{extension}")
        note = "the output lacks pauses for collections, which .html, .jfr, .pftrace and .json hold"
        assert done.returncode == 0 and (note in done.stderr) == lacks, done.stderr
        assert "the VM's own activity" not in done.stderr
    assert len(pauses(path)) == 20


def refused(verb, path, why):
    done = lab.jvmscope("threads", *verb.split(), path)
    assert done.returncode == 1 and not done.stdout and why in done.stderr, (verb, done)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("chosen", ["taker-1", "listener"])
def test_a_thread_that_is_left_out_has_no_states(jdk, chosen, tmp_path):
    """The part has the states of the chosen thread as the whole recording has them, in every
    format, and names the others only where they ended its waits.
    """
    whole, part, xml = recorded(jdk.version), tmp_path / "part.jfr", tmp_path / "part.trcxml"
    copy = tmp_path / "whole.jfr"
    assert lab.jvmscope("convert", whole, "-o", copy).returncode == 0
    assert lab.jvmscope("convert", "--thread", chosen, whole, "-o", part).returncode == 0
    (row,) = (r for r in answer("summary", whole)[0]["threads"] if r["name"] == chosen)
    assert row["waited"] + row["blocked"] >= 10
    found = slices(part)
    assert found.keys() == {chosen}
    assert waits(found[chosen]) == pytest.approx(waits(slices(copy)[chosen]), abs=0.01)
    assert lab.jvmscope("convert", part, "-o", xml).returncode == 0
    for path in (part, xml):
        summary, note = answer("summary", path)
        assert summary["part_of"] == "threads" and THREADS in note
        (alone,) = summary["threads"]
        assert (alone["name"], alone["daemon"]) == (chosen, False)
        assert alone["waited_ns"] + alone["blocked_ns"] == pytest.approx(
            row["waited_ns"] + row["blocked_ns"], abs=1000
        )
        for verb in (
            "critical-path",
            "critical-path --end " + chosen,
            "what-if",
            "what-if --lock S",
        ):
            refused(verb, path, THREADS)
        classes = answer("monitors", path)[0]["classes"]
        assert classes and {c["path_ns"] for c in classes} == {
            c["path_share"] for c in classes
        } == {None}
        assert not any(c["gain_ns"] for c in classes)
        text = lab.jvmscope("threads", "monitors", path).stdout
        assert "%" not in text and "PartsOfTime$" in text
    events = answer("timeline", part)[0]["events"]
    assert not [e for e in events if e["thread"] != chosen and e["type"] == "TRCThreadRunningEvent"]
    # A part of this part lacks the same.
    refused("critical-path --from 1ms", part, THREADS)


@pytest.mark.jdks(8, 17, 25)
def test_a_part_by_classes_does_not_show_who_ran(jdk, tmp_path):
    """The waits whose stacks lack the class are not in the part, so its threads may have waited
    at any time.
    """
    whole, part = recorded(jdk.version), tmp_path / "part.jfr"
    assert lab.jvmscope("convert", "--class", "PartsOfTime", whole, "-o", part).returncode == 0
    found = slices(part)
    assert len(found["taker-1"]) >= 10
    assert not [name for rows in found.values() for name, _ in rows if name.startswith("run")]
    summary, note = answer("summary", part)
    assert summary["part_of"] == "classes" and CLASSES in note
    rows = {r["name"]: r for r in answer("summary", whole)[0]["threads"]}
    for row in summary["threads"]:
        if "taker" in row["name"]:
            assert row["blocked_ns"] == rows[row["name"]]["blocked_ns"] > 0
    refused("critical-path", part, CLASSES)
    refused("what-if", part, CLASSES)
    done = lab.jvmscope("convert", part, "-o", tmp_path / "part.trcxml")
    assert done.returncode == 1 and CLASSES in done.stderr
