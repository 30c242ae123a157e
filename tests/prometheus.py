# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus' text format, version 0.0.4, and accepts nothing that the description of the
format does not allow.
"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        assert m and m[1] not in labels, text
        labels[m[1]] = re.sub(r"\\.", lambda e: UNESCAPED[e[0]], m[2])
        at = m.end()
    return tuple(sorted(labels.items()))


def parse(text):
    """Returns {name: {labels: value}} and {name: type}. The lines of a metric are together, after
    its HELP and TYPE.
    """
    assert text.endswith("\n")
    values, types, helped = {}, {}, set()
    current = None
    for line in text[:-1].split("\n"):
        if m := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            assert m[1] not in helped, line
            helped.add(current := m[1])
        elif m := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)", line):
            assert m[1] == current and m[1] not in types, line
            types[m[1]] = m[2]
        else:
            m = SAMPLE.fullmatch(line)
            assert m and m[1] == current and m[1] in types, line
            of, labels = values.setdefault(m[1], {}), labels_of(m[2] or "")
            assert labels not in of, line
            of[labels] = float(m[3])
    assert set(values) == set(types) == helped
    return values, types
