# SPDX-License-Identifier: Apache-2.0
"""The tarball: its contents run without anything else of the system."""
import os
import shutil
import subprocess
import tarfile

import pytest

import lab


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    made = subprocess.run(
        [lab.ROOT / "tools" / "dist"], capture_output=True, text=True, timeout=900
    )
    assert made.returncode == 0, made.stderr[-2000:]
    folder = tmp_path_factory.mktemp("dist")
    with tarfile.open(lab.ROOT / made.stdout.split()[-1]) as tar:
        tar.extractall(folder)
    return next(folder.iterdir())


def static(folder):
    """The command of the tarball alone, without the optimizations that take most of the time that
    the tarball takes to build.
    """
    subprocess.run(
        [
            "meson",
            "setup",
            folder,
            "-Dstatic=true",
            "-Dtests=false",
            "-Doptimization=0",
            "-Ddebug=false",
        ],
        cwd=lab.ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["ninja", "-C", folder, "--quiet", "jvmscope"], check=True)
    return folder


@pytest.mark.parametrize("which", ["static", pytest.param("tarball", marks=pytest.mark.slow)])
def test_the_command_needs_no_file_of_the_system(request, tmp_path_factory, tmp_path, which):
    """In a root folder that contains only the command and its input: no libc, no /proc, no /tmp."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    shutil.copy(
        (
            static(tmp_path_factory.mktemp("static"))
            if which == "static"
            else request.getfixturevalue("unpacked")
        )
        / "jvmscope",
        tmp_path,
    )
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
def test_two_builds_are_the_same_to_the_byte(unpacked, tmp_path):
    """A second build, from a copy of the sources elsewhere, is identical."""
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", lab.ROOT, copy], check=True)
    made = subprocess.run([copy / "tools" / "dist"], capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, made.stderr[-2000:]
    first = next((lab.ROOT / "build-dist").glob("*.tar.gz"))
    assert first.read_bytes() == (copy / made.stdout.split()[-1]).read_bytes()
