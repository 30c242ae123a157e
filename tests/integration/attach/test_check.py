# SPDX-License-Identifier: Apache-2.0
"""check says in advance what attach will do, and names what is missing."""
import json
import os
import re
import signal
import socket
import subprocess
import uuid

import pytest

import lab

COMMAND = lab.BUILD / "jvmscope"
NOEXEC = "for d in /tmp /var/tmp /dev/shm; do mount --bind $d $d && mount -o remount,noexec,bind $d; done"
# Without access to our build folder, the VM needs a copy of the agent.
HIDDEN = f"mount -t tmpfs none {lab.ROOT}"


@pytest.fixture
def start(jdk):
    def start(*jvm, before=":", prefix=""):
        java = f"{before} && exec {prefix} java {' '.join(jvm)} -Xmx32m -cp {lab.compiled('Busy')} Busy 60"
        process = jdk.start("sh", "-c", java, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield start
    for process in jdk.started:
        process.kill()
        process.communicate()


def check(process, *prefix):
    """Returns the checks by name, as (verdict, why), of a command whose exit status says whether
    recording works.
    """
    done = subprocess.run(
        [*prefix, COMMAND, "check", "--json", str(process.pid)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = {c["name"]: (c["verdict"], c["why"]) for c in json.loads(done.stdout)["checks"]}
    assert (done.returncode == 0) == (found["record"][0] == "yes"), done
    assert all(why for verdict, why in found.values() if verdict != "yes")
    assert process.poll() is None
    return found


def attach(process, folder, *prefix):
    return subprocess.run(
        [
            *prefix,
            COMMAND,
            "attach",
            "--cpu",
            "-t",
            "50ms",
            "-o",
            folder / "x.jfr",
            str(process.pid),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.jdks(17)
@pytest.mark.parametrize(
    "flags, before, cause",
    [
        ((), HIDDEN, None),
        (("-XX:+DisableAttachMechanism",), ":", "-XX:+DisableAttachMechanism"),
        (("-XX:-UsePerfData", "-XX:+DisableAttachMechanism"), ":", "-XX:+DisableAttachMechanism"),
        (("-XX:-EnableDynamicAgentLoading",), ":", "-XX:-EnableDynamicAgentLoading"),
        (
            (),
            "export JAVA_TOOL_OPTIONS=-XX:-EnableDynamicAgentLoading",
            "-XX:-EnableDynamicAgentLoading",
        ),
        (("-Xrs",), ":", None),
        ((), lab.READ_ONLY, "read-only"),
        ((), f"{HIDDEN} && {NOEXEC}", None),
        ((), f"{HIDDEN} && mount -t tmpfs -o mode=755 none /tmp && chown 1:1 /tmp", None),
    ],
    ids=[
        "works",
        "attach-disabled",
        "attach-disabled-unpublished",
        "no-dynamic-agents",
        "no-dynamic-agents-by-environment",
        "xrs",
        "read-only",
        "noexec",
        "tmp-of-another",
    ],
)
def test_verdict_and_attach_agree(start, tmp_path, flags, before, cause):
    process = start(*flags, before=before)
    verdict, why = check(process)["record"]
    done = attach(process, tmp_path)
    assert (verdict == "yes") == (done.returncode == 0) == (cause is None), (
        verdict,
        why,
        done.stderr,
    )
    if cause:
        assert cause in why, why
    if "/tmp &&" in before:  # where no other program makes files
        assert not [
            f for f in os.listdir(f"/proc/{process.pid}/root/tmp") if f.startswith(".jvmscope-")
        ]


@pytest.mark.jdks(8, 17, 25)
def test_output_folders_that_only_the_vm_cannot_write_to(start, tmp_path):
    """The folder is the same one for both, and read-only among the mounts of the VM."""
    process = start(
        before=f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}"
    )
    found = check(process)
    assert (found["record"][0], found["heap dump"][0]) == ("yes", "yes"), found
    for command in (["attach", "--cpu", "-t", "50ms"], ["heap", "dump"]):
        output = tmp_path / f"{command[0]}.out{'.jfr' if command[0] == 'attach' else ''}"
        done = lab.jvmscope(*command, "-o", output, process.pid)
        assert done.returncode == 0 and output.stat().st_size, done
    # A recording that nobody waits for is fetched by the command that ends it.
    done = lab.jvmscope("attach", "--cpu", "-o", tmp_path / "y.jfr", process.pid)
    assert done.returncode == 0 and "-o" in done.stderr.partition("jvmscope stop")[2], done
    done = lab.jvmscope("stop", "-o", tmp_path / "y.jfr", process.pid)
    assert done.returncode == 0 and (tmp_path / "y.jfr").stat().st_size, done
    name = f"jvmscope-{process.pid}-"
    assert not [n for n in os.listdir(f"/proc/{process.pid}/root/tmp") if n.startswith(name)]


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize("shm", ["", " && mount -o remount,ro,bind /dev/shm"], ids=["shm", "none"])
@pytest.mark.parametrize(
    "tmp",
    [
        "mount -t tmpfs -o mode=755 none /tmp",
        "mount -t tmpfs -o ro none /tmp",
        "mount -t tmpfs -o mode=1777 none /tmp",
    ],
    ids=["not writable", "read-only", "writable"],
)
def test_check_and_commands_agree_on_a_tmp_without_room_for_the_socket(jdk, tmp_path, tmp, shm):
    """check reports the same as each command that needs the socket, whether or not another folder
    can hold its files.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to run programs of other users")
    works = "1777" in tmp
    process = jdk.start(
        "sh",
        "-c",
        f"{tmp} && mount --bind /dev/shm /dev/shm{shm}; exec setpriv --reuid=65534 --regid=65534"
        f" --clear-groups java -XX:-UsePerfData -Xmx32m -cp {lab.compiled('Busy')} Busy 60",
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    found = check(process)
    if works:
        assert found["attach"][0] == found["heap dump"][0] == "yes", found
        return
    verdict, why = found["attach"]
    assert verdict == "no" and ("may not write" in why or "read-only" in why), found
    for words in (
        ("attach", "--cpu", "-t", "50ms", "-o", tmp_path / "x.jfr"),
        ("attach", "--cpu", "-o", tmp_path / "x.jfr"),
        ("attach", "--always"),
        ("heap", "dump", "-o", tmp_path / "x.hprof"),
        ("slow", "-t", "50ms", "-o", tmp_path / "y.jfr"),
    ):
        done = lab.jvmscope(*words, process.pid)
        assert done.returncode == 1 and done.stderr.endswith(f": {why}\n"), (words, done)


def small_tmp(tmp, shm):
    """Returns commands that give a VM folders of these sizes, and a /var/tmp to which it cannot
    write.
    """
    return (
        "mount --bind /var/tmp /var/tmp && mount -o remount,ro,bind /var/tmp && "
        f"mount -t tmpfs -o mode=1777,size={tmp} none /tmp && "
        + (f"mount -t tmpfs -o mode=1777,size={shm} none" if shm else "mount --bind /tmp")
        + " /dev/shm"
    )


@pytest.mark.jdks(8, 17)
def test_recordings_and_dumps_go_where_there_is_room(start, tmp_path):
    """They used to go to /tmp whenever it took a file, although they did not fit in there."""
    process = start(before=small_tmp("128k", "32m"))
    found = check(process)
    assert found["record"] == ("yes", None) and found["heap dump"] == ("yes", None), found
    done = attach(process, tmp_path)
    assert "were lost" not in done.stderr and "are left" not in done.stderr, done
    done = lab.jvmscope("attach", "--cpu", "-t", "1s", "-o", tmp_path / "y.jfr", process.pid)
    assert done.returncode == 0, done
    assert "Busy.work" in lab.output("report", tmp_path / "y.jfr")
    done = lab.jvmscope("heap", "dump", "-o", tmp_path / "y.hprof", process.pid)
    assert done.returncode == 0 and (tmp_path / "y.hprof").stat().st_size > 1 << 17, done
    left = os.listdir(f"/proc/{process.pid}/root/dev/shm")
    assert not [name for name in left if name.startswith(".jvmscope-")], left


@pytest.mark.jdks(17)
def test_too_little_room_is_predicted(start, tmp_path):
    process = start(before=small_tmp("128k", None))
    found = check(process)
    for row, what in (("record", "a recording"), ("heap dump", "a dump")):
        verdict, why = found[row]
        assert verdict == "perhaps", found
        assert re.fullmatch(
            rf"only \d+\.\d+ KiB are left in its /(tmp|dev/shm), where {what} that the VM cannot write to its output goes.*",
            why,
        ), found
    done = attach(process, tmp_path)
    assert re.search(
        r"note: only \d+\.\d+ KiB are left in the VM's /(tmp|dev/shm), where the recording goes",
        done.stderr,
    ), done
    # With a little more, a recording fits, and a dump does not.
    process = start(before=small_tmp("2m", None))
    found = check(process)
    assert found["record"][0] == "yes" and re.match(
        r"only \d\.\d+ MiB are left", found["record"][1]
    )
    assert found["heap dump"][0] == "perhaps", found
    done = lab.jvmscope("heap", "dump", "-o", tmp_path / "y.hprof", process.pid)
    assert done.returncode == 1 and not (tmp_path / "y.hprof").exists(), done


@pytest.mark.jdks(8, 25)
def test_verdict_on_other_jdks(start, jdk, tmp_path):
    """The checks when everything works, and their texts for a VM that warns and for one that
    publishes nothing.
    """
    process = start("-XX:-UsePerfData")
    found = check(process)
    assert found["attach"] == ("yes", None) and found["heap dump"] == ("yes", None)
    assert found["top"][0] == "no" and "-XX:-UsePerfData" in found["top"][1]
    assert (found["kernel frames"][0] == "yes") == lab.perf_permitted()
    assert attach(process, tmp_path).returncode == 0
    # Its main class and version are determined from outside.
    shown = {vm["pid"]: vm for vm in json.loads(lab.jvmscope("list", "--json").stdout)}[process.pid]
    assert shown["command"] == "Busy 60" and (
        jdk.version == 8 or shown["version"].startswith("25")
    ), shown


@pytest.mark.jdks(25)
def test_a_warning_is_predicted(start, tmp_path):
    process = start()
    verdict, why = check(process)["record"]
    assert verdict == "yes" and "-XX:+EnableDynamicAgentLoading" in why
    os.kill(process.pid, signal.SIGSTOP)
    lab.wait_for(lambda: lab.is_stopped(process.pid), 60, "the stop")
    verdict, why = check(process)["record"]
    assert verdict == "no" and "stopped" in why
    os.kill(process.pid, signal.SIGCONT)
    assert attach(process, tmp_path).returncode == 0
    process.kill()
    assert "WARNING" in process.communicate()[1]


@pytest.mark.jdks(17)
def test_missing_rights_are_named(start, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to run programs of other users")
    process = start(prefix="setpriv --reuid=65534 --regid=65534 --clear-groups")
    assert check(process)["record"] == ("yes", None)
    without = {
        "CAP_SYS_PTRACE": ["setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace"],
        "another user": ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"],
    }
    for cause, prefix in without.items():
        done = subprocess.run(
            [*prefix, COMMAND, "check", str(process.pid)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (
            done.returncode == 1 and cause in done.stderr and len(done.stderr.splitlines()) == 1
        ), done
        assert attach(process, tmp_path, *prefix).returncode == 1
    for cause in ("setuid", "kill"):
        prefix = ["setpriv", f"--inh-caps=-{cause}", f"--bounding-set=-{cause}"]
        verdict, why = check(process, *prefix)["record"]
        assert (verdict == "yes") == (attach(process, tmp_path, *prefix).returncode == 0), why
        assert verdict == "yes" or f"CAP_{cause.upper()}" in why
    # The same user needs no right at all.
    same = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    own = tmp_path / "own"
    own.mkdir()
    own.chmod(0o777)
    assert check(process, *same)["attach"][0] == "yes"


@pytest.mark.jdks(17)
@pytest.mark.parametrize(
    "right, prefix",
    [
        ("root needs CAP_SYS_PTRACE", ["setpriv", "--bounding-set=-sys_ptrace"]),
        ("run the command as root", ["setpriv", "--reuid=12345", "--clear-groups"]),
    ],
    ids=["root", "user"],
)
def test_what_is_left_out_of_lists_is_reported(jdk, tmp_path, right, prefix):
    """The programs of others that `java` runs are counted, and JSON has them. The list used to be
    empty without any explanation.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to give up rights")
    name = f"Hidden{uuid.uuid4().hex}"
    (tmp_path / f"{name}.java").write_text(
        f"class {name} {{ public static void main(String[] a) throws Exception {{"
        " System.out.println(\"ready\"); Thread.sleep(600000); } }"
    )
    assert jdk.run("javac", "-d", tmp_path, tmp_path / f"{name}.java").returncode == 0
    process = jdk.start("java", "-Xmx32m", "-cp", tmp_path, name, "x", stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"

    def ask(*words, **kwargs):
        return subprocess.run(
            [str(w) for w in (*prefix, COMMAND, *words)],
            capture_output=True,
            text=True,
            timeout=120,
            **kwargs,
        )

    note = rf"jvmscope: note: (\d+) Java processe?s? of other users cannot be inspected and (is|are) left out: {right}"
    for words in (["list"], ["list", "--json"], ["attach", "--match", name]):
        done = ask(*words)
        [reported] = re.findall(note, done.stderr)
        assert int(reported[0]) >= 1, done
    assert done.returncode == 1 and "no VM" in done.stderr
    vms = {vm["pid"]: vm for vm in json.loads(ask("list", "--json").stdout)}
    vm = vms[process.pid]
    assert (vm["command"], vm["uid"], vm["version"]) == (f"{name} x", 0, None), vm
    assert not vm["inspected"] and not vm["attachable"]
    assert str(process.pid) not in ask("list").stdout.split()
    # With all rights nothing is left out.
    whole = lab.jvmscope("list", "--json")
    [vm] = [vm for vm in json.loads(whole.stdout) if vm["pid"] == process.pid]
    assert vm["inspected"] and not re.findall(note, whole.stderr), whole
    process.kill()


LIKE = {
    "native image": (
        "__attribute__((section(\".svm_heap\"))) char heap[4096] = {1};",
        "native image",
    ),
    "openj9": ("int j9_version(void); int (*heap)(void) = j9_version;", "OpenJ9"),
}


@pytest.mark.parametrize("kind", LIKE)
def test_other_vms_are_called_what_they_are(tmp_path, kind):
    """Programs that look like VMs but cannot load an agent of HotSpot's."""
    source, called = LIKE[kind]
    (tmp_path / "like.c").write_text(
        source
        + "\n#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return pause(); }\n"
    )
    (tmp_path / "j9.c").write_text("int j9_version(void) { return 29; }\n")
    subprocess.run(
        ["gcc", "-shared", "-o", tmp_path / "libj9vm29.so", tmp_path / "j9.c"], check=True
    )
    subprocess.run(
        [
            "gcc",
            "-o",
            tmp_path / "like",
            tmp_path / "like.c",
            *([f"-L{tmp_path}", "-lj9vm29", f"-Wl,-rpath,{tmp_path}"] if kind == "openj9" else []),
        ],
        check=True,
    )
    with subprocess.Popen([tmp_path / "like"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            for verb in (["check"], ["attach", "-t", "50ms", "-o", tmp_path / "x.jfr"]):
                done = subprocess.run(
                    [COMMAND, *verb, str(process.pid)], capture_output=True, text=True, timeout=60
                )
                assert done.returncode == 1 and called in done.stdout + done.stderr, done
                assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.jdks(17)
def test_attach_to_all_that_match(jdk, tmp_path):
    """Each VM is recorded into a separate file. A VM that cannot be recorded is named, and the
    others are left alone. The names of the classes occur in no other test.
    """
    name = f"Match{uuid.uuid4().hex}"
    sources = []
    for which in "ABCD":
        sources.append(tmp_path / f"{name}{which}.java")
        sources[-1].write_text(
            f"class {name}{which} {{ static volatile long sink; public static void main(String[] a) throws Exception {{"
            f" System.out.println(\"ready\"); long x = 1; for (;;) sink = x = x * 31 + 7; }} }}"
        )
    assert jdk.run("javac", "-d", tmp_path, *sources).returncode == 0
    flags = {"B": ["-XX:-UsePerfData"], "C": ["-XX:+DisableAttachMechanism"]}
    vms = {
        which: jdk.start(
            "java",
            *flags.get(which, []),
            "-Xmx32m",
            "-cp",
            tmp_path,
            name + which,
            "Shop",
            stdout=subprocess.PIPE,
        )
        for which in "ABCD"
    }
    assert all(vm.stdout.readline() == "ready\n" for vm in vms.values())

    def attach_each(*words):
        return subprocess.run(
            [
                COMMAND,
                "attach",
                "--cpu",
                "-i",
                "1ms",
                "-t",
                "1s",
                "-o",
                tmp_path / "%p.jfr",
                *words,
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = attach_each(
        "--match", f"{name}A,*{name[5:]}[B]"
    )  # commas separate patterns, and [ is not a wildcard
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.glob("*.jfr")) == [f"{vms['A'].pid}.jfr"]
    done = attach_each("--match", f"{name}[", "--match", f"*{name[5:]}?")
    assert done.returncode == 1
    assert f"{vms['C'].pid}: left out: attach is disabled" in done.stderr, done.stderr
    assert {p.name for p in tmp_path.glob("*.jfr")} == {f"{vms[w].pid}.jfr" for w in "ABD"}
    for which in "ABD":
        shown = lab.output("report", tmp_path / f"{vms[which].pid}.jfr")
        assert f"{name}{which}.main" in shown and f"{name}A.main" not in shown.replace(
            f"{name}{which}", ""
        )
    assert attach_each("--match", f"{name}E").returncode == 1
    for words in (["--all", "1"], ["--match", "x", "1"], ["--all", "--match", "x"], []):
        assert attach_each(*words).returncode == 2, words


@pytest.mark.parametrize("extension", ["jfr", "html"])
@pytest.mark.jdks(8, 17)
def test_a_killed_attach_to_several_ends_their_recordings(jdk, tmp_path, extension):
    """The processes that record for it used to go on until their time was over."""
    name = f"Killed{uuid.uuid4().hex}"
    source = tmp_path / f"{name}.java"
    source.write_text(
        f"class {name} {{ static volatile long sink; public static void main(String[] a) {{"
        f" System.out.println(\"ready\"); long x = 1; for (;;) sink = x = x * 31 + 7; }} }}"
    )
    assert jdk.run("javac", "-d", tmp_path, source).returncode == 0
    vms = [
        jdk.start("java", "-Xmx32m", "-cp", tmp_path, name, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    words = ["--cpu", "-i", "1ms", "-t", "10m", "-o", tmp_path / f"%p.{extension}"]
    try:
        assert all(vm.stdout.readline() == "ready\n" for vm in vms)
        command = subprocess.Popen(
            [COMMAND, "attach", *words, "--match", name], stderr=subprocess.DEVNULL
        )
        for vm in vms:
            lab.wait_for(
                lambda: "recording\n" in lab.jvmscope("status", vm.pid).stdout, 120, "the recording"
            )
        for vm in vms:
            lab.use_cpu(vm, 0.5)
        command.kill()
        command.wait()
        files = [tmp_path / f"{vm.pid}.{extension}" for vm in vms]
        for vm, file in zip(vms, files):
            lab.wait_for(
                lambda: "idle\n" in lab.jvmscope("status", vm.pid).stdout and file.exists(),
                60,
                "its end",
            )
            if extension == "jfr":
                found = lab.read_json("report", "--json", file)
                assert found["samples"]["total"] > 100, found
                assert "not ended" not in lab.jvmscope("report", file).stderr
    finally:
        for vm in vms:
            vm.kill()
            vm.communicate()


@pytest.mark.jdks(17)
def test_a_chroot_is_no_container(jdk):
    """Another root alone does not make a container. In addition the host name, or the namespace
    of host names or processes, must differ from the machine's.
    """
    host, other = socket.gethostname(), f"not-{socket.gethostname()}"
    for before, name, shown in (
        ("", host, "another root"),
        ("unshare --uts", host, f"container {host}"),
        # The file of an image has the name of the machine that it was made on.
        (
            "unshare --uts sh -c 'echo pod-a >/proc/sys/kernel/hostname && exec \"$@\"' -",
            host,
            "container pod-a",
        ),
        ("unshare --pid --fork --kill-child", host, f"container {host}"),
        ("", other, f"container {other}"),
    ):
        process = jdk.start(
            "sh",
            "-c",
            f"f=$(mktemp) && echo {name} >$f && mount --bind $f /etc/hostname && rm $f; "
            f"exec {before} java -Xmx32m -cp {lab.compiled('Busy')} Busy 61",
            stdout=subprocess.PIPE,
        )
        assert process.stdout.readline() == "ready\n"
        [vm] = [vm for vm in lab.read_json("list", "--json") if vm["command"] == "Busy 61"]
        is_container = shown != "another root"
        assert vm["other_root"] and (vm["container"], vm["container_name"]) == (
            is_container,
            shown.split()[1] if is_container else None,
        ), vm
        [line] = [x for x in lab.output("list").splitlines() if "Busy 61" in x]
        assert line.endswith(f"Busy 61  ({shown})"), line
        process.kill()
        process.communicate()


@pytest.mark.jdks(17)
def test_list_names_the_container(jdk, container):
    """Identified by its control group, as container engines name it, and by its host name, which
    is that in /etc/hostname where the container has the machine's name.
    """
    group, digits = container
    process = jdk.start(
        "sh",
        "-c",
        f"echo $$ >{group}/cgroup.procs && echo shop-7 >/tmp/hostname-{digits} && "
        f"mount --bind /tmp/hostname-{digits} /etc/hostname && rm /tmp/hostname-{digits}; "
        f"exec java -Xmx32m -cp {lab.compiled('Busy')} Busy 60",
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    lab.use_cpu(process, 0.2)
    vm = {vm["pid"]: vm for vm in lab.read_json("list", "--json")}[process.pid]
    assert (vm["container_id"], vm["container_name"]) == (digits[:12], "shop-7")
    assert vm["cpu_s"] >= 0.2 and 0 < vm["uptime_s"] < 600
    line = next(x for x in lab.output("list").splitlines() if x.split()[0] == str(process.pid))
    assert line.endswith(f"Busy 60  (container {digits[:12]} shop-7)"), line
