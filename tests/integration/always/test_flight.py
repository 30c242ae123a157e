# SPDX-License-Identifier: Apache-2.0
"""--jfr: the VM's own Flight Recorder records into the same file as well, and nothing is in it
twice.
"""
import collections
import datetime
import json
import re
import signal
import struct
import subprocess
import time

import pytest

import lab
from recording import JFR_DUMP

OURS = (
    "cpu=samples",
    "alloc=sampled",
    "threads=y",
    "events=y",
    "exceptions=stacks",
    "requests=Amounts.hold",
)


def parts(path):
    """The chunks of our writer, and those of the VM's recorder, each as a recording of its own."""
    data, at, files = path.read_bytes(), 0, {}
    while at < len(data):
        assert data[at : at + 4] == b"FLR\0", at
        size = struct.unpack_from(">Q", data, at + 8)[0]
        chunk = data[at : at + size]
        files.setdefault(b"jvmscope.Lost" in chunk, bytearray()).extend(chunk)
        at += size
    assert set(files) == {True, False}, "the file lacks the VM's chunks, or ours"
    for ours, chunks in files.items():
        path.with_name(f"{path.stem}-{ours}.jfr").write_bytes(chunks)
    return [path.with_name(f"{path.stem}-{ours}.jfr") for ours in (True, False)]


def counts(path):
    """Events by type."""
    found = {}
    for line in subprocess.run(
        [JFR_DUMP, path], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        kind = line.split(" ", 1)[0]
        if "." in kind:
            found[kind] = found.get(kind, 0) + 1
    return found


@pytest.mark.parametrize("others", (False, True), ids=("alone", "with_others"))
def test_both_record_and_nothing_twice(jdk, tmp_path, others):
    """With captures that write the JDK's events, each figure equals that of a recording without the
    VM's events. This holds also where the program has a recording of the VM's recorder running
    itself, which makes the recorder write its samples, waits and settings for ours as well.
    """
    out = tmp_path / "both.jfr"
    running = [f"-XX:StartFlightRecording=filename={tmp_path}/own.jfr,settings=profile"] * others
    words = [w for w in OURS if jdk.version >= 11 or w != "alloc=sampled"]
    done = jdk.java(
        "Amounts",
        "2000",
        "20",
        jvm=("-Xmx128m", *running, jdk.agent(f"jfr=profile,format=r,{','.join(words)},file={out}")),
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (counts(p) for p in parts(out))
    assert not set(ours) & set(theirs), set(ours) & set(theirs)
    assert theirs["jdk.CPUInformation"] and ours["jdk.ExecutionSample"] and ours["jdk.ThreadStart"]
    assert counts(out) == ours | theirs
    report = lab.read_json("report", "--json", out)
    alone = lab.read_json("report", "--json", tmp_path / "both-True.jfr")
    assert not report["unended"]
    twice = {row["type"]: row["events"] for row in report["left_out"]}
    assert bool(twice) == others and set(twice) <= set(
        counts(tmp_path / "own.jfr") if others else ()
    ), twice
    output_text = lab.jvmscope("report", out).stderr
    for kind, n in twice.items():
        assert (
            f"{n} {kind}" in output_text
            and " were left out: jvmscope recorded the same" in output_text
        ), output_text
    assert ("jdk.ThreadStart" in twice) == others and others or "left out" not in output_text
    if jdk.version < 11:  # allocations come from the VM only
        report.pop("allocations", None)
    assert report == alone
    for verb in (("vm",), ("threads", "summary"), ("trace", "--exceptions"), ("requests",)):
        both, alone = (
            lab.jvmscope(*verb, "--json", path) for path in (out, tmp_path / "both-True.jfr")
        )
        assert both.stdout == alone.stdout and both.returncode == alone.returncode, verb
    # The JDK's own reader takes the file as one recording, with the events of both.
    printed = lab.Jdk(25 if jdk.version > 17 else 17).run("jfr", "print", "--stack-depth", "1", out)
    assert printed.returncode == 0, printed.stderr
    kinds = collections.Counter(re.findall(r"^([\w.]+) \{", printed.stdout, re.M))
    # A stack whose innermost method is not known is an ExecutionSample, too, though the report
    # counts it as unattributed.
    without_stack = sum(
        int(re.search(r"^ +samples = (\d+)", e, re.M)[1])
        for e in re.findall(r"^jvmscope\.UnattributedSample \{.*?^\}", printed.stdout, re.M | re.S)
    )
    assert kinds["jdk.ExecutionSample"] + without_stack == report["samples"]["total"], kinds
    assert without_stack <= report["samples"]["unattributed"]
    assert set(kinds) >= set(ours) - {"jdk.types.FrameType"} and set(kinds) >= set(theirs), (
        set(ours) | set(theirs)
    ) - set(kinds)
    assert not list(tmp_path.glob("*.vm"))


@pytest.mark.jdks(8, 17, 25)
def test_samples_next_to_another_recorder_are_the_cpu_time(jdk, tmp_path):
    """Our samples, with our interval, add up to the CPU time. Samples of the VM's own recorder are
    not added to them.
    """
    out = tmp_path / "both.jfr"
    done = jdk.java(
        "Burns",
        "1",
        "0",
        jvm=(
            f"-XX:StartFlightRecording=filename={tmp_path}/own.jfr",
            jdk.agent(f"jfr=default,format=r,cpu=samples,file={out}"),
        ),
    )
    assert done.returncode == 0, done.stderr
    report = lab.read_json("report", "--json", out)
    assert any(row["type"] == "jdk.ExecutionSample" for row in report["left_out"]), report
    samples = report["samples"]
    sampled_ns = samples["total"] * samples["interval_ns"]
    # What the VM's own threads use is not sampled.
    assert 0.8 * samples["cpu_time_ns"]["java"] <= sampled_ns, samples
    assert sampled_ns <= 1.1 * samples["cpu_time_ns"]["process"], samples


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_one_clock_for_both(jdk, tmp_path):
    """Readers of JDK 25 and later convert all times of a file by the clock of its first chunk,
    which is ours: the VM's events once were ten minutes early there.
    """
    out, before = tmp_path / "both.jfr", time.time()
    done = jdk.java(
        "Amounts",
        "2000",
        "20",
        jvm=("-Xmx128m", jdk.agent(f"jfr=profile,format=r,events=y,file={out}")),
    )
    after = time.time()
    assert done.returncode == 0, done.stderr
    data = out.read_bytes()
    second = struct.unpack_from(">Q", data, 8)[0]
    clocks = {
        struct.unpack_from(">Q", data, at + 32)[0] - struct.unpack_from(">Q", data, at + 48)[0]
        for at in (0, second)
    }
    assert len(clocks) == 1 and struct.unpack_from(">Q", data, second + 56)[0] == 10**9, clocks
    for reader in (17, 25, 27) if jdk.version == 25 else (25,):
        printed = lab.Jdk(reader).run("jfr", "print", "--json", "--stack-depth", "1", out)
        assert printed.returncode == 0, printed.stderr
        events = json.loads(printed.stdout)["recording"]["events"]
        times = [
            (
                datetime.datetime.fromisoformat(
                    re.sub(
                        r"\.(\d{1,6})\d*",
                        lambda m: "." + m[1].ljust(6, "0"),
                        e["values"]["startTime"],
                    )
                ).timestamp(),
                e["type"],
            )
            for e in events
        ]
        wrong = [t for t in times if not before - 1 < t[0] < after + 1]
        assert not wrong and len({kind for _, kind in times}) > 40, (
            reader,
            before,
            after,
            wrong[:5],
            len(wrong),
            len(times),
        )


@pytest.mark.jdks(8, 17, 27)
def test_alone_and_attached(jdk, jvmscope, tmp_path):
    """Twice in one VM, and a third time until a signal ends the program."""
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for settings in ("--jfr", "--jfr=profile"):
            out = tmp_path / f"{settings}.jfr"
            done = jvmscope("attach", settings, "-t", "300ms", "-o", out, process.pid)
            assert done.returncode == 0, done.stderr
            ours, theirs = (counts(p) for p in parts(out))
            # The samples here are not ours: the VM takes them, and its settings say how often.
            assert theirs["jdk.ActiveSetting"] and not set(ours) & set(theirs) - {
                "jdk.ActiveSetting"
            }
        out = tmp_path / "ended.jfr"
        attached = subprocess.Popen(
            [lab.BUILD / "jvmscope", "attach", "--jfr", "-t", "100s", "-o", out, str(process.pid)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lab.wait_for(
            lambda: re.search(
                r"^state +recording$", lab.jvmscope("status", process.pid).stdout, re.M
            ),
            60,
            "the start of the recording",
        )
        done = lab.jvmscope("dump", "-o", tmp_path / "part.jfr", process.pid)
        assert (
            done.returncode == 0
            and "jvmscope: note: the VM's own events (--jfr) follow when the recording ends\n"
            in done.stderr
        ), done.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
        output_text = attached.communicate(timeout=60)[1]
        assert attached.returncode == 0, output_text
        assert "jdk.CPUInformation" in counts(parts(out)[1])
    finally:
        process.kill()
        process.wait()


@pytest.mark.jdks(8, 21)
def test_wrong_settings_are_refused_and_the_program_runs(jdk, tmp_path):
    bad = tmp_path / "bad.jfc"
    bad.write_text("<configuration>")
    for settings, why in ((tmp_path / "missing.jfc", "missing.jfc"), (bad, "")):
        out = tmp_path / "no.jfr"
        done = jdk.java(
            "Amounts", "10", "1", jvm=("-Xmx64m", jdk.agent(f"jfr={settings},format=r,file={out}"))
        )
        assert done.returncode == 0 and not out.exists() and not list(tmp_path.glob("*.vm"))
        line = next(l for l in done.stderr.splitlines() if l.startswith("hprof: "))
        assert (
            line.startswith(f"hprof: jfr={settings}: the VM's Flight Recorder does not start: ")
            and why in line
        ), line
    # Only the agent knows the reason, and run fails as the recording did.
    done = lab.jvmscope(
        "run",
        f"--jfr={bad}",
        "-o",
        tmp_path / "no.jfr",
        "--",
        *jdk.command("java", "-Xmx64m", "-version"),
    )
    assert (
        done.returncode == 1
        and f"jfr={bad}: the VM's Flight Recorder does not start: " in done.stderr
        and "no recording was written" not in done.stderr
    ), done.stderr
    for command in (("run", "--", "true"), ("attach", "1")):
        done = lab.jvmscope(command[0], "--jfr=nosuch", *command[1:])
        assert (done.returncode, done.stdout) == (
            2,
            "",
        ) and "--jfr=nosuch: allowed: default, profile, a file with a slash or the extension .jfc\n" in done.stderr, (done)
    # A settings file is searched for before the program starts, in the caller's folder.
    for words in (
        ("run", "--jfr=no/such", "--", "true"),
        ("run", f"--jfr={tmp_path}/missing.jfc", "--", "true"),
        ("attach", "--jfr=nosuch.jfc", "1"),
    ):
        done = lab.jvmscope(*words)
        assert (
            done.returncode == 2 and "cannot be read for --jfr: No such file" in done.stderr
        ), done.stderr
    done = lab.jvmscope("run", "--jfr", "--always", "--", "true")
    assert done.returncode == 2 and ": --jfr cannot be combined with it" in done.stderr, done.stderr
