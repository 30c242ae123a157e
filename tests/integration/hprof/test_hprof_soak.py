# SPDX-License-Identifier: Apache-2.0
"""Random commands, dumps and SIGQUITs for a while (SOAK_SECONDS, ten minutes; a short round in make
check), while classes are unloaded and threads start and end: nothing crashes, leaks or is lost, and
the program's results are correct.
"""
import os
import random
import signal
import struct
import time

import pytest

from hprof_front_end import FrontEnd


def resident(pid):
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * 4096


def soak(jdk, seconds, heap="sites", dumps=3):
    f = FrontEnd(jdk, f"format=b,heap={heap},cpu=samples", arguments=["churn"])
    f.drain()
    chance = random.Random(1)
    bodies = [
        (1, b""),
        (2, b""),
        (4, b""),
        (6, b""),
        (7, struct.pack(">Hf", 0, 0.0)),
        (7, struct.pack(">Hf", 0, 0.3)),
        (8, struct.pack(">HQ", 3, 0)),
        (8, struct.pack(">HQ", 4, 0x50000001)),
        (8, struct.pack(">H", 5)),
        (99, b"unknown"),
        (3, b"x"),
        (8, struct.pack(">HQ", 9, 0)),
    ]
    bodies += [(3, struct.pack(">Hf", flags, 0.01)) for flags in range(8)]
    bodies += [(8, struct.pack(">HH", 6, depth)) for depth in (0, 1, 4, 64)]
    pid, end, sent, early = f.process.pid, time.time() + seconds, 0, None
    for _ in range(dumps):
        f.send(2)
    f.wait(lambda s: len(s.dumps) == dumps, 120)
    threads = len(os.listdir(f"/proc/{pid}/task"))
    while time.time() < end or sent < 40:
        tag, body = chance.choice(bodies)
        if tag == 2:
            dumps += 1
        data = struct.pack(">BII", tag, sent, len(body)) + body
        cut = chance.randrange(len(data) + 1)
        f.socket.sendall(data[:cut])
        f.socket.sendall(data[cut:])
        sent += 1
        if sent % 10 == 0:
            f.process.send_signal(signal.SIGQUIT)
        if sent % 20 == 0:
            known = dumps
            f.wait(lambda s: len(s.dumps) >= known, 120)
            assert f.process.poll() is None
            early = early or resident(pid)
    known = len(f.stream.samples)
    f.send(7, struct.pack(">Hf", 0, 0.0))
    f.wait(lambda s: len(s.samples) > known, 120)
    grown, left = resident(pid) - early, len(os.listdir(f"/proc/{pid}/task")) - threads
    err = f.end_drained()
    assert "lost" not in err
    assert len(f.stream.dumps) >= dumps and f.stream.data == b""
    assert grown < 96 << 20 and left < 8, (grown, left)
    return sent


@pytest.mark.jdks(8, 25)
def test_a_short_round(jdk):
    assert soak(jdk, 8) > 20


@pytest.mark.jdks(17)
def test_a_short_round_with_traces_of_objects(jdk):
    assert soak(jdk, 5, "all") > 10


@pytest.mark.soak
@pytest.mark.parametrize("heap", ["sites", "all"])
def test_soak(jdk, heap):
    assert soak(jdk, float(os.environ.get("SOAK_SECONDS", "600")) / 12, heap, dumps=50) >= 40
