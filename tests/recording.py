# SPDX-License-Identifier: Apache-2.0
"""The contents of a recording, as tests/unit/jfr_dump and the headers of its chunks show them."""
import struct
import subprocess

import lab

JFR_DUMP = lab.BUILD / "tests" / "unit" / "jfr_dump"


def dump(*args):
    """The lines that jfr_dump prints."""
    done = subprocess.run([JFR_DUMP, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def totals(path):
    """The number of events by type, and the other lines."""
    return {line.split()[0]: line.split(" ", 1)[1] for line in dump(path)}


def events(path, *types, get=None):
    """A line for each event of the types, or its fields with these paths."""
    return dump(*([f"--get={get}"] if get else []), path, *types)


def window(path):
    """Returns when a recording begins and ends, in ns since 1970, according to the headers of its
    chunks.
    """
    data, at, start, end = path.read_bytes(), 0, None, 0
    while at < len(data):
        assert data[at : at + 4] == b"FLR\0"
        size, _, _, begun, lasts = struct.unpack(">5q", data[at + 8 : at + 48])
        start, end, at = start or begun, max(end, begun + lasts), at + size
    return start, end
