# SPDX-License-Identifier: Apache-2.0
"""attach where room or rights are missing: one line says why, and the program is not affected."""
import collections
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import lab
import pytest

FULL = (
    "mount -t tmpfs -o size=256k none /tmp && mount --bind /tmp /dev/shm && "
    "dd if=/dev/zero of=/tmp/filler bs=4k 2>/dev/null; test -s /tmp/filler"
)


@pytest.fixture
def vm(jdk):
    """Starts Busy under the JDK after a shell command, in a mount namespace of its own; returns the
    process once it is running.
    """
    started = []

    def start(before=":"):
        java = f"{before} && exec java -XX:-UsePerfData -Xmx32m -cp {lab.compiled('Busy')} Busy 60"
        process = jdk.start("sh", "-c", java, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def refused(process, *command, kept=False):
    """Returns the one line that a command prints, which must fail. `kept`: another line names where
    the recording still is, and that file exists.
    """
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and not done.stdout, done
    line, *more = done.stderr.splitlines()
    assert line.startswith("jvmscope: ") and len(more) == kept, done.stderr
    if kept:
        recording = pathlib.Path(
            re.match("jvmscope: the recording is still at: ([^:]+)", more[0])[1]
        )
        assert recording.stat().st_size > 0
        recording.unlink()
    assert process.poll() is None
    return line


@pytest.mark.jdks(8, 25)
def test_read_only_file_systems(vm):
    process = vm(lab.READ_ONLY)
    assert "read-only" in refused(
        process, lab.BUILD / "jvmscope", "attach", "-t", "1s", process.pid
    )


@pytest.mark.jdks(8, 25)
def test_full_tmp_of_the_vm(vm, tmp_path):
    process = vm(FULL)
    printed = refused(
        process, lab.BUILD / "jvmscope", "attach", "--cpu", "-o", tmp_path / "out.jfr", process.pid
    )
    assert "No space left" in printed or "no space" in printed, printed
    assert not (tmp_path / "out.jfr").exists()
    # A recording for which the command waits may be written to the VM's /var/tmp, and fetched.
    done = lab.jvmscope("attach", "--cpu", "-t", "1s", "-o", tmp_path / "out.jfr", process.pid)
    assert done.returncode == 0 and (tmp_path / "out.jfr").stat().st_size, done


@pytest.mark.jdks(17)
def test_full_disk_of_the_output(vm, tmp_path):
    process = vm()
    script = (
        f"mount -t tmpfs -o size=32k none {tmp_path} && exec {lab.BUILD}/jvmscope attach --cpu -t 1s -o {tmp_path}/out.jfr "
        f"{process.pid}"
    )
    printed = refused(
        process, "unshare", "--mount", "--propagation", "private", "sh", "-c", script, kept=True
    )
    assert f"{tmp_path}/out.jfr" in printed and "No space left" in printed, printed


@pytest.mark.jdks(17)
def test_output_and_vm_of_others(vm, tmp_path):
    process = vm()
    printed = refused(
        process, lab.BUILD / "jvmscope", "attach", "-t", "1s", "-o", "/proc/no.jfr", process.pid
    )
    assert "/proc/no.jfr" in printed, printed
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    library = tmp_path / "bin"
    printed = refused(
        process,
        *command,
        lab.copy_for_all(library),
        "attach",
        "-t",
        "1s",
        "-o",
        "/tmp/no.jfr",
        process.pid,
    )
    assert "another user" in printed, printed


PRIVATE_TMP = (
    "unshare",
    "--mount",
    "--propagation",
    "unchanged",
    "sh",
    "-c",
    'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"',
    "-",
)


class Changing:
    """Runs `attach` to a program with many classes, or `stop`, on a terminal. Returns what it shows
    while it changes them.
    """

    def __init__(
        self, jdk, folder, classes, options=("--cover",), stops=False, before=(), terminal=True
    ):
        self.program = jdk.start(
            *before,
            "java",
            "-Xmx128m",
            "-cp",
            lab.compiled("ManyClasses"),
            "ManyClasses",
            classes,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.program.stdout.readline() == "ready\n"
        words = ["attach", *options, "-t", "100ms", "-o", folder / "x.jfr"]
        if stops:
            assert (
                lab.jvmscope(
                    "attach", *options, "-o", folder / "x.jfr", self.program.pid
                ).returncode
                == 0
            )
            words = ["stop", "-o", folder / "x.jfr"] if before else ["stop"]
        self.terminal, child = pty.openpty() if terminal else os.pipe()
        self.command = subprocess.Popen(
            [str(c) for c in (lab.BUILD / "jvmscope", *words, self.program.pid)], stderr=child
        )
        os.close(child)
        self.shown = ""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for process in (self.command, self.program):
            process.kill()
            process.wait()
        os.close(self.terminal)

    def read(self, until=None):
        """Waits until a text is shown, or the command ends."""
        lab.wait_for(
            lambda: (until is not None and until in self.shown) or not self.read_more(),
            300,
            f"{until or 'the end'} on the terminal",
        )

    def read_more(self):
        """Returns whether there was more."""
        try:
            more = os.read(self.terminal, 4096).decode()
        except OSError:  # the other end of the terminal is closed
            return False
        self.shown += more
        return bool(more)

    def read_steps(self, count):
        while len(self.steps()) < count:
            assert self.read_more(), self.shown

    def steps(self):
        return [
            (int(a.replace(",", "")), int(b.replace(",", "")))
            for a, b in re.findall(r"changing ([\d,]+) of ([\d,]+) classes", self.shown)
        ]


@pytest.mark.jdks(8, 25)
def test_changing_classes_is_done_in_parts_and_shown(jdk, tmp_path):
    with Changing(jdk, tmp_path, 700) as changing:
        changing.read()
        assert changing.command.wait() == 0, changing.shown
        steps = changing.steps()
        assert steps and all(0 < done <= of and of > 700 for done, of in steps), changing.shown
        assert len(set(steps)) > 3, "the program runs between the parts"


ON_PURPOSE = (
    "jvmscope: classes are changed a few at a time, with pauses on purpose, so that the program "
    "goes on"
)


@pytest.mark.jdks(8, 25)
def test_a_slow_change_says_that_it_waits_on_purpose_and_what_is_left_only_falls(jdk, tmp_path):
    """It had "about 5 s to go" and then "about 9 s to go", of the same step, and no word of why it
    took half a minute.
    """
    with Changing(jdk, tmp_path, 2000) as changing:
        changing.read(ON_PURPOSE)
        lab.wait_for(
            lambda: len(set(changing.steps())) > 8 or not changing.read_more(), 120, "some steps"
        )
        changing.program.communicate("end\n", timeout=120)
        changing.read()
        changing.command.wait()
        assert changing.shown.count(ON_PURPOSE) == 1, changing.shown
        left = {}
        for of, back, seconds in re.findall(
            r"changing [\d,]+ of ([\d,]+) classes( back)?[^,\r\n]*, about (\d+) s to go",
            changing.shown,
        ):
            left.setdefault((of, back), []).append(int(seconds))
        assert left and max(map(len, left.values())) > 5, changing.shown
        for which, seconds in left.items():
            assert seconds == sorted(seconds, reverse=True), (which, seconds)


ADVICE = (
    "jvmscope: note: with --include 'com.shop.*' only the classes of this package would be "
    "changed, which takes less time; the time of -t begins afterwards"
)


@pytest.mark.jdks(8)  # a few classes at a time, with pauses, so that this takes half a minute
@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_change_of_classes_says_once_what_would_shorten_it(jdk, terminal, tmp_path):
    with Changing(jdk, tmp_path, 2000, terminal=terminal) as changing:
        changing.read(ADVICE)
        assert ADVICE in changing.shown and changing.steps(), changing.shown
        changing.read_steps(len(changing.steps()) + 2)
        changing.program.communicate("end\n", timeout=120)
        changing.read()
        assert changing.command.wait() in (0, 1)
        assert changing.shown.count("note: with") == 1, changing.shown


@pytest.mark.jdks(8)
@pytest.mark.parametrize(
    "options", [("--cover", "--include", "ManyClasses"), ("--trace", "ManyClasses$M*")]
)
def test_no_advice_is_given_that_would_not_help(jdk, options, tmp_path):
    """The user gave --include, or it has no effect on what is recorded."""
    with Changing(jdk, tmp_path, 2000, options, terminal=False) as changing:
        changing.read_steps(2)  # the advice follows the first line
        assert "note: " not in changing.shown
        changing.program.communicate("end\n", timeout=120)
        changing.read()
        assert changing.command.wait() in (0, 1)


@pytest.mark.jdks(8)  # a few classes at a time, with pauses, so that this takes half a minute
def test_the_progress_is_reported_in_lines_where_there_is_no_terminal(jdk, tmp_path):
    """A line every five seconds, so that the log of a script shows that the command works and how
    far it has got.
    """
    options = ("--cover", "--include", "ManyClasses")
    with Changing(jdk, tmp_path, 2000, options, terminal=False) as changing:
        began = time.monotonic()
        changing.read(f"{ON_PURPOSE}\n")
        assert time.monotonic() - began > 4.5
        assert re.fullmatch(
            r"jvmscope: changing [\d,]+ of 2,\d+ classes(, about \d+ s to go)?\n" f"{ON_PURPOSE}\n",
            changing.shown,
        ), changing.shown
        [(done, of)] = changing.steps()
        assert 0 < done < of
        changing.program.communicate("end\n", timeout=120)
        changing.read()
        assert changing.command.wait() in (0, 1)


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize(
    "pattern, classes",
    [
        ("ManyClasses.m*", 1),
        ("ManyClasses$M0000*.r*", 10),
        ("*s$M00012.run", 1),
        ("ManyClasses$M010*.run", 100),
    ],
)
def test_classes_that_a_pattern_cannot_mean_are_left_alone(jdk, tmp_path, pattern, classes):
    """A star as the method's name used to make the VM change every class."""
    with Changing(jdk, tmp_path, 1500, ("--trace", pattern)) as changing:
        changing.read()
        assert (
            changing.command.wait() == 0 and "traces nothing" not in changing.shown
        ), changing.shown
        assert all(of <= classes for _, of in changing.steps()), changing.shown


@pytest.mark.jdks(8, 17, 25)
def test_a_program_ends_while_its_classes_are_changed(jdk, tmp_path):
    """A thread that waits between two parts must continue at once; it used to delay the program for
    ten seconds.
    """
    with Changing(jdk, tmp_path, 5000) as changing:
        changing.read("changing")
        out, err = changing.program.communicate("end\n", timeout=120)
        assert (changing.program.returncode, out) == (7, "hook\n"), err
        assert "did not end within" not in err
        changing.read()
        assert changing.command.wait() == 1, "nothing was recorded"
        assert re.search(
            "cannot record: the VM ended before the recording had begun", changing.shown
        ), changing.shown
        assert (
            "holds no" not in changing.shown and not (tmp_path / "x.jfr").exists()
        ), changing.shown


@pytest.mark.jdks(8, slow=(25,))
@pytest.mark.parametrize("ends", ["on its own", "killed"])
def test_a_program_ends_while_its_recording_is_stopped(jdk, ends, tmp_path):
    """The command that was stopping the recording still gets the file, even from mounts that
    disappeared with the VM.
    """
    killed, options = ends == "killed", ("--cover", "--include", "ManyClasses")
    # There are so many classes that even a fast machine has not finished when it is killed.
    classes = 4000 if killed and jdk.version > 8 else 700
    with Changing(
        jdk, tmp_path, classes, options, stops=True, before=() if killed else PRIVATE_TMP
    ) as changing:
        changing.read("changing")
        if killed:
            changing.program.kill()
        out, err = changing.program.communicate("end\n" * (not killed), timeout=120)
        assert (changing.program.returncode, out) == ((-9, "") if killed else (7, "hook\n")), err
        changing.read()
        assert changing.command.wait() == 0, changing.shown
        assert re.search(r"changing [\d,]+ of [\d,]+ classes back", changing.shown), changing.shown
        if killed:
            assert "the VM ended while its recording was being stopped" in changing.shown
            assert (
                f"wrote {tmp_path}/x.jfr (" in changing.shown
            ), "no longer seen by the VM, but where it says"
        shown = lab.jvmscope("coverage", "--json", tmp_path / "x.jfr")
        assert shown.returncode == 0 and "ManyClasses" in shown.stdout, shown
        # main() runs when the recording begins; otherwise the recording is complete.
        other = [
            line
            for line in shown.stderr.splitlines()
            if "ran when the recording began" not in line
            and "while classes were changed" not in line
        ]
        assert killed or not other, other


@pytest.mark.jdks(8, 11, 17, 25)
def test_the_vm_answers_others_while_its_classes_are_changed(jdk, jvmscope, tmp_path):
    """The VM has one thread for all attach requests: status, jcmd and a second attach used to wait
    for a minute.
    """
    with Changing(jdk, tmp_path, 3000) as changing:
        pid = changing.program.pid
        changing.read("changing")
        done = jvmscope("status", pid)
        assert done.returncode == 0 and re.search(r"^state +starting$", done.stdout, re.M), done
        assert re.search(rf"^file +{tmp_path}/x.jfr$", done.stdout, re.M)
        done, of = map(
            int, re.search(r"^changing +(\d+) of (\d+) classes$", done.stdout, re.M).groups()
        )
        assert 0 < done < of and of > 3000
        done = jdk.run("jcmd", pid, "Thread.print")
        assert done.returncode == 0 and '"main"' in done.stdout, done
        changing.program.send_signal(signal.SIGQUIT)
        done = jvmscope("attach", "--cpu", "-t", "1s", "-o", tmp_path / "y.jfr", pid)
        assert (
            done.returncode == 1 and f"already recording to {tmp_path}/x.jfr" in done.stderr
        ), done
        assert not (tmp_path / "y.jfr").exists()
        done = jvmscope("inspect", pid, "vm")
        assert done.returncode == 0, done
        assert (
            changing.command.poll() is None
            and "state            starting" in jvmscope("status", pid).stdout
        ), "too few classes"
        lab.read_until(changing.program.stdout, '"main"')  # the thread dump that SIGQUIT asked for


@pytest.mark.jdks(8)  # later VMs change the classes too quickly to be stopped meanwhile
def test_a_recording_that_nobody_waits_for_is_taken_back(jdk, jvmscope, tmp_path):
    """The command gives up on a VM that is stopped, and says that nothing is recorded. This is true
    also once the VM continues.
    """
    with Changing(jdk, tmp_path, 700, ("--cover", "--include", "ManyClasses")) as changing:
        pid = changing.program.pid
        changing.read("changing")
        changing.program.send_signal(signal.SIGSTOP)
        changing.read()
        assert (
            changing.command.wait() == 1
            and "cannot record: the process is stopped" in changing.shown
        )
        changing.program.send_signal(signal.SIGCONT)
        state = lab.wait_for(
            lambda: "idle" in (text := jvmscope("status", pid).stdout) and text,
            120,
            "the state idle",
        )
        assert "last_file" not in state and not (tmp_path / "x.jfr").exists(), state
        assert (
            jvmscope("attach", "--cpu", "-t", "10ms", "-o", tmp_path / "y.jfr", pid).returncode == 0
        )


def changed_by_the_vm(log):
    """Returns the names of the previously loaded classes that the VM has changed."""
    return set(re.findall(r"\] redefined name=([^,]+),", log.read_text()))


def parsed_by_the_vm(log):
    """Returns how often the VM has parsed each loaded class, to inspect or to change it. A probe
    class ends each inspection, because the VM refuses it.
    """
    return collections.Counter(
        re.findall(r"\] loading name=(?!java.lang.Jvmscope)(\S+) ", log.read_text())
    )


@pytest.mark.jdks(11)  # changes four classes at a time, so that this takes a while
def test_a_recording_ends_before_its_classes_are_changed_back(jdk, jvmscope, tmp_path):
    """The command does not wait for the pauses between the batches, and neither does the next
    recording.
    """
    log = tmp_path / "log"
    with jdk.start_java(
        "ServesHttp", stdout=subprocess.PIPE, jvm=(f"-Xlog:redefine+class*=info:file={log}",)
    ) as server:
        try:
            server.stdout.readline()
            for nth in (1, 2):
                done = jvmscope(
                    "attach",
                    "--exceptions",
                    "--include",
                    "java.util.*,ServesHttp",
                    "-t",
                    "300ms",
                    "-o",
                    tmp_path / f"{nth}.jfr",
                    server.pid,
                )
                assert done.returncode == 0, done.stderr
                after = jvmscope("status", server.pid).stdout
                assert re.search(r"^state +idle$", after, re.M) and re.search(
                    r"^restoring +(\d+ of \d+ )?classes$", after, re.M
                ), after
            lab.wait_for(
                lambda: "restoring" not in jvmscope("status", server.pid).stdout,
                120,
                "the end of it",
            )
            changes = re.findall(r"\] redefined name=ServesHttp, count=(\d+)", log.read_text())
            assert changes == ["1", "2", "3", "4"], "changed and changed back, twice"
        finally:
            server.kill()


@pytest.mark.jdks(17, 25)
@pytest.mark.parametrize("capture", ["--exceptions", "--live"])
def test_only_classes_that_a_capture_changes_are_handed_to_the_vm(jdk, jvmscope, tmp_path, capture):
    """Each class that is passed to the VM lengthens the pause, even one that stays unchanged."""
    log, loaded = tmp_path / "log", tmp_path / "loaded"
    with jdk.start_java(
        "ServesHttp",
        stdout=subprocess.PIPE,
        jvm=(f"-Xlog:redefine+class+load=debug:file={log}", f"-Xlog:class+load:file={loaded}"),
    ) as server:
        try:
            server.stdout.readline()
            assert jvmscope("attach", capture, "-o", tmp_path / "x.jfr", server.pid).returncode == 0
            status = lab.read_json("status", "--json", server.pid)
            changed = changed_by_the_vm(log)
            parsed = parsed_by_the_vm(log)
            assert {n for name, n in parsed.items() if name in changed} == {2}
            assert {n for name, n in parsed.items() if name not in changed} == {1}
            assert (
                100
                < len(changed)
                <= status["instrument.classes"]
                < len(loaded.read_text().splitlines()) * 0.9
            )
            assert (
                status["instrument.left.native"] > 100
            ), "methods that stay unchanged are counted, also in classes that nothing else changes"
            assert jvmscope("stop", server.pid).returncode == 0
            assert jvmscope("attach", capture, "-o", tmp_path / "y.jfr", server.pid).returncode == 0
            again = parsed_by_the_vm(log)
            assert {again[name] for name in changed} == {4}, "changed back, and not inspected again"
        finally:
            server.kill()


@pytest.mark.jdks(17, 25)
def test_coverage_of_a_program_leaves_the_classes_of_the_jdk_alone(jdk, jvmscope, tmp_path):
    """None of these classes is passed to the VM, which would take seconds of pauses for nothing."""
    log = tmp_path / "log"
    with jdk.start_java(
        "Ticks", stdout=subprocess.PIPE, jvm=(f"-Xlog:redefine+class*=info:file={log}",)
    ) as process:
        try:
            process.stdout.readline()
            assert (
                jvmscope(
                    "attach", "--cover", "-t", "300ms", "-o", tmp_path / "x.jfr", process.pid
                ).returncode
                == 0
            )
            assert changed_by_the_vm(log) == {"Ticks"}
        finally:
            process.kill()


NO_PIDFD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
long syscall(long n, long a, long b, long c, long d, long e, long f)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (n == SYS_pidfd_open) {
        errno = %s;
        return -1;
    }
    return real(n, a, b, c, d, e, f);
}
"""


@pytest.mark.jdks(25)
@pytest.mark.parametrize("error", ["ENOSYS", "ESRCH"])
def test_the_end_of_the_vm_is_noticed_without_a_descriptor_of_it(vm, tmp_path, error):
    """A VM that is killed right after the recording has begun has no descriptor, and some systems
    provide none. attach used to wait for all of -t.
    """
    (tmp_path / "shim.c").write_text(NO_PIDFD % error)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"],
        check=True,
    )
    process = vm()
    attached = subprocess.Popen(
        [
            lab.BUILD / "jvmscope",
            "attach",
            "--cpu",
            "-t",
            "600s",
            "-o",
            tmp_path / "out.jfr",
            str(process.pid),
        ],
        env=dict(os.environ, LD_PRELOAD=str(tmp_path / "shim.so")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lab.wait_for(
            lambda: re.search(
                r"^state +recording$", lab.jvmscope("status", process.pid).stdout, re.M
            ),
            60,
            "the start of the recording",
        )
        process.kill()
        process.wait()
        printed = attached.communicate(timeout=60)[1]
        assert (
            attached.returncode == 0 and "the VM ended before the time was over" in printed
        ), printed
    finally:
        attached.kill()
        attached.communicate()
