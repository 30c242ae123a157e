# SPDX-License-Identifier: Apache-2.0
"""Data that threads and signal handlers share without locks, under a memory model with less
ordering than x86-64's.
"""
import pathlib
import subprocess

import pytest

import lab

RELACY = pathlib.Path("/usr/include/relacy/relacy.hpp")


@pytest.fixture
def model(tmp_path):
    """Runs a program of tests/litmus under relacy, which explores C's memory model."""
    if not RELACY.exists():
        pytest.skip("relacy is missing (package relacy-dev; tools/setup check)")

    def run(name, *flags):
        subprocess.run(
            [
                "g++",
                "-O0",
                "-w",
                "-std=gnu++17",
                *flags,
                f"-I{lab.ROOT}/src",
                "-o",
                tmp_path / name,
                lab.ROOT / f"tests/litmus/{name}.cc",
            ],
            check=True,
        )
        return subprocess.run([tmp_path / name], capture_output=True, text=True, timeout=300)

    return run


def test_seqlocks_hold_under_the_memory_model(model):
    done = model("seqlock")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "passed"), done.stdout


@pytest.mark.slow
def test_the_model_finds_a_missing_fence(model):
    """Without the writer's fence, which x86-64 does not need, a reader takes half an entry for a
    whole one.
    """
    done = model("seqlock", "-DWITHOUT_FENCE")
    assert done.returncode == 1 and "USER ASSERT FAILED" in done.stdout, done.stdout


@pytest.mark.slow
def test_rings_and_blocks_under_thread_sanitizer(tmp_path):
    """The unit programs in which many threads record into one ring, one block, or one file."""
    programs = ["test_ring", "test_jfr", "test_jfr_ring"]
    subprocess.run(
        ["meson", "setup", tmp_path / "build", "-Db_sanitize=thread", "-Db_lundef=false"],
        cwd=lab.ROOT,
        env={**lab.os.environ, "CC": "clang"},
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["ninja", "-C", tmp_path / "build", *(f"tests/unit/{name}" for name in programs)],
        check=True,
        capture_output=True,
        timeout=1200,
    )
    for name in programs:
        done = subprocess.run(
            [tmp_path / "build/tests/unit" / name],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=lab.ROOT,
        )
        assert done.returncode == 0 and "ThreadSanitizer" not in done.stderr, done.stderr[:4000]
