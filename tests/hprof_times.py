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
    section = text[text.rindex("CPU TIME (ms) BEGIN") : text.rindex("CPU TIME (ms) END")]
    by = traces(text)
    return [
        (float(m[2]), int(m[3]), by[int(m[4])])
        for m in re.finditer(
            r"^\s*(\d+)\s+(-?[\d.]+)%\s+-?[\d.]+%\s+(\d+)\s+(\d+) (.*)$", section, re.M
        )
    ]


def calls(text, prefix):
    """Returns {(method, caller ...): count} for the traces whose running method begins with the
    prefix.
    """
    out = {}
    for _, count, frames in rows(text):
        if frames and frames[0].startswith(prefix):
            out[tuple(frames)] = out.get(tuple(frames), 0) + count
    return out


def _expected(jdk, n):
    """{(callee, caller): calls} of TimesTruth with n rounds."""
    threads, virtual = 8, 500 if jdk.version >= 21 else 0
    plain = n + 100 * threads
    return {
        ("plain", "main"): n,
        ("plain", "inThread"): 100 * threads,
        ("twice", "plain"): 2 * plain,
        ("recurse", "main"): n,
        ("recurse", "recurse"): 20 * n,
        ("throwing", "catching"): n,
        ("throwing", "throwing"): 3 * n + 2 * threads,
        ("throwing", "inThread"): threads,
        ("catching", "cleaning"): n,
        ("cleaning", "main"): n,
        ("afterCatch", "catching"): n,
        ("afterCatch", "cleaning"): n,
        ("afterCatch", "constructing"): n + (n + 1) // 2,
        ("constructing", "main"): n,
        ("twice", "$Derived.<init>"): 2 * n,
        ("twice", "$Derived.afterSuper"): n // 2,
        ("$Derived.<init>", "constructing"): n,
        ("$Base.<init>", "$Derived.<init>"): n,
        ("$Derived.afterSuper", "$Derived.<init>"): n // 2,
        ("$Lazy.fill", "$Lazy.<clinit>"): 1,
        ("twice", "$Lazy.fill"): 1,
        ("$Lazy.<clinit>", "main"): 1,
        ("locked", "main"): n,
        ("twice", "locked"): n,
        ("afterCatch", "reflected"): n,
        ("afterCatch", "reflecting"): 2 * n,
        ("reflecting", "main"): n,
        ("lambdas", "main"): n,
        ("accessing", "main"): n,
        ("accessor", "accessing"): 3 * n,
        ("deep", "main"): 1,
        ("deep", "deep"): 3000,
        ("afterCatch", "deep"): 1,
        ("threads", "main"): 1,
        ("inVirtualThread", "lambda$threads"): virtual,
        ("yielding", "inVirtualThread"): 10 * virtual,
        ("twice", "inVirtualThread"): 10 * virtual,
        ("twice", "yielding"): 10 * virtual,
        ("inThread", "lambda$threads"): threads,
    }


def _short(name):
    name = name[len("TimesTruth") :] if name.startswith("TimesTruth") else name
    name = name[1:] if name.startswith(".") else name
    return "lambda$threads" if name.startswith("lambda$threads") else name


def wrong_counts(text, jdk, n):
    """The calls of TimesTruth, with n rounds, whose counts in a text are wrong: {(callee, caller):
    (found, expected)}.
    """
    found = {}
    for (callee, *caller), count in calls(text, "TimesTruth").items():
        key = (_short(callee), _short(caller[0]) if caller else "")
        found[key] = found.get(key, 0) + count
    # Callers outside the program, of main and of lambda$threads, are left out: they belong to the
    # JDK.
    return {k: (found.get(k, 0), v) for k, v in _expected(jdk, n).items() if found.get(k, 0) != v}
