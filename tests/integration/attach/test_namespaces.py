# SPDX-License-Identifier: Apache-2.0
"""check and attach from the host to VMs in containers of every kind: bubblewrap creates the
namespaces, a script the rest.
"""
import json
import os
import pathlib
import platform
import shutil
import signal
import struct
import subprocess

import pytest

import lab

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("bwrap"),
    reason="needs root and bubblewrap (tools/setup check)",
)

SECCOMP = object()  # the descriptor of the filter
TMP = ["--perms", "1777", "--tmpfs", "/tmp"]
# What `docker run --read-only --tmpfs /tmp` gives: no folder that can be written may hold
# libraries.
HARDENED = "mount -o remount,noexec /tmp && mount -o remount,ro,bind /dev &&"
OTHER_USER = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"]


def without(*capabilities):
    return [
        "setpriv",
        "--inh-caps=" + ",".join(f"-{c}" for c in capabilities),
        "--bounding-set=" + ",".join(f"-{c}" for c in capabilities),
    ]


# In each row: bubblewrap's arguments; what runs inside before java, and in front of it; what runs
# in front of bubblewrap, and of the command; what check and attach name as the cause when they
# cannot record (None: they can).
ROWS = {
    "pid-and-mount": (TMP, "", [], [], [], None),
    "all": ([*TMP, "--unshare-all"], "", [], [], [], None),
    "user": ([*TMP, "--unshare-user", "--uid", "1000", "--gid", "1000"], "", [], [], [], None),
    "user-of-its-maker": ([*TMP, "--unshare-all"], "", [], OTHER_USER, OTHER_USER, None),
    "other-uid": (TMP, "", OTHER_USER, [], [], None),
    "other-uid-without-setuid": (TMP, "", OTHER_USER, [], without("setuid"), "CAP_SETUID"),
    "other-uid-without-ptrace": (TMP, "", OTHER_USER, [], without("sys_ptrace"), "CAP_SYS_PTRACE"),
    "other-uid-without-kill": (TMP, "", OTHER_USER, [], without("kill"), "CAP_KILL"),
    "of-another": (
        TMP,
        "",
        OTHER_USER,
        [],
        ["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups"],
        "another user",
    ),
    "no-tmp": ([], "", [], [], [], "/tmp"),
    "read-only-tmp": ([*TMP, "--remount-ro", "/tmp"], "", [], [], [], "read-only"),
    "hardened": (TMP, HARDENED, [], [], [], None),
    "hardened-other-uid": (TMP, HARDENED, OTHER_USER, [], [], None),
    # As rootless Podman: the command's user made the VM's user namespace, and is root in it.
    "hardened-rootless": (
        [*TMP, "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"],
        HARDENED.replace("remount,", "remount,bind,nosuid,nodev,"),
        [],
        OTHER_USER,
        OTHER_USER,
        None,
    ),
    "hardened-without-admin": (TMP, HARDENED, [], [], without("sys_admin"), "CAP_SYS_ADMIN"),
    "hidepid": (TMP, "mount -o remount,hidepid=2 /proc &&", OTHER_USER, [], [], None),
    "hardened-hidepid": (
        TMP,
        HARDENED + "mount -o remount,hidepid=2 /proc &&",
        OTHER_USER,
        [],
        [],
        None,
    ),
    "hidepid-outside": (
        TMP,
        "",
        OTHER_USER,
        [],
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount -t proc -o hidepid=2 proc /proc && exec " + " ".join(OTHER_USER) + ' "$@"',
            "-",
        ],
        None,
    ),
    "hidepid-of-another": (
        TMP,
        "",
        [],
        [],
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount -t proc -o hidepid=2 proc /proc && exec " + " ".join(OTHER_USER) + ' "$@"',
            "-",
        ],
        "another user",
    ),
    "seccomp": ([*TMP, "--seccomp", SECCOMP], "", [], [], [], None),
}


def filter_without_perf():
    """A seccomp filter (classic BPF) with which perf_event_open fails with EPERM, as in container
    engines.
    """
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    return b"".join(
        struct.pack("HBBI", *code)
        for code in (
            (0x20, 0, 0, 0),
            (0x15, 0, 1, number),
            (0x06, 0, 0, 0x00050001),
            (0x06, 0, 0, 0x7FFF0000),
        )
    )


@pytest.fixture
def box(jdk, tmp_path):
    """Starts Busy as the first process of a container; returns its process id on the host."""
    started = []

    def start(row, *jvm, seconds=60):
        arguments, before, inside, outside, _, _ = ROWS[row]
        root, reported, seccomp = lab.chroot(), tmp_path / f"reported-{row}", tmp_path / "seccomp"
        seccomp.write_bytes(filter_without_perf())
        java = " ".join(
            map(
                str,
                [
                    *inside,
                    f"{lab.home(jdk.version)}/bin/java",
                    *jvm,
                    "-Xmx32m",
                    "-cp",
                    "/app",
                    "Busy",
                    seconds,
                ],
            )
        )
        with open(reported, "wb") as info, open(seccomp, "rb") as rules:
            arguments = [rules.fileno() if a == SECCOMP else a for a in arguments]
            command = [
                *outside,
                "bwrap",
                "--ro-bind",
                f"{root}/usr",
                "/usr",
                "--ro-bind",
                f"{root}/etc",
                "/etc",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                *(
                    word
                    for name in ("lib", "lib64", "bin")
                    for word in ("--symlink", f"usr/{name}", f"/{name}")
                ),
                "--ro-bind",
                lab.compiled("Busy"),
                "/app",
                "--unshare-pid",
                "--as-pid-1",
                "--info-fd",
                info.fileno(),
                *([] if outside else ["--cap-add", "ALL"]),
                *arguments,
                "sh",
                "-c",
                f"{before} exec {java}",
            ]
            process = subprocess.Popen(
                list(map(str, command)),
                text=True,
                pass_fds=(info.fileno(), rules.fileno()),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return json.loads(reported.read_text())["child-pid"]

    yield start
    for reported in tmp_path.glob("reported-*"):
        if reported.stat().st_size:
            os.kill(
                json.loads(reported.read_text())["child-pid"], signal.SIGKILL
            )  # the container's first process, and all in it
    for process in started:
        process.kill()
        process.communicate()


def scratch_files(pid):
    return [
        f"{folder}/{name}"
        for folder in ("tmp", "var/tmp", "dev/shm")
        if (there := pathlib.Path(f"/proc/{pid}/root/{folder}")).is_dir()
        for name in os.listdir(there)
        if name.startswith((".jvmscope-", ".attach_pid"))
    ]


def lenders(inside):
    """Returns our processes that are left in a VM's pid namespace."""
    namespace, left = os.readlink(f"/proc/{inside}/ns/pid"), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/pid") == namespace and int(name) != inside:
                left.append(pathlib.Path(f"/proc/{name}/cmdline").read_text())
        except OSError:
            pass
    return left


def tried(box, row, tmp_path):
    """check and attach agree, twice; the recording contains what ran; nothing is left behind."""
    prefix, cause = ROWS[row][4:]
    pid = box(row)
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    command = [*prefix, lab.copy_for_all(tmp_path / "bin")]
    done = subprocess.run(
        [*command, "check", "--json", str(pid)], capture_output=True, text=True, timeout=60
    )
    found = (
        {c["name"]: (c["verdict"], c["why"]) for c in json.loads(done.stdout)["checks"]}
        if done.stdout
        else {"record": ("no", done.stderr)}
    )
    verdict, why = found["record"]
    assert (verdict == "yes") == (done.returncode == 0) == (cause is None) and (
        cause is None or cause in why
    ), (verdict, why)
    for _ in range(2):  # the second time the agent is there
        attached = subprocess.run(
            [
                *command,
                "attach",
                "--cpu",
                "-i",
                "1ms",
                "-t",
                "200ms",
                "-o",
                out / "x.jfr",
                str(pid),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (attached.returncode == 0) == (cause is None), attached.stderr
        if cause is None:
            assert "Busy.work" in lab.jvmscope("report", out / "x.jfr").stdout
            (out / "x.jfr").unlink()
        else:
            assert (
                len(attached.stderr.splitlines()) == 1 and cause in attached.stderr
            ), attached.stderr
    assert pathlib.Path(f"/proc/{pid}").exists()
    assert (scratch_files(pid), lenders(pid)) == ([], [])
    return found


@pytest.mark.jdks(8, 25)
def test_a_hardened_container_is_recorded(box, jdk, tmp_path):
    """The root folder is read-only and /tmp is noexec, so the VM loads the agent from the memory of
    a process of ours.
    """
    tried(box, "hardened-other-uid", tmp_path)


@pytest.mark.slow
@pytest.mark.jdks(8, 11, 17, 21, 25, 27)
@pytest.mark.parametrize("row", ROWS)
def test_check_and_attach_agree_in_every_namespace(box, jdk, tmp_path, row):
    found = tried(box, row, tmp_path)
    if row == "seccomp":
        assert found["kernel frames"][0] in ("perhaps", "no") and found["kernel frames"][1]
