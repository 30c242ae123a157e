# SPDX-License-Identifier: Apache-2.0
"""doc/platforms.md says what was run where by the names of tests: each exists, and those said to pass on aarch64 are what
check-arm runs."""
import re

import lab

DOCUMENT = (lab.ROOT / "doc" / "platforms.md").read_text()


def defined():
    """The names of all tests, of Python and of C."""
    names = set()
    for path in [*lab.ROOT.glob("tests/**/*.py"), *lab.ROOT.glob("tests/unit/*.c")]:
        names |= {a or b for a, b in re.findall(r"^def (test_\w+)|cmocka_unit_test\w*\(\s*(\w+)", path.read_text(), re.M)}
    return names | {path.stem for path in lab.ROOT.glob("tests/unit/test_*.c")}


def test_the_tests_of_the_document_exist():
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT))
    assert len(named) > 20 and named <= defined(), sorted(named - defined())


def test_what_passes_on_aarch64_is_run_there():
    """The rows of the section on aarch64 agree with the list in the Makefile."""
    section = DOCUMENT.split("\n## aarch64\n")[1].split("\n## ")[0]
    listed = set(re.findall(r"::(test_\w+)", (lab.ROOT / "Makefile").read_text()))
    named = set(re.findall(r"`(test_\w+)`", "\n".join(line for line in section.splitlines() if line.startswith("|"))))
    assert named == listed, (sorted(named - listed), sorted(listed - named))
