# SPDX-License-Identifier: Apache-2.0
"""Reading CPU TIME sections for the tests of cpu=times."""
import re


def traces(text):
    """{serial: [method, ...]}, the running method first."""
    found = {}
    for block in re.finditer(r"^TRACE (\d+):.*\n((?:\t.*\n)*)", text, re.M):
        found[int(block[1])] = [re.sub(r"\(.*", "", line.strip()) for line in block[2].splitlines()]
    return found


def rows(text):
    """Returns [(self percent, count, [method, ...])] of the last section."""
    section = text[text.rindex("CPU TIME (ms) BEGIN"):text.rindex("CPU TIME (ms) END")]
    by = traces(text)
    return [(float(m[2]), int(m[3]), by[int(m[4])])
            for m in re.finditer(r"^\s*(\d+)\s+(-?[\d.]+)%\s+-?[\d.]+%\s+(\d+)\s+(\d+) (.*)$", section, re.M)]


def calls(text, prefix):
    """Returns {(method, caller ...): count} for the traces whose running method begins with the prefix."""
    out = {}
    for _, count, frames in rows(text):
        if frames and frames[0].startswith(prefix):
            out[tuple(frames)] = out.get(tuple(frames), 0) + count
    return out
