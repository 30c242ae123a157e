# SPDX-License-Identifier: Apache-2.0
"""What the program tests/java/Amounts.java does, according to its source."""
import re

import lab

SOURCE = (lab.ROOT / "tests" / "java" / "Amounts.java").read_text()
CALLS, THROWS, OBJECTS, BYTES, HOLD_MS = map(
    int,
    re.search(
        r"CALLS = (\S+), THROWS = (\S+), OBJECTS = (\S+), BYTES = (\S+), HOLD_MS = (\w+)",
        SOURCE.replace("_000", "000"),
    ).groups(),
)


def line(text):
    """The number of the line that ends with this comment."""
    return SOURCE[: SOURCE.index("// " + text)].count("\n") + 1
