# SPDX-License-Identifier: Apache-2.0
"""The clocks of cpu=samples: threads' CPU timers, or perf_event with the kernel's frames where the
kernel permits it.
"""
import json
import os
import pathlib
import re
import subprocess

import pytest

import lab

NOT_PERMITTED = "the kernel gives us no perf_event clock here"
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
WITHOUT_RIGHTS = [
    "setpriv",
    "--bounding-set=-sys_admin,-perfmon",
]  # of a root process: what perf_event_open asks for


def sample(jdk, tmp_path, options, ms=1000, before=()):
    """Runs Syscalls under cpu=samples; returns ({method: (self %, total %)} of the report, samples
    in its main over its CPU time, stderr).
    """
    out = tmp_path / "out.jfr"
    agent = jdk.agent(f"cpu=samples,format=r,file={out},{options}")
    done = jdk.run(*before, "java", agent, "-cp", lab.compiled("Syscalls"), "Syscalls", ms)
    assert done.returncode == 0, done.stderr
    text = lab.jvmscope("report", "--limit", "1000", out).stdout
    rows = {
        m[3]: (float(m[1]), float(m[2]))
        for m in re.finditer(r"^ +([\d.]+) % +([\d.]+) % +\d+ +(\S+)$", text, re.M)
    }
    total = int(re.search(r"CPU samples: (\d+),", text)[1])
    in_main = rows["Syscalls.main"][1] / 100 * total
    return rows, in_main / (int(re.search(r"loop_ns (\d+)", done.stdout)[1]) / 10e6), done.stderr


def of_kernel(rows):
    return sum(self for name, (self, _) in rows.items() if name.startswith("kernel."))


@pytest.mark.jdks(8, 27)
def test_kernel_frames_where_permitted(jdk, tmp_path, record_property):
    """native=y and perf_event: a third or more of this program's time is spent in the kernel, whose
    functions are called by libc's and Java's.
    """
    if not lab.perf_permitted():
        pytest.skip(NOT_PERMITTED)
    rows, ratio, stderr = sample(jdk, tmp_path, "native=y")
    record_property("kernel", f"{of_kernel(rows):.1f} %")
    assert stderr == ""
    assert 0.9 <= ratio <= 1.1
    assert of_kernel(rows) >= 15
    hidden = pathlib.Path("/proc/sys/kernel/kptr_restrict").read_text().strip() == "2"
    assert hidden or rows["kernel.vfs_read"][1] >= 15, rows


@pytest.mark.jdks(17)
@pytest.mark.parametrize("timer", ("thread", "perf"))
def test_number_of_samples(jdk, tmp_path, timer, record_property):
    """Both clocks include what the thread uses in the kernel. There is no kernel frame without
    native=y or without perf_event.
    """
    if timer == "perf" and not lab.perf_permitted():
        pytest.skip(NOT_PERMITTED)
    rows, ratio, stderr = sample(
        jdk, tmp_path, f"timer={timer}" + (",native=y" if timer == "thread" else "")
    )
    record_property("samples per interval", f"{ratio:.3f}")
    assert stderr == ""
    assert 0.9 <= ratio <= 1.1
    assert of_kernel(rows) == 0


@pytest.mark.jdks(25)
def test_perf_event_refused(jdk, tmp_path):
    """timer=perf or native=y where the kernel does not permit it: one line says that there are no
    kernel frames, the recording does too, and the threads' CPU timers are used.
    """
    if PARANOID.exists() and int(PARANOID.read_text()) < 2:
        pytest.skip("kernel.perf_event_paranoid permits perf_event to everybody here")
    line = "no kernel frames: perf_event_open is refused ("
    rows, ratio, stderr = sample(jdk, tmp_path, "timer=perf,native=y", before=WITHOUT_RIGHTS)
    assert stderr.count(line) == 1 and len(stderr.splitlines()) == 1, stderr
    assert 0.9 <= ratio <= 1.1 and of_kernel(rows) == 0
    rows, ratio, stderr = sample(jdk, tmp_path, "native=y", ms=500, before=WITHOUT_RIGHTS)
    assert stderr.count(line) == 1 and len(stderr.splitlines()) == 1, stderr
    assert of_kernel(rows) == 0 and ratio >= 0.85
    printed = lab.jvmscope("report", tmp_path / "out.jfr").stderr
    assert f": cpu: {line}" in printed, printed
    [missing] = lab.read_json("report", "--json", tmp_path / "out.jfr")["missing"]
    assert (missing["capture"], missing["what"]) == ("cpu", "no kernel frames"), missing


@pytest.mark.jdks(8, 25)
def test_wall_clock_samples_have_no_kernel_frames_and_say_so(jdk, tmp_path):
    """Whether or not perf_event is permitted."""
    line = "no kernel frames: perf_event, which supplies them, cannot sample threads that wait"
    out = tmp_path / "wall.jfr"
    for native in (True, False):
        done = jdk.run(
            lab.BUILD / "jvmscope",
            "run",
            "--cpu=wall",
            *(["--native"] if native else []),
            "-o",
            out,
            "--",
            "java",
            "-cp",
            lab.compiled("Sleepers"),
            "Sleepers",
            2,
        )
        printed = lab.jvmscope("report", out).stderr
        missing = lab.read_json("report", "--json", out)["missing"]
        assert (line in done.stderr) == native, done.stderr
        assert printed.count(f"cpu: {line}") == native, printed
        assert [m["what"] for m in missing] == ["no kernel frames"] * native, missing


@pytest.mark.jdks(17)
def test_no_resonance(jdk, tmp_path):
    """A program that repeats itself exactly with the interval, a quarter in one method and the rest
    in another, is not always sampled at the same place.

    Uses perf_event: threads' CPU timers fire at the kernel's tick, about 4 ms apart, and cannot be
    shifted by less.
    """
    if not lab.perf_permitted():
        pytest.skip(NOT_PERMITTED)
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Periodic",
        3000,
        2000,
        jvm=[jdk.agent(f"cpu=samples,interval=2,timer=perf,format=r,file={out}")],
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second, cpu = map(int, re.findall(r"\d+", done.stdout))
    text = lab.output("report", "--limit", "1000", out)
    assert 0.9 <= int(re.search(r"CPU samples: (\d+),", text)[1]) / (cpu / 2e6) <= 1.1
    found = {
        m[2]: float(m[1])
        for m in re.finditer(r"^ +[\d.]+ % +([\d.]+) % +\d+ +Periodic\.(first|second)$", text, re.M)
    }
    share = found["first"] / (found["first"] + found["second"])
    assert abs(share - first / (first + second)) <= 0.1


@pytest.mark.jdks(17)
def test_perf_leaves_nothing_behind(jdk, tmp_path):
    """Many threads start and end, then sampling stops: descriptors and mappings are the same as
    before.
    """
    if not lab.perf_permitted():
        pytest.skip(NOT_PERMITTED)
    process = jdk.start_java("Hot", "threads", 12000, 300, stdout=-3, stderr=-3)
    try:
        lab.use_cpu(process, 1)

        def figures():
            fds = [
                os.readlink(f"/proc/{process.pid}/fd/{fd}")
                for fd in os.listdir(f"/proc/{process.pid}/fd")
            ]
            maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
            return sum("perf_event" in f for f in fds), maps.count("perf_event")

        assert figures() == (0, 0)
        done = lab.jvmscope(
            "attach", "--cpu", "--native", "-t", "1500ms", "-o", tmp_path / "a.jfr", process.pid
        )
        assert done.returncode == 0, done.stderr
        assert figures() == (0, 0)
        report = lab.output("report", tmp_path / "a.jfr")
        assert "Hot.countedLoop" in report
    finally:
        process.kill()
        process.wait()


def hot_under(jdk, tmp_path, options, ms=1000, before=(), jvm=()):
    """Hot's counted loop: returns (samples, CPU time over 10 ms in the loop, in its thread,
    stderr).
    """
    out = tmp_path / "out.txt"
    agent = jdk.agent(f"cpu=samples,lineno=n,verbose=n,cutoff=0,file={out},{options}")
    done = jdk.run(*before, "java", *jvm, agent, "-cp", lab.compiled("Hot"), "Hot", "counted", ms)
    assert done.returncode == 0, done.stderr
    total = int(re.search(r"total = (\d+)", out.read_text().split("CPU SAMPLES BEGIN")[1])[1])
    loop_ns, cpu_ns = map(int, re.search(r"loop_ns (\d+) cpu_ns (\d+)", done.stdout).groups())
    return total, loop_ns / 10e6, cpu_ns / 10e6, done.stderr


@pytest.mark.jdks(8, 17, 27)
def test_stacks_by_jvmti(jdk, tmp_path, record_property):
    """walker=jvmti: the number of samples is CPU time divided by the interval, and one line says
    how they are taken.

    The stacks are those at the next safepoint, which a counted loop may or may not have, so no
    share is required of it.
    """
    total, of_loop, of_thread, stderr = hot_under(jdk, tmp_path, "walker=jvmti")
    record_property("samples", f"{total}, of {of_loop:.0f} to {of_thread:.0f}")
    assert stderr.splitlines() == [
        "hprof: cpu: stacks are taken by JVM TI, at safepoints: walker=jvmti"
    ]
    assert 0.85 * of_loop <= total <= 1.1 * of_thread


@pytest.mark.jdks(8, 25)
def test_samples_that_wait_when_sampling_ends_are_counted(jdk, tmp_path):
    """JVM TI's samples are kept for the agent's thread: whenever a busy program ends, some have not
    been counted yet.
    """
    process, out = (
        jdk.start_java("Busy", 600, 4, jvm=("-Xmx64m",), stdout=subprocess.PIPE),
        tmp_path / "x.hprof.txt",
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(3):
            before = lab.cpu_seconds(process.pid)
            done = lab.jvmscope(
                "attach", "--agent", "cpu=samples,walker=jvmti,interval=1ms", process.pid
            )
            assert done.returncode == 0, done.stderr
            lab.use_cpu(process, 0.2)
            done = lab.jvmscope("stop", "-o", out, process.pid)
            assert done.returncode == 0 and process.poll() is None, done.stderr
            total = json.loads(lab.jvmscope("report", "--json", out).stdout)["samples"]["total"]
            assert 0 < total <= 1000 * (lab.cpu_seconds(process.pid) - before) + 40
    finally:
        process.kill()
        process.wait()


@pytest.mark.jdks(17)
def test_a_vm_without_asyncgetcalltrace(jdk, tmp_path):
    """Neither our walker (-Xcheck:jni forbids it) nor AsyncGetCallTrace is available: JVM TI is
    used, which is reported once.
    """
    before = ["env", f"LD_PRELOAD={lab.BUILD}/tests/agents/libnoagct.so"]
    total, of_loop, of_thread, stderr = hot_under(
        jdk, tmp_path, "interval=5", before=before, jvm=["-Xcheck:jni"]
    )
    assert (
        stderr.count(
            "cpu: stacks are taken by JVM TI, at safepoints: this VM has no AsyncGetCallTrace, and -Xcheck:jni"
        )
        == 1
    )
    assert total >= 1.7 * of_loop


@pytest.mark.jdks(17)
def test_wall_by_jvmti(jdk, tmp_path):
    """cpu=wall,walker=jvmti: sleeping threads are sampled for as long as they sleep."""
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Hot",
        "native",
        1000,
        jvm=[jdk.agent(f"cpu=wall,walker=jvmti,interval=20,format=r,file={out}")],
    )
    assert done.returncode == 0, done.stderr
    text = lab.output("report", "--idle", "--limit", "1000", out)
    rows = {
        m[2]: int(m[1]) for m in re.finditer(r"^ +[\d.]+ % +[\d.]+ % +(\d+) +(\S+)$", text, re.M)
    }
    waits = sum(n for name, n in rows.items() if "accept" in name.lower() or "poll" in name.lower())
    assert waits >= 30, text


@pytest.mark.usefixtures("on_time")  # a thread exists for longer than it sleeps
@pytest.mark.jdks(8, 17, 25)
def test_the_wall_clock_of_many_threads(jdk, tmp_path):
    """However many threads there are, and however late the agent's thread wakes up, the samples
    amount to the time for which the threads slept until they ended.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Sleepers", 40, 60, 70, 100, 130, 200, jvm=[jdk.agent(f"cpu=wall,format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr

    def seconds(thread):
        report = json.loads(lab.output("report", "--idle", "--json", "--thread", thread, out))
        return report["wall"]["total"] / 100

    for line in done.stdout.splitlines():
        count, slept = map(int, line.split())
        assert seconds(f"s{count}-*") == pytest.approx(slept / 1000, rel=0.01), (line, done.stdout)
    whole = json.loads(lab.output("report", "--json", out))["span_ns"] / 1e9
    assert 6 <= seconds("main") <= whole
