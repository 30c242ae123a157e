# SPDX-License-Identifier: Apache-2.0
"""Bodies and clients that would exhaust a collector: it refuses them with a reason, continues, and
uses less than 512 MB.
"""
import contextlib
import gzip
import http.client
import os
import signal
import socket
import sqlite3
import threading
import time

import lab

import pytest

from fleet_lab import (
    NOW,
    Collector,
    children_of,
    collector,
    field,
    peak_mb,
    pprof,
    stacks,
    total,
    varint,
)

MILLION = 1_000_000


def number(n, value):
    """A field of protobuf that holds a number."""
    return varint(n << 3) + varint(value)


def resources(first, n):
    """An OTLP message with this many resources, each with a sample and a different value of the
    label `user`.
    """
    texts = [b"", b"samples", b"count", b"Main.main"]
    dictionary = b"".join(field(k, b"") for k in (1, 2, 3, 4, 6, 7)) + b"".join(
        field(5, t) for t in texts
    )
    dictionary += (
        field(3, number(1, 3)) + field(2, field(3, number(1, 1))) + field(7, field(1, varint(1)))
    )

    def attribute(key, value):
        return field(1, field(1, key) + field(2, field(1, value)))

    profile = field(
        2,
        field(1, number(1, 1) + number(2, 2))
        + field(2, number(1, 1) + field(4, varint(1)))
        + b"\x19"
        + (NOW * 10**9).to_bytes(8, "little"),
    )
    service = attribute(b"service.name", b"s")
    rest = field(2, profile)
    return b"".join(
        field(1, field(1, service + attribute(b"user", b"u%d" % i)) + rest)
        for i in range(first, first + n)
    ) + field(2, dictionary)


def push(n):
    """A message of Pyroscope's Push with this many series, each with a different value of the label
    `user`.
    """
    sample = field(2, field(1, pprof("cpu", "nanoseconds", main_work=10**7)))

    def label(key, value):
        return field(1, field(1, key) + field(2, value))

    service = label(b"service_name", b"s")
    return b"".join(field(1, service + label(b"user", b"u%d" % i) + sample) for i in range(n))


def deep_pprof(frames):
    """A pprof profile whose only stack has this many different frames."""
    texts = [b"", b"cpu", b"nanoseconds", *(b"F.f%d" % i for i in range(frames))]
    return (
        field(1, number(1, 1) + number(2, 2))
        + field(2, field(1, b"".join(varint(i + 1) for i in range(frames))) + field(2, varint(7)))
        + b"".join(
            field(4, number(1, i + 1) + field(4, number(1, i + 1)))
            + field(5, number(1, i + 1) + number(2, i + 3))
            for i in range(frames)
        )
        + b"".join(field(6, t) for t in texts)
    )


def deep_otlp(frames):
    """The same as an OTLP message."""
    texts = [b"", b"samples", b"count", *(b"F.f%d" % i for i in range(frames))]
    dictionary = b"".join(field(k, b"") for k in (1, 2, 3, 4, 6, 7)) + b"".join(
        field(5, t) for t in texts
    )
    dictionary += b"".join(
        field(3, number(1, i + 3)) + field(2, field(3, number(1, i + 1))) for i in range(frames)
    )
    dictionary += field(7, field(1, b"".join(varint(i + 1) for i in range(frames))))
    profile = field(1, number(1, 1) + number(2, 2)) + field(2, number(1, 1) + field(4, varint(7)))
    return field(
        1,
        field(1, field(1, field(1, b"service.name") + field(2, field(1, b"s"))))
        + field(2, field(2, profile)),
    ) + field(2, dictionary)


def whole_mb(pid):
    """The memory of a process and of those that it has started, counting shared pages once."""
    kilobytes = 0
    for p in [pid, *children_of(pid)]:
        with contextlib.suppress(OSError, StopIteration):
            kilobytes += int(
                next(
                    line for line in open(f"/proc/{p}/smaps_rollup") if line.startswith("Pss:")
                ).split()[1]
            )
    return kilobytes / 1024


@contextlib.contextmanager
def watched(c):
    """Checks that the collector and the processes that read for it stay below 512 MB together."""
    most, done = [], threading.Event()

    def watch():
        while not done.wait(0.02):
            most.append(whole_mb(c.process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert most and max(most) < 512 and peak_mb(c.process.pid) < 512, max(most)


def post(c, kind, body):
    path, headers, query = {
        "otlp": ("/v1development/profiles", {"Content-Type": "application/x-protobuf"}, {}),
        "push": ("/push.v1.PusherService/Push", {"Content-Type": "application/proto"}, {}),
        "upload": ("/v1/upload", {}, {"service": "s", "from": NOW}),
    }[kind]
    status, text, _ = c.request(
        "POST", path, gzip.compress(body, 1), {**headers, "Content-Encoding": "gzip"}, **query
    )
    return status, text.strip()


BODIES = {
    "labels by OTLP": ("otlp", lambda: resources(0, MILLION), "too many profiles"),
    "labels by Push": ("push", lambda: push(MILLION), "too many profiles"),
    "frames in pprof": ("upload", lambda: deep_pprof(MILLION), "more than 192 MB"),
    "frames in OTLP": ("otlp", lambda: deep_otlp(MILLION), "too many entries"),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_body_with_a_million_is_refused(tmp_path, what):
    kind, make, why = BODIES[what]
    with collector(tmp_path) as c:
        with watched(c):
            status, text = post(c, kind, make())
            assert status == 413 and why in text and len(text.splitlines()) == 1, text
            assert total(c) == 0
            assert c.send(stacks(a=3), service="s", **{"from": NOW})["samples"] == 3


def test_new_label_values_without_end_are_contained(tmp_path):
    """Each body is within the limits, but the store is close to --max-series already. Whole bodies
    are accepted as long as there is room, and known series continue.
    """
    each, known = 200, 99_200
    with collector(tmp_path) as c:
        c.send(stacks(a=1), service="s", **{"from": NOW})
    with sqlite3.connect(tmp_path / "fleet.db") as db:
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) INSERT INTO series "
            "SELECT i, randomblob(16), tenant, service, version, host, 'i' || i, seen FROM series, n WHERE id = 1",
            (known,),
        )
        db.execute("INSERT INTO label SELECT id, 'user', 'old' || id FROM series WHERE id > 1")
    db.close()
    with collector(tmp_path) as c:
        with watched(c):
            answers = [
                post(c, "otlp", resources(first, each)) for first in range(0, 12 * each, each)
            ]
            assert [status for status, _ in answers] == [200] * 4 + [413] * 8
            assert all("--max-series" in text for status, text in answers if status == 413)
            assert total(c) == 4 * each + 1
            assert post(c, "otlp", resources(7, 5))[0] == 200
            for verb in ("top", "services", "flame"):
                assert c.request("GET", f"/v1/fleet/{verb}")[0] == 200
        assert total(c) == 4 * each + 6 and total(c, "--label", "user=u9") == 2


def test_readers_that_do_not_read_keep_nobody_out(tmp_path):
    """Clients that do not read answers of a megabyte."""
    with collector(tmp_path) as c:
        c.send(
            "".join(f"App.main;{'x' * 500}.f{i} 1\n" for i in range(4000)),
            service="s",
            **{"from": NOW},
        )
        with watched(c), contextlib.ExitStack() as open_ones:
            for _ in range(100):
                s = open_ones.enter_context(socket.create_connection(("127.0.0.1", c.port)))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                with contextlib.suppress(OSError):
                    s.sendall(b"GET /v1/fleet/flame HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            for i in range(20):
                c.send(stacks(a=1), service="t", id=str(i), **{"from": NOW})
            assert len(c.request("GET", "/v1/fleet/flame")[1]) > 2 * 1000 * 1000
        assert total(c, "--service", "t") == 20


def open_files(pid):
    """What a process has open, except for its standard streams."""
    files = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if int(fd) > 2:
                files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return files


def is_alive(pid):
    with contextlib.suppress(OSError):
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def test_readers_end_with_a_collector_that_is_killed(tmp_path):
    """They have nothing of the collector's open, least of all the port, which is free at once, and
    not one of them waits for a reader of its result.
    """
    body = "".join(f"App.main;{'x' * 500}.f{i} 1\n" for i in range(40000))
    c = Collector(tmp_path)
    senders = [
        threading.Thread(target=post_and_lose, args=(c, body, str(i)), daemon=True)
        for i in range(2)
    ]
    for s in senders:
        s.start()
    readers = set()

    def one_has_little_open():
        readers.update(children_of(c.process.pid))
        return any(
            len(files) == 2 and sum(f.startswith("pipe:") for f in files) == 1
            for files in map(open_files, readers)
        )

    try:
        lab.wait_for(one_has_little_open, 30, "a reader with two descriptors")
        readers.update(children_of(c.process.pid))
        c.kill()
        lab.wait_for(lambda: not any(is_alive(p) for p in readers), 30, "the readers' end")
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", c.port))
            again.listen()
    finally:
        for p in filter(is_alive, readers):
            os.kill(p, signal.SIGKILL)
    for s in senders:
        s.join()


def post_and_lose(c, body, name):
    with contextlib.suppress(OSError, http.client.HTTPException):
        c.send(body, service="s", id=name, **{"from": NOW})
