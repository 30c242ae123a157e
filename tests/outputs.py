# SPDX-License-Identifier: Apache-2.0
"""Reads what `convert` writes, each format according to its description, as weights of methods."""
import base64
import collections
import gzip
import json
import pathlib
import re
from dataclasses import dataclass, field


@dataclass
class Weights:
    """A method counts once in `total`, however often it occurs in a stack. Marks in brackets are
    not methods.
    """

    sum: int = 0
    own: collections.Counter = field(default_factory=collections.Counter)
    total: collections.Counter = field(default_factory=collections.Counter)

    def add(self, stack, weight):
        """stack: the running method comes first."""
        self.sum += weight
        if stack and not stack[0].startswith("["):
            self.own[stack[0]] += weight
        for name in {s for s in stack if not s.startswith("[")}:
            self.total[name] += weight


def numbers(data):
    """LEB128."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            yield value
            value = shift = 0


def page(path):
    """The data of a page."""
    return json.loads(
        re.search(
            r'<script[^>]*type="application/json"[^>]*>(.*?)</script>',
            pathlib.Path(path).read_text(),
            re.S,
        )[1]
    )


def page_weights(data, metric):
    """Returns what the page shows of a metric at first: without idle threads and without those of
    the VM.
    """
    nodes, tree = [(0, "")], iter(base64.b64decode(metric["tree"]))

    def one():
        data = []
        while not data or data[-1] & 128:
            data.append(next(tree))
        return next(numbers(data))

    while len(nodes) < metric["nodes"]:
        parent, label = len(nodes) - one(), data["labels"][one()]
        next(tree)  # the kind of frame
        nodes.append((parent, label))
    cells, found = list(numbers(base64.b64decode(metric["cells"]))), Weights()
    for _, _, node, weight in zip(*[iter(cells)] * 4):
        if metric["aside"]:
            node, aside = node >> 1, node & 1
            if aside:
                continue
        stack = []
        while node:
            node, label = nodes[node]
            stack.append(label)
        found.add(stack, weight)
    return found


def collapsed_weights(path):
    found = Weights()
    for line in pathlib.Path(path).read_text().splitlines():
        if not line.startswith("#"):
            stack, weight = line.rsplit(" ", 1)
            found.add(stack.split(";")[::-1], int(weight))
    return found


def fields(data):
    """A message of protocol buffers: (number, value) of each field."""
    at = 0

    def one():
        nonlocal at
        begin = at
        while data[at] & 128:
            at += 1
        at += 1
        return next(numbers(data[begin:at]))

    while at < len(data):
        key = one()
        assert key & 7 in (0, 2), key
        value = one()
        if key & 7 == 2:
            at += value
            value = data[at - value : at]
        yield key >> 3, value


def repeated(value):
    return list(numbers(value)) if isinstance(value, bytes) else [value]


def pprof(path):
    """(weights of the first value, comments)."""
    strings, names, lines, samples, comments = [], {}, {}, [], []
    for number, value in fields(gzip.decompress(pathlib.Path(path).read_bytes())):
        if number == 2:
            samples.append(value)
        elif number == 4:
            at = [v for n, v in fields(value) if n == 1][0]
            lines[at] = [dict(fields(v))[1] for n, v in fields(value) if n == 4]
        elif number == 5:
            function = dict(fields(value))
            names[function[1]] = function.get(2, 0)
        elif number == 6:
            strings.append(value.decode())
        elif number == 13:
            comments += repeated(value)
    found = Weights()
    for sample in samples:
        stack = [
            strings[names[f]]
            for n, v in fields(sample)
            if n == 1
            for at in repeated(v)
            for f in lines[at]
        ]
        found.add(stack, [w for n, v in fields(sample) if n == 2 for w in repeated(v)][0])
    return found, [strings[c] for c in comments]


def method(rows, name):
    """Returns the row of a method in a table of --json, whatever its parameters, or None."""
    return next((r for r in rows if r["method"].split("(")[0] == name), None)
