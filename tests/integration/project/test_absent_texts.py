# SPDX-License-Identifier: Apache-2.0
"""Texts that tests hold to be absent. When a message changes, a test that asserts its presence
fails; one that asserts its absence passes for ever, whatever the program prints.
"""
import ast
import re

import lab

ROOT = lab.ROOT

# What others print: the VM, its tools, and the sanitizers.
OF_OTHERS = {
    "Full thread dump",
    "return code: 0",
    "not compilable",
    "ERROR: AddressSanitizer",
    "runtime error",
}

# What the program composes, with parts that it can print.
COMPOSED = {
    "which was stopped": (", which %s", "was stopped by the VM"),
    "class class": ("class lock of %s",),
    "exception java.lang.String": ("exception %s: ",),
    "take: traces nothing so far": ("trace %s: traces nothing so far", "take"),
}

LITERAL = re.compile(r'/\*.*?\*/|//[^\n]*|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\'', re.S)


def literals(source):
    """The strings of a program in C or Java, one a line; adjacent ones are one string."""
    found, end = [], None
    for m in LITERAL.finditer(source):
        if m[1] is None:
            continue
        text = m[1].replace(r"\"", '"').replace(r"\n", "\n")
        if end is not None and not source[end : m.start()].strip():
            found[-1] += text
        else:
            found.append(text)
        end = m.end()
    return "\n".join(found)


def printable():
    """What the program, its page and the tests' own programs can print."""
    for folder in ("src", "tests/java", "tests/native", "tests/agents", "web/src"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".java"):
                yield literals(path.read_text(errors="replace"))
            elif path.suffix in (".ts", ".tsx"):
                yield path.read_text()


def absent(source):
    """The texts of several words that a test asserts not to be in something, with their lines."""
    asserts = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Assert))
    for node in (n for a in asserts for n in ast.walk(a.test)):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.NotIn)
            and isinstance(node.left, ast.Constant)
            and isinstance(node.left.value, str)
            and len(re.findall(r"[a-z]{2,}", node.left.value)) > 1
            and " " in node.left.value.strip()
        ):
            yield node.lineno, node.left.value


def test_what_tests_hold_to_be_absent_could_be_printed():
    assert literals('f("a \\"b\\" "\n "c %s\\n"); /* "no" */ g("d", "e")') == 'a "b" c %s\n\nd\ne'
    assert list(absent('assert "one two" not in x and "three" not in y')) == [(1, "one two")]
    printed = "\n".join(printable())
    texts = [
        (path.name, line, text)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, text in absent(path.read_text())
    ]
    unknown = [
        t
        for t in texts
        if t[2] not in OF_OTHERS
        and not all(part in printed for part in COMPOSED.get(t[2], (t[2],)))
    ]
    assert len(texts) > 50 and not unknown, unknown
