# SPDX-License-Identifier: Apache-2.0
"""cpu=samples: programs whose profile is known, in HPROF's text, and the robustness of the
sampler.
"""
import re

import pytest

import lab


def profile(jdk, tmp_path, program, *args, ms=1500, options="", jvm=()):
    """Runs Hot under cpu=samples. Returns ({method: samples}, their number, what the program
    printed: {name: number}).
    """
    out = tmp_path / "out.txt"
    agent = jdk.agent(
        f"cpu=samples,lineno=n,verbose=n,cutoff=0,file={out}" + (f",{options}" if options else "")
    )
    done = jdk.java("Hot", program, ms, *args, jvm=[agent, *jvm])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return (
        *samples(out.read_text()),
        {name: float(n) for name, n in re.findall(r"(\w+) ([\d.]+)", done.stdout)},
    )


def samples(text):
    """The CPU SAMPLES section of an HPROF text."""
    section = text[text.index("CPU SAMPLES BEGIN") :]
    total = int(re.search(r"total = (\d+)", section)[1])
    methods = {}
    for count, name in re.findall(r"^ *\d+ +[\d.]+% +[\d.]+% +(\d+) +\d+ (.+)$", section, re.M):
        methods[name] = methods.get(name, 0) + int(count)
    assert sum(methods.values()) == total
    return methods, total


def samples_below(text, method):
    """Returns how many samples have the method on their stack."""
    traces = {
        number
        for number, frames in re.findall(r"^TRACE (\d+):.*\n((?:\t.*\n)*)", text, re.M)
        if f"\t{method}(" in frames
    }
    section = text[text.index("CPU SAMPLES BEGIN") :]
    return sum(
        int(n)
        for n, trace in re.findall(r"^ *\d+ +[\d.]+% +[\d.]+% +(\d+) +(\d+) ", section, re.M)
        if trace in traces
    )


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_counted_loop_and_number_of_samples(jdk, tmp_path, record_property):
    """99 % of the time is spent in a loop without a safepoint, and the number of samples is CPU
    time over interval.

    Only the time after the program has started counts, because the start-up time depends on the
    machine.
    """
    methods, _, reported = profile(jdk, tmp_path, "counted", ms=3000, options="depth=32")
    share = methods["Hot.countedLoop"] / samples_below(
        (tmp_path / "out.txt").read_text(), "Hot.main"
    )
    ratio = methods["Hot.countedLoop"] / (0.99 * reported["loop_ns"] / 10e6)
    record_property("countedLoop", f"{share:.3f}")
    record_property("samples per interval", f"{ratio:.3f}")
    assert share >= 0.95
    assert 0.9 <= ratio <= 1.1


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_inlined_method(jdk, tmp_path, record_property):
    """The share of `heavy`, which is inlined, is three quarters in the samples, as it is by the
    program's own clock.

    There are enough samples to make 3 points four standard deviations: perf_event takes one per
    millisecond, CPU timers one per tick.
    """
    options, ms = ("interval=1,timer=perf", 3500) if lab.perf_permitted() else ("interval=4", 14000)
    methods, total, reported = profile(
        jdk,
        tmp_path,
        "inlined",
        ms=ms,
        options=options,
        jvm=["-XX:CompileCommand=quiet", "-XX:CompileCommand=inline,Hot::heavy"],
    )
    of_hot = {name: n for name, n in methods.items() if name.startswith("Hot.")}
    share = of_hot["Hot.heavy"] / sum(of_hot.values())
    record_property("heavy", f"{share:.3f}, by the program's clock {reported['heavy']:.3f}")
    assert abs(reported["heavy"] - 0.76) <= 0.1
    assert abs(share - reported["heavy"]) <= 0.03


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_threads_blocked_in_native_calls_use_no_cpu(jdk, tmp_path, record_property):
    methods, total, _ = profile(jdk, tmp_path, "native", ms=1500)
    blocked = sum(
        n for name, n in methods.items() if "accept" in name.lower() or "poll" in name.lower()
    )
    record_property("blocked", f"{blocked / total:.4f}")
    assert blocked / total <= 0.01


@pytest.mark.jdks(8, 17, 27)
def test_deep_recursion(jdk, tmp_path):
    methods, total, _ = profile(
        jdk, tmp_path, "deep", ms=1000, options="depth=16000", jvm=["-Xss64m"]
    )
    assert methods["Hot.recurse"] / total >= 0.8
    text = (tmp_path / "out.txt").read_text()
    assert text.count("Hot.recurse(Hot.java") > 5000


@pytest.mark.jdks(8, 17, 27)
def test_exceptions(jdk, tmp_path):
    methods, total, reported = profile(jdk, tmp_path, "exceptions", ms=1000)
    assert methods["java.lang.Throwable.fillInStackTrace"] / total >= 0.3
    assert total >= 0.8 * reported["cpu_ns"] / 10e6


@pytest.mark.jdks(8, 17, 27)
def test_two_thousand_threads(jdk, tmp_path):
    """Twenty of 2,000 threads work, and all of their work is recorded, whatever it costs to start
    and end the others.
    """
    methods, total, reported = profile(jdk, tmp_path, "threads", 2000, ms=200)
    assert 0.9 <= methods["Hot.countedLoop"] / (reported["work_ns"] / 10e6) <= 1.1


@pytest.mark.jdks(8, 27)
def test_without_kernel_timers(jdk, tmp_path):
    """ulimit -i 50: the kernel provides no more timers. The agent checks the threads itself."""
    out = tmp_path / "out.txt"
    agent = jdk.agent(f"cpu=samples,lineno=n,verbose=n,cutoff=0,format=a,file={out}")
    java = f"java {agent} -cp {lab.compiled('Hot')} Hot threads 1000 400"
    done = jdk.run("bash", "-c", f"ulimit -i 50 && exec {java}")
    assert done.returncode == 0, done.stderr
    methods, total = samples(out.read_text())
    assert (
        0.8
        <= methods["Hot.countedLoop"] / (int(re.search(r"work_ns (\d+)", done.stdout)[1]) / 10e6)
        <= 1.1
    )


@pytest.mark.jdks(8, 25)
@pytest.mark.parametrize(
    "options", ["cpu=wall", "cpu=wall,walker=jvmti", "cpu=samples,walker=jvmti"]
)
def test_a_long_interval_does_not_hold_the_vm_at_its_end(jdk, tmp_path, options):
    """A thread that samples at intervals of an hour is woken when the recording ends."""
    agent = jdk.agent(f"{options},interval=1h,format=r,file={tmp_path / 'o.jfr'}")
    done = jdk.run("java", agent, "-version", timeout=120)
    assert done.returncode == 0, done.stderr


def test_binary_output(jdk, tmp_path):
    """format=b: the records of the specification, read by our reader of sizes and tags."""
    out = tmp_path / "out.hprof"
    done = jdk.java(
        "Hot", "counted", 500, jvm=[jdk.agent(f"cpu=samples,format=b,verbose=n,file={out}")]
    )
    assert (done.returncode, done.stderr) == (0, "")
    data = out.read_bytes()
    magic, rest = data.split(b"\0", 1)
    assert magic == b"JAVA PROFILE 1.0.2"
    tags, at = [], 12
    while at < len(rest):
        tags.append(rest[at])
        at += 9 + int.from_bytes(rest[at + 5 : at + 9], "big")
    assert at == len(rest)
    assert tags[0] == 0x0E
    assert {0x01, 0x02, 0x04, 0x05, 0x0A, 0x0B, 0x0D, 0x0E} <= set(tags)


def test_tiny_methods_are_attributed(jdk, tmp_path, record_property):
    """Calls of a few nanoseconds, none of them inlined: AsyncGetCallTrace fails on most of them."""
    methods, total, _ = profile(
        jdk,
        tmp_path,
        "tiny",
        ms=2000,
        jvm=["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Hot::*"],
    )
    without = methods.get("<no stack>", 0) / total
    record_property("without a stack", f"{without:.4f}")
    assert without <= 0.02


@pytest.mark.jdks(17)
def test_asyncgetcalltrace_still_works(jdk, tmp_path):
    methods, total, reported = profile(jdk, tmp_path, "counted", ms=1500, options="walker=agct")
    assert methods["Hot.countedLoop"] / (0.99 * reported["loop_ns"] / 10e6) >= 0.93


@pytest.mark.jdks(8, 17, 27)
def test_native_frames(jdk, tmp_path):
    """native=y: the functions below Java's native methods, by name."""
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Hot", "exceptions", 1000, jvm=[jdk.agent(f"cpu=samples,native=y,format=r,file={out}")]
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = lab.jvmscope("report", "--limit", "400", out)
    assert (report.returncode, report.stderr) == (0, "")
    text = report.stdout
    assert "JVM_FillInStackTrace" in text or "fill_in_stack_trace" in text
    assert "java.lang.Throwable.fillInStackTrace" in text


@pytest.mark.jdks(21, 25, 27)
def test_virtual_threads_under_their_own_names(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Virtual", 8, 100, jvm=[jdk.agent(f"cpu=samples,format=r,file={out}")], release=21
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    text = lab.Jdk(21).run("jfr", "print", "--events", "jdk.ExecutionSample", out).stdout
    names = re.findall(r'sampledThread = "([^"]*)"', text)
    virtual = [name for name in names if re.fullmatch(r"virtual-\d", name)]
    assert len(virtual) >= 0.8 * sum(name != "main" for name in names)
    assert len(set(virtual)) >= 6
