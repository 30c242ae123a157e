# SPDX-License-Identifier: Apache-2.0
"""doc/format.md describes every event that the sources declare, field by field."""
import re

import lab

DOC = (lab.ROOT / "doc" / "format.md").read_text()


def declared():
    """(event, field names) of every jvmscope.* row in the sources."""
    for source in sorted((lab.ROOT / "src").rglob("*.c")):
        text = source.read_text()
        starts = list(
            re.finditer(r'\{\s*\.name = "(jvmscope\.\w+)"|EVENT\(\w+, "(jvmscope\.\w+)"', text)
        )
        for start in starts:
            depth, end = (
                1,
                start.start() + text[start.start() :].index("{" if start[1] else "(") + 1,
            )
            while depth:  # to the end of the row
                depth += text[end] in "{("
                depth -= text[end] in "})"
                end += 1
            row = text[start.end() : end]
            yield start[1] or start[2], re.findall(r'\{"(\w+)", "[^"]+", ', row)


def test_every_event_and_field_is_described():
    rows = dict(declared())
    assert len(rows) >= 6 and rows["jvmscope.Lost"] == [
        "capture",
        "what",
        "reason",
        "amount",
        "total",
        "of",
    ]
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", DOC, re.M | re.S))
    assert sorted(sections) == sorted(rows), "sections of doc/format.md and rows in src"
    for name, fields in rows.items():
        for field in fields:
            assert f"`{field}`" in sections[name], f"{name}.{field}"
