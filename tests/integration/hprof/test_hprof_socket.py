# SPDX-License-Identifier: Apache-2.0
"""net=: the commands of the specification over the socket, in any order and in pieces; a front end
that stalls or dies.
"""
import socket
import struct
import time

import pytest

import hproftext
import lab
from hprof_front_end import FrontEnd


@pytest.mark.jdks(8, 17, 27, slow=(11, 21, 25))
def test_every_command(jdk):
    f = FrontEnd(jdk, "format=b,cpu=samples,depth=2")
    f.send(1)

    def spins():
        return any(
            f.stream.traces[t][:1] and f.stream.traces[t][0][1] == "spin" for _, t in f.samples()[1]
        )

    lab.wait_for(spins, 60, "the end of the program's start")
    f.send(8, struct.pack(">H", 5))  # what the start took
    total, rows = f.samples(100)
    assert rows[0][0] > total * 0.8
    assert f.stream.traces[rows[0][1]][0][:2] == ("Serves", "spin")
    assert len(f.stream.traces[rows[0][1]]) == 2
    # Two commands in one piece, one byte by byte.
    known = len(f.stream.samples)
    f.socket.sendall(struct.pack(">BII", 2, 3, 0) * 2)
    for byte in struct.pack(">BIIHf", 7, 4, 6, 0, 0.5):
        f.socket.sendall(bytes([byte]))
    f.wait(lambda s: len(s.dumps) == 2 and len(s.samples) == known + 1)
    assert all(count >= 0.5 * f.stream.samples[-1][0] for count, _ in f.stream.samples[-1][1])
    f.send(6)
    f.send(8, struct.pack(">HH", 6, 1))
    f.wait(lambda s: s.settings[-1] == (2, 1))
    before, known = f.samples()[0], len(f.stream.samples)
    f.socket.sendall(struct.pack(">BIIH", 8, 1, 2, 5) + struct.pack(">BIIHf", 7, 1, 6, 0, 0.0))
    f.wait(lambda s: len(s.samples) > known)
    assert f.stream.samples[-1][0] < before, "cleared"
    _, rows = f.samples()
    assert all(len(f.stream.traces[t]) <= 1 for _, t in rows), "the new depth holds"
    # Off for main alone, then on again.
    main = next(obj for name, obj in f.stream.threads.values() if name == "main")
    f.send(8, struct.pack(">HQ", 4, main))
    f.send(8, struct.pack(">H", 5))
    time.sleep(0.3)
    _, rows = f.samples(0)
    assert not any(f.stream.traces[t][:1] and f.stream.traces[t][0][1] == "spin" for _, t in rows)
    f.send(8, struct.pack(">HQ", 3, 0))
    f.samples(5)
    f.send(77, b"abc")
    f.send(3, b"\xff")
    f.send(2, b"x" * 5000)
    f.send(0xFF)
    known = len(f.stream.samples)
    time.sleep(0.2)
    f.send(2)
    f.end()
    assert len(f.stream.samples) == known + 1, "the dump at exit still comes"
    assert len(f.stream.dumps) == 2, "nothing is obeyed behind EOF, nor what is malformed"
    assert f.stream.data == b"", "the stream is whole"


@pytest.mark.jdks(8, 25)
def test_exit_command(jdk):
    f = FrontEnd(jdk, "format=b,cpu=samples")
    f.send(5)
    assert f.process.wait(timeout=30) == 0
    f.reader.join(10)
    f.take()
    assert f.stream.samples and f.stream.data == b""


@pytest.mark.jdks(8, 17, 27)
def test_many_dumps_then_exit(jdk):
    f = FrontEnd(jdk, "format=b,heap=dump")
    for _ in range(14):
        f.send(2)
    f.wait(lambda s: len(s.dumps) == 14, 60)
    f.end()
    assert len(f.stream.dumps) == 15
    serves = {n for d in f.stream.dumps for n in d.values()}
    assert 300 in serves


@pytest.mark.jdks(8, 25)
def test_text_over_the_socket(jdk, tmp_path):
    f = FrontEnd(jdk, "cpu=samples,monitor=y")
    f.send(7, struct.pack(">Hf", 0, 0.0))
    time.sleep(0.5)
    f.process.stdin.write("x")
    f.process.stdin.close()
    assert f.process.wait(timeout=30) == 0
    f.reader.join(10)
    (tmp_path / "x.txt").write_bytes(b"".join(f.pieces))
    text = hproftext.Text(tmp_path / "x.txt")
    assert len(text.ranked["CPU SAMPLES"]) == 2 and len(text.monitor_dumps) == 1


@pytest.mark.jdks(8, 17, 27)
def test_a_front_end_that_stalls_does_not_stop_the_program(jdk):
    f = FrontEnd(jdk, "format=b,heap=dump", read=False)
    for _ in range(12):
        f.send(2)
    time.sleep(4)
    begin = time.time()
    err = f.end()
    assert time.time() - begin < 15
    assert "bytes were lost" in err


@pytest.mark.jdks(8, 27)
def test_a_front_end_that_dies(jdk):
    f = FrontEnd(jdk, "format=b,heap=dump,cpu=samples")
    f.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    f.socket.close()
    time.sleep(0.5)
    f.end()


@pytest.mark.jdks(8, 27)
def test_nobody_listens(jdk):
    done = jdk.java("Exits", "3", jvm=[jdk.agent("net=127.0.0.1:1")])
    assert done.returncode == 1 and "cannot connect" in done.stderr and done.stdout == ""
    assert jdk.java("Exits", "3", jvm=[jdk.agent("net=nowhere")]).returncode == 1
