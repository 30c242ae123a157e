# SPDX-License-Identifier: Apache-2.0
"""Collectors for tests, uploads to them, and queries of their stores."""
import contextlib
import http.client
import json
import pathlib
import subprocess
import time
import urllib.parse

import lab

NOW = int(time.time()) // 3600 * 3600


class Collector:
    """A collector on a free port of 127.0.0.1."""

    def __init__(self, folder, *options, store=None):
        self.store = store or f"sqlite:{folder / 'fleet.db'}"
        self.process = subprocess.Popen(
            [
                lab.BUILD / "jvmscope",
                "collect",
                "--store",
                self.store,
                "--listen",
                "127.0.0.1:0",
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.port = urllib.parse.urlsplit(line.strip()).port

    def request(self, method, path, body=None, headers=None, **query):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        labels = query.pop("labels", {})
        pairs = [*query.items(), *(("label", f"{k}={v}") for k, v in labels.items())]
        connection.request(
            method,
            path + ("?" + urllib.parse.urlencode(pairs) if pairs else ""),
            body,
            headers or {},
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, answer.headers

    def ask_bytes(self, path, body):
        """Posts a protobuf message. Returns the status, the answer's bytes and its headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, body, {"Content-Type": "application/proto"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, answer.headers

    def send(self, body, status=200, headers=None, **query):
        got, text, answer_headers = self.request("POST", "/v1/upload", body, headers, **query)
        assert got == status, (got, text)
        return json.loads(text) if got == 200 else (text, answer_headers)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        out, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and not errors, (self.process.returncode, errors)

    def kill(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def collector(folder, *options, store=None):
    c = Collector(folder, *options, store=store)
    try:
        yield c
        c.stop()
    finally:
        if c.process.poll() is None:
            c.kill()


def fleet(c, verb, *options):
    """Returns the answer of `jvmscope fleet`, read from the store itself. An empty answer must say
    why it is empty, and its status is 1.
    """
    store = c.store if isinstance(c, Collector) else c
    done = lab.jvmscope("fleet", verb, "--json", "--store", store, *options)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    nothing = answer.get("nothing")
    assert (done.returncode, done.stderr) == (
        (1, f"jvmscope: fleet: {nothing}\n") if nothing else (0, "")
    ), done.stderr
    return answer


def total(c, *options):
    answer = fleet(c, "top", *options)
    return (
        answer["cpu_samples"]
        if "methods" in answer
        else sum(s["cpu_samples"] for s in answer["services"])
    )


def stacks(**counts):
    """Collapsed stacks: `main_work=5` is five samples of Main.main;Main.work."""
    return "".join(
        ";".join(f"Main.{f}" for f in path.split("_")) + f" {n}\n" for path, n in counts.items()
    )


def form(boundary="x-x", **parts):
    """A multipart body and its type."""
    body = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode()
        + data
        + b"\r\n"
        for name, data in parts.items()
    )
    return body + f"--{boundary}--\r\n".encode(), {
        "Content-Type": f"multipart/form-data; boundary={boundary}"
    }


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    """A field of protobuf that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def pprof(kind, unit, **weights):
    """A pprof profile of one type: `main_work=5` weighs the stack Main.main;Main.work with 5."""
    names = sorted({f for path in weights for f in path.split("_")})

    def number(n, value):
        return varint(n << 3) + varint(value)

    out = field(1, number(1, 1) + number(2, 2))
    for path, weight in weights.items():
        out += field(
            2,
            field(1, b"".join(varint(names.index(f) + 1) for f in reversed(path.split("_"))))
            + field(2, varint(weight)),
        )
    for i in range(1, len(names) + 1):
        out += field(4, number(1, i) + field(4, number(1, i))) + field(
            5, number(1, i) + number(2, i + 2)
        )
    return out + b"".join(
        field(6, text.encode()) for text in ("", kind, unit, *(f"Main.{f}" for f in names))
    )


def children_of(pid):
    """The processes that a process has started, by any of its threads."""
    return [
        int(p)
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
        for p in (task / "children").read_text().split()
    ]


def peak_mb(pid):
    """The peak memory of a process, including mapped files."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    return int(fields["VmHWM"].split()[0]) / 1024
