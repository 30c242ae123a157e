# SPDX-License-Identifier: Apache-2.0
"""The tarball: its contents run without anything else of the system."""
import os
import re
import shutil
import subprocess
import tarfile

import pytest

import lab
from documents import links_lead_to_files


def made(*arguments, **environment):
    """The tarball that `make dist` makes."""
    done = subprocess.run(
        [lab.ROOT / "tools" / "dist", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return lab.ROOT / done.stdout.split()[-1]


def unpack(tarball, folder):
    with tarfile.open(tarball) as tar:
        tar.extractall(folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    return unpack(made(), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def quickly(tmp_path_factory):
    """The same of what the build that is tested has compiled, because compiling all of it again
    takes a minute. Two files differ in a command that is linked statically.
    """
    tarball = made(
        JVMSCOPE_DIST_OUT=str(tmp_path_factory.mktemp("build")), JVMSCOPE_DIST_FROM=str(lab.BUILD)
    )
    return unpack(tarball, tmp_path_factory.mktemp("quickly"))


either = pytest.mark.parametrize(
    "which", ["quickly", pytest.param("unpacked", marks=pytest.mark.slow)]
)


@either
def test_the_tarball_is_whole(request, which):
    """Programs for this machine, the manual page of each command, documents whose links lead to
    files of the tarball, and the licences of what is linked.
    """
    folder = request.getfixturevalue(which)
    assert folder.name.endswith("-linux-" + os.uname().machine)
    for name in ("jvmscope", "libhprof.so", "libjvmpi.so"):
        assert (folder / name).read_bytes()[18:20] == (lab.BUILD / name).read_bytes()[18:20]
    assert {p.name for p in (folder / "man/man1").iterdir()} == {
        p.name for p in lab.BUILD.glob("*.1")
    }
    assert links_lead_to_files(folder) > 50
    assert {"libc6-dev", "libmicrohttpd-dev"} <= {p.name for p in (folder / "licenses").iterdir()}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The tarball for aarch64, unpacked."""
    if not os.path.exists("/var/cache/jvmscope/libraries-aarch64/.jvmscope-ready"):
        pytest.skip("the libraries of arm64 are missing (tools/setup cross-aarch64)")
    return unpack(made("aarch64"), tmp_path_factory.mktemp("foreign"))


@pytest.mark.slow
def test_the_tarball_for_aarch64(foreign, tmp_path):
    """Made on another architecture, its command needs no file of the system and runs in an
    emulator, where it says the same as the command of this machine.
    """
    folder = foreign
    assert folder.name.endswith("-linux-aarch64")
    for name in ("jvmscope", "libhprof.so", "libjvmpi.so"):
        assert (folder / name).read_bytes()[18:20] == b"\xb7\0", "EM_AARCH64"
    header = subprocess.run(
        ["readelf", "-h", "-d", folder / "jvmscope"], capture_output=True, text=True
    ).stdout
    assert re.search(r"Machine: *AArch64", header) and "NEEDED" not in header, header
    (tmp_path / "a.collapsed").write_text("main;work 5\nmain;rest 7\n")
    report = ["report", "--json", tmp_path / "a.collapsed"]
    done = subprocess.run(
        ["qemu-aarch64", folder / "jvmscope", *report], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == lab.jvmscope(*report).stdout


@pytest.mark.slow
def test_the_tarball_for_aarch64_records(foreign, tmp_path):
    """Its agent in a JDK for arm64, and its command, which reads what the agent recorded."""
    there = subprocess.run(
        [lab.JDKS, "list", "--arch", "aarch64"], capture_output=True, text=True
    ).stdout.split()
    if "17" not in there:
        pytest.skip("JDK 17 for arm64 is missing (tools/jdks setup --arch aarch64 17)")
    out = tmp_path / "busy.jfr"
    java = [lab.JDKS, "run", "--arch", "aarch64", "17", "java"]
    agent = f"-agentpath:{foreign}/libhprof.so=format=r,cpu=samples,file={out}"
    done = subprocess.run(
        [*java, agent, "-cp", lab.compiled("Busy"), "Busy", "5"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = subprocess.run(
        ["qemu-aarch64", foreign / "jvmscope", "report", out],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert report.returncode == 0 and "Busy." in report.stdout, (report.stdout, report.stderr)


@either
def test_the_command_needs_no_file_of_the_system(request, tmp_path, which):
    """In a root folder that contains only the command and its input: no libc, no /proc, no /tmp."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    shutil.copy(request.getfixturevalue(which) / "jvmscope", tmp_path)
    (tmp_path / "a.collapsed").write_text("main;work 5\nmain;rest 7\n")
    inside = ["chroot", tmp_path, "/jvmscope"]
    report = subprocess.run(
        [*inside, "report", "--json", "/a.collapsed"], capture_output=True, text=True
    )
    assert (report.returncode, report.stderr) == (0, "")
    assert report.stdout == lab.jvmscope(
        "report", "--json", tmp_path / "a.collapsed"
    ).stdout.replace(str(tmp_path), "")
    written = subprocess.run(
        [*inside, "convert", "-o", "/x.html", "/a.collapsed"], capture_output=True, text=True
    )
    assert written.returncode == 0, written.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.collapsed", "jvmscope", "x.html"]


@pytest.mark.slow
@pytest.mark.jdks(8, 17, 27)
def test_the_tarball_records(unpacked, jdk, tmp_path):
    """On another distribution (the JDKs' chroot), from where it was unpacked."""
    out = unpacked.parent / f"busy-{jdk.version}.jfr"
    done = jdk.run(
        unpacked / "jvmscope",
        "run",
        "--cpu",
        "-o",
        out,
        "java",
        "-cp",
        lab.compiled("Busy"),
        "Busy",
        "1",
    )
    assert done.returncode == 0, done.stderr
    report = subprocess.run([unpacked / "jvmscope", "report", out], capture_output=True, text=True)
    assert "Busy." in report.stdout


@pytest.mark.slow
@pytest.mark.parametrize("fixture, arch", [("unpacked", []), ("foreign", ["aarch64"])])
def test_two_builds_are_the_same_to_the_byte(request, tmp_path, fixture, arch):
    """A second build, from a copy of the sources elsewhere, is identical."""
    request.getfixturevalue(fixture)
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", lab.ROOT, copy], check=True)
    again = subprocess.run(
        [copy / "tools" / "dist", *arch], capture_output=True, text=True, timeout=1800
    )
    assert again.returncode == 0, again.stderr[-2000:]
    first = next((lab.ROOT / "-".join(["build-dist", *arch])).glob("*.tar.gz"))
    assert first.read_bytes() == (copy / again.stdout.split()[-1]).read_bytes()
