# SPDX-License-Identifier: Apache-2.0
"""Triggers of recordings that are always on: each one with a program that causes it, and the files
that it leaves.
"""
import concurrent.futures
import operator
import os
import pathlib
import random
import re
import signal
import stat
import subprocess
import tempfile
import threading
import time
import urllib.request

import pytest

import lab
from always_lab import attach, status, take
from recording import events, window

BEFORE, AFTER = 2, 1  # seconds


@pytest.fixture
def folder():
    """A folder that VMs inside and outside of the chroot see under one name."""
    with tempfile.TemporaryDirectory(prefix="jvmscope-test-", dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


class Program:
    """The program Triggers, which executes commands."""

    def __init__(self, jdk, agent=None, jvm=(), shell=""):
        """shell: shell commands that run before the VM, in its process."""
        self.process = jdk.start(
            "sh",
            "-c",
            f'{shell} exec "$@"',
            "-",
            "java",
            *jvm,
            *([jdk.agent(agent)] if agent else []),
            "-cp",
            lab.compiled("Triggers"),
            "Triggers",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.printed, self.come, self.errors = [], threading.Condition(), []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(
            target=lambda: self.errors.extend(self.process.stderr), daemon=True
        ).start()
        self.wait("ready")

    def read(self):
        for line in self.process.stdout:
            with self.come:
                self.printed.append(line.strip())
                self.come.notify_all()
        with self.come:
            self.printed.append("end")
            self.come.notify_all()

    def wait(self, word):
        with self.come:
            self.come.wait_for(
                lambda: any(word in line or line == "end" for line in self.printed), timeout=120
            )
            assert any(word in line for line in self.printed), (
                word,
                self.printed,
                "".join(self.errors),
            )

    def do(self, line):
        """Makes the program do something. Returns when that began, in ms since 1970."""
        word = line.split()[0]
        with self.come:
            self.printed = [x for x in self.printed if not x.startswith(f"done {word} ")]
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if word == "deadlock" or word == "spin":
            return time.time_ns() // 10**6
        self.wait(f"done {word} ")
        return int(next(x for x in self.printed if x.startswith(f"done {word} ")).split()[2])


def triggers_of(pid):
    now = status(pid)
    return {
        now[f"trigger.{i}.condition"]: {
            k.split(".")[2]: v for k, v in now.items() if k.startswith(f"trigger.{i}.")
        }
        for i in range(1, 65)
        if f"trigger.{i}.condition" in now
    }


def dumped(folder, reason):
    return lab.wait_for(lambda: sorted(folder.glob(f"{reason}-2*.jfr")), 60, f"a file of {reason}")[
        0
    ]


def assert_has_its_cause(path, condition, began_ms, recorded_ms, steps):
    """Checks that the event is in the file, with the seconds before it, as far as they were
    recorded, and those after it. Returns how many of the program's steps precede the cause; on a
    busy machine it makes few of them.
    """
    times = [int(line.split(" ", 3)[1]) for line in events(path, "jvmscope.Trigger")]
    conditions = events(path, "jvmscope.Trigger", get="condition")
    of_trigger = [at for at, line in zip(times, conditions, strict=True) if condition in line]
    assert of_trigger, conditions
    # a file has its events in the order of processors, not in chronological order
    at = min(of_trigger)
    start, end = window(path)
    assert at >= began_ms * 10**6
    since = max(at - BEFORE * 10**9, recorded_ms * 10**6)
    assert end >= at + AFTER * 10**9 and start <= since + 10**8, (start, at, end)
    assert end - start < (BEFORE + AFTER + 10) * 10**9
    starts = [int(line.split(" ", 3)[1]) for line in events(path, "jdk.ThreadStart")]
    slack = (
        2 * 10**6
    )  # the program's clock is in ms, and may have been set since the recording began
    for since, until in ((start, at), (at, end)):
        made = [
            s for s in steps if since + slack <= s[0] * 10**6 and s[1] * 10**6 <= until - slack
        ]
        recorded = [x for x in starts if since <= x <= until]
        assert len(recorded) >= len(made), (start, at, end, made, recorded)
    return sum(start <= x < at for x in starts)


CAUSES = [  # what causes it, its condition, and the reason in the file's name
    ("request 80", "request > 60ms", "request"),
    ("request 70", "request(Triggers.serve) > 60ms && request > 60ms", None),
    ("requests 30 20", "p99(Triggers.serve) > 15ms", "p99"),
    ("collect", "pause > 1ms", "pause"),
    ("collect", "safepoint > 1ms", "safepoint"),
    ("throw 40", "exception Triggers$Lost > 30/s", "exception"),
    ("memory 200", "rss > 200M", "rss"),
    ("memory 200", "rss grows 20M/s", "rss-grows"),
    ("threads 200", "threads > 200", "threads"),
    ("files 300", "fd > 300", "fd"),
    ("spin 4", "cpu > 5% for 1s", "cpu"),
    ("deadlock", "deadlock", "deadlock"),
    ("oom", "oom", "oom"),
    ("", "every 5s", "every"),
]


@pytest.mark.jdks(8, 17, 25)
def test_each_trigger_has_its_cause_and_the_time_before(jdk, folder):
    words = ",".join(f"on={condition}" for _, condition, reason in CAUSES if reason)
    options = (
        f"always=y,keep=1m,maxsize=16m,file={folder}/r.ring,requests=Triggers.serve(..),before={BEFORE}s,after={AFTER}s,files=50,"
        f"onfile={folder}/%r-%t.jfr,{words},on=exception Triggers$Lost,then=exec:true,on=request > 10m,then=exec:touch {folder}/never"
    )
    program = Program(jdk, options, jvm=["-Xmx400m"])
    pid, did = program.process.pid, {}
    recorded = status(pid)["ring.from_ms"]
    time.sleep(BEFORE + 0.5)  # so that there is some time before it
    for cause, condition, reason in CAUSES:
        if not reason:
            continue
        if cause and cause not in did:
            did[cause] = program.do(cause)
    paths = [dumped(folder, reason) for _, _, reason in CAUSES if reason]
    program.do("steps")
    steps = [
        tuple(map(int, s.split("-")))
        for s in next(x for x in program.printed if x.startswith("steps ")).split()[1:]
    ]
    before = 0
    for cause, condition, reason in CAUSES:
        if not reason:
            continue
        # What the VM did while it started may have sufficed for some of them.
        began = 0 if reason in ("pause", "safepoint", "cpu", "rss-grows", "every") else did[cause]
        before += assert_has_its_cause(paths.pop(0), condition, began, recorded, steps)
    assert before > 10 and len(steps) > 10
    shown = triggers_of(pid)
    for _, condition, reason in CAUSES:
        if not reason:
            continue
        t = shown[condition]
        assert t["fired"] >= 1 and t["written"] == 1 and t["failed"] == 0 and t["then"] == "dump", (
            condition,
            t,
        )
        assert (
            pathlib.Path(t["file"]).name.startswith(f"{reason}-2")
            and stat.S_IMODE(os.stat(t["file"]).st_mode) == 0o600
        )
        assert t["measured"], t
    assert shown["request > 10m"]["fired"] == 0 and not (folder / "never").exists()
    assert "Triggers.serve" in shown["request > 60ms"]["measured"]
    assert re.fullmatch(
        r"(3[1-9]|40)/s: Triggers\$Lost", shown["exception Triggers$Lost > 30/s"]["measured"]
    )
    assert (
        shown["exception Triggers$Lost > 30/s"]["fired"] == 1
    ), "forty at once are one cause, although they count for a second"
    text = lab.jvmscope("status", pid).stdout
    assert re.search(
        r"^trigger +request > 60ms -> dump: held \d+ times?, last 20.*, \d+.* ms: Triggers.serve.*; wrote 1 files?, last /",
        text,
        re.M,
    ), text
    assert re.search(r"^trigger +request > 10m -> exec:touch .*: has not held$", text, re.M), text
    # A minute has to pass before the same trigger writes again. What it sees meanwhile is counted,
    # and the count is in the recording.
    program.do("request 90")
    lab.wait_for(
        lambda: triggers_of(pid)["request > 60ms"]["held_back"] >= 1,
        60,
        "a request that is held back",
    )
    for condition, t in triggers_of(pid).items():
        assert t["fired"] == t["held_back"] + (t["fired"] > 0), (condition, t)
    take("-o", folder / "all.jfr", pid)
    thrown = [
        int(n)
        for line in events(folder / "all.jfr", "jvmscope.Trigger")
        if 'condition="exception Triggers$Lost"' in line
        for n in re.findall(r'measured="(\d+): Triggers\$Lost"', line)
    ]
    assert sum(thrown) == 40, "each object counts once, those of a subclass too"
    assert len(events(folder / "all.jfr", "jvmscope.Trigger")) >= len(CAUSES)
    assert len(list(folder.glob("request-2*.jfr"))) == 1
    program.process.kill()


@pytest.mark.jdks(8, 17, 25)
def test_percentages_are_of_the_limits_of_the_container_and_the_process(jdk, folder):
    """Of memory, file descriptors and processors; `for` holds a condition back until it has held
    that long.
    """
    below = ("rss > 95%", "fd > 95%", "cpu > 10% for 1h")
    words = ",".join(
        f"on={condition}" for condition in ("rss > 60%", "fd > 90%", "cpu > 10% for 2s", *below)
    )
    options = f"always=y,keep=1m,maxsize=8m,file={folder}/r.ring,before={BEFORE}s,after={AFTER}s,onfile={folder}/%r-%t.jfr,{words}"
    with lab.control_group("memory", "memory.limit_in_bytes", "memory.max", 512 << 20) as group:
        if not group:
            pytest.skip(
                "no memory cgroup can be made here (needs root and a writable /sys/fs/cgroup)"
            )
        program = Program(
            jdk,
            options,
            jvm=["-Xmx400m", "-Xmn16m"],
            shell=f"echo $$ >{group[0]}/cgroup.procs; ulimit -n 400;",
        )
        pid = program.process.pid
        recorded, began = status(pid)["ring.from_ms"], {}
        for reason, cause in (("rss", "memory 290"), ("fd", "files 352"), ("cpu", "spin 8")):
            began[reason] = program.do(cause)
            path = dumped(folder, reason)
            assert_has_its_cause(
                path,
                next(c for c in triggers_of(pid) if c.startswith(reason)),
                began[reason] if reason != "cpu" else 0,
                recorded,
                [],
            )
        shown = triggers_of(pid)
        assert all(shown[condition]["fired"] == 0 for condition in below), shown
        assert 90 < float(shown["fd > 90%"]["measured"].split("%")[0]) <= 95, shown
        assert 60 < float(shown["rss > 60%"]["measured"].split("%")[0]) <= 95, shown
        program.process.kill()
        program.process.wait()


@pytest.mark.jdks(8, 17)
def test_cpu_is_a_percentage_of_the_containers_quota(jdk, folder):
    """A VM that may use 0.3 of the machine's processors and wants more than one has used everything
    that it may have.
    """
    wanted = "cpu > 90% for 3s"
    options = f"always=y,maxsize=4m,file={folder}/r.ring,before={BEFORE}s,after=0s,onfile={folder}/%r-%t.jfr,on={wanted}"
    with lab.control_group("cpu", "cpu.cfs_quota_us", "cpu.max", 30000) as group:
        if not group:
            pytest.skip(
                "no control group of CPU can be made here (needs root and a writable /sys/fs/cgroup)"
            )
        lab.go_before_other_groups(group[0])
        program = Program(
            jdk, options, jvm=["-Xmx100m"], shell=f"echo $$ >{group[0]}/cgroup.procs;"
        )
        try:
            program.do("spin 60")
            measured = lab.wait_for(
                lambda: (t := triggers_of(program.process.pid)[wanted])["fired"] and t["measured"],
                50,
                "the trigger",
            )
        finally:
            program.process.kill()
            program.process.wait()
    assert float(measured.split("%")[0]) < 130, measured


@pytest.mark.jdks(8, 17)
def test_each_reading_has_the_files_that_are_open_then(jdk, folder):
    """Each reading counts the open files anew, rather than repeating an earlier count."""
    program = Program(jdk, f"always=y,maxsize=4m,file={folder}/r.ring")
    began, out = program.do("files 300"), folder / "all.jfr"
    done = time.time_ns()

    def readings():
        take("-o", out, program.process.pid)
        times = [int(line.split(" ", 3)[1]) for line in events(out, "jvmscope.ProcessFigures")]
        return list(
            zip(
                times,
                map(int, events(out, "jvmscope.ProcessFigures", get="openFiles")),
                strict=True,
            )
        )

    all_of_them = lab.wait_for(
        lambda: (found := readings()) and max(found)[0] > done and found,
        60,
        "a reading with the files open",
    )
    assert all(3 <= n < 300 for at, n in all_of_them if at < began * 10**6) and all(
        n >= 300 for at, n in all_of_them if at > done
    ), all_of_them
    program.process.kill()


@pytest.mark.jdks(8, 17, 25)
def test_the_percentile_of_a_servers_requests(jdk, folder):
    """p99(GET /cart) is that of the requests of this name alone, although requests of another name
    are slow.
    """
    cart, other = "p99(GET /cart) > 1s", "p99(GET /other) > 1s"
    options = f"always=y,keep=1m,maxsize=8m,file={folder}/r.ring,before={BEFORE}s,after={AFTER}s,onfile={folder}/%r-%t.jfr,on={cart},on={other}"
    process = jdk.start_java(
        "ServesHttp", jvm=["-Xmx64m", jdk.agent(options)], stdout=subprocess.PIPE
    )
    port = int(process.stdout.readline())
    slow = {"/cart": 0, "/other": 1200}

    def ask_for(path, wait):
        since = time.monotonic()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}{path}?wait={wait}", timeout=60
        ) as answer:
            assert answer.status == 200 and answer.read()
        return time.monotonic() - since

    def ask():
        while slow:
            for path, wait in list(slow.items()):
                ask_for(path, wait)

    def fired(condition):
        return triggers_of(process.pid)[condition]["fired"]

    lab.wait_for(
        lambda: ask_for("/first", 0) < 0.1, 60, "a fast answer"
    )  # the first ones load classes
    with concurrent.futures.ThreadPoolExecutor(
        6
    ) as clients:  # ten requests in ten seconds are needed
        asking = [clients.submit(ask) for _ in range(6)]
        try:
            lab.wait_for(lambda: fired(other), 120, "slow requests of the other name")
            assert not fired(cart), triggers_of(process.pid)
            began = time.time_ns()
            slow["/cart"] = 1200
            path = lab.wait_for(lambda: triggers_of(process.pid)[cart].get("file"), 120, "a file")
        finally:
            slow.clear()
        for one in asking:
            one.result()
    times = [
        int(line.split(" ", 3)[1]) for line in events(path, "jvmscope.Trigger") if cart in line
    ]
    start, end = window(pathlib.Path(path))
    assert times and min(times) >= began, (times, began)
    assert start <= min(times) - (BEFORE - 0.1) * 10**9 and end >= min(times) + AFTER * 10**9
    assert (
        sum(
            int(line.split(" ", 3)[2]) >= 1200 * 10**6
            for line in events(path, "jvmscope.Request")
        )
        >= 2
    ), "the slow requests are in it"
    process.kill()


@pytest.mark.jdks(8, 17)
def test_triggers_of_a_recording_that_goes_on(jdk, folder):
    """Triggers are added and removed while the program runs; a dump, a heap dump and a command; the
    number of files that are kept; files that cannot be written.
    """
    program = Program(jdk, jvm=["-Xmx100m"])
    pid, pattern, out = program.process.pid, folder / "%r-%p-%t.jfr", folder / "out"
    done = lab.jvmscope("attach", "--on", "threads > 300", pid)
    assert (
        done.returncode == 1
        and "nothing is being recorded" in done.stderr
        and len(done.stderr.splitlines()) == 1
    ), done.stderr
    attach(pid, "--always=memory", "--max-size", "8M", "--requests=Triggers.serve(..)")
    # Files of a process that has ended count. Those of a process that is alive, and files with
    # other names, do not.
    old = [folder / f"threads-{4000000 + i}-20260101-00000{i}.jfr" for i in range(3)]
    others = [
        folder / f"threads-{os.getpid()}-20260101-000000.jfr",
        folder / "threads-x-20260101-000000.jfr",
        folder / "notes.jfr",
    ]
    for i, path in enumerate(old + others):
        path.touch()
        os.utime(path, (10**9 + i, 10**9 + i))
    command = f'(env; echo pid=$$; id -u; readlink /proc/self/fd/*) >{out}.tmp 2>&1; mv {out}.tmp {out}; exec sleep 600'
    done = lab.jvmscope(
        "attach",
        "--on",
        "threads > 300",
        "--then",
        "dump",
        "--then",
        "heap-dump",
        "--then",
        f"exec:{command}",
        "--before",
        "1s",
        "--after",
        "100ms",
        "--files",
        "3",
        "--on-file",
        pattern,
        "--on",
        "request > 30ms",
        "--on",
        "every 1h",
        pid,
    )
    assert done.returncode == 0 and f"jvmscope status {pid}" in done.stderr, done.stderr
    # A missing folder is reported at once; one that is removed later, when the trigger acts.
    missing = folder / "missing"
    for pattern, why in (
        (missing / "%t.jfr", "No such file"),
        (folder / "notes.jfr" / "%t.jfr", "Not a directory"),
    ):
        done = lab.jvmscope("attach", "--on", "fd > 200", "--on-file", pattern, pid)
        assert (
            done.returncode == 1
            and f"--on-file={pattern}: cannot write: {why}" in done.stderr
            and len(done.stderr.splitlines()) == 1
        ), done
    assert "fd > 200" not in triggers_of(pid)
    missing.mkdir()
    done = lab.jvmscope(
        "attach", "--on", "fd > 200", "--on-file", missing / "%t.jfr", "--after", "0s", pid
    )
    assert done.returncode == 0, done.stderr
    missing.rmdir()
    program.do("threads 300")
    lab.wait_for(out.exists, 60, "the command")
    printed = out.read_text()
    files = {path.suffix: path for path in folder.glob(f"threads-{pid}-*")}
    assert set(files) == {".jfr", ".hprof"}
    assert "java.lang.String" in lab.output("heap", "histogram", files[".hprof"])
    assert stat.S_IMODE(files[".hprof"].stat().st_mode) == 0o600
    for name, value in (
        ("REASON", "threads"),
        ("CONDITION", "threads > 300"),
        ("MEASURED", r"3\d\d"),
        ("PID", pid),
        ("FILE", files[".hprof"]),
    ):
        assert re.search(rf"^JVMSCOPE_{name}={value}$", printed, re.M), printed
    assert re.search(rf"^{os.geteuid()}$", printed, re.M)
    left = [
        line
        for line in printed.splitlines()
        if line.startswith(("/", "pipe:", "socket:", "anon_inode:", "memfd:"))
        and not line.startswith(("/proc/", str(out)))
    ]
    assert set(left) <= {"/dev/null"}, left
    assert [path.exists() for path in old] == [False, False, True] and all(
        path.exists() for path in others
    )

    program.do("files 200")
    failed = lab.wait_for(
        lambda: (t := triggers_of(pid)["fd > 200"])["failed"] and t, 60, "a command that fails"
    )
    assert "No such file or directory" in failed["error"] and failed["written"] == 0
    assert re.search(
        r"^trigger +fd > 200 .*1 failed, last .*missing.*No such file",
        lab.jvmscope("status", pid).stdout,
        re.M,
    )

    # Triggers that act in the same second have separate files, of which the oldest are removed. The
    # place of a trigger that was removed is free.
    same = [f"threads > {n}" for n in range(1, 6)]
    done = lab.jvmscope(
        "attach",
        *(x for on in same for x in ("--on", on)),
        "--after",
        "0s",
        "--files",
        "4",
        "--on-file",
        folder / "same-%t.jfr",
        pid,
    )
    assert done.returncode == 0, done.stderr
    written = lab.wait_for(
        lambda: (t := triggers_of(pid)) and all(t[on]["written"] for on in same) and t,
        60,
        "five files",
    )
    paths = [pathlib.Path(written[on]["file"]) for on in same]
    assert (
        len(set(paths)) == 5
        and sum(path.exists() for path in paths) == 4
        and len(list(folder.glob("same-*"))) == 4
    ), paths
    for first in (1000, 2000, 3000):
        many = [x for n in range(first, first + 31) for x in ("--on", f"threads > {n}")]
        done = lab.jvmscope("attach", "--on", "none", *many, pid)
        assert done.returncode == 0, done.stderr
        assert set(triggers_of(pid)) == set(many[1::2])

    # What is due when the recording ends is written then. The command of a trigger, which
    # continues, does not delay that.
    lab.jvmscope("attach", "--on", "none", pid)
    assert triggers_of(pid) == {}
    # A state that lasts is one cause even if the condition names an event too; each further event
    # is another cause.
    both = "threads > 2 || request > 30ms"
    done = lab.jvmscope(
        "attach", "--on", both, "--after", "0s", "--on-file", folder / "both-%t.jfr", pid
    )
    assert done.returncode == 0, done.stderr
    lab.wait_for(lambda: triggers_of(pid)[both]["fired"], 60, "a state")
    program.do("request 50")
    lab.wait_for(lambda: triggers_of(pid)[both]["fired"] > 1, 60, "an event")
    assert triggers_of(pid)[both]["fired"] == 2, triggers_of(pid)
    lab.jvmscope("attach", "--on", "none", pid)
    done = lab.jvmscope(
        "attach",
        "--on",
        "request(Triggers.*) > 30ms",
        "--after",
        "1h",
        "--on-file",
        folder / "last-%r-%t.jfr",
        pid,
    )
    assert done.returncode == 0, done.stderr
    program.do("request 50")
    lab.wait_for(
        lambda: triggers_of(pid)["request(Triggers.*) > 30ms"]["fired"],
        60,
        "a trigger of a request",
    )
    assert lab.jvmscope("stop", "-o", folder / "all.jfr", pid).returncode == 0
    [last] = folder.glob("last-request-*.jfr")
    assert len(events(last, "jvmscope.Trigger")) >= 1
    program.do("request 1")
    os.kill(int(re.search(r"^pid=(\d+)$", printed, re.M)[1]), signal.SIGKILL)
    program.process.kill()


@pytest.mark.jdks(8, 17, 25)
def test_requests_and_deadlocks_that_go_on(jdk, folder):
    """A request is reported once while it is in progress; a deadlock is also reported to a trigger
    that was added later; and the VM is rarely queried.
    """
    program = Program(
        jdk,
        f"always=y,keep=1m,maxsize=8m,file={folder}/r.ring,requests=Triggers.hold(..),after=0s,onfile={folder}/%r-%t.jfr,"
        "on=request > 300ms,on=request(Triggers.hold) > 1h",
    )
    pid = program.process.pid
    program.do("hold")
    lab.wait_for(lambda: triggers_of(pid)["request > 300ms"]["fired"], 60, "a request that goes on")
    path = dumped(folder, "request")
    assert any("which goes on" in line for line in events(path, "jvmscope.Trigger", get="measured"))
    program.do("release")

    def has_ended():
        take("-o", folder / "end.jfr", pid)
        return events(folder / "end.jfr", "jvmscope.Request")

    lab.wait_for(has_ended, 60, "its end")
    time.sleep(0.3)  # a second report would arrive in the next round
    stated = triggers_of(pid)["request > 300ms"]
    assert (
        stated["fired"] == 1
        and stated["held_back"] == 0
        and "Triggers.hold, which goes on" in stated["measured"]
    ), stated
    assert triggers_of(pid)["request(Triggers.hold) > 1h"]["fired"] == 0

    done = lab.jvmscope(
        "attach", "--on", "deadlock", "--after", "0s", "--on-file", folder / "%r-%t.jfr", pid
    )
    assert done.returncode == 0, done.stderr
    program.do("deadlock")
    path = dumped(folder, "deadlock")
    assert len(events(path, "jvmscope.Deadlock")) == 2
    first = status(pid)
    now = lab.wait_for(
        lambda: (s := status(pid))["deadlocks.searches"] >= first["deadlocks.searches"] + 12 and s,
        60,
        "searches",
    )
    # There are two waits that do not end. Their owners are read again after 2, 4, 8 and 16
    # searches. (On a busy machine there may be a third wait: owners are then read at once, and
    # these numbers start over.)
    searches, new, examined = (
        now[f"deadlocks.{n}"] - first[f"deadlocks.{n}"] for n in ("searches", "new", "examined")
    )
    assert searches >= 12 and examined - new <= 4 * (new + 1), (searches, new, examined, now)
    assert new or now["deadlocks.examined"] < now["deadlocks.searches"] / 2, now
    program.process.kill()


def test_a_wrong_condition_gets_its_place():
    """The message also says which conditions are understood, and it comes before any program is
    started.
    """
    most, files = min(
        int(pathlib.Path(f"/proc/sys/kernel/{name}").read_text())
        for name in ("threads-max", "pid_max")
    ), int(pathlib.Path("/proc/sys/fs/nr_open").read_text())
    for condition, printed in (
        ("cpu > 90", '"90" (character 7)'),
        ("foo > 3", "exception pkg.Class > 10/s"),
        ("request > 500", "as in 500ms"),
        ("request >", 'at its end'),
        ("request < 5ms", "> or >="),
        ("p99(GET /cart > 200ms", ") is missing"),
        ("p0 > 1ms", "not a condition; examples: "),
        ("rss grows 100M", "as in 100M/h"),
        ("rss > 90% for 30", "as in 30s"),
        ("pause > 1ms for 3s", "only cpu"),
        ("exception > 3/s", "name of a class"),
        ("every", "a second or more"),
        ("threads > 5 and fd > 3", '"and fd > 3" (character 13)'),
        ("(oom", ") is missing"),
        ("cpu = 3%", "a comparison"),
        ("oom || ", "not a condition; examples: "),
        ("fd > -1", "as in 90% or 5000"),
        # Conditions that can never change are refused.
        ("cpu > 200%", 'from 0% to 100%, where 100% is all CPUs that the VM may use, at "200%"'),
        ("cpu < 101%", "from 0% to 100%"),
        ("cpu > 100%", "more than 100%"),
        ("rss > 101%", "from 0% to 100%"),
        ("fd > 100%", "more than 100%"),
        ("threads < 0", "less than 0"),
        ("cpu < 0%", "less than 0"),
        ("threads < 1", "always has"),
        ("fd <= 0", "always has"),
        ("rss <= 0%", "always has"),
        # Values that this machine cannot reach are refused with its own limit.
        (
            "threads > 100000000",
            f'this machine allows {most} threads, so this can never hold, at "100000000" (character 11)',
        ),
        (f"threads > {most}", "this can never hold"),
        (f"threads >= {most + 1}", "this can never hold"),
        ("rss > 64T", "this machine has "),
        ("oom || rss >= 64T", "of memory, so this can never hold"),
        ("rss grows 64T/h", "of memory, so this can never hold"),
        (
            "fd > 5000000000",
            f"this machine allows {files} open files in a process, so this can never hold",
        ),
        # So are conditions that can never hold, or always hold, as a whole or in a part. The
        # message names the place of the smallest such part.
        (
            "rss > 2G && rss < 1G",
            'these terms exclude each other, so this can never hold, at "rss > 2G && rss < 1G" (character 1)',
        ),
        (
            "oom || threads >= 9 && fd > 3 && threads < 9",
            "so this can never hold, at \"threads >= 9 && fd >\" (character 8)",
        ),
        ("cpu > 90% && cpu < 10%", "exclude each other"),
        ("threads > 5 && threads < 6", "exclude each other"),
        ("request > 1s && !(request > 500ms)", "exclude each other"),
        ("!(cpu > 10%) && cpu > 10% for 9s", "exclude each other"),
        ("cpu > 90% for 30s && !(cpu > 80% for 10s)", "exclude each other"),
        ("!(rss > 1G || rss <= 2G)", "(character 3)"),
        (
            "threads > 5 || threads <= 5",
            'one of these terms holds at any time, so this always holds, at "threads > 5 || threa" (character 1)',
        ),
        ("!(!(cpu > 90%) || !(cpu <= 90%))", "(character 3)"),
        ("oom || !(rss > 2M) || rss > 1M", "one of these terms holds at any time"),
        ("!(fd > 0%)", 'this always holds, at "fd > 0%)" (character 3)'),
        ("threads >= 1", "this always holds"),
        ("cpu >= 0%", "this always holds"),
        (f"threads <= {most}", "this always holds"),
        ("exception a.B >= 0/s", "this always holds"),
        ("!oom", 'this holds all the time while nothing happens, at "!oom" (character 1)'),
        ("!(pause > 9ms) || cpu > 90%", "while nothing happens"),
    ):
        done = lab.jvmscope("run", "--always", "--on", condition, "--", "true")
        assert done.returncode == 2 and printed in done.stderr.splitlines()[0], (
            condition,
            done.stderr,
        )
    for condition in (
        f"threads > {most - 1}",
        f"threads >= {most}",
        "threads <= 1",
        "rss > 1M && rss < 2M",
        "threads > 9 || threads < 9",
        "rss > 2G && rss < 10%",
        "!(cpu > 90% for 30s) && cpu > 95%",
        "cpu > 5% && cpu < 5.0000001%",
        "p99 > 5ms || p99 <= 5ms",
        "request > 0ms",
        "!oom && cpu > 90%",
        "p99 > 300000h",
        "cpu > 80% for 10s && !(cpu > 90% for 10s)",
        "request(a) > 1s && !(request(b) > 1s)",
    ):
        done = lab.jvmscope("run", "--always", "--on", condition, "--", "true")
        assert (
            done.returncode == 1
            and done.stderr.count("\n") == 1
            and "the program started no VM" in done.stderr
        ), (condition, done.stderr)
    for flags, printed in (
        (["--on", "oom", "--then", "exec:"], "dump, heap-dump, exec:COMMAND"),
        (["--then", "dump"], "has no effect without --on"),
        (["--then", "dump", "--on", "oom"], "must follow the --on"),
        (["--on", "oom", "--on-file", "x.jfr"], "lacks %t"),
        (["--on", "oom", "--on-file", "x-%t.txt"], "end with .jfr"),
        (["--on", "oom", "--on-file", "x-%t-%q.jfr"], "%r, %t, %p"),
        (["--before", "5s"], "has no effect without --on"),
        (["--on", "oom", "--files", "0"], "1 to 10000"),
    ):
        done = lab.jvmscope("run", "--always", *flags, "--", "true")
        assert done.returncode == 2 and printed in done.stderr.splitlines()[0], (flags, done.stderr)
    done = lab.jvmscope("run", "--on", "oom", "--", "true")
    assert done.returncode == 2 and "has no effect without --always=y" in done.stderr
    done = lab.jvmscope("attach", "--on", "oom", "--cpu", "1")
    assert done.returncode == 2 and "without --always=y" in done.stderr


def test_a_condition_is_refused_if_and_only_if_a_part_of_it_is_constant():
    """Two hundred conditions. The result is compared with trying all values."""
    compare = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
    values = [{"cpu": cpu / 2, "threads": threads} for cpu in range(20) for threads in range(1, 10)]
    chance = random.Random(24)

    def some(depth):
        kind = chance.random() if depth else 0
        if kind < 0.25:
            return (
                chance.choice(("cpu", "threads")),
                chance.choice(tuple(compare)),
                chance.randint(3, 6),
            )
        return (
            ("!", some(depth - 1))
            if kind < 0.45
            else (chance.choice(("&&", "||")), some(depth - 1), some(depth - 1))
        )

    def text(c):
        if c[0] in ("cpu", "threads"):
            return f"{c[0]} {c[1]} {c[2]}{'%' if c[0] == 'cpu' else ''}"
        return f"!({text(c[1])})" if c[0] == "!" else f"({text(c[1])} {c[0]} {text(c[2])})"

    def holds(c, at):
        if c[0] in ("cpu", "threads"):
            return compare[c[1]](at[c[0]], c[2])
        return (
            not holds(c[1], at)
            if c[0] == "!"
            else (all if c[0] == "&&" else any)(holds(part, at) for part in c[1:])
        )

    def is_constant(c):
        return len({holds(c, at) for at in values}) == 1 or any(
            is_constant(part) for part in c[1:] if isinstance(part, tuple)
        )

    refused = 0
    for _ in range(200):
        condition = some(3)
        done = lab.jvmscope("run", "--always", "--on", text(condition), "--", "true")
        assert (done.returncode == 2) == is_constant(condition), (text(condition), done.stderr)
        refused += done.returncode == 2
    assert 20 < refused < 180, refused


@pytest.mark.jdks(8, 25)
def test_a_trigger_above_a_limit_of_the_process_is_reported_at_once(jdk, folder):
    """The limit may change, so the condition is not refused."""
    words = " ".join(
        map(
            str,
            [
                lab.BUILD / "jvmscope",
                "run",
                "--always",
                "--max-size",
                "4M",
                "-o",
                folder / "r.ring",
                "--on",
                "'fd > 300'",
                "--on",
                "'fd >= 300'",
                "--on",
                "'every 59s'",
                "--on",
                "'every 1m'",
                "--",
                *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Triggers"), "Triggers"),
            ],
        )
    )
    program = subprocess.Popen(
        ["sh", "-c", f"ulimit -n 300; exec {words}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    note = "jvmscope: note: --on=fd > 300: never holds while 300 is the limit of this process\n"
    often = "jvmscope: note: --on=every 59s: acts once a minute, not every 59.0 s, because no trigger acts more often\n"
    printed = lab.read_until(program.stderr, "more often")  # while the program runs
    assert note in printed and often in printed and "every 1m:" not in printed, printed
    out, printed = program.communicate("", timeout=120)
    assert program.returncode == 0 and "never holds" not in printed, (out, printed)


@pytest.mark.jdks(8, 25)
def test_run_says_what_its_triggers_wrote_and_which_never_can(jdk, folder):
    """When the program has ended, the VM cannot be queried any more. A nested class that is written
    with a dot does not exist.
    """
    words = [
        lab.BUILD / "jvmscope",
        "run",
        "--always",
        "--max-size",
        "4M",
        "-o",
        folder / "r.ring",
        "--on-file",
        folder / "%r-%t.jfr",
        "--on",
        "exception Triggers$Lost",
        "--on",
        "exception Triggers.Lost > 1/s",
        "--on",
        "exception Triggers$Nosuch",
        "--on",
        "exception java.lang.String",
        "--",
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Triggers"), "Triggers"),
    ]
    program = subprocess.Popen(
        [str(w) for w in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, printed = program.communicate("throw 40\n", timeout=120)
    assert program.returncode == 0 and "done throw" in out, (out, printed)
    (written,) = folder.glob("exception-*.jfr")
    notes = [
        line
        for line in printed.splitlines()
        if line.startswith("jvmscope: note: --on=") or line.startswith("hprof:")
    ]
    assert notes == [
        "jvmscope: note: --on=exception java.lang.String: java.lang.String is not an exception: it is not below java.lang.Throwable",
        f"jvmscope: note: --on=exception Triggers$Lost: wrote 1 file, the last is {written}",
        "jvmscope: note: --on=exception Triggers.Lost > 1/s: no class Triggers.Lost was loaded, but Triggers$Lost was",
        "jvmscope: note: --on=exception Triggers$Nosuch: no class Triggers$Nosuch was loaded",
    ], printed


@pytest.mark.jdks(8, 17, 25)
def test_a_command_that_fails_is_reported(jdk, folder):
    """A user who mistypes the name of a command must find that out before an incident."""
    actions = {
        "threads > 100": ("exit 3", "exec:exit 3: exit status 3"),
        "fd > 200": (
            "/no/such/command",
            "exec:/no/such/command: exit status 127, for a command that was not found",
        ),
        "exception Triggers$Lost": ("kill -9 $$", "exec:kill -9 $$: killed by signal 9"),
        "threads > 99": ("true", None),
    }
    words = ",".join(
        f"on={condition},then=exec:{command}" for condition, (command, _) in actions.items()
    )
    program = Program(jdk, f"always=y,maxsize=4m,file={folder}/r.ring,after=0s,{words}")
    try:
        for cause in ("threads 100", "files 200", "throw 2"):
            program.do(cause)
        pid = program.process.pid
        shown = lab.wait_for(
            lambda: (t := triggers_of(pid))
            and all(t[c]["failed"] for c, (_, why) in actions.items() if why)
            and t,
            60,
            "failures",
        )
        assert {c: t.get("error") for c, t in shown.items()} == {
            c: why for c, (_, why) in actions.items()
        }, shown
        assert (
            all(t["failed"] == (actions[c][1] is not None) for c, t in shown.items())
            and shown["threads > 99"]["fired"]
        ), shown
        assert "; 1 failed, last exec:exit 3: exit status 3\n" in lab.output("status", pid)
        program.process.stdin.close()
        program.wait("end")
        program.process.wait(60)
    finally:
        program.process.kill()
    printed = lab.wait_for(
        lambda: (text := "".join(program.errors)) and text.count(" failed, ") == 3 and text,
        60,
        "the notes at the end",
    )
    for condition, (_, why) in actions.items():
        assert (f"on={condition}: 1 failed, the last: {why}" in printed) == bool(why), printed


@pytest.mark.jdks(8, 17)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may mount a small file system")
def test_a_full_disk_is_the_reason_why_a_trigger_wrote_nothing(jdk, folder):
    full = folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", full], check=True)
    try:
        program = Program(
            jdk,
            f"always=y,maxsize=4m,file={folder}/r.ring,after=0s,onfile={full}/%r-%t.jfr,on=fd > 200",
        )
        program.do("files 200")
        failed = lab.wait_for(
            lambda: (t := triggers_of(program.process.pid)["fd > 200"])["failed"] and t,
            60,
            "a dump that fails",
        )
        program.process.kill()
        assert (
            failed["error"].endswith(".jfr: No space left on device")
            and failed["written"] == 0
            and not list(full.iterdir())
        ), failed
    finally:
        subprocess.run(["umount", "-l", full], check=True)


@pytest.mark.jdks(8, 25)
def test_a_trigger_for_a_class_that_is_not_loaded_is_reported_at_once(jdk, folder):
    """The trigger may be right if the class is loaded later, but a wrong name used to be silent
    until the end.
    """
    program = Program(jdk)
    note = "jvmscope: note: --on=exception {0}: no class {0} is loaded so far{1}\n"
    nested, dotted = note.format("Triggers$Nosuch", ""), note.format(
        "com.shop.Nosuch", "; nested ones are Outer$Inner"
    )
    try:
        pid = program.process.pid
        done = lab.jvmscope(
            "attach",
            "--always",
            "--max-size",
            "4M",
            "-o",
            folder / "r.ring",
            "--on",
            "exception Triggers$Nosuch",
            "--on",
            "exception java.lang.OutOfMemoryError",
            pid,
        )
        notes = [line for line in done.stderr.splitlines(True) if "--on" in line]
        assert done.returncode == 0 and notes == [nested], done.stderr
        done = lab.jvmscope(
            "attach",
            "--on",
            "exception com.shop.Nosuch",
            "--on",
            "exception Triggers$Nosuch > 5/s",
            pid,
        )
        assert done.returncode == 0 and dotted in done.stderr, done.stderr
        assert (
            "--on=exception Triggers$Nosuch > 5/s: no class Triggers$Nosuch is loaded so far\n"
            in done.stderr
            and nested not in done.stderr
        )
        # A class that is loaded and is not an exception can never become one.
        for name in ("java.lang.String", "java.util.Map$Entry", "java.lang.Object", "Triggers"):
            done = lab.jvmscope("attach", "--on", f"exception {name}", pid)
            assert done.returncode == 1 and done.stderr.endswith(
                f": --on=exception {name}: {name} is not an exception: it is not below java.lang.Throwable\n"
            ), done.stderr
        done = lab.jvmscope("attach", "--on", "exception java.util.Map.Entry > 1/s", pid)
        assert (
            done.returncode == 0
            and "no class java.util.Map.Entry is loaded so far, but java.util.Map$Entry is\n"
            in done.stderr
        ), done.stderr
        stated = lab.output("status", pid)
        assert (
            "exception java.lang.String" not in stated
            and "note             --on=exception com.shop.Nosuch: no class" in stated
        ), stated
    finally:
        program.process.kill()
        program.process.communicate()


@pytest.mark.jdks(8, 25)
def test_a_rate_of_exceptions_is_that_of_a_whole_second(jdk, folder):
    """A trigger that was set while a program threw 2,000 exceptions per second used to report the
    number in the first tenth of a second.
    """
    program = Program(jdk)
    try:
        program.do("pace 2000")
        pid = program.process.pid
        done = lab.jvmscope(
            "attach",
            "--always",
            "--max-size",
            "4M",
            "-o",
            folder / "r.ring",
            "--on",
            "exception Triggers$Lost > 10/s",
            "--on",
            "exception Triggers$Lost > 10/min",
            pid,
        )
        assert done.returncode == 0, done.stderr
        shown = lab.wait_for(
            lambda: (now := triggers_of(pid))
            and all(now[f"exception Triggers$Lost > 10/{u}"]["fired"] for u in ("s", "min"))
            and now,
            60,
            "both triggers to fire",
        )
        printed = {u: shown[f"exception Triggers$Lost > 10/{u}"]["measured"] for u in ("s", "min")}
        rate = re.fullmatch(r"(\d+)/s: Triggers\$Lost", printed["s"])
        assert rate and 1200 <= int(rate[1]) <= 3000, printed
        assert re.fullmatch(r"at least \d+/min: Triggers\$Lost", printed["min"]), printed
    finally:
        program.process.kill()
        program.process.communicate()


@pytest.mark.jdks(8, 17)
def test_each_stop_counts_once(jdk, tmp_path):
    """A stop is measured both by the trigger itself and by the record of the VM's activity, which is
    up to 0.1 s later: triggers used to hold twice for some.
    """
    times = 25
    process = jdk.start_java(
        "StopsApart",
        times,
        jvm=[
            "-Xmx512m",
            "-Xms512m",
            "-XX:+UseSerialGC",
            jdk.agent(f"always=y,file={tmp_path / 's.ring'}"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = lab.jvmscope(
            "attach",
            "--on",
            "pause > 20ms",
            "--on",
            "safepoint > 20ms",
            "--on-file",
            tmp_path / "%r-%p-%t.jfr",
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

        def held():
            shown = lab.output("status", process.pid)
            found = re.findall(r"(pause|safepoint) > 20ms -> dump: held (\d+) times", shown)
            return {name: int(n) for name, n in found}

        lab.wait_for(lambda: min(held().values()) >= times, 60, "all stops")
        # On a slow machine, the VM can take more than 20 ms for one of its own.
        assert all(times <= n <= times + 2 for n in held().values()), held()
    finally:
        process.kill()
        process.communicate()
