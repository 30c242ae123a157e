# SPDX-License-Identifier: Apache-2.0
"""How long a monitor was held by a thread that left it and took it again before another one waited
for it.
"""
import functools
import json

import pytest

import lab

N, BETWEEN_MS = 6, 80
NAME = "TakenAgain$Lock"


def threads(verb, path, *args):
    done = lab.jvmscope("threads", verb, "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def recorded(version, what, locks=""):
    """Returns the recording, and the program's four sums in ns."""
    jdk, out = lab.Jdk(version), f"{lab.SCRATCH}/again-{what}-{bool(locks)}-{version}.jfr"
    done = jdk.java(
        "TakenAgain", what, N, BETWEEN_MS, jvm=[jdk.agent(f"threads=y,format=r,file={out}{locks}")]
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return out, *map(int, done.stdout.split())


def share(out):
    return next(row for row in threads("critical-path", out)["locks"] if row["class"] == NAME)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("what", ["sleep", "work"])
def test_work_between_two_sections_is_in_neither(jdk, what):
    """The time for which the owner is in the method a second time does not count as part of the
    same section. The first bound has only those sections for which a thread waited, and the last
    one includes the work in between.
    """
    out, waited, seen, held, most = recorded(jdk.version, what)
    row = share(out)
    assert (
        row["inferred"] and 0.95 * (seen if what == "sleep" else waited) <= row["ns"] <= 1.05 * most
    ), (waited, seen, most, row)
    (answer,) = threads("what-if", out, "--lock", NAME, "--factor", "0")
    least, likely, late = (
        answer["before_ns"] - answer[key]
        for key in ("if_ended_at_once_ns", "after_ns", "if_ended_late_ns")
    )
    assert answer["ends_inferred"], answer
    assert 0.9 * waited <= least <= likely <= 1.05 * most, (least, likely, waited, most)
    assert late >= 0.95 * (waited + N * BETWEEN_MS * 1e6), (late, waited)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("what", ["sleep", "work"])
def test_recorded_sections_are_exact(jdk, what):
    out, _, _, held, most = recorded(jdk.version, what, ",locks=TakenAgain$Lock")
    row = share(out)
    assert row["exact"] and not row["inferred"] and 0.95 * held <= row["ns"] <= 1.05 * most, (
        held,
        most,
        row,
    )
    (answer,) = threads("what-if", out, "--lock", NAME, "--factor", "0")
    assert not answer["ends_inferred"], answer
