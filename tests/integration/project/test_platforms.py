# SPDX-License-Identifier: Apache-2.0
"""doc/platforms.md says what was run where by the names of tests: each exists, and those said to
pass on aarch64 are what check-arm runs.
"""
import os
import re
import subprocess
import sys

import pytest

import lab

# Tests of check-arm that also run without it; make check runs the cheapest one.
FAST = (
    "trace/test_trace.py::test_values_are_readable_without_options",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "unwind/test_walker.py::test_tiny_methods",
            "trace/test_log.py::test_locals_and_fields_at_lines",
        )
    ),
)

# What a test loads from the build in addition to the command and the agent.
PARTS = {
    "unwind/test_walker.py::test_tiny_methods": (
        "tests/agents/libwalktest.so",
        "tests/agents/libwalkjni.so",
    )
}

# Compiled without optimization, which takes a third of the time; check-arm tests what is shipped.
FOLDER = "build-aarch64-quick"

DOCUMENT = (lab.ROOT / "doc" / "platforms.md").read_text()


def defined():
    """The names of all tests, of Python and of C."""
    names = set()
    for path in [*lab.ROOT.glob("tests/**/*.py"), *lab.ROOT.glob("tests/unit/*.c")]:
        names |= {
            a or b
            for a, b in re.findall(
                r"^def (test_\w+)|cmocka_unit_test\w*\(\s*(\w+)", path.read_text(), re.M
            )
        }
    return names | {path.stem for path in lab.ROOT.glob("tests/unit/test_*.c")}


def test_the_tests_of_the_document_exist():
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT))
    assert len(named) > 20 and named <= defined(), sorted(named - defined())


def test_what_passes_on_aarch64_is_run_there():
    """The rows of the section on aarch64 agree with the list in the Makefile."""
    section = DOCUMENT.split("\n## aarch64\n")[1].split("\n## ")[0]
    listed = set(re.findall(r"::(test_\w+)", (lab.ROOT / "Makefile").read_text()))
    named = set(
        re.findall(
            r"`(test_\w+)`",
            "\n".join(line for line in section.splitlines() if line.startswith("|")),
        )
    )
    assert named == listed, (sorted(named - listed), sorted(listed - named))


@pytest.mark.parametrize("name", FAST)
def test_a_selection_runs_on_aarch64(name):
    """Runs the tests of samples, traced values and logpoints that make check-arm also runs, if
    check-arm or a user has set up what they need.
    """
    libraries = lab.FOREIGN.parent / "libraries-aarch64" / ".jvmscope-ready"
    if (
        lab.ARCH
        or not libraries.exists()
        or "17"
        not in subprocess.run(
            [lab.JDKS, "list", "--arch", "aarch64"], capture_output=True, text=True
        ).stdout
    ):
        pytest.skip(
            "JDK 17 for arm64 is not set up (tools/setup cross-aarch64; tools/jdks setup --arch aarch64 17)"
        )
    if not (lab.ROOT / FOLDER / "build.ninja").exists():
        subprocess.run(
            [
                "make",
                "CROSS=aarch64",
                f"BUILD={FOLDER}",
                "MESON_ARGS=-Doptimization=0 -Ddebug=false",
                f"{FOLDER}/build.ninja",
            ],
            cwd=lab.ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=900,
        )
    # Builds only what the test loads, because building everything takes minutes.
    made = subprocess.run(
        ["ninja", "-C", FOLDER, "jvmscope", "libhprof.so", *PARTS.get(name, ())],
        cwd=lab.ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"{lab.ROOT}/tests/integration/{name}",
            "-k",
            "jdk17",
        ],
        cwd=lab.ROOT,
        env={**os.environ, "JVMSCOPE_TEST_ARCH": "aarch64", "JVMSCOPE_TEST_BUILD": FOLDER},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0 and "1 passed, 0 failed, 0 skipped" in done.stdout, done.stdout[
        -4000:
    ]
