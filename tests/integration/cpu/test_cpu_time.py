# SPDX-License-Identifier: Apache-2.0
"""CPU time of compilers, collectors and other threads without Java code: all time that the process
has used is reported, by the kind of thread that used it.
"""
import json
import os
import re
import subprocess
import urllib.request

import pytest

import lab

INTERVAL = 0.001
COLLECTORS = {
    8: ("Serial", "Parallel", "G1", "ConcMarkSweep"),
    17: ("Parallel", "G1", "Z", "Shenandoah"),
    25: ("Serial", "Parallel", "G1", "Z", "Shenandoah"),
}


def samples(recording, *args):
    done = lab.jvmscope("report", "--json", *args, recording)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["samples"]


def check(found, used):
    """Returns the time that a recording reports and the time that the kernel counted, in
    seconds.
    """
    times = {what: ns / 1e9 for what, ns in found["cpu_time_ns"].items()}
    process = times.pop("process")
    assert abs(sum(times.values()) - process) < 0.001
    # The process runs for some milliseconds after the recording has ended, and used some time
    # before it began.
    assert 0.95 * used - 0.08 < process <= used + 0.01, (used, process, times)
    # Samples of Java threads, and what the kernel counted for all others, are everything that there
    # is.
    java = times.pop("java")
    assert abs(found["total"] * INTERVAL - java) < 0.04 * process + 0.02, (
        found["total"],
        java,
        times,
    )
    return process, times


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21), daily=1)
def test_all_cpu_time_of_a_process_is_reported(jdk, tmp_path):
    out = tmp_path / "c.jfr"
    program = jdk.start(
        "java",
        "-Xmx200m",
        jdk.agent(f"cpu=samples,interval=1ms,format=r,file={out}"),
        "-cp",
        lab.compiled("Compiles"),
        "Compiles",
        lab.ROOT / "tests" / "java",
        stderr=open(os.devnull, "w"),
    )
    _, _, used = os.wait4(program.pid, 0)
    program.returncode = 0
    process, times = check(samples(out), used.ru_utime + used.ru_stime)
    assert times["compilers"] > 0.1 * process and times["collector"] + times.get("VM", 0) > 0, times
    assert (
        times.get("native threads", 0) < 0.03 * process
    ), "all threads of the VM are known by their names"
    text = lab.output("report", out)
    assert re.search(
        r"^  CPU time of the process \S+ \w+: Java threads .*compilers \S+ m?s \(\d+\.\d %\)",
        text,
        re.M,
    ), text[:400]
    assert "\\n" not in text, text[:600]
    assert "cpu_time_ns" not in samples(
        out, "--thread", "main"
    ), "a report of one thread has nothing about the process"
    half = samples(out, "--to", f"{time_of(out) / 2}s")["cpu_time_ns"]["process"] / 1e9
    assert 0 < half < process
    page = tmp_path / "c.html"
    assert lab.jvmscope("convert", out, "-o", page).returncode == 0
    assert '"[compilers]"' in page.read_text()
    compilers = set(re.findall(r'"(C[12] Comp[^"]*)"', page.read_text()))
    assert compilers and all(
        re.fullmatch(r"C[12] CompilerThread\d*", name) for name in compilers
    ), "not cut as the kernel cuts them"


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize("collector", ["Serial", "Parallel"])
def test_the_report_says_where_the_serial_collector_works(jdk, tmp_path, collector):
    """It has no thread of its own: "VM 72 %" without a line of the collector was a riddle."""
    out = tmp_path / "s.jfr"
    done = jdk.run(
        *(lab.BUILD / "jvmscope", "run", "--cpu", "-o", out, "--", "java", "-Xmx64m"),
        *(f"-XX:+Use{collector}GC", "-cp", lab.compiled("Compiles"), "Compiles"),
        lab.ROOT / "tests" / "java",
    )
    assert out.exists(), done.stderr
    used = samples(out)["cpu_time_ns"]
    lines = " ".join(lab.output("report", out).split())
    serial = collector == "Serial"
    assert ("collector" in used) != serial and used["VM"] > 0, used
    assert bool(re.search(r" collector \S+ m?s \(\d+\.\d %\)", lines)) != serial, lines[:600]
    note = re.search(r" VM \S+ [mu]?s \(\d+\.\d %, where the serial collector works\)", lines)
    assert bool(note) == serial, lines[:600]


def time_of(recording):
    return float(re.search(r"in (\S+) s,", lab.jvmscope("report", recording).stdout)[1])


@pytest.mark.jdks(8, 17)
def test_a_part_has_the_same_cpu_time_as_a_selection_and_as_a_file(jdk, tmp_path):
    """Readings are a second apart. A part used to lose the reading that reached over its end and to
    have all of the one that reached over its beginning, so the file differed from the selection.
    """
    out, part = tmp_path / "c.jfr", tmp_path / "part.jfr"
    done = jdk.run(
        *(lab.BUILD / "jvmscope", "run", "--cpu", "-i", "1ms", "-o", out, "--", "java", "-Xmx64m"),
        *("-cp", lab.compiled("Compiles"), "Compiles", lab.ROOT / "tests" / "java"),
    )
    assert out.exists(), done.stderr
    whole = samples(out)["cpu_time_ns"]
    middle = time_of(out) / 2
    sums = dict.fromkeys(whole, 0)
    for window in (
        (),
        ("--to", f"{middle}s"),
        ("--from", f"{middle}s"),
        ("--from", "0.4s", "--to", "0.7s"),
    ):
        selected = samples(out, *window)["cpu_time_ns"]
        assert lab.jvmscope("convert", *window, out, "-o", part).returncode == 0
        found = samples(part)["cpu_time_ns"]
        assert found.keys() == selected.keys(), (window, found, selected)
        for what, ns in selected.items():
            assert abs(found[what] - ns) < 2000, (window, what, found, selected)
            if len(window) == 2:
                sums[what] += found[what]
    for what, ns in whole.items():
        # What the sum of the others lacks; where two clocks make it negative in a part, it is 0.
        if what != "not sampled":
            assert abs(sums[what] - ns) < 4000, (what, sums, whole)
    # A part of a part as well: its readings are spread over what is left of their time.
    assert lab.jvmscope("convert", "--to", f"{middle}s", out, "-o", part).returncode == 0
    selected = samples(out, "--to", "0.7s")["cpu_time_ns"]["process"]
    assert abs(samples(part, "--to", "0.7s")["cpu_time_ns"]["process"] - selected) < 2000


@pytest.mark.jdks(8, 17, 25)
def test_cpu_time_at_attach(jdk, tmp_path):
    out = tmp_path / "a.jfr"
    program = jdk.start_java("Busy", 600, 2, jvm=("-Xmx64m",), stdout=open(os.devnull, "w"))
    try:
        lab.use_cpu(program, 1)
        before = lab.cpu_seconds(program.pid)
        done = lab.jvmscope("attach", "--cpu", "-i", "1ms", "-t", "4s", "-o", out, program.pid)
        assert done.returncode == 0, done.stderr
        used = lab.cpu_seconds(program.pid) - before
    finally:
        program.kill()
        program.wait()
    found = samples(out)
    times = {what: ns / 1e9 for what, ns in found["cpu_time_ns"].items()}
    # How long the program runs before the recording begins, while the agent is loaded, depends on
    # how busy the machine is. The time that the process used meanwhile is compared through its
    # samples and its parts.
    parts = sum(seconds for what, seconds in times.items() if what != "process")
    assert abs(parts - times["process"]) < 0.001 and 0.2 < times["process"] < used + 0.05, (
        used,
        times,
    )
    assert abs(found["total"] * INTERVAL - times["java"]) < 0.04 * times["process"] + 0.02, (
        found["total"],
        times,
    )


@pytest.mark.jdks(8, 17, 25)
def test_what_was_used_before_an_attach_is_not_reported(jdk, tmp_path):
    """Compilers that are recognized as such only once they are sampled used to be reported with
    their whole CPU time, which was more than the process had used.
    """
    out = tmp_path / "a.jfr"
    program = jdk.start_java("ServesHttp", jvm=("-Xmx64m",), stdout=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{program.stdout.readline().strip()}/?q"
        while lab.cpu_seconds(program.pid) < 3:
            urllib.request.urlopen(url, timeout=60).read()
        before = lab.cpu_seconds(program.pid)
        attach = subprocess.Popen(
            [
                lab.BUILD / "jvmscope",
                "attach",
                "--cpu",
                "-i",
                "1ms",
                "-t",
                "2s",
                "-o",
                out,
                str(program.pid),
            ]
        )
        while attach.poll() is None:
            urllib.request.urlopen(url, timeout=60).read()
        assert attach.returncode == 0
        used = lab.cpu_seconds(program.pid) - before
    finally:
        program.kill()
        program.wait()
    times = {what: ns / 1e9 for what, ns in samples(out)["cpu_time_ns"].items()}
    process = times.pop("process")
    assert (
        abs(sum(times.values()) - process) < 0.001
        and 0 < process < used + 0.05
        and times["java"] > 0
    ), (used, process, times)


@pytest.mark.jdks(*COLLECTORS)
def test_collectors_are_known_by_their_threads(jdk, tmp_path):
    for collector in COLLECTORS[jdk.version]:
        out = tmp_path / f"{collector}.jfr"
        done = jdk.java(
            "Allocates",
            1200000,
            jvm=(
                f"-XX:+Use{collector}GC",
                "-Xmx200m",
                jdk.agent(f"cpu=samples,interval=1ms,format=r,file={out}"),
            ),
        )
        assert done.returncode == 0, done.stderr
        times = samples(out)["cpu_time_ns"]
        assert times["VM" if collector == "Serial" else "collector"] > 0.02 * times["process"], (
            collector,
            times,
        )
        assert times.get("native threads", 0) < 0.05 * times["process"], (collector, times)


def test_samples_without_java_frames_say_what_runs(jdk, tmp_path):
    """Before main, the main thread runs code of the VM and of agents but no Java; such samples have
    those frames.
    """
    out = tmp_path / "s.jfr"
    done = jdk.java(
        "Exits",
        0,
        jvm=(
            "-Xmx64m",
            jdk.agent(f"cpu=samples,interval=1ms,format=r,file={out}"),
            f"-agentpath:{lab.BUILD}/tests/agents/libbare.so",
        ),
    )
    assert done.returncode == 0, done.stderr
    found = samples(out)
    before = sum(
        m["total"] for m in found["methods"] if m["method"].endswith("computes_before_java")
    )
    assert 200 < before < 320, found["methods"][:5]
    assert found["unattributed"] <= 0.01 * found["total"], (
        found["unattributed"],
        found["profiler"],
    )


@pytest.mark.jdks(8, 17, 25)
def test_threads_that_run_for_less_than_a_tick_of_the_kernel_are_sampled_in_full(jdk, tmp_path):
    """A hundred threads use 20 ms each, less than a millisecond at a time. The samples agree with
    the threads' own clocks to 2 %, whether the recording is stopped while they live or they end
    first. Without the intervals that the kernel had not reported yet, a tenth would be missing.
    """
    program = jdk.start_java(
        "Bursts", 100, 20, jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    program.stdout.readline()
    attached = tmp_path / "a.jfr"
    done = lab.jvmscope("attach", "--cpu", "-i", "1ms", "-o", attached, program.pid)
    assert done.returncode == 0, done.stderr
    program.stdin.write("\n")
    program.stdin.flush()
    used = {attached: int(program.stdout.readline().split()[0]) / 1e6}
    assert lab.jvmscope("stop", program.pid).returncode == 0
    program.communicate("\n")
    out = tmp_path / "s.jfr"
    done = jdk.java(
        "Bursts",
        100,
        20,
        jvm=("-Xmx64m", jdk.agent(f"cpu=samples,interval=1ms,format=r,file={out}")),
        input="\n\n",
    )
    assert done.returncode == 0, done.stderr
    used[out] = int(done.stdout.split()[2]) / 1e6
    for recording, ms in used.items():
        found = samples(recording, "--thread", "burst-*")
        assert abs(found["total"] - ms) < 0.02 * ms + 10, (recording, found["total"], ms)
        # The kernel checks every 4 ms. The probability that it sees none of twenty bursts of a
        # millisecond is 0.8^20, a hundredth, and then the thread's 20 ms have no stack. More than
        # five of a hundred threads are not chance any more.
        assert found["unattributed"] < 0.055 * ms, found
        whole = samples(recording)
        java = whole["cpu_time_ns"]["java"] / 1e6
        assert int(re.search(r", from (\d+) threads\n", lab.output("report", recording))[1]) >= 100
        # Even a thread that never got a signal is known to be a Java thread, with the CPU time that
        # it used.
        assert java >= ms, (recording, whole["cpu_time_ns"], ms)
        assert abs(whole["total"] - java) < 0.02 * java + 20, (recording, whole["total"], java)


@pytest.mark.jdks(17, 25)
def test_cpu_time_of_parts_adds_up_to_that_of_the_whole(jdk, tmp_path):
    """The kernel is queried once per second. What was used in between is spread over the parts,
    none of which has more than its processors provide.
    """
    out, width, cores = tmp_path / "out.jfr", 0.3, len(os.sched_getaffinity(0))
    assert (
        jdk.java(
            "Busy", 3, 2, jvm=("-Xmx64m", jdk.agent(f"cpu=samples,format=r,file={out}"))
        ).returncode
        == 0
    )
    whole = lab.read_json("report", "--json", out)
    parts = []
    for k in range(int(whole["span_ns"] / 1e9 / width) + 1):
        done = lab.jvmscope(
            "report",
            "--json",
            "--from",
            f"{k * width * 1000:.0f}ms",
            "--to",
            f"{(k + 1) * width * 1000:.0f}ms",
            out,
        )
        parts.append(
            json.loads(done.stdout)["samples"]["cpu_time_ns"] if done.returncode == 0 else {}
        )
    for what in ("process", "java"):
        assert sum(p.get(what, 0) for p in parts) == pytest.approx(
            whole["samples"]["cpu_time_ns"][what], rel=0.1
        ), (what, parts)
    # Java threads and the process are read one after the other.
    assert all(p.get("java", 0) <= p.get("process", 0) + 5e6 for p in parts[1:]), parts
    assert all(p.get("process", 0) <= 1.05 * cores * width * 1e9 for p in parts[1:]), parts
