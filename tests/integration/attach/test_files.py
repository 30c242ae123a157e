# SPDX-License-Identifier: Apache-2.0
"""Files between the command and a VM whose user is not trusted, and what remains of them."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import pytest

import lab
import option_tables

# A user without a name and without rights who belongs to this process alone: files of that user in
# /tmp come from this process's tests.
NOBODY = 2_000_000 + os.getpid()
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
SECRET = "root's own secret 7f3a"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, who attaches to another user's VM"
)


@pytest.fixture
def open_folder():
    """A folder of the user without rights, which everyone may enter."""
    with tempfile.TemporaryDirectory(prefix="jvmscope-test-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        os.chown(name, NOBODY, NOBODY)
        yield pathlib.Path(name)


@pytest.fixture
def secret(tmp_path):
    """A file that only root may read, and whose first bytes are those of a recording."""
    path = tmp_path / "secret.jfr"
    path.write_text("FLR\0" + SECRET * 100)
    path.chmod(0o600)
    return path


def leftovers(pid):
    """Returns the names in /tmp that commands and VMs of this process's tests have created for each
    other.
    """
    found = []
    for p in pathlib.Path("/tmp").iterdir():
        if p.name.startswith(
            (".jvmscope-", "jvmscope-", f".attach_pid{pid}", f".java_pid{pid}")
        ) and not p.name.startswith("jvmscope-test-"):
            with contextlib.suppress(
                FileNotFoundError
            ):  # a file of another test that was removed meanwhile
                found += [p.name] if p.lstat().st_uid == NOBODY else []
    return found


def nothing_is_left(process, *but):
    """The VM may take a moment to remove its own files."""
    with contextlib.suppress(AssertionError):
        lab.wait_for(lambda: leftovers(process.pid) == [*but], 30, "only these files are left")
    assert leftovers(process.pid) == [*but]


@pytest.fixture
def hostile(secret):
    """Starts a hostile VM as nobody with the given attack; returns its process."""
    started, folder = [], tempfile.TemporaryDirectory(prefix="jvmscope-test-", dir="/var/tmp")
    os.chown(folder.name, NOBODY, NOBODY)
    script = (lab.ROOT / "tests" / "tools" / "hostile_vm.py").read_text()

    def start(attack, before=()):
        process = subprocess.Popen(
            [*before, *AS_NOBODY, sys.executable, "-c", script, folder.name, attack, secret],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill() if process.poll() is None else None
        process.communicate()
        pathlib.Path(f"/tmp/.java_pid{process.pid}").unlink(missing_ok=True)
    folder.cleanup()
    for name in leftovers(0):
        os.unlink(f"/tmp/{name}")


@pytest.mark.parametrize(
    "attack, printed",
    [
        ("link", "symbolic link"),
        ("pipe", "not a regular file"),
        ("other", "not a recording"),
        ("named", "Permission denied"),
    ],
)
def test_a_vms_user_does_not_get_at_the_files_of_root(hostile, attack, printed, secret, tmp_path):
    """Whatever root fetches from another user's VM is a file that this user owns; otherwise root
    fetches nothing.
    """
    process = hostile(attack)
    before = secret.read_bytes()
    for command in (
        ["attach", "--cpu", "-t", "100ms"],
        ["stop"],
        ["dump"],
        ["heap", "dump"],
        ["attach", "-t", "100ms"],
    ):
        for name in ("out.jfr", "out.collapsed", "out.hprof"):
            output = tmp_path / name
            if command[0] == "heap" and (attack == "named" or name != "out.hprof"):
                continue
            done = lab.jvmscope(*command, "-o", output, process.pid, timeout=60)
            assert done.returncode == 1, (command, name, done)
            assert not output.exists(), (command, name, done)
            assert SECRET not in done.stdout + done.stderr
            # `attach` with "named" requests a file of its own name, which does not exist.
            expected = "No such file" if attack == "named" and command[0] == "attach" else printed
            assert done.stderr.startswith("jvmscope: ") and expected in done.stderr, done.stderr
    assert secret.read_bytes() == before and secret.stat().st_mode & 0o777 == 0o600


def test_a_socket_of_another_user_is_not_talked_to(hostile, tmp_path):
    """Anyone can create the name at which a VM is expected to listen."""
    process = hostile("link")
    path = pathlib.Path(f"/tmp/.java_pid{process.pid}")
    os.chown(path, 1, 1)
    done = lab.jvmscope("status", process.pid, timeout=60)
    assert done.returncode == 1 and "does not answer" in done.stderr, done


@pytest.fixture
def vm(jdk, open_folder):
    """Starts Busy as nobody under the JDK; returns the process once it is running."""
    started = []

    def start(*jvm, before=()):
        process = jdk.start(
            *before,
            *AS_NOBODY,
            "java",
            "-Xmx64m",
            *jvm,
            "-cp",
            lab.compiled("Busy"),
            "Busy",
            300,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=open_folder,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.communicate(timeout=60)


@pytest.mark.usefixtures("on_time")  # samples need CPU time, also on a busy machine
@pytest.mark.jdks(8, 17, 25)
def test_what_is_recorded_is_for_its_owner_alone_and_nothing_is_left(vm, tmp_path, open_folder):
    """Root fetches from another user's VM with every command; each file is private, and /tmp is as
    before.
    """
    process = vm()
    for command in (
        ["attach", "--cpu", "-t", "200ms", "-o", "a.jfr"],
        ["attach", "--cpu", "-t", "200ms", "-o", "a.hprof"],
        ["attach", "--cpu", "-t", "200ms", "-o", "a.hprof.txt"],
        ["attach", "-t", "200ms", "-o", "a.html"],
        ["heap", "dump", "-o", "h.hprof"],
    ):
        for folder in (tmp_path, open_folder):
            done = lab.jvmscope(*command[:-1], folder / command[-1], process.pid)
            assert done.returncode == 0, done
            assert (folder / command[-1]).stat().st_size > 0
            assert (folder / command[-1]).stat().st_mode & 0o777 == 0o600, command
    nothing_is_left(process, f".java_pid{process.pid}")
    # When the requested output cannot be made of a recording, the message names the output, and the
    # recording is kept.
    done = lab.jvmscope(
        "attach", "--monitors", "-t", "100ms", "-o", tmp_path / "none.collapsed", process.pid
    )
    os.unlink(re.search(r"is still at: (/tmp/\S+?\.jfr)", done.stderr)[1])
    assert (
        done.returncode == 1
        and f"jvmscope: {tmp_path}/none.collapsed: holds no samples: " in done.stderr
    ), done
    assert "/proc/self" not in done.stderr
    assert sorted(p.name for p in open_folder.iterdir()) == [
        "a.hprof",
        "a.hprof.txt",
        "a.html",
        "a.jfr",
        "h.hprof",
    ]
    assert (
        lab.jvmscope(
            "attach", "--cpu", "-i", "1ms", "-o", tmp_path / "b.jfr", process.pid
        ).returncode
        == 0
    )
    lab.use_cpu(process, 0.5)
    done = lab.jvmscope("dump", "-o", tmp_path / "c.jfr", process.pid)
    assert done.returncode == 0, done
    done = lab.jvmscope("stop", "-o", tmp_path / "b.jfr", process.pid)
    assert done.returncode == 0, done
    for name in ("b.jfr", "c.jfr"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert lab.jvmscope("report", tmp_path / name).returncode == 0
    nothing_is_left(process, f".java_pid{process.pid}")
    process.terminate()
    process.wait()
    nothing_is_left(process)


def status(process):
    done = lab.jvmscope("status", process.pid, timeout=60)
    if "nothing is being recorded in it" in done.stderr:
        return {"state": "no agent"}
    assert done.returncode == 0, done
    return {
        line.split()[0]: line.split()[1]
        for line in done.stdout.splitlines()
        if len(line.split()) > 1
    }


def start_attach(process, output, *flags):
    command = [lab.BUILD / "jvmscope", "attach", "--cpu", *flags, "-o", output, process.pid]
    return subprocess.Popen(
        [str(x) for x in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.jdks(8, 17, 25)
def test_the_agent_keeps_the_time_of_a_command_that_is_killed(vm, tmp_path, open_folder):
    """Recorded to a place where the VM can write and to one where it cannot: what it recorded can
    still be fetched, and the next command cleans up.
    """
    process = vm()
    for folder in (open_folder, tmp_path):
        command = start_attach(process, folder / "killed.jfr", "-t", "4s")
        lab.wait_for(lambda: status(process)["state"] == "recording", 60, "the recording")
        command.kill()
        command.communicate()
        lab.wait_for(lambda: status(process)["state"] == "idle", 60, "the end of the recording")
        assert lab.jvmscope("stop", "-o", folder / "fetched.jfr", process.pid).returncode == 0
        assert lab.jvmscope("report", folder / "fetched.jfr").returncode == 0
        nothing_is_left(process, f".java_pid{process.pid}")
        assert lab.jvmscope("stop", process.pid).returncode == 1, "its end was reported"


@pytest.mark.jdks(17)
def test_a_recording_is_not_fetched_onto_itself(vm, open_folder):
    """The output has the same name with which the recording was begun, which users are most likely
    to type.
    """
    process = vm()
    output = open_folder / "s1.jfr"
    assert lab.jvmscope("attach", "--cpu", "-o", output, process.pid).returncode == 0
    for verb in ("dump", "stop"):
        lab.use_cpu(process, 1)
        done = lab.jvmscope(verb, "-o", "s1.jfr", process.pid, cwd=open_folder)
        assert done.returncode == 0, done
        assert "samples" in lab.jvmscope("report", output).stdout
    # A file that the user named is not removed when something else is made of the recording.
    assert lab.jvmscope("attach", "--cpu", "-o", output, process.pid).returncode == 0
    lab.use_cpu(process, 0.5)
    assert lab.jvmscope("stop", "-o", open_folder / "s1.collapsed", process.pid).returncode == 0
    assert output.exists() and (open_folder / "s1.collapsed").stat().st_size


PRIVATE_TMP = [
    "unshare",
    "--mount",
    "--propagation",
    "unchanged",
    "sh",
    "-c",
    'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"',
    "-",
]


def test_a_vm_with_a_tmp_of_its_own(vm, open_folder, jvmscope):
    """As under systemd's PrivateTmp=yes: the same root folder, but another /tmp, which lacks the
    folder of the output.
    """
    process = vm(before=PRIVATE_TMP)
    inside = pathlib.Path(f"/proc/{process.pid}/root/tmp")
    before = set(p.name for p in inside.iterdir())
    for command in (
        ["attach", "--cpu", "-t", "500ms", "-o", open_folder / "x.jfr"],
        ["heap", "dump", "-o", open_folder / "h.hprof"],
    ):
        done = jvmscope(*command, process.pid)
        assert done.returncode == 0 and command[-1].stat().st_size > 0, done
    done = jvmscope("attach", "--cpu", "-o", open_folder / "y.jfr", process.pid)
    assert re.search(
        r"recording to /tmp/jvmscope-\S+\.jfr \(as the VM sees it\); end it with: ", done.stderr
    ), done
    assert "(as the VM sees it)" in jvmscope("dump", process.pid).stderr
    assert jvmscope("stop", "-o", open_folder / "y.jfr", process.pid).returncode == 0
    assert {p.name for p in inside.iterdir()} - before <= {f".java_pid{process.pid}"}


@pytest.mark.jdks(17)
@pytest.mark.parametrize("name", ["y.jfr", "y.hprof", "y.collapsed"])
def test_all_heap_dumps_of_a_recording_are_fetched(vm, open_folder, jvmscope, name):
    """Each `dump` makes another heap dump, and so does the end. They lie in the VM's own /tmp."""
    process = vm(before=PRIVATE_TMP)
    inside = pathlib.Path(f"/proc/{process.pid}/root/tmp")
    before = set(p.name for p in inside.iterdir())
    begun = jvmscope(
        "attach", "--cpu", "-i", "1ms", "--heap=dump", "-o", open_folder / "a.jfr", process.pid
    )
    assert begun.returncode == 0, begun
    lab.use_cpu(process, 0.3)
    for _ in range(2):
        assert jvmscope("dump", process.pid).returncode == 0
    done = jvmscope("stop", "-o", open_folder / name, process.pid)
    assert done.returncode == 0, done
    assert {p.name for p in inside.iterdir()} - before <= {f".java_pid{process.pid}"}
    # What was made of the recording is not replaced by a dump.
    stem = "y.hprof" if name == "y.hprof" else "y"
    dumps = [f"{stem}{number}.hprof" for number in ("", ".2", ".3")]
    assert sorted(p.name for p in open_folder.iterdir()) == sorted([name, *dumps])
    assert "Busy" in lab.output("report", open_folder / name)
    for dump in dumps:
        assert f"wrote {open_folder}/{dump} (" in done.stderr, done
        assert "java.lang.String" in lab.output("heap", "histogram", open_folder / dump)


def test_a_heap_dump_of_another_user_in_a_sticky_folder(vm, open_folder):
    """Without CAP_FOWNER, as in examples/: the VM's user owns the file, and its mode is right
    already.
    """
    process = vm()
    folder = open_folder / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    out = folder / "a.hprof"
    capabilities = "--inh-caps=-fowner", "--bounding-set=-fowner"
    done = subprocess.run(
        [
            "setpriv",
            *capabilities,
            lab.BUILD / "jvmscope",
            "heap",
            "dump",
            "-o",
            out,
            str(process.pid),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "cannot" not in done.stderr, done
    assert out.stat().st_mode & 0o7777 == 0o600 and out.stat().st_uid == NOBODY


@pytest.mark.jdks(17)
def test_paths_of_the_vm_that_lead_elsewhere_are_marked(vm, open_folder, jvmscope):
    """Each path is checked separately: a VM with the same /tmp and another root folder may have the
    same folder there, or a different one.
    """
    hidden = open_folder / "hidden"
    hidden.mkdir()
    os.chown(hidden, NOBODY, NOBODY)
    private = [*PRIVATE_TMP[:-2], f'mount -t tmpfs -o mode=1777 none {hidden} && exec "$@"', "-"]
    for folder, marked in ((hidden, True), (open_folder, False)):
        process = vm(
            f"-agentpath:{lab.BUILD}/libhprof.so=cpu=samples,format=r,file={folder}/a.jfr",
            before=private,
        )
        for verb in ("dump", "stop"):
            done = jvmscope(verb, process.pid)
            assert (
                done.returncode == 0
                and f"wrote {folder}/a.jfr{' (as the VM sees it)' * marked} (" in done.stderr
            ), done


def test_list_marks_a_vm_with_a_tmp_of_its_own(hostile, jvmscope):
    # What is mounted here must not be visible outside.
    process = hostile("link", [*PRIVATE_TMP[:2], "--propagation", "private", *PRIVATE_TMP[4:]])
    line = next(x for x in jvmscope("list").stdout.splitlines() if x.split()[0] == str(process.pid))
    assert line.endswith("(private /tmp)"), line


@pytest.mark.jdks(8, 17, 25)
def test_a_stopped_vm_is_reported_at_once_and_prints_nothing_later(vm, tmp_path):
    """Every command that makes a request of a VM: before anything has attached, when SIGQUIT would
    wake the VM, and afterwards, when it listens but never answers.
    """
    process = vm()
    pid = process.pid
    commands = (
        ["status", pid],
        ["attach", "--cpu", "-t", "1s", "-o", tmp_path / "a.jfr", pid],
        ["heap", "dump", "-o", tmp_path / "h.hprof", pid],
        ["dump", pid],
        ["stop", pid],
        ["inspect", pid, "threads"],
        ["control", pid, "list"],
        ["trace", pid, "list"],
        ["trace", pid, "add", "Busy.work"],
        ["threads", "deadlocks", pid],
        ["slow", "-t", "1s", "-o", tmp_path / "s.jfr", pid],
    )
    asking = {name.split()[0] for name in option_tables.ASKING} - {
        "top",
        "check",
    }  # commands that need no answer
    assert asking <= {command[0] for command in commands}
    for attached in (False, True):
        if attached:
            assert (
                lab.jvmscope(
                    "attach", "--cpu", "-t", "100ms", "-o", tmp_path / "b.jfr", process.pid
                ).returncode
                == 0
            )
        process.send_signal(signal.SIGSTOP)
        lab.wait_for(lambda: lab.is_stopped(process.pid), 60, "the stop")
        line = next(
            x for x in lab.jvmscope("list").stdout.splitlines() if x.split()[0] == str(process.pid)
        )
        assert line.endswith("(stopped)"), line
        for command in commands:
            done = lab.jvmscope(*command, timeout=20)
            nothing = not attached and command[0] in ("status", "dump", "stop", "control", "trace")
            assert done.returncode == 1 and not done.stdout, done
            assert (
                "nothing is being recorded" if nothing else "is stopped"
            ) in done.stderr and len(done.stderr.splitlines()) == 1, done
        # These continue without an answer, and say what is missing.
        done = lab.jvmscope("check", pid, timeout=20)
        assert done.returncode == 1 and "stopped" in done.stdout, done
        words = ("top", "-n", 1, "-i", "10ms", "--states")
        assert re.search(
            r"^states: not known: the process is stopped", lab.output(*words, pid, timeout=20), re.M
        )
        assert lab.read_json(*words, "--json", pid, timeout=20)["states_unknown"].startswith(
            "the process is stopped"
        )
        process.send_signal(signal.SIGCONT)
        lab.use_cpu(process, 0.3)
    assert lab.jvmscope("status", process.pid).returncode == 0
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "Full thread dump" not in out + err


def test_a_signal_that_is_pending_keeps_the_file_that_explains_it(hostile, jvmscope):
    """Without the file, a VM that continues would take the SIGQUIT as a request for a thread
    dump.
    """
    process = hostile("deaf")
    trigger = pathlib.Path(f"/tmp/.attach_pid{process.pid}")
    done = jvmscope("attach", "--cpu", "-t", "1s", "-o", "/tmp/jvmscope-never.jfr", process.pid)
    assert done.returncode == 1 and "does not answer" in done.stderr, done
    assert trigger.exists()
    process.kill()
    process.wait()
    other = hostile("link")
    jvmscope("status", other.pid)
    assert not trigger.exists(), "the next command of that user removes it"


@pytest.mark.jdks(17)
def test_the_recording_of_a_killed_command_can_be_fetched(vm, tmp_path):
    """The VM ends the recording without a command, and the file stays where only the VM could write.
    status and the next attach name it and a command that fetches it.
    """
    process = vm()
    command = ("attach", "--cpu", "-t", "3s", "-o", tmp_path / "a.jfr", process.pid)
    killed = subprocess.Popen([lab.BUILD / "jvmscope", *map(str, command)], stderr=subprocess.PIPE)

    def state():
        return lab.jvmscope("status", process.pid)

    lab.wait_for(lambda: "recording\n" in state().stdout, 60, "the recording")
    killed.kill()
    killed.communicate()
    lab.wait_for(lambda: "idle\n" in state().stdout, 60, "the end of the recording")
    for number in range(2):
        done = state() if number == 0 else lab.jvmscope(*command[:3], "100ms", *command[4:])
        found = re.search(
            r"^jvmscope: note: a command that was killed left the recording "
            r"(/tmp/\.jvmscope-\S+\.jfr); fetch it with: (cp \S+) FILE\.jfr; ",
            done.stderr,
            re.M,
        )
        assert done.returncode == 0 and found, done
        fetched = tmp_path / f"fetched{number}.jfr"
        subprocess.run([*found[2].split(), fetched], check=True)
        assert "Busy" in lab.output("report", fetched)
    pathlib.Path(found[1]).unlink()
    assert "note:" not in state().stderr
    nothing_is_left(process, f".java_pid{process.pid}")


@pytest.mark.jdks(17)
def test_only_recordings_of_the_vm_itself_are_reported_as_left(vm, tmp_path):
    """Any file with such a name used to be named by every attach to every VM, also by one that then
    refused its options.
    """
    process, other = vm(), vm()
    recordings = {}
    for one in (process, other):
        recordings[one.pid] = tmp_path / f"{one.pid}.jfr"
        words = ("attach", "-t", "100ms", "--cpu", "-o", recordings[one.pid], one.pid)
        assert lab.jvmscope(*words).returncode == 0
    left = pathlib.Path("/tmp/.jvmscope-00000000000abcd0.jfr")
    note = f"a command that was killed left the recording {left}; "
    for content, noted in (
        (b"FLR\0", False),
        (b"anything", False),
        (b"", False),
        (recordings[other.pid].read_bytes(), False),
        (recordings[process.pid].read_bytes(), True),
    ):
        try:
            left.write_bytes(content)
            os.chown(left, NOBODY, NOBODY)
            for words in (("status",), ("attach", "-t", "50ms", "--cpu", "-o", tmp_path / "a.jfr")):
                done = lab.jvmscope(*words, process.pid)
                assert done.returncode == 0 and (note in done.stderr) == noted, (words, done)
            done = lab.jvmscope("attach", "-t", "50ms", "-o", tmp_path / "a.zip", process.pid)
            assert done.returncode == 2 and "note:" not in done.stderr, done
        finally:
            left.unlink()


@pytest.mark.jdks(17)
@pytest.mark.parametrize(
    "option, some",
    (
        ("--trace", "Busy.*"),
        ("--log", "Busy:7 x"),
        ("--watch", "Busy.sink"),
        ("--requests", "Busy.work(..)"),
        ("--locks", "java.lang.Object"),
        ("--show", "Busy.sink"),
        ("--to-string", "java.lang.Thread"),
        ("--include", "Busy*"),
        ("--exclude", "java.*"),
    ),
)
def test_an_option_whose_patterns_match_nothing_ends_with_1(vm, tmp_path, option, some):
    """Some did, and --locks, --show, --to-string, --include and --exclude ended with 0."""
    process = vm()
    nothing = {"--log": "no.Such:1 x", "--requests": "no.Such.method(..)"}
    nothing = nothing.get(option, "no.Such.method")
    needed = {
        "--show": ["--trace", "Busy.*"],
        "--to-string": ["--trace", "Busy.*"],
        "--include": ["--cover"],
        "--exclude": ["--cover"],
    }.get(option, ["--cpu"])
    separator = ";" if option == "--log" else ","
    for value, status in ((nothing, 1), (f"{some}{separator}{nothing}", 0), (some, 0)):
        begin = ("attach", *needed, option, value, "-o", tmp_path / "a.jfr")
        done = lab.jvmscope(*begin, "-t", "300ms", process.pid)
        assert done.returncode == status, (value, done)
        assert ("no.Such" in done.stderr) == (nothing in value), (value, done)
        assert lab.jvmscope(*begin, process.pid).returncode == 0
        done = lab.jvmscope("stop", "-o", tmp_path / "a.jfr", process.pid)
        assert done.returncode == status, (value, done)


@pytest.mark.jdks(8, 25)
def test_what_killed_commands_and_vms_leave_is_removed_by_the_next_command(vm, tmp_path):
    """A heap dump whose command is killed while the VM writes it, and the socket of a VM that is
    killed.
    """
    process, other = vm(), vm()
    assert (
        lab.jvmscope(
            "attach", "--cpu", "-t", "100ms", "-o", tmp_path / "a.jfr", other.pid
        ).returncode
        == 0
    )
    command = [lab.BUILD / "jvmscope", "heap", "dump", "-o", tmp_path / "h.hprof", str(process.pid)]
    killed = subprocess.Popen(command, stderr=subprocess.PIPE)
    lab.wait_for(
        lambda: [*pathlib.Path("/tmp").glob(".jvmscope-*.dump")] or killed.poll() is not None,
        60,
        "a heap dump",
    )
    killed.kill()
    killed.communicate()
    other.kill()
    other.wait()
    assert pathlib.Path(f"/tmp/.java_pid{other.pid}").exists()
    assert (
        lab.jvmscope(
            "attach", "--cpu", "-t", "100ms", "-o", tmp_path / "b.jfr", process.pid
        ).returncode
        == 0
    )
    nothing_is_left(process, f".java_pid{process.pid}")
    assert not pathlib.Path(f"/tmp/.java_pid{other.pid}").exists()
    assert {p.name for p in tmp_path.iterdir()} <= {"a.jfr", "b.jfr", "h.hprof"}
