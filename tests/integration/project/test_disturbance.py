# SPDX-License-Identifier: Apache-2.0
"""The measurement of what other programs take while the tests run (tests/disturbance.py)."""
import os
import re
import subprocess
import sys

import pytest

import conftest
import disturbance
import lab
from disturbance import Process

FAILS_ONCE = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range(%d))
def test_fails_once(number):
    runs = pathlib.Path(__file__).with_name(f"runs{number}")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) > 1
"""
FAILS = """
import time

def test_fails():
    time.sleep(7)
    assert False
"""


def test_ours_are_all_that_a_process_has_started():
    """Processes whose parent has ended in the meantime belong to ours, and one that has got the id
    of an ended one does not.
    """
    first = {
        1: Process(1, 0, 5, 0),
        10: Process(2, 1, 5, 0),
        7: Process(9, 11, 1, 0),  # the ids have begun anew
        11: Process(3, 10, 1, 0),
        20: Process(2, 1, 9, 9),
    }
    mine = disturbance.ours(10, first)
    assert set(mine) == {10, 11, 7}
    later = {**first, 7: Process(9, 1, 4, 0), 21: Process(20, 1, 3, 0)}
    del later[11]
    assert set(disturbance.ours(10, later, mine)) == {10, 7}
    later[11] = Process(30, 1, 3, 0)
    assert set(disturbance.ours(10, later, mine)) == {10, 7}


def test_files_that_are_left_are_known_by_a_process_id_and_nothing_else():
    """The time of another run's ring and the digits of a random name were taken for ids."""
    for name, numbers in {
        "jvmscope-11378-20261130-003057.ring": {11378},
        ".jvmscope-2639cdd8cf793b1e": set(),
        ".jvmscope-0000000000006752.jfr": set(),
        ".jvmscope-reply-712-1": {712, 1},
        "hs_err_pid4711.log": {4711},
        "java_pid99.hprof": {99},
    }.items():
        assert conftest.numbers_in(name) == numbers, name


def test_time_of_children_counts_once():
    before = {10: Process(2, 1, 5, 0), 11: Process(3, 10, 40, 2)}
    runs = {10: Process(2, 1, 6, 0), 11: Process(3, 10, 45, 2)}
    waited_for = {10: Process(2, 1, 6, 47)}
    another = {10: Process(2, 1, 5, 0), 11: Process(90, 10, 4, 0)}
    assert disturbance.used(before, runs) == 6
    assert disturbance.used(runs, waited_for) == 0
    assert disturbance.used(before, {**waited_for, 12: Process(50, 10, 7, 1)}) == 6 + 8
    assert disturbance.used({10: before[10]}, {10: Process(2, 1, 5, 30)}) == 30, "between two calls"
    assert disturbance.used(before, {**another, 10: Process(2, 1, 5, 42)}) == 4


def test_ticks_include_what_the_host_gave_to_others():
    assert disturbance.all_ticks("cpu  1 2 3 100 50 4 5 6 7 8\ncpu0 1 1 1\n") == (21, 171)


def test_shares_are_those_of_the_time_asked_for():
    others = disturbance.Others()
    others.measured = [(0, 2, 0.5), (2, 4, 0.1), (4, 6, 0.0)]
    assert others.share(0, 2) == 0.5
    assert round(others.share(1, 4), 6) == round((0.5 + 0.2) / 3, 6)
    assert others.share(5, 60) == 0 and others.share(7, 8) is None


def run_a_test(folder, *options):
    """Runs the test in a folder as `make check` runs all of them."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest"]
        + [*options, "--run-again", "test_one.py"],
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")},
            "PYTHONPATH": f"{lab.ROOT}/tests:{folder}",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "share, tests, again",
    [("0.1", 3, True), ("0.09", 2, True), ("0.09", 3, False), ("None", 3, False)],
)
def test_what_nothing_has_disturbed_passes_twice_at_most(share, tests, again, tmp_path):
    """On a machine that does nothing else, and where that is not known, a run in which more than
    two tests fail has failed, even if they pass when they are run again.
    """
    (tmp_path / "test_one.py").write_text(FAILS_ONCE % tests)
    (tmp_path / "others.py").write_text(
        f"import disturbance\ndisturbance.Others.share = lambda self, begin, end: {share}\n"
    )
    done = run_a_test(tmp_path, "-n", "0", "-p", "others")
    for number in range(tests):
        runs = (tmp_path / f"runs{number}").read_text()
        assert runs == "x" * (4 if again else 1), done.stdout + done.stderr
    last = (
        f"{tests} passed, 0 failed, 0 skipped, {tests} of the passed only when run again\n"
        if again
        else f"0 passed, {tests} failed, 0 skipped\n"
    )
    assert done.returncode == (not again) and done.stdout.endswith(last), done


def test_a_failure_is_reported_with_what_other_programs_took(tmp_path):
    """Programs that never wait run at the same time, one for each processor and one more. The test
    fails whenever it is run, so it is one of those that fail.
    """
    (tmp_path / "test_one.py").write_text(FAILS)
    loops = [
        subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() + 1)
    ]
    try:
        done = run_a_test(tmp_path, "-n", "1")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    line = r"^FAILED \S*test_one.py::test_fails, while other programs took (\d+)% of the processors' time$"
    found = re.findall(line, done.stdout, re.M)
    assert len(found) == 1 and int(found[0]) >= 10, done.stdout + done.stderr
    assert done.returncode == 1 and done.stdout.endswith("0 passed, 1 failed, 0 skipped\n")
