# SPDX-License-Identifier: Apache-2.0
"""Stack walking by the VM's structures, on every JDK: what fails, what is wrong, what is complete,
and what survives.

tests/agents/walk_agent.c walks in a signal handler and writes counts; for each walk it also calls
AsyncGetCallTrace. bench/walker measures the cost.
"""
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import struct
import subprocess
import uuid

import pytest

import lab

AGENT = lab.BUILD / "tests" / "agents" / "libwalktest.so"
JNI = lab.BUILD / "tests" / "agents" / "libwalkjni.so"

COLLECTORS = {
    8: ("Serial", "Parallel", "G1", "ConcMarkSweep"),
    11: ("Serial", "Parallel", "G1", "ConcMarkSweep", "Shenandoah"),
}
MODERN = ("Serial", "Parallel", "G1", "Z", "Shenandoah")


class Report:
    """What the agent wrote: counts by name, the top frames, whole stacks."""

    def __init__(self, path):
        text = path.read_text(errors="replace")
        self.text = text
        self.values = {k: int(v) for k, v in re.findall(r"^(\w+)=(\d+)$", text, re.M)}
        self.tops = {name: int(n) for n, name in re.findall(r"^top (\d+) (\S+)$", text, re.M)}
        self.stacks = [
            line.split(" ", 2)[2] for line in text.splitlines() if line.startswith("stack ")
        ]
        path.unlink()

    def __getitem__(self, key):
        assert key in self.values, f"no {key} in the agent's report:\n{self.text[:2000]}"
        return self.values[key]

    @property
    def lost(self):
        """Share of the walks that failed or were truncated."""
        return (self["broken"] + self["fault"] + self["heap"]) / max(1, self["taken"])


def walk(jdk, command, options="", jvm=(), tool=False, timeout=300):
    """Runs a command of the JDK under the test agent; returns the report and the finished
    process.
    """
    out = lab.SCRATCH / f"walk-{uuid.uuid4().hex}.txt"
    agent = f"-agentpath:{AGENT}=out={out},{options}"
    arguments = [f"-J{a}" if tool else a for a in [*jvm, agent]]
    done = jdk.run(command[0], *arguments, *command[1:], timeout=timeout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert out.exists(), "the agent wrote nothing: " + done.stderr[-2000:]
    return Report(out), done


def java(name, *args):
    return ["java", "-cp", str(lab.compiled(name)), name, *map(str, args)]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Some thousand lines of Java for javac, with generics and lambdas."""
    folder = tmp_path_factory.mktemp("sources")
    method = """
  static <T extends Comparable<T>> java.util.List<T> m%d(java.util.Collection<? extends T> c) {
    java.util.List<T> l = new java.util.ArrayList<>(c);
    java.util.Collections.sort(l);
    java.util.function.Function<T, String> f = x -> x + "%d";
    Runnable r = () -> System.out.println(f.apply(l.get(0)));
    for (int i = 0; i < 10; i++) { switch (i %% 7) { case 0: r.run(); break; case 3: l.add(l.get(i)); break; default: i += 2; } }
    String s = "a" + l.size() + f.apply(null);
    return s.isEmpty() ? l : l.subList(0, s.length());
  }"""
    for i in range(40):
        body = "".join(method % (k, k) for k in range(25))
        (folder / f"Gen{i}.java").write_text(
            f"class Gen{i}<A, B extends java.util.Map<A, ? super B>> {{{body}\n}}\n"
        )
    return folder


def check_against_oracle(report):
    assert report["compared"] >= 150
    assert report["top_wrong"] / report["compared"] <= 0.01, report.text[:6000]


@pytest.mark.jdks(daily=1)
def test_tiny_methods(jdk):
    """At most 2 % are lost where most samples fall into prologues, epilogues and stubs;
    AsyncGetCallTrace loses most of them there.
    """
    report, done = walk(jdk, java("WalkTiny", 4000), "mode=busy,interval=400,dump=5")
    assert done.stdout.strip() == "true"
    assert report["taken"] > 1000
    assert report.lost <= 0.02, report.text[:4000]
    check_against_oracle(report)


@pytest.mark.jdks(8, 27, slow=(11, 17, 21, 25))
def test_javac(jdk, sources, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    files = sorted(map(str, sources.glob("*.java")))
    report, _ = walk(
        jdk,
        ["javac", "-nowarn", "-proc:none", "-d", str(out), *files],
        "mode=busy,interval=300,dump=5",
        tool=True,
    )
    assert report["taken"] > 1000
    assert report.lost <= 0.01, report.text[:4000]
    check_against_oracle(report)


def shares(report):
    """Returns the share of each of WalkShares' three methods, with what they call, in the samples
    of the part that it measures.
    """
    found = [
        m[1]
        for m in (
            re.search(r"WalkShares\.(half|third|rest)\(.*WalkShares\.measured\(", s)
            for s in report.stacks
        )
        if m
    ]
    assert len(found) > 2500  # 3 points are three standard deviations of a half
    return {method: found.count(method) / len(found) for method in ("half", "third", "rest")}


@pytest.mark.jdks(8, 17, 27, slow=(11, 21, 25))
def test_shares_are_known(jdk):
    """Each method's share of the samples is within 3 points of its share of the time as measured by
    the program itself.
    """
    report, done = walk(
        jdk, java("WalkShares", 3500), "mode=busy,interval=400,compare=0,stacks=40000"
    )
    expected = {k: float(v) for k, v in re.findall(r"(half|third|rest) ([\d.]+)", done.stdout)}
    measured = shares(report)
    for method, share in expected.items():
        assert abs(measured[method] - share) <= 0.03, (expected, measured)


@pytest.mark.jdks(daily=1)
def test_java_below_native_below_java(jdk):
    """Java calls JNI code, which calls libc's qsort, which calls JNI code, which calls Java: the
    stack is complete, with names, down to the thread's start.
    """
    report, done = walk(
        jdk, java("WalkNative", JNI, 2500), "mode=busy,interval=400,native=1,compare=0,stacks=6000"
    )
    assert report.lost <= 0.01
    wanted = re.compile(
        r"WalkNative\.inner\(\)V;WalkNative\$\$Lambda[^;]*\.run\(\)V;.*\[vm\] libjvm\.so:[^;]*;.*"
        r"\[native\] libwalkjni\.so:walk_jni_compare;\[native\] libc\.so\.6:.*;\[native\] libc\.so\.6:qsort_r;"
        r"\[native\] libwalkjni\.so:walk_jni_sort;.*WalkNative\.sort\([^;]*;I\)I;WalkNative\.outer\(I\)V;"
        r"WalkNative\.main\(.*libjvm\.so:.*libjli\.so.*libc\.so\.6:\w*clone\w*$"
    )
    inner = [s for s in report.stacks if "WalkNative.inner()V;WalkNative$$Lambda" in s]
    assert len(inner) > 200
    assert sum(bool(wanted.search(s)) for s in inner) >= 0.97 * len(inner), [
        s for s in inner if not wanted.search(s)
    ][:2]
    burning = [s for s in report.stacks if "libwalkjni.so:walk_jni_burn;" in s]
    assert len(burning) > 20
    assert all("WalkNative.burn(J)J;WalkNative.outer(I)V;" in s for s in burning)


def test_ten_thousand_frames(jdk):
    """A stack of 10,000 frames, whole; a limit keeps the innermost."""
    report, _ = walk(
        jdk,
        java("WalkDeep", 10000, 1500),
        "mode=busy,interval=2000,compare=0,depth=12000",
        jvm=["-Xss64m"],
    )
    assert report["deepest"] >= 10000, report.text[:500]
    assert report.lost <= 0.01
    report, _ = walk(
        jdk,
        java("WalkDeep", 10000, 800),
        "mode=busy,interval=2000,compare=0,depth=100",
        jvm=["-Xss64m"],
    )
    assert report["deepest"] == 100
    assert report["depth"] > 10


@pytest.mark.jdks(21, 25, 27)
def test_virtual_threads(jdk):
    """Mounted virtual threads, including deep ones: from the running method across the carrier to
    its start.
    """
    report, _ = walk(
        jdk, java("WalkVirtual", 3000), "mode=busy,interval=400,compare=0,native=1,stacks=4000"
    )
    deep = [s for s in report.stacks if "WalkVirtual.work(" in s]
    assert len(deep) > 100
    virtual = "VirtualThread.run(" if jdk.version > 21 else "[heap]"
    whole = [
        s
        for s in deep
        if virtual in s and "Continuation.run()V" in s and "ForkJoinWorkerThread.run()V" in s
    ]
    assert len(whole) >= 0.95 * len(deep), [s for s in deep if s not in whole][:3]
    # Frames that have not returned from the heap are walked there, or are reported as missing
    # before those of the carrier.
    parked = [s for s in report.stacks if "WalkVirtual.computes(" in s]
    heap = (
        r"\[heap\]"
        if jdk.version == 21
        else r"(WalkVirtual\.parked\(I\)J;){35,}WalkVirtual\.runParked.*VirtualThread\.run.*"
    )
    wanted = re.compile(
        rf"WalkVirtual\.computes\(\)J;(WalkVirtual\.parked\(I\)J;)*{heap}.*Continuation\.run\(\)V;.*"
        r"ForkJoinWorkerThread\.run\(\)V"
    )
    assert len(parked) > 100
    assert sum(bool(wanted.search(s)) for s in parked) >= 0.95 * len(parked), [
        s for s in parked if not wanted.search(s)
    ][:3]


@pytest.mark.jdks(25, 27)
@pytest.mark.parametrize("collector", ["Serial", "Parallel", "G1"])
def test_virtual_threads_in_native_code(jdk, collector):
    """Frames in the heap, of threads in native code, with a collector that moves them: they belong
    to the right thread, and are either all there or all missing.
    """
    report, _ = walk(
        jdk,
        java("WalkVirtual", 3000, "native"),
        "mode=busy,interval=400,compare=0,native=1,stacks=8000",
        jvm=[f"-XX:+Use{collector}GC", "-Xmx100m"],
    )
    native = [
        s for s in report.stacks if "WalkVirtual.inNative()" in s and "getProcessCpuTime0()J" in s
    ]
    assert len(native) > 100
    frames = re.compile(
        r"WalkVirtual\.inNative\(\)V;((WalkVirtual\.even\(I\)V;){36,40}|(WalkVirtual\.odd\(I\)V;){36,40})WalkVirtual\.parkInTurn"
    )
    unread = re.compile(r"WalkVirtual\.inNative\(\)V;(WalkVirtual\.(even|odd)\(I\)V;){0,4}\[heap\]")
    whole = [s for s in native if frames.search(s)]
    assert not [s for s in native if not frames.search(s) and not unread.search(s)][:3]
    assert len(whole) > 0.2 * len(native)  # the others were in a collection


@pytest.mark.jdks(21, 25, 27)
def test_virtual_threads_being_frozen_and_thawed(jdk):
    """Samples taken while frames move to the heap or back: each frame occurs once and none comes
    from an earlier call, or the rest is missing.
    """
    report, _ = walk(
        jdk,
        java("WalkVirtual", 3000, "yield"),
        "mode=busy,interval=200,compare=0,native=1,stacks=30000",
        jvm=["-Xmx100m"],
    )
    stacks = [s for s in report.stacks if re.search(r"WalkVirtual\.(even|odd)\(", s)]
    assert len(stacks) > 100
    wrong = []
    for stack in stacks:
        names = [re.match(r"WalkVirtual\.(\w+)", f) for f in stack.split(";")]
        runs = [name for name, _ in itertools.groupby(m and m[1] for m in names)]
        depth = sum(bool(m) and m[1] in ("even", "odd") for m in names)
        if runs.count("even") + runs.count("odd") > 1 or runs.count("parkInTurn") > 1 or depth > 40:
            wrong.append(stack)
    assert not wrong, wrong[:3]
    assert sum("WalkVirtual.parkInTurn(" in s for s in stacks) > 0.3 * len(
        stacks
    )  # most of the others are thawed just then


def stress(jdk, milliseconds, threads, jvm=(), native=1):
    # Where each call is compiled first, what redefinition throws away takes seconds to come back.
    retransform = 2000 if "-Xcomp" in jvm else 20
    report, done = walk(
        jdk,
        java("WalkStress", milliseconds, threads),
        f"mode=wall,interval=100,compare=0,depth=12000,"
        f"retransform={retransform},native={native},dump=5",
        jvm=["-Xmx400m", *jvm],
        timeout=milliseconds / 1000 * 4 + 180,
    )
    assert done.stdout.strip() == "done true", done.stdout + done.stderr
    assert report["retransformed"] > 0
    assert (
        report["taken"] > milliseconds / 3
    )  # on a busy machine; 100 us would be ten times as many
    assert (report["broken"] + report["fault"]) / report["taken"] <= 0.01, report.text[:4000]
    return report


def test_stress_short(jdk):
    stress(jdk, 2000, 60)


def variants():
    for version in lab.VERSIONS:
        for collector in COLLECTORS.get(version, MODERN):
            yield version, f"-XX:+Use{collector}GC"
        for mode in (
            "-Xint",
            "-Xcomp",
            "-XX:TieredStopAtLevel=1",
            "-XX:-TieredCompilation",
            "-XX:+PreserveFramePointer",
        ):
            yield version, mode
        if version >= 25:
            yield version, "-XX:+UnlockExperimentalVMOptions -XX:+UseCompactObjectHeaders"


@pytest.mark.slow
@pytest.mark.parametrize("version,option", variants())
def test_stress_variants(version, option):
    """Every collector, compiler and object layout, under class unloading, redefinition, exceptions
    and deep recursion.
    """
    if not lab.matrix_ready():
        pytest.skip("the chroot is not there (tools/jdks setup)")
    stress(lab.Jdk(version), 5000, 100, jvm=option.split())


@pytest.mark.slow
@pytest.mark.parametrize("version,option", variants())
def test_stacks_in_callbacks_variants(version, option, record_property):
    if not lab.matrix_ready():
        pytest.skip("the chroot is not there (tools/jdks setup)")
    jdk = lab.Jdk(version)
    compared, walked = compare_stacks(
        jdk, record_property, captures_with_stacks(jdk), jvm=option.split()
    )
    assert compared >= 100 and walked >= 0.9 * compared


@pytest.mark.slow
@pytest.mark.jdks(8, 17, 25)
def test_stress_two_thousand_threads(jdk):
    """Runs the same as test_soak, for one minute instead of ten."""
    stress(jdk, 60_000, 2000, jvm=["-Xss1m"])


@pytest.mark.soak
def test_soak(jdk):
    """Ten minutes at 100 us with 2,000 threads, as the JDK runs by default."""
    report = stress(jdk, 600_000, 2000, jvm=["-Xss1m"])
    print(f"JDK {jdk.version}: {report.values}")


@pytest.mark.soak
def test_soak_of_every_configuration(jdk):
    """The stress of test_soak in turns: each collector of this JDK, the interpreter alone,
    everything compiled, compact headers.
    """
    options = [
        o
        for v, o in variants()
        if v == jdk.version and (o.endswith("GC") or o in ("-Xint", "-Xcomp") or "Compact" in o)
    ]
    for option in options:
        milliseconds = int(float(os.environ.get("SOAK_SECONDS", "600")) * 1000 / len(options))
        report = stress(jdk, milliseconds, 2000, jvm=["-Xss1m", *option.split()])
        shown = {
            name: report[name]
            for name in (
                "taken",
                "broken",
                "fault",
                "heap",
                "faults",
                "recovered",
                "retransformed",
                "deepest",
            )
        }
        print(f"JDK {jdk.version} {option}: {shown}", flush=True)


def core_of(jdk, folder):
    """A core file of CoreStacks, and the stacks that the program knew: (path, {thread:
    [frame]}).
    """
    java = f"java -Xbatch -Xmx16m -XX:+UseSerialGC -XX:ReservedCodeCacheSize=16m -cp {lab.compiled('CoreStacks')} CoreStacks"
    process = jdk.start(
        "sh",
        "-c",
        f"cd {folder} && ulimit -c unlimited && exec {java}",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stacks, line = {}, process.stdout.readline()
    while line not in ("ready\n", ""):
        if line.startswith("stack "):
            frames = stacks[line.split()[1]] = []
        else:
            frames.append(line.strip())
        line = process.stdout.readline()
    process.send_signal(signal.SIGABRT)
    _, errors = process.communicate()
    cores = list(folder.glob("core*"))
    assert len(stacks) == 3 and len(cores) == 1, (stacks, cores, errors)
    return cores[0], stacks


def check_core(jdk):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if set("|/") & set(pattern) or platform.machine() != "x86_64":
        pytest.skip(f"core files go elsewhere (kernel.core_pattern: {pattern}), or not x86-64")
    folder = pathlib.Path(f"/var/tmp/jvmscope-walk-core-{uuid.uuid4().hex}")
    folder.mkdir()
    try:
        core, expected = core_of(jdk, folder)
        done = subprocess.run(
            [lab.BUILD / "walk_core", core, lab.chroot()],
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    threads = [t.splitlines() for t in done.stdout.split("thread ")[1:]]
    assert len(threads) > 10 and all(t[0].endswith(" complete") for t in threads), [
        t for t in threads if not t[0].endswith(" complete")
    ]
    java = [
        [
            re.sub(r"^  \S+ ([^(]*)\(.*:(\d+)$", r"\1:\2", f).replace("/", ".")
            for f in t[1:]
            if re.match("  (interpreted|c1|c2|inlined|native-method) ", f)
        ]
        for t in threads
    ]
    for name, frames in expected.items():
        assert len(frames) > 14 and frames in java, (name, frames, java)
    running = [t for t in threads if any("CoreStacks.runs(" in f for f in t)]
    assert len(running) == 1 and re.match(
        "  (c1|c2|inlined) ", next(f for f in running[0] if "CoreStacks." in f)
    ), running


@pytest.mark.jdks(8, 17, 27)
def test_core_file(jdk):
    """A core file without its VM: every thread is complete, with the lines of Java frames that the
    program itself printed.
    """
    check_core(jdk)


@pytest.mark.slow
@pytest.mark.jdks(11, 21, 25)
def test_core_file_of_the_other_jdks(jdk):
    check_core(jdk)


def test_core_file_damaged(tmp_path):
    """A file that is not a core, or is cut: one line and status 1, never a crash."""
    tool, path = lab.BUILD / "walk_core", tmp_path / "core"
    for content in (b"", b"no core", pathlib.Path(tool).read_bytes()[:5000]):
        path.write_bytes(content)
        done = subprocess.run([tool, path], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (
            1,
            "",
            f"walk_core: {path}: no core file of a process on x86-64\n",
        )


def test_aarch64(tmp_path):
    """Built for aarch64 and emulated: guarded loads survive, a walk out of libc's qsort reaches
    main.
    """
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if not compiler or not emulator:
        pytest.skip("gcc-aarch64-linux-gnu and qemu-user are not installed (tools/setup check)")
    sources = [
        lab.ROOT / "tests/agents/walk_check.c",
        *(lab.ROOT / "src/unwind").glob("*.c"),
        *(lab.ROOT / "src/hotspot").glob("*.c"),
        *(
            lab.ROOT / "src/base" / f
            for f in (
                "arena.c",
                "backed.c",
                "buf.c",
                "file.c",
                "generated_name.c",
                "map.c",
                "mapped.c",
                "vec.c",
            )
        ),
    ]
    subprocess.run(
        [
            compiler,
            "-std=gnu17",
            "-D_GNU_SOURCE",
            "-O2",
            "-fno-strict-aliasing",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-Wno-missing-field-initializers",
            "-Wno-sign-compare",
            "-I",
            lab.ROOT / "src",
            "-o",
            tmp_path / "walk_check",
            *sources,
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )
    done = subprocess.run(
        [emulator, "-L", "/usr/aarch64-linux-gnu", tmp_path / "walk_check"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ok"), done.stdout + done.stderr


def sampled(jdk, program, *args, options=""):
    """Records a program with cpu=samples; returns what report says of the samples, and the process."""
    recording = lab.SCRATCH / f"walk-{uuid.uuid4().hex}.jfr"
    done = jdk.java(
        program,
        *args,
        jvm=[jdk.agent(f"cpu=samples,interval=4,format=r,file={recording}{options}")],
    )
    assert done.returncode == 0, done.stderr
    shown = lab.jvmscope("report", "--json", recording)
    recording.unlink()
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)["samples"], done


def rows_of(samples):
    return {m["method"]: (m["self"], m["total"]) for m in samples["methods"]}


def counters(jdk, tmp_path, program, *args, options=""):
    """Like sampled, with the rows as {method: (self, total)}."""
    samples, done = sampled(jdk, program, *args, options=options)
    return rows_of(samples), done


def test_agent_walks_native_code(jdk, tmp_path):
    """native=y of cpu=samples: functions of the JNI library, libc and the VM have names, Java
    frames have theirs.
    """
    rows, _ = counters(jdk, tmp_path, "WalkNative", JNI, 1500, options=",native=y")
    for name in (
        "libwalkjni.so.walk_jni_sort",
        "libwalkjni.so.walk_jni_burn",
        "libc.so.6.qsort_r",
        "WalkNative.inner",
        "WalkNative.main",
    ):
        assert name in rows, rows
    assert any(name.startswith("libjvm.so.") for name in rows), rows


def test_fallback_is_reported(jdk, tmp_path):
    """-Xcheck:jni watches the signal handlers: the walker leaves them alone, AsyncGetCallTrace is
    used, one line says so.
    """
    out = tmp_path / "out.txt"
    done = jdk.java("WalkShares", 700, jvm=["-Xcheck:jni", jdk.agent(f"cpu=samples,file={out}")])
    assert done.returncode == 0
    assert (
        done.stderr.count(
            "cpu: stacks are walked by AsyncGetCallTrace: -Xcheck:jni forbids a guard against faults"
        )
        == 1
    )
    assert "Handler" not in done.stdout and "handler" not in done.stdout
    assert "WalkShares." in out.read_text()


@pytest.mark.jdks(daily=1)
def test_agent_takes_either_walker(jdk, tmp_path):
    """walker=agct selects AsyncGetCallTrace. Both walkers find their caller, rounds, below every
    sample of the work. Ours has one of the three working methods on top; AsyncGetCallTrace has
    rounds there when the frame of one of them is not complete yet. It walks no stack from the VM's
    own code, such as the clock that rounds reads, which takes long on some machines.
    """
    for walker in ("vm", "agct"):
        samples, done = sampled(jdk, "WalkShares", 1000, options=f",walker={walker}")
        rows, unknown = rows_of(samples), samples["unattributed"]
        expected = int(re.search(r"cpu_ns (\d+)", done.stdout)[1]) / 4e6
        found = sum(rows[f"WalkShares.{m}"][1] for m in ("half", "third", "rest"))
        in_rounds = rows["WalkShares.rounds"][1]
        assert unknown <= (0.01 if walker == "vm" else 0.25) * expected, (walker, unknown)
        assert 0.9 * expected - unknown <= in_rounds <= 1.1 * expected, (walker, expected, rows)
        assert (0.9 * expected if walker == "vm" else 0) < found <= in_rounds, (
            walker,
            expected,
            rows,
        )


@pytest.mark.jdks(8, 27)
@pytest.mark.parametrize("mode", ("-Xint", "-Xmixed"))
def test_unloaded_classes_get_no_samples_of_later_ones(jdk, tmp_path, mode):
    """Classes are unloaded and others take their memory: each has samples for its own CPU time.
    What the walker caches about a method or a place in compiled code must not outlive it.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "Generations",
        12,
        150,
        jvm=[
            mode,
            "-XX:+UseSerialGC",
            "-Xmx64m",
            jdk.agent(f"cpu=samples,interval=2,format=r,file={out}"),
        ],
    )
    assert (done.returncode, done.stderr) == (0, "")

    def report(*words):
        samples = lab.read_json("report", "--json", *words, out)["samples"]
        return samples, {m["method"]: m["total"] for m in samples["methods"]}

    samples, rows = report()
    # The class was unloaded before the agent walked the stack or requested the name. The sample is
    # lost and reported as such, but no sample of another class is. From JDK 22 on the code is freed
    # with its class.
    lost = (
        samples["unattributed"]
        + samples["truncated"]
        + sum(n for name, n in rows.items() if "[unloaded]" in name)
    )
    found, expected = {}, {}
    began_ms = struct.unpack(">q", out.read_bytes()[32:40])[0] / 1e6
    for name, ns, *when in re.findall(r"(G\d+) (\d+) (\d+) (\d+)", done.stdout):
        # The time of a class has all of its samples and those of no other class. Their numbers are
        # compared for all classes together, because ticks come late when the machine itself gets no
        # processor, and then several arrive at once during the next class.
        first, last = (int(ms) - began_ms for ms in when)
        _, here = report("--from", f"{first - 8:.0f}ms", "--to", f"{last + 8:.0f}ms")
        mine = {m: n for m, n in here.items() if re.match(r"Generations\$G\d", m)}
        assert mine == {m: n for m, n in rows.items() if m.startswith(f"Generations${name}.")}, (
            name,
            mine,
            rows,
        )
        found[name], expected[name] = rows.get(f"Generations${name}.applyAsLong", 0), int(ns) / 2e6
    assert len(found) == 12 and sum(found.values()) <= 1.1 * sum(expected.values()), (
        found,
        expected,
    )
    assert sum(found.values()) + lost >= 0.9 * sum(expected.values()), (lost, rows)
    assert jdk.version > 21 or sum(found.values()) >= 0.8 * sum(expected.values()), (lost, rows)


def compare_stacks(jdk, record, captures, *args, jvm=()):
    """Runs OwnStacks, 32 frames deep, and compares each stack that a capture takes with that of
    GetStackTrace; returns (compared, walked, nanoseconds of both).
    """
    recording = lab.SCRATCH / f"walk-{uuid.uuid4().hex}.jfr"
    done = jdk.java(
        "OwnStacks",
        32,
        800,
        *args,
        jvm=[*jvm, jdk.agent(f"{captures},format=r,depth=128,stacks=check,file={recording}")],
        timeout=180,
    )
    recording.unlink()
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    m = re.search(
        r"stacks=check: (\d+) compared, (\d+) different, median (\d+) ns walked, (\d+) ns by GetStackTrace",
        done.stderr,
    )
    walked, unlike, heap = (
        int(re.search(rf"^stacks.{name} (\d+)$", done.stderr, re.M)[1])
        for name in ("walked", "asked.unlike", "asked.heap")
    )
    compared, different, ours, theirs = map(int, m.groups())
    record(
        f"{captures} {' '.join(args)}",
        f"{compared} compared, {walked} walked, {heap} in the heap, {ours} and {theirs} ns",
    )
    assert (different, unlike) == (0, 0), done.stderr
    return compared, walked + heap


def captures_with_stacks(jdk):
    return "exceptions=stacks,threads=y" + (
        ",alloc=sampled,heap=sites" if jdk.version >= 11 else ""
    )


def test_stacks_in_callbacks(jdk, record_property):
    """Stacks of exceptions, contended monitors, waits and allocations are walked, with exactly the
    methods and bytecode indices of GetStackTrace.
    """
    compared, walked = compare_stacks(jdk, record_property, captures_with_stacks(jdk))
    assert compared >= 200 and walked >= 0.9 * compared


@pytest.mark.jdks(21, 25, 27)
def test_stacks_of_virtual_threads_in_callbacks(jdk, record_property):
    """Stacks of virtual threads in callbacks lack the carrier's frames, and are complete even if a
    part is in the heap.
    """
    compared, walked = compare_stacks(jdk, record_property, captures_with_stacks(jdk), "virtual")
    assert compared >= 100 and walked >= 0.8 * compared


@pytest.mark.jdks(8, 17, 27)
def test_stacks_in_redefined_classes(jdk, record_property):
    """Stacks in callbacks are right while every class is redefined and its methods run."""
    compared, walked = compare_stacks(
        jdk, record_property, "exceptions=stacks,heap=sites,live=exact"
    )
    assert compared >= 200 and walked >= 0.9 * compared


@pytest.mark.jdks(17)
def test_faults_are_in_the_report(jdk, tmp_path):
    """A line of the report, and the JSON, state the faults that walks survived, the walks that had
    to resume, and the time per sample.
    """
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "WalkStress",
        2500,
        20,
        jvm=["-Xmx300m", jdk.agent(f"cpu=samples,interval=1,depth=3000,format=r,file={out}")],
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done true"), done.stderr
    text = lab.output("report", out)
    line = re.search(
        r"^  a sample took [\d.]+ .?s, 99 of 100 at most [\d.]+ .?s(?:; (\d+) stacks? continued past an unreadable frame)?(?:; walks hit unreadable memory (\d+) times?)?(?:; \d+ samples? lost)?$",
        text,
        re.M,
    )
    assert line, text[:2000]
    sampler = lab.read_json("report", "--json", out)["samples"]["sampler"]
    assert [sampler["walks_resumed"], sampler["faults_survived"]] == [
        int(n or 0) for n in line.groups()
    ]
    assert 0 < sampler["handler_p50_ns"] <= sampler["handler_p99_ns"] < sampler["handler_ns"]


@pytest.mark.measured
@pytest.mark.jdks(25, 27)
def test_same_as_jfr(jdk):
    """JFR's CPU-time samples, which it takes at safepoints, and ours give each method the same
    share, within 3 points.
    """
    recording = lab.SCRATCH / f"walk-{uuid.uuid4().hex}.jfr"
    settings = recording.with_suffix(".jfc")
    settings.write_text(
        """<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0"><event name="jdk.CPUTimeSample">
<setting name="enabled">true</setting><setting name="throttle">1ms</setting><setting name="stackTrace">true</setting>
</event></configuration>"""
    )
    report, _ = walk(
        jdk,
        java("WalkShares", 8000),
        "mode=busy,interval=400,compare=0,stacks=40000",
        jvm=[f"-XX:StartFlightRecording:filename={recording},settings={settings}"],
    )
    shown = jdk.run(
        "jfr", "print", "--events", "jdk.CPUTimeSample", "--stack-depth", "8", str(recording)
    )
    recording.unlink()
    settings.unlink()
    theirs = [
        m[1]
        for m in (
            re.search(r"(?s)WalkShares\.(half|third|rest)\(.*WalkShares\.measured\(", s)
            for s in shown.stdout.split("jdk.CPUTimeSample {")
        )
        if m
    ]
    assert len(theirs) > 1500  # a tick each, 4 ms: JFR has no finer clock
    measured = shares(report)
    for method, share in measured.items():
        assert abs(theirs.count(method) / len(theirs) - share) <= 0.03, (
            measured,
            {m: theirs.count(m) / len(theirs) for m in measured},
        )
