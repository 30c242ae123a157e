# SPDX-License-Identifier: Apache-2.0
"""Recordings that are always on: at every moment, and after every kind of end, the ring holds what
the program did.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pytest

import lab
from always_lab import attach, memory_of, status, take
from recording import events, window

NOBODY = 65534


class Steps:
    """The steps that the program Always prints, as (number, from, to), in ms."""

    def __init__(self, process):
        self.process, self.done, self.come = process, [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("step "):
                with self.come:
                    self.done.append(tuple(map(int, line.split()[1:])))
                    self.come.notify_all()

    def wait(self, n):
        """Waits for this many more steps."""
        with self.come:
            until = len(self.done) + n
            assert self.come.wait_for(
                lambda: len(self.done) >= until, timeout=120
            ), "the program stands still"

    def wait_for(self, seconds):
        """Waits until its steps have taken this long by the program's own clock."""
        start = self.done[-1][2] if self.done else 0
        self.wait(1)
        start = start or self.done[-1][2]
        while self.done[-1][2] < start + 1000 * seconds:
            self.wait(1)


def threads_started(path):
    return {
        int(m[1])
        for line in events(path, "jdk.ThreadStart", get="thread.javaName")
        if (m := re.search(r"step-(\d+)", line))
    }


def assert_exact(path, steps, begun=0):
    """The recording has the steps that lie within its time, and not those that ended before it.
    begun: the time in ms at which the recording had certainly begun, if it was attached.
    """
    start, end = window(path)
    steps = [step for step in steps if step[1] >= begun or step[2] * 10**6 < start]
    got = threads_started(path)
    whole = {
        n
        for n, since, to in steps
        if since * 10**6 > start + 2 * 10**6 and (to + 2) * 10**6 < end
    }
    over = {n for n, _, to in steps if (to + 2) * 10**6 < start}
    assert whole and whole <= got, whole - got
    assert not over & got
    return len(whole)


@pytest.fixture
def folder():
    """A folder that has the same name for VMs inside and outside of the chroot, and that every user
    may enter.
    """
    with tempfile.TemporaryDirectory(prefix="jvmscope-test-", dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.mark.jdks(8, 17, 21, 25, daily=1)
def test_the_last_seconds_are_exact(jdk, folder):
    """Recorded from the start through JAVA_TOOL_OPTIONS, with chunks of a second, so that parts
    begin within a chunk and contain several.
    """
    ring, live, dead, whole = (
        folder / name for name in ("r.ring", "live.jfr", "dead.jfr", "whole.jfr")
    )
    # The budget is a whole processor, so no capture is reduced, which would cost it samples.
    options = (
        f"-agentpath:{lab.BUILD}/libhprof.so=always=y,keep=8s,maxsize=8m,budget=100%,file={ring}"
    )
    process = jdk.start(
        "java",
        "-Xmx64m",
        "-cp",
        lab.compiled("Always"),
        "Always",
        0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "JAVA_TOOL_OPTIONS": options},
    )
    steps = Steps(process)
    steps.wait_for(4)
    size = ring.stat().st_size
    assert (
        7 << 20 < size <= 8 << 20 and ring.stat().st_blocks * 512 >= size
    ), "all of it is allocated"

    # Two parts at the same time, while the recording continues.
    other = threading.Thread(
        target=take, args=("--last", "1s", "-o", folder / "other.jfr", process.pid)
    )
    other.start()
    reported = take("--last", "2s", "-o", live, process.pid)
    other.join()
    assert "(2.00 s)" in reported and "goes on" in reported
    assert_exact(live, steps.done)
    assert_exact(folder / "other.jfr", steps.done)
    start, end = window(live)
    assert end - start == 2 * 10**9
    summary = lab.read_json("threads", "summary", "--json", live)
    rows = {row["name"]: row for row in summary["threads"]}
    for name in ("parked", "waiting"):
        assert (
            rows[name]["waited_ns"] == summary["end_ns"] == end - start
        ), "it began before and goes on"
    assert not summary["lost"]
    assert "Always.spin" in lab.output("report", live)
    assert (
        "Always.lambda" in lab.jvmscope("report", "--metric", "allocations", live).stdout
        or jdk.version == 8
    )

    now = status(process.pid)
    assert now["ring.size"] == size and 0 < now["ring.used"] <= size and now["ring.chunks"] >= 3
    assert now["ring.from_ms"] < start // 10**6 and now["ring.to_ms"] >= end // 10**6
    assert 0 < now["cost.threads_ns"] < now["cost.process_ns"]
    text = lab.jvmscope("status", process.pid).stdout
    assert re.search(r"^ring .* to .* in 7.9\d MiB, .*/s$", text, re.M) and re.search(
        r"^cost .* %", text, re.M
    ), text
    # The samplers' tables exist from the start. Altogether the agent needs at most 24 MiB in
    # addition to the ring.
    assert 2 << 20 < now["memory.tables_bytes"] and memory_of(now) < 16 << 20, now
    assert re.search(
        r"^memory +\d.* MiB for tables, stacks and names, in addition to the ring$", text, re.M
    ), text
    for args in (["--always"], ["-t", "1s", "-o", folder / "no.jfr"]):
        refused = lab.jvmscope("attach", *args, process.pid)
        assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1, refused.stderr
        assert all(
            x in refused.stderr
            for x in ("always on already", str(ring), "dump --last", f"jvmscope stop {process.pid}")
        )

    steps.wait(20)
    process.kill()
    process.wait()
    steps.reader.join()
    reported = take("--last", "1s", "-o", dead, ring)
    take("-o", whole, ring)
    assert (
        "not ended" not in reported
    ), "dump says what it holds; readers tell that it was not ended"
    assert_exact(dead, steps.done)
    # The part is exact to the event: it has what ended in that time, and nothing else.
    start, end = window(dead)
    assert end == window(whole)[1]
    kinds = (
        "jdk.ThreadStart",
        "jdk.ThreadEnd",
        "jdk.ExecutionSample",
        "jdk.JavaMonitorWait",
        "jvmscope.VmEvent",
        "jvmscope.StartCall",
    )

    def ended(path, since):
        return sorted(line for line in events(path, *kinds) if event_end(line) >= since)

    assert ended(dead, 0) == ended(whole, start) != ended(whole, 0)
    unended = lab.jvmscope("threads", "summary", dead)
    assert unended.returncode == 0 and "not ended" in unended.stderr
    if jdk.version > 8:
        done = jdk.run("jfr", "summary", dead)
        assert done.returncode == 0 and re.search(r"jdk.ThreadStart +[1-9]", done.stdout), done
        done = jdk.run("jfr", "print", "--events", "jdk.ThreadStart", dead)
        assert done.returncode == 0 and {
            int(n) for n in re.findall(r'thread = "step-(\d+)"', done.stdout)
        } == threads_started(dead)


def event_end(line):
    """Returns when an event in the output of jfr_dump ended."""
    _, start, duration = line.split(" ", 3)[:3]
    return int(start) + int(duration)


@pytest.fixture
def steps(jdk):
    """A running program without an agent."""
    process = jdk.start_java(
        "Always", 0, jvm=["-Xmx64m"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    steps = Steps(process)
    steps.wait(5)
    yield steps
    process.kill()
    process.wait()


@pytest.mark.jdks(8, 17, 25)
def test_a_running_vm_goes_on_recording(steps, folder):
    """The ring is in a named file, in a file that the agent chose, and in memory, one after the
    other in the same VM.
    """
    pid, ring, part = steps.process.pid, folder / "r.ring", folder / "part.jfr"
    begun = attach(pid, "--keep", "1m", "--max-size", "4M", "-o", ring)
    assert ring.stat().st_size <= 4 << 20 and ring.stat().st_mode & 0o777 == 0o600
    steps.wait(30)
    reported = take("-o", part, pid)
    assert_exact(part, steps.done, begun)
    reported = take("--last", "1h", "-o", part, pid)
    assert (
        re.search(r"the ring goes back \S+ \S+, not 1 h", reported)
        or "the ring goes back" in reported
    )
    needs = lab.jvmscope("dump", "--last", "1s", pid)
    assert needs.returncode == 1 and "-o FILE.jfr" in needs.stderr
    before = list(steps.done)
    stopped = lab.jvmscope("stop", pid)
    assert (
        stopped.returncode == 0
        and str(ring) in stopped.stderr
        and "dump --last 5m" in stopped.stderr
    )
    take("-o", part, ring)
    assert_exact(part, before, begun)
    assert "not ended" not in lab.jvmscope("threads", "summary", part).stderr
    no_ring = lab.jvmscope("dump", "--last", "1s", "-o", part, pid)
    assert no_ring.returncode == 1

    begun = attach(pid, "--max-size", "4M")
    chosen = pathlib.Path(status(pid)["file"])
    assert re.fullmatch(rf"jvmscope-{pid}-\d+-\d+\.ring", chosen.name) and chosen.is_relative_to(
        "/var/tmp"
    )
    steps.wait(10)
    before = list(steps.done)
    stopped = lab.jvmscope("stop", "-o", part, pid)
    assert stopped.returncode == 0, stopped.stderr
    assert_exact(part, before, begun)
    assert not chosen.exists(), "all of it was taken out"

    begun = attach(pid, "--always=memory", "--max-size", "4M")
    assert status(pid)["file"] == "memory"
    steps.wait(10)
    page = folder / "part.html"
    take("--last", "5s", "-o", page, pid)
    assert "<html" in page.read_text()[:2000]
    before = list(steps.done)
    stopped = lab.jvmscope("stop", "-o", part, pid)
    assert stopped.returncode == 0, stopped.stderr
    assert_exact(part, before, begun)
    steps.wait(5)


@pytest.mark.jdks(8, 25)
def test_names_go_with_what_refers_to_them(jdk, folder):
    """A program keeps making classes, methods and threads with new names. The agent keeps only as
    many names as the ring needs, and it keeps all of those.
    """
    ring, part = folder / "r.ring", folder / "part.jfr"
    options = f"always=y,keep=1s,maxsize=8m,budget=100%,file={ring}"
    process = jdk.start_java(
        "Churns", 300, jvm=["-Xmx64m", jdk.agent(options)], stdout=subprocess.PIPE
    )
    rounds = 0
    while rounds < 1800:
        line = process.stdout.readline()
        assert line, "the program ended"
        rounds = int(line.split()[1]) if line.startswith("rounds ") else rounds
    now = status(process.pid)
    assert 0 < now["names.methods"] < rounds / 2, "each round has a method of its own in its stacks"
    assert (
        0 < now["ring.names"] < 3 * rounds
    ), "each round has two threads, a class, its name and a method"
    take("-o", part, process.pid)
    process.kill()
    process.wait()
    waits = [
        w
        for w in events(part, "jdk.JavaMonitorWait")
        if re.search(r'monitorClass=\{[^{}]*\{string="Churns\$M', w)
    ]
    assert len(waits) > 100
    for wait in waits:
        n = int(re.search(r'monitorClass=\{[^{}]*\{string="Churns\$M(\d+)"', wait)[1])
        assert (
            re.search(rf'javaName="churn-{n}-[01]"', wait)
            and f'{{string="Churns$M{n:08}"}}' in wait.split("monitorClass")[0]
        ), wait
    report = json.loads(lab.jvmscope("threads", "summary", "--json", part).stdout)
    assert not report["lost"], report["losses"]


@pytest.mark.jdks(8, 25)
def test_parts_that_follow_one_another_are_all(jdk, folder):
    """CPU time of a thread for which the kernel has sent no signal becomes known when the thread
    ends. The thread was last seen long before. With that time the sample would be in neither of two
    parts of which the second begins two seconds before the end of the first.
    """
    ring, parts = folder / "ring.jfr", [folder / "first.jfr", folder / "second.jfr"]
    vm = jdk.start_java(
        "Bursts",
        100,
        25,
        jvm=[jdk.agent(f"always=y,cpu=samples,interval=10ms,file={ring}")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert vm.stdout.readline() == "ready\n"
    vm.stdin.write("\n")
    vm.stdin.flush()
    assert int(vm.stdout.readline().split()[0]) > 100 * 25_000_000
    time.sleep(3)  # for longer than samples may be late
    take("-o", parts[0], vm.pid)
    vm.communicate("\n", timeout=120)
    take("-o", parts[1], ring)
    until = window(parts[0])[1] - 2 * 10**9
    times = [
        sorted(
            int(t.split("(")[1][:-1]) for t in events(part, "jdk.ExecutionSample", get="startTime")
        )
        for part in parts
    ]
    assert len(times[1]) > len(times[0]) > 100
    assert [t for t in times[1] if t < until] == [t for t in times[0] if t < until]


@pytest.mark.jdks(8, 17)
def test_requests_of_the_last_seconds(jdk, folder):
    """The part contains each event of its time; totals, which count from the start, are not
    attributed to that time.
    """
    ring, part = folder / "r.ring", folder / "part.jfr"
    process = jdk.start_java(
        "ServesHttp",
        jvm=["-Xmx64m", jdk.agent(f"always=y,maxsize=8m,file={ring}")],
        stdout=subprocess.PIPE,
    )
    port, asked = int(process.stdout.readline()), []

    def ask(n, query="q=1"):
        for _ in range(n):
            since = time.time_ns()
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/cart?{query}", timeout=60
            ) as answer:
                assert answer.status == 200 and answer.read()
            asked.append((since, time.time_ns()))

    ask(20)
    # A request that began before the part and ended in it. If the machine stopped for a second
    # meanwhile, this is repeated.
    for _ in range(40):
        ask(1, "wait=1500")
        ask(6)
        take("--last", "1s", "-o", part, process.pid)
        start, end = window(part)
        found = [
            tuple(map(int, line.split(" ", 3)[1:3])) for line in events(part, "jvmscope.Request")
        ]
        if any(since < start for since, _ in found):
            break
    else:
        pytest.fail("no request began before the part and ended in it")
    slack = 2 * 10**6  # the clock may be slewed
    surely = [a for a in asked if a[0] > start + slack and a[1] < end - slack]
    maybe = [a for a in asked if a[1] > start - slack]
    assert len(surely) <= len(found) <= len(maybe) <= 7
    reported = lab.read_json("requests", "--json", part)
    assert sum(name["count"] for name in reported["requests"]) == len(found), reported
    process.kill()
    process.wait()
    take("-o", part, ring)
    assert len(events(part, "jvmscope.Request")) == len(asked)


@pytest.mark.jdks(17)
def test_run_reports_where_the_last_minutes_are(jdk, folder):
    ring, part = folder / "r.ring", folder / "part.jfr"
    command = [
        lab.BUILD / "jvmscope",
        "run",
        "--always",
        "--max-size",
        "4M",
        "-o",
        ring,
        "--",
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Always"), "Always", 20),
    ]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and len(re.findall("^step ", done.stdout, re.M)) == 20
    assert (
        f"the last minutes are in {ring}; extract them with: jvmscope dump --last 5m -o FILE.jfr {ring}"
        in done.stderr
    )
    take("--last", "5m", "-o", part, ring)
    assert threads_started(part) == set(range(20))
    assert "not ended" not in lab.jvmscope("report", part).stderr
    # Rings for which the agent chooses a place do not accumulate.
    before = set(pathlib.Path("/var/tmp").glob("jvmscope-*.ring"))
    for _ in range(4):
        done = jdk.run(
            "java",
            jdk.agent("always=y,maxsize=4m"),
            "-Xmx64m",
            "-cp",
            lab.compiled("Always"),
            "Always",
            1,
        )
        assert done.returncode == 0
    new = set(pathlib.Path("/var/tmp").glob("jvmscope-*.ring")) - before
    try:
        assert 1 <= len(new) <= 3
    finally:
        for path in new:
            path.unlink(missing_ok=True)


@pytest.mark.jdks(17)
def test_run_reports_where_the_ring_of_a_killed_vm_is(jdk, folder):
    ring, part = folder / "k.ring", folder / "part.jfr"
    run = subprocess.Popen(
        [
            lab.BUILD / "jvmscope",
            *("run", "--always", "--max-size", "4M", "-o", ring, "--"),
            *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Always"), "Always", 20000),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline().startswith("step ")
    # The VM is the process whose JAVA_TOOL_OPTIONS have the ring's name.
    for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            words = found.read_bytes()
        except OSError:  # another process, which may not be read or has ended
            continue
        if b"JAVA_TOOL_OPTIONS=" in words and str(ring).encode() in words:
            os.kill(int(found.parent.name), signal.SIGKILL)
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGKILL
    assert [line for line in printed.splitlines() if line.startswith("jvmscope: ")] == [
        f"jvmscope: the last minutes are in {ring}; "
        f"extract them with: jvmscope dump --last 5m -o FILE.jfr {ring}"
    ]
    take("--last", "5m", "-o", part, ring)
    assert 0 in threads_started(part)


@pytest.mark.jdks(17)
def test_what_is_taken_as_a_whole_is_not_read(jdk, folder):
    """256 MiB are extracted in 200 ms. The kernel copies everything but the last chunk, and no pass
    over the file follows. Of a ring that was filled in seconds, only what decides is read.
    """
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    ring, part = folder / "r.ring", folder / "part.jfr"
    agent = jdk.agent(
        f"always=y,keep=1h,maxsize=64m,budget=100%,cpu=samples,threads=y,deadlock=y,file={ring}"
    )
    process = jdk.start_java(
        "Fills", jvm=["-Xmx64m", agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == "ready\n"
    while status(process.pid)["ring.used"] < 48 << 20:
        process.stdin.write("50000\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
    span = status(process.pid)
    process.kill()
    process.wait()

    def instructions_and_bytes(last):
        done = subprocess.run(
            [
                "valgrind",
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=/dev/null",
                lab.BUILD / "jvmscope",
                "dump",
                "--last",
                last,
                "-o",
                part,
                ring,
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and "see it with" in done.stderr, done.stderr
        size = part.stat().st_size
        part.unlink()
        return int(re.search(r"I +refs: +([\d,]+)", done.stderr)[1].replace(",", "")), size

    # There were 7.3 instructions per byte when everything was read; there are 1.2 to 2.7 with the
    # last chunk, whose share of the ring varies.
    instructions, size = instructions_and_bytes("1h")
    assert size > 40 << 20 and instructions < 4 * size, (instructions, size)
    # Each event of chunks that began less than ten seconds after the part is examined. That
    # took 11.5 per byte when its duration and thread were read too, byte by byte, and takes 6.8.
    covered_ms = span["ring.to_ms"] - span["ring.from_ms"]
    instructions, size = instructions_and_bytes(f"{min(9000, covered_ms * 9 // 10)}ms")
    print(f"{instructions} instructions for {size} bytes of {covered_ms} ms")
    assert instructions < 60_000_000 + 7.5 * size, (instructions, size)


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("end", ["crash", "oom"])
def test_the_ring_outlives_its_vm(jdk, end, folder):
    """After a crash and after the kernel's OOM killer the file has everything that the program did,
    as after `kill -9`.
    """
    ring, part = folder / "r.ring", folder / "part.jfr"
    jvm = [
        "-Xmx64m",
        f"-XX:ErrorFile={folder}/hs_err.log",
        jdk.agent(f"always=y,maxsize=8m,file={ring}"),
    ]
    with lab.control_group("memory", "memory.limit_in_bytes", "memory.max", 400 << 20) as group:
        if end == "oom" and not group:
            pytest.skip(
                "no memory cgroup can be made here (needs root and a writable /sys/fs/cgroup)"
            )
        enter = (
            f"echo $$ >{group[0]}/cgroup.procs; echo 1000 >/proc/self/oom_score_adj;"
            if end == "oom"
            else "ulimit -c 0;"
        )
        process = jdk.start(
            "sh",
            "-c",
            f'{enter} exec "$@"',
            "-",
            "java",
            *jvm,
            "-cp",
            lab.compiled("Always"),
            "Always",
            0,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        steps = Steps(process)
        steps.wait(30)
        if end == "crash":
            process.send_signal(signal.SIGSEGV)
        else:  # another program of the container takes all the memory
            subprocess.run(
                [
                    "sh",
                    "-c",
                    f"echo $$ >{group[0]}/cgroup.procs; exec {sys.executable} -c 'bytearray(500 << 20)'",
                ],
                stderr=subprocess.DEVNULL,
            )
        assert process.wait(120) == (-signal.SIGABRT if end == "crash" else -signal.SIGKILL)
        steps.reader.join()
    take("-o", part, ring)
    assert_exact(part, steps.done)
    # The names of the threads that started last may be missing, but their events are there.
    begin, end = window(part)
    starts = [int(line.split()[1]) for line in events(part, "jdk.ThreadStart")]
    for n, since, to in steps.done:
        if since * 10**6 > begin:
            assert any(since - 2 <= ns // 10**6 <= to + 2 for ns in starts), (n, since, to)
    assert end >= max(starts), "it goes to the last instant"
    reported = lab.jvmscope("threads", "summary", part)
    assert reported.returncode == 0 and "not ended" in reported.stderr


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("hours", [2, -2])
def test_a_ring_is_dated_by_the_clock_as_it_was_set_last(jdk, hours, folder):
    """The wall clock is set while one chunk is being written. What was recorded before and after,
    and what `status` says, is dated by the new clock, also after `kill -9`.
    """
    ring, part, offset = folder / "r.ring", folder / "part.jfr", folder / "offset"
    offset.write_bytes(bytes(8))
    process = jdk.start(
        "java",
        "-Xmx64m",
        jdk.agent(f"always=y,keep=600s,maxsize=8m,file={ring}"),
        "-cp",
        lab.compiled("Always"),
        "Always",
        0,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "LD_PRELOAD": str(lab.BUILD / "tests" / "agents" / "libclockstep.so"),
            "CLOCK_OFFSET": str(offset),
        },
    )
    try:
        steps = Steps(process)
        steps.wait_for(2)
        with offset.open("r+b") as f:
            f.write((hours * 3600).to_bytes(8, "little", signed=True))
        steps.wait(10)
        taken = time.time_ns() + hours * 3600 * 10**9
        take("-o", part, process.pid)
        first = steps.done[0][1]
        old = lambda ms: abs(ms - first) < 1800_000
        done = [
            (n, *(ms + hours * 3600_000 * old(ms) for ms in (since, to)))
            for n, since, to in steps.done
            if old(since) == old(to)
        ]
        assert sum(old(since) for _, since, _ in steps.done) >= 5
        assert assert_exact(part, done) >= 10
        start, end = window(part)
        assert abs(end - taken) < 30 * 10**9 and start < end
        shown = status(process.pid)
        assert abs(shown["ring.from_ms"] - start // 10**6) < 100, (shown, start)
        assert abs(shown["ring.to_ms"] - end // 10**6) < 30_000, (shown, end)
    finally:
        process.kill()
        process.wait()
    steps.reader.join()
    take("-o", part, ring)
    assert abs(window(part)[0] - start) < 100 * 10**6


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may mount a small file system")
def test_without_room_the_program_goes_on(jdk, folder):
    """A full disk, a read-only one, a limit on file sizes and a missing folder each lead to one
    line.
    """
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", small], check=True)
    try:
        cases = [
            (small / "r.ring", [], "No space left on device"),
            (folder / "no" / "r.ring", [], "No such file or directory"),
            (folder / "r.ring", ["prlimit", "--fsize=3000000"], "File too large"),
        ]
        if jdk.version == 17:
            cases.append((pathlib.Path("/sys/r.ring"), [], ""))
        for path, prefix, reason in cases:
            done = subprocess.run(
                [
                    *prefix,
                    *jdk.command(
                        "java",
                        jdk.agent(f"always=y,maxsize=4m,file={path}"),
                        "-Xmx64m",
                        "-cp",
                        lab.compiled("Always"),
                        "Always",
                        2,
                    ),
                ],
                capture_output=True,
                text=True,
                timeout=120,
            )
            lines = [x for x in done.stderr.splitlines() if x.startswith("hprof: ")]
            assert done.returncode == 0 and done.stdout.count("step ") == 2, done
            assert (
                len(lines) == 1
                and reason in lines[0]
                and str(path) in lines[0]
                and "the program goes on" in lines[0]
            ), done.stderr
            assert not path.exists()
        if jdk.version == 17:
            process = jdk.start_java(
                "Always", 0, jvm=["-Xmx64m"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            running = Steps(process)
            running.wait(3)
            done = lab.jvmscope(
                "attach", "--always", "--max-size", "4M", "-o", small / "r.ring", process.pid
            )
            assert (
                done.returncode == 1
                and "No space left on device" in done.stderr
                and len(done.stderr.splitlines()) == 1
            )
            assert not (small / "r.ring").exists()
            attach(process.pid, "--always=memory", "--max-size", "4M")
            running.wait(3)
            # A full disk for the extracted file does not harm the ring either.
            (small / "filler").write_bytes(bytes((3 << 20) - 8192))
            done = lab.jvmscope("dump", "-o", small / "part.jfr", process.pid)
            assert (
                done.returncode == 1
                and "No space left on device" in done.stderr
                and not (small / "part.jfr").exists()
            )
            take("-o", folder / "part.jfr", process.pid)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.jdks(8, 17, 25)
def test_a_file_that_is_cut_short_ends_the_recording_and_nothing_else(jdk, steps, folder):
    """Another program may truncate the file of a recording at any time. Stores beyond its end raise
    SIGBUS, which must not terminate the VM.
    """
    pid, ring, file = steps.process.pid, folder / "r.ring", folder / "r.jfr"
    cut = "another program cut the file short while it was being written, which ended the recording"
    for size in (0, 100_000):
        attach(pid, "--max-size", "4M", "-o", ring)
        steps.wait(5)
        os.truncate(ring, size)
        steps.wait(30)
        now = lab.wait_for(
            lambda: (s := status(pid))["state"] == "idle" and s, 60, "the end of the recording"
        )
        assert now["last_error"] == cut and now["last_file"] == str(ring), now
        done = lab.jvmscope("dump", "--last", "5s", "-o", folder / "part.jfr", pid)
        assert (
            done.returncode == 1
            and cut in done.stderr
            and str(ring) in done.stderr
            and len(done.stderr.splitlines()) == 1
        ), done
        assert ring.stat().st_size == size
    done = lab.jvmscope("attach", "--threads", "-o", file, pid)
    assert done.returncode == 0, done.stderr
    steps.wait(5)
    os.truncate(file, 0)
    steps.wait(30)
    done = lab.jvmscope("stop", pid)
    assert done.returncode == 1 and cut in done.stderr, done
    steps.wait(5)

    # Recorded from the start, in a program in which the VM turns SIGBUS into a Java error.
    program = jdk.start_java(
        "LosesItsFile",
        jvm=["-Xmx64m", jdk.agent(f"always=y,maxsize=4m,file={ring}")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    lab.read_until(program.stdout, "ready")
    program.stdin.write("x" * 10)
    program.stdin.flush()
    lab.read_until(program.stdout, "errors 1\n")
    os.truncate(ring, 0)
    assert cut in lab.read_until(program.stderr, cut)
    out, printed = program.communicate("x" * 200, timeout=120)
    assert program.returncode == 0 and int(re.search(r"^done (\d+)", out, re.M)[1]) > 100, (
        out,
        printed,
    )
    assert "hprof: " not in printed, printed


@pytest.mark.jdks(8, 17, 25)
def test_the_ring_of_a_vm_is_its_own(jdk, steps, folder):
    """A second VM with the same file, as with JAVA_TOOL_OPTIONS, does not take it away. Whatever
    has happened to the file's name, a VM's ring is the file that this VM writes.
    """
    pid, ring, part = steps.process.pid, folder / "r.ring", folder / "part.jfr"
    begun = attach(pid, "--max-size", "4M", "-o", ring)
    steps.wait(5)
    other = jdk.java("Always", 1, jvm=["-Xmx64m", jdk.agent(f"always=y,maxsize=4m,file={ring}")])
    assert other.returncode == 0 and other.stdout.startswith("step "), other
    printed = "another VM records to this file; %p in the name keeps them apart; nothing is recorded, and the program goes on"
    assert [line for line in other.stderr.splitlines() if "hprof" in line] == [
        f"hprof: {ring}: {printed}"
    ], other.stderr
    take("-o", part, pid)
    assert assert_exact(part, steps.done, begun) >= 4
    for change in (
        lambda: ring.rename(folder / "moved.ring"),
        (folder / "moved.ring").unlink,
        lambda: ring.write_bytes(b"something else"),
    ):
        assert "deleted or replaced" not in lab.output("status", pid) or not ring.exists()
        change()
        steps.wait(3)
        assert "deleted or replaced" in lab.output("status", pid)
        take("-o", part, pid)
        assert_exact(part, steps.done, begun)
    assert lab.jvmscope("stop", "-o", part, pid).returncode == 0
    assert_exact(part, steps.done, begun)
    assert ring.read_bytes() == b"something else"
    done = lab.jvmscope(
        "run", "--always", "-o", folder / "none" / "r.ring", "--", "java", "-version"
    )
    assert (
        "nothing is recorded, and the program goes on" in done.stderr
        and "openjdk" in done.stderr.lower()
    ), done


@pytest.mark.jdks(17)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who attaches to another user's VM")
def test_a_ring_of_another_users_vm(jdk, folder):
    """The file belongs to the VM's user. A file that is put in its place is not read."""
    os.chown(folder, NOBODY, NOBODY)
    ring, part = folder / "r.ring", folder / "part.jfr"
    process = jdk.start(
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "java",
        "-Xmx64m",
        "-cp",
        lab.compiled("Always"),
        "Always",
        0,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    running = Steps(process)
    running.wait(3)
    refused = lab.jvmscope("attach", "--always", "-o", "/root/r.ring", process.pid)
    assert refused.returncode == 1 and "the VM cannot write there" in refused.stderr
    begun = attach(process.pid, "--max-size", "4M", "-o", ring)
    assert ring.stat().st_uid == NOBODY
    running.wait(10)
    take("-o", part, process.pid)
    assert_exact(part, running.done, begun)
    part.unlink()
    secret = folder / "secret"
    secret.write_bytes(b"JVMRING" + bytes(100000))
    secret.chmod(0o600)
    ring.unlink()
    ring.symlink_to(secret)
    for put in (lambda: None, lambda: os.link(secret, ring)):
        put()
        take("-o", part, process.pid)  # of the ring that the VM writes
        assert_exact(part, running.done, begun)
        ring.unlink()


def test_what_does_not_go_together_is_reported(tmp_path):
    for flags, printed in (
        (["--cpu=times"], "--cpu=times"),
        (["--cover"], ": --cover cannot be combined"),
        (["--heap=dump"], "--heap=dump"),
        (["-t", "5s"], "--time=5s cannot be combined"),
        (["--alloc=exact"], "--alloc=exact"),
        (["--exceptions"], ": --exceptions cannot be combined"),
        (["--live"], ": --live cannot be combined"),
    ):
        done = lab.jvmscope("run", "--always", *flags, "--", "true")
        assert (
            done.returncode == 2
            and "keeps the last minutes" in done.stderr
            and printed in done.stderr
        ), done.stderr
        assert len(done.stderr.splitlines()) == 1
    for flags, printed in (
        (["--keep", "1m"], "has no effect without --always=y"),
        (["--max-size", "8M"], "has no effect without --always=y"),
        (["--always", "--max-size", "1M"], "4.00 MiB"),
        (["--always", "--keep", "0.5s"], "out of range: 1s to 30d"),
        (["--always", "--keep", "31d"], "out of range: 1s to 30d"),
        (["--always=memory", "-o", "x.ring"], "writes no file: --output cannot be combined"),
    ):
        done = lab.jvmscope("run", *flags, "--", "true")
        assert done.returncode == 2 and printed in done.stderr, done.stderr
    plain = tmp_path / "plain"
    plain.write_text("no ring")
    done = lab.jvmscope("dump", "-o", tmp_path / "x.jfr", plain)
    assert done.returncode == 1 and "neither a process id nor the ring" in done.stderr
    plain.write_bytes(b"JVMRING\1" + bytes(10000))
    done = lab.jvmscope("dump", "-o", tmp_path / "x.jfr", plain)
    assert (
        done.returncode == 1
        and "head of the ring is damaged" in done.stderr
        and not (tmp_path / "x.jfr").exists()
    )
    done = lab.jvmscope("report", plain)
    assert done.returncode == 1 and "jvmscope dump --last 5m -o FILE.jfr" in done.stderr
