# SPDX-License-Identifier: Apache-2.0
"""What integration tests and bench share: the JDK matrix, compiled Java programs, the command."""
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
JDKS = ROOT / "tools" / "jdks"
# make check-arm sets this to aarch64: the programs under test are those of build-aarch64/, or of
# the folder that JVMSCOPE_TEST_BUILD names, on arm64's JDKs, in an emulator.
ARCH = os.environ.get("JVMSCOPE_TEST_ARCH", "")
FOREIGN = pathlib.Path(f"/var/cache/jvmscope/libraries-{ARCH}")  # tools/setup cross-aarch64
VERSIONS = (8, 11, 17, 21, 25, 27)
# Commands of a shell that make the folders that everyone may write to read-only, in a mount
# namespace.
READ_ONLY = (
    "for d in /tmp /var/tmp /dev/shm; do mount --bind $d $d && mount -o remount,ro,bind $d; done"
)


def _emulated():
    """A folder like build/ in which the command is a script that runs the real one in the
    emulator.
    """
    build = ROOT / os.environ.get("JVMSCOPE_TEST_BUILD", f"build-{ARCH}")
    folder = build / "emulated"
    folder.mkdir(exist_ok=True)
    for name in ("libhprof.so", "libjvmpi.so", "tests", "examples"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(build / name)
    script = folder / "jvmscope.new"
    script.write_text(
        f'#!/bin/sh\nexec qemu-{ARCH} -L /usr/{ARCH}-linux-gnu "{build}/jvmscope" "$@"\n'
    )
    script.chmod(0o755)
    script.rename(folder / "jvmscope")
    return folder


BUILD = _emulated() if ARCH else ROOT / "build"
IN_JDK = BUILD / "tests" / "native" / "in_jdk"  # faster than tools/jdks run, where it is built


def _matrix(verb, *args, arch=ARCH):
    """The arguments of tools/jdks for the architecture under test."""
    return [str(JDKS), verb, *(["--arch", arch] if arch else []), *map(str, args)]


_STOPPING = {
    "Serial": ["-XX:+UseSerialGC"],
    "Parallel": ["-XX:+UseParallelGC"],
    "G1": ["-XX:+UseG1GC"],
}
_OTHER = {
    name: ["-XX:+UnlockExperimentalVMOptions", *flags]
    for name, flags in {
        "ZGC": ["-XX:+UseZGC"],
        "Shenandoah": ["-XX:+UseShenandoahGC"],
        "Epsilon": ["-XX:+UseEpsilonGC"],
    }.items()
}
_CMS = {"CMS": ["-XX:+UseConcMarkSweepGC"]}
_GENERATIONAL_ZGC = {"generational ZGC": ["-XX:+UseZGC", "-XX:+ZGenerational"]}
_GENERATIONAL_SHENANDOAH = {
    "generational Shenandoah": [*_OTHER["Shenandoah"], "-XX:ShenandoahGCMode=generational"]
}

# Every collector that each JDK of the matrix has, with the flags that choose it. From 24 on ZGC is
# generational.
COLLECTORS = {
    8: {**_STOPPING, **_CMS},
    11: {**_STOPPING, **_CMS, **_OTHER},
    17: {**_STOPPING, **_OTHER},
    21: {**_STOPPING, **_OTHER, **_GENERATIONAL_ZGC},
    25: {**_STOPPING, **_OTHER, **_GENERATIONAL_SHENANDOAH},
    27: {**_STOPPING, **_OTHER, **_GENERATIONAL_SHENANDOAH},
}


@functools.cache
def matrix_ready():
    return all(
        subprocess.run(_matrix("check", arch=a), capture_output=True).returncode == 0
        for a in {"", ARCH}
    )


@functools.cache
def versions_there():
    """The JDKs that are set up: all of the matrix, or those of arm64 that were asked for."""
    return tuple(
        map(int, subprocess.run(_matrix("list"), capture_output=True, text=True).stdout.split())
    )


@functools.cache
def chroot():
    """The folder of the matrix's chroot, as seen from outside."""
    return pathlib.Path(
        subprocess.run([JDKS, "root"], capture_output=True, text=True, check=True).stdout.strip()
    )


@functools.cache
def home(version):
    """JAVA_HOME of a version, as seen inside."""
    return subprocess.run(
        _matrix("home", version), capture_output=True, text=True, check=True
    ).stdout.strip()


@functools.cache
def jni_headers():
    """The folders of jni.h and of what it includes."""
    java_home = pathlib.Path(
        subprocess.run(
            [ROOT / "tools" / "java-home"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    return java_home / "include", java_home / "include" / "linux"


def c_libraries(folder):
    """For glibc and musl, the compiler's command and what has to precede a program. A file for the
    compiler is put into the folder.
    """
    if not ARCH:
        return {"glibc": (["gcc"], []), "musl": (["musl-gcc"], [])}
    specs = musl_libc().with_name("musl-gcc.specs").read_text()
    (folder / "specs").write_text(specs.replace("/usr/", f"{FOREIGN}/usr/"))
    compiler = f"{ARCH}-linux-gnu-gcc"
    return {
        "glibc": ([compiler], [f"qemu-{ARCH}", "-L", f"/usr/{ARCH}-linux-gnu"]),
        "musl": (
            [compiler, f"-specs={folder / 'specs'}", "-mno-outline-atomics"],
            [f"qemu-{ARCH}", musl_libc()],
        ),
    }


def musl_libc():
    """musl's library, which is also its loader (package musl)."""
    if ARCH:
        return FOREIGN / "usr" / "lib" / f"{ARCH}-linux-musl" / "libc.so"
    return next(pathlib.Path("/lib").glob("*-linux-musl/libc.so"), None) or next(
        pathlib.Path("/usr/lib").glob("*-linux-musl/libc.so")
    )


def jars():
    """The jars of real programs, which are fetched once. Raises RuntimeError with the reason if
    there are none.
    """
    done = subprocess.run([ROOT / "tools" / "jars"], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.split()


@functools.cache
def perf_permitted():
    """Whether perf_event's clock with kernel frames is permitted: opens one, as the agent does."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    clock = struct.pack("IIQQ", 1, 112, 0, 10**9).ljust(
        112, b"\0"
    )  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
    fd = ctypes.CDLL(None).syscall(number, clock, 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def on_time():
    """Gives the calling process priority over all others where that is permitted, so that sleeps
    end on time however busy the machine is. For preexec_fn; child processes inherit it.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        try:
            os.nice(-15)
        except OSError:
            pass


def wait_for(condition, limit, what):
    """Waits until the condition is true, and returns its value. limit: seconds after which the test
    fails, far more than a busy machine needs. what: text for the failure that says what did not
    happen.
    """
    deadline = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() >= deadline:
            print_stacks()
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.05)
    return value


def read_until(stream, text):
    """Reads a text stream up to the first line with the text and returns the lines; it is an error
    if the stream ends first.
    """
    lines = []
    while not lines or text not in lines[-1]:
        lines.append(stream.readline())
        assert lines[-1], f"the end came before {text!r}: {''.join(lines)}"
    return "".join(lines)


def is_stopped(pid):
    """Whether a process was stopped by a signal."""
    return "\nState:\tT" in pathlib.Path(f"/proc/{pid}/status").read_text()


def cpu_seconds(pid):
    """CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_times(jdk, *command):
    """Time and CPU time, in seconds, of a program that runs to its end without an error."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(c) for c in jdk.command(*command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    took = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return took, used.ru_utime + used.ru_stime


def thread_named(pid, name):
    """The system's number of a thread of a process."""
    return next(
        int(t.name)
        for t in pathlib.Path(f"/proc/{pid}/task").iterdir()
        if (t / "comm").read_text().startswith(name)
    )


@contextlib.contextmanager
def thread_stopped(tid):
    """Stops one thread, as a debugger does."""
    seize, interrupt, detach, wall = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (seize, interrupt):
        if libc.ptrace(request, tid, None, None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.waitpid(tid, wall)
    try:
        yield
    finally:
        libc.ptrace(detach, tid, None, None)


def use_cpu(process, seconds):
    """Waits until a process has used this much more CPU time, however long that takes on a busy
    machine.
    """
    until = cpu_seconds(process.pid) + seconds
    wait_for(
        lambda: process.poll() is not None or cpu_seconds(process.pid) >= until,
        120,
        f"{seconds} s of CPU time",
    )


def jvmscope(*args, **kwargs):
    """Runs the command outside the chroot, with output captured as text."""
    kwargs.setdefault("timeout", 120)
    try:
        return subprocess.run(
            [BUILD / "jvmscope", *map(str, args)],
            capture_output=True,
            text=True,
            errors="replace",
            **kwargs,
        )
    except subprocess.TimeoutExpired:
        print_stacks()  # it may wait for a program
        raise


def copy_for_all(folder):
    """Copies the command to where every user may run it."""
    subprocess.run(
        ["install", "-D", "-m", "755", "-t", folder, BUILD / "jvmscope", BUILD / "libhprof.so"],
        check=True,
    )
    for parent in (folder, *list(folder.parents)[:-2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    return folder / "jvmscope"


def no_page(recording):
    """A page of this recording would be empty, so none is made."""
    page = recording.with_suffix(".html")
    done = jvmscope("convert", recording, "-o", page)
    assert (
        (done.returncode, done.stdout) == (1, "")
        and "holds nothing that a page shows" in done.stderr
        and not page.exists()
    ), done


def output(*args, **kwargs):
    """What the command prints; the test fails with the command's own words if the command does."""
    done = jvmscope(*args, **kwargs)
    assert done.returncode == 0, (args, done.returncode, done.stderr, done.stdout[-2000:])
    return done.stdout


def read_json(*args, **kwargs):
    """The JSON that the command prints, as output() does; --json is among the arguments."""
    return json.loads(output(*args, **kwargs))


def lost(text):
    """Returns the lines that report a loss, except that of methods that were running when the
    recording began, which every attach has.
    """
    return [
        line
        for line in text.splitlines()
        if " lost " in line and "ran when the recording began" not in line
    ]


def stacks(pid):
    """Returns what each thread of a process does: its name, its state, what it waits for in the
    kernel, and its stack according to gdb.
    """
    text = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*"), key=lambda t: int(t.name)):
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
            text.append(
                f"{task.name} {(task / 'comm').read_text().strip()}: {state} {(task / 'wchan').read_text()}"
            )
    # A VM sees other libraries than gdb does: those of its chroot.
    commands = [
        "set pagination off",
        "set auto-load safe-path /",
        f"attach {pid}",
        f"set sysroot /proc/{pid}/root",
        "thread apply all bt 40",
    ]
    try:
        done = subprocess.run(
            ["gdb", "-nx", "-batch", *(word for c in commands for word in ("-ex", c))],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
        text.append(done.stdout[done.stdout.find("\nThread ") + 1 :] or done.stderr)
    except (OSError, subprocess.TimeoutExpired) as e:
        text.append(f"no stacks: {e}")
    return "\n".join(text)


class Program(subprocess.Popen):
    """A program that Jdk.start began. If it does not end in time, what its threads do appears in
    the output of the failed test.
    """

    USUAL = 5  # seconds; some tests expect a shorter wait to end
    all = []

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        Program.all = [p for p in Program.all if p.poll() is None] + [self]

    def _in_time(self, wait, timeout):
        try:
            return wait()
        except subprocess.TimeoutExpired:
            if timeout >= self.USUAL:
                print_stacks()
            raise

    def wait(self, timeout=None):
        return self._in_time(lambda: super(Program, self).wait(timeout), timeout)

    def communicate(self, input=None, timeout=None):
        return self._in_time(lambda: super(Program, self).communicate(input, timeout), timeout)


def print_stacks():
    """Prints what the threads of all programs do that Jdk.start began and that are still running,
    because something did not happen in time.
    """
    for process in Program.all:
        if process.poll() is None:
            print(f"threads of {' '.join(map(str, process.args))}\n{stacks(process.pid)}")


def _classes(name, release):
    """The sources of a program in tests/java, and the folder for its classes: in /var/tmp, under a
    name from their contents.
    """
    source = ROOT / "tests" / "java" / f"{name}.java"
    sources = (
        [source] if source.exists() else sorted((ROOT / "tests" / "java" / name).rglob("*.java"))
    )
    assert sources, f"no tests/java/{name}"
    digest = hashlib.sha256(
        b"".join(s.read_bytes() for s in sources) + str(release).encode()
    ).hexdigest()[:16]
    return (
        sources,
        pathlib.Path(f"/var/tmp/jvmscope-test-classes-{os.getuid()}")
        / f"{name}-{release}-{digest}",
    )


JAVAC = ("-nowarn", "-Xlint:-options", "-g", "--release")


def compiled(name, release=8, jars=()):
    """The class path of tests/java/NAME.java (or the folder tests/java/NAME), compiled once for the
    release given, against jars.

    Compiled by JDK 17 of the matrix, or JDK 27 for a release beyond 17, with -g. The folder appears
    with all its classes.
    """
    sources, out = _classes(name, release)
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix="new-", dir=out.parent))
        new.chmod(0o755)
        subprocess.run(
            [
                JDKS,
                "run",
                str(17 if release <= 17 else 27),
                "javac",
                *JAVAC,
                str(release),
                "-cp",
                ":".join(map(str, jars)) or new,
                "-d",
                new,
                *sources,
            ],
            check=True,
        )
        try:
            new.rename(out)
        except OSError:  # another test has compiled it meanwhile
            shutil.rmtree(new)
    return out


def compile_programs():
    """Starts to compile, in one VM, all programs of one file that can be compiled for release 8.
    This takes a tenth of the time that a compiler for each would take. A test does not wait for it,
    but compiles what it needs and is not there yet. Returns the process.
    """
    programs = [
        _classes(source.stem, 8) for source in sorted((ROOT / "tests" / "java").glob("*.java"))
    ]
    wanted = [f"{sources[0]} {out}\n" for sources, out in programs if not out.exists()]
    process = subprocess.Popen(
        [JDKS, "run", "17", "java", ROOT / "tests" / "tools" / "CompileAll.java", *JAVAC, "8"],
        stdin=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("".join(wanted))
    process.stdin.close()
    return process


class Jdk:
    """One JDK of the matrix. Paths under /tmp, /var/tmp and the checkout are the same inside and
    outside.
    """

    def __init__(self, version):
        self.version = int(version)
        self.started = []

    def command(self, *args):
        """The argument list that runs a command inside, with this JDK first on PATH."""
        quick = IN_JDK.exists() and not ARCH and not os.environ.get("JDKS_BIND")
        if quick and matrix_ready():
            return [str(w) for w in (IN_JDK, chroot(), home(self.version), ROOT, *args)]
        return _matrix("run", self.version, *args)

    def run(self, *args, **kwargs):
        """Runs a command inside to its end; output captured as text."""
        timeout, check, given = (
            kwargs.pop("timeout", 300),
            kwargs.pop("check", False),
            kwargs.pop("input", None),
        )
        pipes = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **({} if given is None else {"stdin": subprocess.PIPE}),
        }
        with self.start(*args, **{**pipes, **kwargs}) as process:
            try:
                out, err = process.communicate(given, timeout)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        if check:
            done.check_returncode()
        return done

    def start(self, *args, **kwargs):
        """Starts a command inside. The process id is the command's own: the wrapper executes it."""
        process = Program(self.command(*args), text=True, errors="replace", **kwargs)
        self.started.append(process)
        return process

    def kill_started(self):
        """Kills the programs that start() began and that are still running, as after a failed test.
        A VM that was always recording leaves a file of its last minutes that explains its end.
        Tests do not need these files, so they are removed.
        """
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for ring in pathlib.Path("/var/tmp").glob(f"jvmscope-{process.pid}-*.ring"):
                ring.unlink()

    def java(self, name, *args, jvm=(), release=8, **kwargs):
        """Runs tests/java/NAME's class of the same name."""
        return self.run("java", *jvm, "-cp", compiled(name, release), name, *args, **kwargs)

    def start_java(self, name, *args, jvm=(), release=8, **kwargs):
        return self.start("java", *jvm, "-cp", compiled(name, release), name, *args, **kwargs)

    def agent(self, options="", library="libhprof.so"):
        """The JVM's argument that loads an agent of the build folder."""
        return f"-agentpath:{BUILD / library}" + (f"={options}" if options else "")


@contextlib.contextmanager
def control_group(controller, limit, unified_limit, value):
    """A control group of either version with a limit: its folder, and the file of the limit. None
    where it cannot be made.
    """
    for root, name in ((f"/sys/fs/cgroup/{controller}", limit), ("/sys/fs/cgroup", unified_limit)):
        folder = pathlib.Path(root) / f"jvmscope-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / name).exists():
                (folder / name).write_text(str(value))
                yield folder, folder / name
                return
        finally:
            folder.rmdir()
    yield None


def go_before_other_groups(folder):
    """Schedules a control group of CPU before others, so that its limit takes the CPU from it
    rather than the rest of the machine.
    """
    for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
        if (folder / name).exists():
            (folder / name).write_text(most)
