# SPDX-License-Identifier: Apache-2.0
"""Tests trace=: arguments, results and exceptions of calls whose answers are known; conditions,
limits, and switching it on and off.
"""
import collections
import json
import re
import struct
import subprocess
import time

import lab
import pytest


def record(jdk, out, *options, args=()):
    done = jdk.java(
        "Traced",
        *args,
        jvm=(jdk.agent("format=r," + ",".join(options) + f",file={out}"), "-Xmx64m"),
    )
    assert done.returncode == 0, done.stderr
    return done


def calls(jvmscope, out, *filters):
    done = jvmscope("trace", "--json", *filters, out)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["calls"]


def test_every_type_of_argument_and_result(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    done = record(jdk, out, "trace=Traced$Calls.*:Traced$StringMaker.make")
    assert done.stdout == "done 0\n"
    all_calls = [c for c in calls(jvmscope, out) if c["thread"] == "main"]
    seen = [
        (
            c["method"].split("$", 1)[1].split("(")[0],
            c["args"],
            c.get("return", "absent"),
            c["exception"],
        )
        for c in all_calls
    ]

    def one(name):
        return [s[1:] for s in seen if s[0] == name]

    assert one("Calls.ints") == [([-1, 300, "c", 70000, True], 70399, None)]
    assert one("Calls.longs") == [
        ([{"number": str(1 << 60)}, 2], {"number": str((1 << 60) + 2)}, None),
        ([-5, 3], -2, None),
    ]
    assert one("Calls.doubles") == [
        ([1.5, 2.0], 3.0, None),
        ([{"number": "NaN"}, 1.0], {"number": "NaN"}, None),
    ]
    assert one("Calls.floats") == [([{"number": "Infinity"}], {"number": "Infinity"}, None)]
    assert one("Calls.chars") == [(["é"], "é", None)]
    assert one("Calls.booleans") == [([True], False, None)]
    strings = one("Calls.strings")
    assert strings[0][0][0] == 'café "quoted"' and re.match(
        r"java\.util\.ArrayList\(\d\)@[0-9a-f]+", strings[0][0][1]["object"]
    )
    assert strings[0][1] == 'café "quoted"!'
    assert strings[1] == ([None, None], None, None)
    assert strings[2][0][0] == {"object": f'"{"x" * 64}"... (100)'} and isinstance(
        strings[2][0][1], int
    )
    arrays = one("Calls.arrays")[0]
    assert re.match(r"int\[3\]@[0-9a-f]+\{", arrays[0][0]["object"]) and arrays[1] == arrays[0][0]
    assert (
        re.match(r"java\.lang\.String\[2\]\[\]@[0-9a-f]+\{", arrays[0][1]["object"])
        and arrays[0][2] is None
    )
    assert one("Calls.varargs")[0][1] == 3 and re.match(
        r"java\.lang\.Object\[3\]@", one("Calls.varargs")[0][0][1]["object"]
    )
    assert one("Calls.nothing") == [([], "absent", None)]
    assert one("Calls.<init>") == [([10, "ten"], "absent", None)]
    assert one("Calls.instance") == [([5], 15, None)] and one("Calls.locked") == [([21], 42, None)]
    this = next(c["this"] for c in all_calls if ".instance(" in c["method"])
    assert re.fullmatch(r"Traced\$Calls@[0-9a-f]+", this["object"])
    assert one("Calls.thrower") == [
        ([1], 1, None),
        ([3], "absent", "java.lang.IllegalStateException"),
    ]
    assert one("Calls.catcher") == [([1], 1, None), ([3], -1, None)]
    thrower = [c for c in all_calls if ".thrower(" in c["method"]]
    assert all(c["depth"] == 1 and c["caller"] == "Traced$Calls.catcher(I)I" for c in thrower)
    assert one("Calls.recursive") == [([n], n, None) for n in (3, 2, 1, 0)]
    assert [c["depth"] for c in all_calls if ".recursive(" in c["method"]] == [0, 1, 2, 3]
    assert one("Calls.overloaded") == [([1], 1, None), ([2], 2, None)]
    assert one("StringMaker.make") == [(["ab"], "abab", None)]  # not its bridge
    starts = [c["start_ns"] for c in all_calls]
    assert starts == sorted(starts) and all(c["ns"] >= 0 for c in all_calls)


VALUES = {
    "int": 5,
    "long": "1152921504606846976",
    "char": "'x'",
    "true": True,
    "double": 0.1,
    "enum": "Values$Color.RED",
    "body": "Values$Color.GREEN",
    "class": "java.lang.String.class",
    "intclass": "int.class",
    "arrayclass": "int[][].class",
    "thread": 'java.lang.Thread@{"worker-7"}',
    "subthread": 'Values$Worker@{"w \\"1\\""}',
    "group": 'java.lang.ThreadGroup@{"g"}',
    "method": "java.lang.reflect.Method@{Values.fail}",
    "field": "java.lang.reflect.Field@{Values$Order.id}",
    "constructor": "java.lang.reflect.Constructor@{java.util.ArrayList.<init>}",
    "frame": "java.lang.StackTraceElement@{a.B.m:12}",
    "parameter": "java.lang.reflect.Parameter@{arg0 of Values.fail}",
    "weakref": 'java.lang.ref.WeakReference@{"w"}',
    "softref": "java.lang.ref.SoftReference@{java.util.ArrayList(1)@}",
    "cleared": "java.lang.ref.WeakReference@{null}",
    "weaksub": 'Values$Held@{"h"}',
    "atomicref": 'java.util.concurrent.atomic.AtomicReference@{null}',
    "bytes": "java.nio.HeapByteBuffer@{pos=2 lim=5 cap=10}",
    "direct": "java.nio.DirectByteBuffer@{pos=0 lim=8 cap=8}",
    "chars": "java.nio.HeapCharBuffer@{pos=0 lim=3 cap=3}",
    "pending": "java.util.concurrent.CompletableFuture@{not completed}",
    "completed": 'java.util.concurrent.CompletableFuture@{"v\\"1\\""}',
    "nothing": "java.util.concurrent.CompletableFuture@{null}",
    "failed": 'java.util.concurrent.CompletableFuture@{Values$Silent@{"f"}}',
    "task": "java.util.concurrent.FutureTask@{not completed}",
    "ran": "java.util.concurrent.FutureTask@{7}",
    "threw": 'java.util.concurrent.FutureTask@{Values$Silent@{"t"}}',
    "cancelled": "java.util.concurrent.FutureTask@{cancelled}",
    "latch": "java.util.concurrent.CountDownLatch@{3}",
    "semaphore": "java.util.concurrent.Semaphore@{4}",
    "optional": 'java.util.Optional["a\\nb"]',
    "empty": "java.util.Optional.empty",
    "opt5": "java.util.OptionalInt[5]",
    "ints": "int[7]@{1, 2, 3, 4, 5, ...}",
    "doubles": "double[2]@{0.5, 1.0}",
    "strings": 'java.lang.String[3]@{"a", null, "c\\"d"}',
    "nested": "int[2][]@{int[1]@, int[2]@}",
    "array": 'java.util.ArrayList(4)@{1, "two", Values$Color.RED, null}',
    "many": "java.util.ArrayList(100)@{9, 9, 9, 9, 9, ...}",
    "aslist": "java.util.Arrays$ArrayList(2)@{1, 2}",
    "linked": "java.util.LinkedList(2)@{1, 2}",
    "deque": "java.util.ArrayDeque(3)@{3, 4, 5}",
    "vector": "java.util.Vector(2)@{1, 2}",
    "cow": "java.util.concurrent.CopyOnWriteArrayList(2)@{1, 2}",
    "unmodifiable": "java.util.Collections$UnmodifiableRandomAccessList(2)@{1, 2}",
    "singleton": 'java.util.Collections$SingletonList(1)@{"s"}',
    "emptylist": "java.util.Collections$EmptyList(0)@",
    "map": 'java.util.HashMap(1)@{"k"=1}',
    "ordered": 'java.util.LinkedHashMap(10)@{10="v10", 9="v9", 8="v8", 7="v7", 6="v6", ...}',
    "tree": 'java.util.TreeMap(11)@{"k"=1, "k0"=0, "k1"=1, "k2"=2, "k3"=3, ...}',
    "chm": 'java.util.concurrent.ConcurrentHashMap(1)@{"k"=1}',
    "enummap": "java.util.EnumMap(1)@{Values$Color.GREEN=2}",
    "enumset": "java.util.RegularEnumSet(2)@{Values$Color.RED, Values$Color.GREEN}",
    "set": 'java.util.HashSet(1)@{"x"}',
    "treeset": "java.util.TreeSet(3)@{1, 2, 3}",
    "keys": 'java.util.HashMap$KeySet(1)@{"k"}',
    "treekeys": 'java.util.TreeMap$KeySet(11)@{"k", "k0", "k1", "k2", "k3", ...}',
    "values": "java.util.HashMap$Values(1)@{1}",
    "entries": 'java.util.HashMap$EntrySet(1)@{"k"=1}',
    "chmvalues": "java.util.concurrent.ConcurrentHashMap$ValuesView(1)@{1}",
    "linkedvalues": 'java.util.Collections$UnmodifiableCollection(10)@{"v10", "v9", "v8", "v7", "v6", ...}',
    "entrieskeys": 'java.util.Collections$UnmodifiableSet(1)@{"k"}',
    "level": 'java.util.logging.Level@{"INFO"}',
    "sum": "java.util.concurrent.atomic.DoubleAdder@{2.5}",
    "lone": "a\ud800b\udc00",
    "half": "'\\ud800'",
    "weak": 'java.util.WeakHashMap(1)@{"k"=1}',
    "entry": 'java.util.AbstractMap$SimpleEntry@{"k"=1}',
    "node": 'java.util.HashMap$Node@{"k"=1}',
    "queue": "java.util.concurrent.LinkedBlockingQueue(2)@{1, 2}",
    "lockfree": "java.util.concurrent.ConcurrentLinkedQueue(7)@{3, 3, 3, 3, 3, ...}",
    "skips": 'java.util.concurrent.ConcurrentSkipListMap(3)@{1="v1", 2="v2", 3="v3"}',
    "skipset": "java.util.concurrent.ConcurrentSkipListSet(3)@{1, 2, 3}",
    "sublist": "java.util.ArrayList$SubList(2)@{3, 4}",
    "copies": 'java.util.Collections$CopiesList(7)@{"c", "c", "c", "c", "c", ...}',
    "bits": "java.util.BitSet(3)@{3, 64, 65}",
    "nobits": "java.util.BitSet(0)@",
    "atomic": "java.util.concurrent.atomic.AtomicInteger@{8}",
    "reference": 'java.util.concurrent.atomic.AtomicReference@{"r"}',
    "touchy": 'Values$Touchy(2)@{"t", Values$Touchy(2)@}',
    "cycle": "java.lang.Object[1]@{java.lang.Object[1]@}",
    "quoted": 'a"b\\c\nd',
    # The mark of a cut text stands behind its quotation marks, unlike a text that looks like it.
    "huge": f'"{"h" * 64}"... (1048576)',
    "hugebuilder": f'java.lang.StringBuilder@{{"{"h" * 64}"... (1048576)}}',
    "hugeinside": f'java.util.Arrays$ArrayList(2)@{{"{"h" * 64}"... (1048576), "like... (5000)"}}',
    "like": "like... (5000)",
    "exception": 'Values$Silent@{"why"}',
}


def test_values_are_readable_without_options(jdk, jvmscope, tmp_path):
    """No method of a value is called (any that were would throw), and other threads may change the
    value meanwhile.
    """
    out = tmp_path / "v.jfr"
    words = "trace=Values.one:Values.real:Values.fail:Values$Order.total:Values.changing"
    done = jdk.java("Values", jvm=("-Xmx64m", jdk.agent(f"format=r,{words},file={out}")))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    listed = calls(jvmscope, out)

    def plain(v):
        return (
            re.sub("@[0-9a-f]+", "@", v.get("object") or v["number"]) if isinstance(v, dict) else v
        )

    seen = {
        c["args"][0]: (plain(c["args"][1]), plain(c["return"]))
        for c in listed
        if c["method"].startswith("Values.one(")
    }
    joiner = (
        'java.util.StringJoiner@{java.lang.StringBuilder@{"a,b"}}'
        if jdk.version == 8
        else 'java.util.StringJoiner(2)@{"a", "b"}'
    )
    assert seen == {name: (value, value) for name, value in (VALUES | {"joiner": joiner}).items()}
    assert sum(".changing(" in c["method"] for c in listed) == 4000
    failed = [(c["exception"], c.get("message")) for c in listed if ".fail(" in c["method"]]
    silent = "Values$Silent"
    assert failed == [(None, None), (silent, 'no "room"'), (silent, ""), (silent, None)]
    shown = lab.output("trace", out)
    for text in (
        'Values.one("long", 1152921504606846976) = 1152921504606846976\n',
        "Values.real(0.1, 0.1) = 0.1\n",
        "Values.real(2.0, 1e30) = 2.0\n",
        'threw Values$Silent: "no \\"room\\""\n',
        'threw Values$Silent: ""\n',
        "threw Values$Silent\n",
        f'Values.one("huge", "{"h" * 64}"... (1048576))',
        'Values.one("like", "like... (5000)")',
        'Values.one("quoted", "a\\"b\\\\c\\nd")',
        'Values.one("enum", Values$Color.RED)',
        "Values.one(\"char\", 'x') = 'x'\n",
        'Values.one("lone", "a\\ud800b\\udc00") = "a\\ud800b\\udc00"\n',
        "Values.one(\"half\", '\\ud800') = '\\ud800'\n",
    ):
        assert text in shown, text
    assert re.search(r"Values\$Order\.total\(this=Values\$Order@[0-9a-f]+, 1\) = 43\n", shown)
    # A part of the time, between the two calls that are furthest from each other, in ns after the
    # recording's start.
    lines = shown.splitlines()[1:]
    times = [round(float(line.split()[0]) * 1e9) for line in lines]
    k = max(range(1, len(times)), key=lambda i: times[i] - times[i - 1])
    at = f"{(times[k] + times[k - 1]) // 2}ns"
    assert lab.output("trace", "--to", at, out).splitlines()[1:] == lines[:k]
    assert lab.output("trace", "--from", at, out).splitlines()[1:] == lines[k:]
    nothing = jvmscope("trace", "--from", "1h", out)
    assert nothing.returncode == 1 and "is not before the end of the recording" in nothing.stderr


@pytest.mark.jdks(17, 25, 27)
def test_records_and_other_values_since_java_8(jdk, jvmscope, tmp_path):
    out = tmp_path / "v.jfr"
    done = jvmscope(
        "run",
        "--trace=ModernValues.one",
        "-o",
        out,
        "--",
        *jdk.command("java", "-cp", lab.compiled("ModernValues", 17), "ModernValues"),
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    seen = {
        c["args"][0]: re.sub("@[0-9a-f]+", "@", c["args"][1]["object"])
        for c in calls(jvmscope, out)
    }
    reversed_views = (
        {
            "backKeySet": 'LinkedKeySet(7)@{"k7", "k6", "k5", "k4", "k3", ...}',
            "backValues": "LinkedValues(7)@{7, 6, 5, 4, 3, ...}",
            "backEntrySet": 'LinkedEntrySet(7)@{"k7"=7, "k6"=6, "k5"=5, "k4"=4, "k3"=3, ...}',
        }
        if jdk.version >= 21
        else {}
    )
    assert seen == {
        **{k: "java.util.LinkedHashMap$" + v for k, v in reversed_views.items()},
        "record": 'ModernValues$Point@{x=-3, name="p\\"q", all=long[2]@}',
        "empty": "ModernValues$Empty@",
        "entry": 'java.util.KeyValueHolder@{"k"=1}',
        "mapkeys": "java.util.AbstractMap$2(2)@{1, 1}",
        "joiner": 'java.util.StringJoiner(2)@{"a", "b"}',
    }


@pytest.mark.jdks(8, 25, 27)
def test_objects_of_the_jdk_are_shown_as_they_print_themselves(jdk, jvmscope, tmp_path):
    """Numbers, times, texts and atomics are read from their fields; the program prints afterwards
    what their toString() says.
    """
    out = tmp_path / "known.jfr"
    conditions = (
        "Known.compared",
        "arg1 > 10 || arg1 == '123e4567-e89b-12d3-a456-426614174000' || arg1 == '/tmp/f' || arg1 == 'abc' || arg1 == true",
    )
    done = jvmscope(
        "run",
        "--trace=Known.one,Known.money",
        "--trace",
        conditions[0],
        "--if",
        conditions[1],
        "-o",
        out,
        "--",
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Known"), "Known"),
    )
    assert done.returncode == 0, done.stderr
    want = done.stdout.splitlines()
    seen = [c["args"][0] for c in calls(jvmscope, out) if "Known.one(" in c["method"]]
    *seen, bits, long, unset, stamped, itself = [next(iter(v.values())) for v in seen]
    assert len(seen) == len(want) > 170
    for got, text in zip(seen, want):
        inside = re.fullmatch(r"[\w.$]+(\(\d+\))?@[0-9a-f]+(\{(.*)\})?", got)
        if inside:
            got = inside[3] or ""
            got = json.loads(got) if got.startswith('"') else f"[{got}]" if inside[1] else got
        assert got.removeprefix("java.util.") == text
    assert bits == "~2^4095" and re.fullmatch(
        r'java\.lang\.StringBuilder@[0-9a-f]+\{"b{64}"\.\.\. \(100\)\}', long
    )
    assert re.fullmatch(r"java\.util\.GregorianCalendar@[0-9a-f]+\{not computed\}", unset)
    atomic = r"java\.util\.concurrent\.atomic\.AtomicStampedReference@[0-9a-f]+"
    assert re.fullmatch(rf'{atomic}\{{"r", 1\}}', stamped)
    assert re.fullmatch(rf"{atomic}\{{{atomic}\{{{atomic}, 2\}}, 2\}}", itself), itself
    shown = [
        re.sub("@[0-9a-f]+", "", line.split("Known.", 1)[1])
        for line in jvmscope("trace", out).stdout.splitlines()
        if "Known." in line
    ]
    assert [t for t in shown if t.startswith("compared")] == [
        f"compared({v})"
        for v in (
            "10.5",
            "11",
            "java.util.OptionalInt[12]",
            "123e4567-e89b-12d3-a456-426614174000",
            'java.io.File{"/tmp/f"}',
            'java.lang.StringBuilder{"abc"}',
            "java.util.concurrent.atomic.AtomicBoolean{true}",
        )
    ]
    assert [t for t in shown if t.startswith("money")] == [
        "money(Known$Money)"
    ]  # a subclass may mean anything


def test_threads_apart(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.recursive")
    for t in range(4):
        mine = calls(jvmscope, out, "--thread", f"worker-{t}")
        assert len(mine) == 50 * (t + 1)
        assert sorted({c["depth"] for c in mine}) == list(range(t + 1))


@pytest.mark.jdks(8, 17, 27)
@pytest.mark.parametrize(
    "condition, want",
    [
        ("arg1 > 1 && arg1 <= 3", [3, 2]),
        ("return == 2 || arg1 == 0", [2, 0]),
        ("depth >= 2", [1, 0]),
        ("!(arg1 != 1)", [1]),
        ("time > 1h", []),
        ("arg2 == 0 || arg1 == 3", [3]),
        ("thrown", []),
    ],
)
def test_conditions(jdk, jvmscope, tmp_path, condition, want):
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.recursive", f"if={condition}")
    done = jvmscope("trace", "--json", "--thread", "main", out)
    found = json.loads(done.stdout)["calls"] if done.returncode == 0 else []
    assert [c["args"][0] for c in found] == want


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize(
    "condition, want",
    [
        ("depth == 2 && arg1 == 1", [1]),
        ("arg1 == 1 && depth > 0", [1]),
        ("arg1 == 1 && depth < 2", []),
        ("arg1 < 2 && (depth == 3 || time > 1h)", [0]),
        ("!(depth != 2) && arg1 < 3", [1]),
    ],
)
def test_a_depth_has_one_meaning(jdk, jvmscope, tmp_path, condition, want):
    """Calls that do not meet a condition count as enclosing calls, whatever the condition compares
    besides the depth.
    """
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.recursive", f"if={condition}")
    done = jvmscope("trace", "--json", "--thread", "main", out)
    found = json.loads(done.stdout)["calls"] if done.returncode == 0 else []
    assert [(c["args"][0], c["depth"]) for c in found] == [(n, 3 - n) for n in want]


@pytest.mark.jdks(17)
def test_a_depth_counts_calls_of_other_patterns(jdk, jvmscope, tmp_path):
    """The depth of one pattern counts calls of another one whose condition their arguments do not
    meet.
    """
    out = tmp_path / "t.jfr"
    record(
        jdk,
        out,
        "trace=Traced$Calls.catcher",
        "if=arg1 == -12345",
        "trace=Traced$Calls.thrower",
        "if=depth == 1",
    )
    found = calls(jvmscope, out)
    assert found and {(c["method"].split("(")[0], c["depth"]) for c in found} == {
        ("Traced$Calls.thrower", 1)
    }


VALUE_CONDITIONS = (
    ("arg2.length == 100", ["many"]),
    ("return.length > 1000 && thread == 'main'", ["huge", "hugebuilder"]),
    ("arg2 == 5", ["int", "opt5"]),
    ("arg2 == 'RED' || arg2 == 'java.lang.String.class'", ["enum", "class"]),
    ("arg2 == 'Values$Color.RED'", ["enum"]),
    ("arg2 == 'Values.Color.RED'", ["enum"]),
    ("arg2.length == 11 || thread == 'other'", ["tree", "treekeys"]),
    ("this != null", []),
)


@pytest.mark.jdks(17)
def test_text_null_and_exception_conditions(jdk, jvmscope, tmp_path):
    for condition, want in (
        ("arg1 == null", 1),
        ("arg1 != null && arg2 != null", 2),
        ("arg1 == 'nope'", 0),
    ):
        out = tmp_path / "t.jfr"
        record(jdk, out, "trace=Traced$Calls.strings", f"if={condition}")
        done = jvmscope("trace", "--json", out)
        assert (
            len(json.loads(done.stdout)["calls"]) if done.returncode == 0 else 0
        ) == want, condition
    for condition, want in VALUE_CONDITIONS:
        record_values = jdk.java(
            "Values",
            jvm=("-Xmx64m", jdk.agent(f"format=r,trace=Values.one,if={condition},file={out}")),
        )
        assert record_values.returncode == 0, record_values.stderr
        done = jvmscope("trace", "--json", out)
        seen = json.loads(done.stdout)["calls"] if done.returncode == 0 else []
        assert [c["args"][0] for c in seen] == want, condition
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.thrower", "if=thrown")
    assert [c["exception"] for c in calls(jvmscope, out)] == ["java.lang.IllegalStateException"]


TWO53, LONG = 1 << 53, (1 << 63) - 1

# A method of Exact, a condition, and the arguments of the calls that meet it.
EXACT = (
    ("a", f"arg1 == {TWO53 + 1}", [TWO53 + 1]),
    ("b", f"arg1 > {TWO53}", [TWO53 + 1, TWO53 + 2, LONG]),
    ("c", f"arg1 != {TWO53}", [TWO53 + 1, TWO53 + 2, LONG, -LONG - 1]),
    ("d", f"arg1 >= {TWO53}.5 && arg1 < 1e16", [TWO53 + 1, TWO53 + 2]),
    ("e", f"arg1 <= {TWO53 + 1}", [TWO53, TWO53 + 1, -LONG - 1]),
    ("f", f"arg1 >= {LONG}", [LONG]),
    ("boxed", f"arg1 == {TWO53 + 1} || arg1 > {LONG - 1}", [TWO53 + 1, LONG]),
    ("big", f"arg1 == {TWO53 + 1}", 1),
    ("atomic", f"arg1 < {TWO53 + 1}", 2),
    ("back", f"return == {TWO53 + 1}", [TWO53 + 1]),
    ("field", f"arg1.l == {TWO53 + 1}", 1),
    ("g", "arg1 == 0.1", ["0.1"]),
    ("h", "arg1 <= 0.1", ["0.1", "0"]),
    ("boxedFloat", "arg1 == 0.1 || arg1 > 1e39", ["0.1", "inf"]),
    ("floatField", "arg1.f < 0.2", 2),
    ("floatBack", "return != 0.1 && return < 1e39", ["0.2", "0"]),
    ("real", "arg1 == 0.1", ["0.1"]),
)


def exact(value):
    """A number of the JSON output, to be compared without loss."""
    text = value["number"] if isinstance(value, dict) and "number" in value else value
    return int(text) if re.fullmatch(r"-?\d+", str(text)) else f"{float(text):g}"


def test_numbers_compare_without_loss(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    words = [
        w for name, condition, _ in EXACT for w in ("--trace", f"Exact.{name}", "--if", condition)
    ]
    done = jvmscope(
        "run",
        *words,
        "-o",
        out,
        "--",
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Exact"), "Exact"),
    )
    assert done.returncode == 0, done.stderr
    seen = calls(jvmscope, out)
    for name, condition, want in EXACT:
        args = [c["args"][0] for c in seen if c["method"].startswith(f"Exact.{name}(")]
        got = len(args) if isinstance(want, int) else [str(exact(a)) for a in args]
        assert got == (want if isinstance(want, int) else [str(w) for w in want]), (
            name,
            condition,
            args,
        )


def test_a_descriptor_chooses_one_of_a_name(jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    record(lab.Jdk(17), out, "trace=Traced$Calls.overloaded(J)I")
    assert [c["method"] for c in calls(jvmscope, out)] == ["Traced$Calls.overloaded(J)I"]


@pytest.mark.jdks(8, 17, 25)
def test_parameters_are_written_as_in_java(jdk, tmp_path):
    """In every option that takes patterns of methods, on the command's line and in the agent's
    options; a semicolon separates patterns too.
    """
    out = tmp_path / "t.jfr"
    program = jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Traced"), "Traced")

    def run(*options):
        done = lab.jvmscope("run", *options, "-o", out, "--", *program)
        assert done.returncode == 0 and "nothing so far" not in done.stderr, done.stderr

    def traced(*options):
        run(*options)
        return sorted(
            {
                c["method"].removeprefix("Traced$Calls.")
                for c in lab.read_json("trace", "--json", out)["calls"]
            }
        )

    of = lambda *patterns: ",".join("Traced$Calls." + p for p in patterns)
    one, two, longs = "overloaded(I)I", "overloaded(J)I", "longs(JJ)J"
    strings, arrays, varargs = (
        "strings(Ljava/lang/String;Ljava/lang/Object;)Ljava/lang/String;",
        "arrays([I[[Ljava/lang/String;[Ljava/lang/Object;)[I",
        "varargs(Ljava/lang/String;[Ljava/lang/Object;)I",
    )
    assert traced("--trace", of("overloaded(int)")) == [one]
    assert traced("--trace", of("overloaded(long)", "longs( long , long )")) == [longs, two]
    assert traced(
        "--trace",
        of(
            "strings(String,java.lang.Object)",
            "arrays(int[], String [][], ..)",
            "varargs(String, Object...)",
            "nothing()",
        ),
    ) == sorted([arrays, "nothing()V", strings, varargs])
    assert traced(
        "--trace",
        "Traced$Calls.overloaded ; Traced$Calls.longs",
        "--exclude",
        of("overloaded(int)", "longs(..)"),
    ) == [two]
    assert traced(
        "--trace",
        ",Traced$Calls.nothing (),, Traced$Calls.overloaded ;; ",
        "--exclude",
        of("overloaded(int)") + ",,Other",
    ) == sorted(["nothing()V", two])
    record(jdk, out, "trace=Traced$Calls.longs(long,long)", "exclude=Traced$Calls.overloaded(int)")
    assert {c["method"] for c in lab.read_json("trace", "--json", out)["calls"]} == {
        "Traced$Calls." + longs
    }
    assert (
        lab.read_json("trace", "--json", "--method", of("longs(long, long)"), out)["calls_all"] == 2
    )
    run("--requests", of("overloaded(long)"))
    assert [
        (r["name"], r["count"]) for r in lab.read_json("requests", "--json", out)["requests"]
    ] == [("Traced$Calls.overloaded", 1)]
    run("--cover", "--include", of("overloaded(int)", "longs(long, ..)"))
    assert {
        m["method"] + m["descriptor"]
        for c in lab.read_json("coverage", "--json", out)["classes"]
        for m in c["by_method"]
        if m["hit"]
    } == {one, longs}
    for option, pattern, why in (
        ("--trace", "a.B.c(int x)", "parameters are types"),
        ("--exclude", "a.B.c(int", "is not closed"),
        ("--include", "a/B.c", "written with dots"),
        ("--trace", "int a.B.c(int)", "the type of the result is left out"),
        ("--trace", "@a.B(int)", "has no parameters"),
        ("--trace", "extends a.B", "named by implements pkg.Type"),
        ("--requests", "a.B.c(int,)", "parameters are types"),
    ):
        done = lab.jvmscope("run", "--cpu=times", option, pattern, "-o", out, "--", *program)
        assert (
            done.returncode == 2
            and done.stderr.startswith(f"jvmscope: run: {option}={pattern}: ")
            and why in done.stderr.splitlines()[0]
        ), done.stderr


@pytest.mark.jdks(8, 25)
def test_patterns_with_parameters_are_added_and_removed(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        assert (
            jvmscope(
                "attach", "--trace", "TracedForever.quiet", "-o", tmp_path / "a.jfr", process.pid
            ).returncode
            == 0
        )
        added = lab.read_json(
            "trace",
            "--json",
            process.pid,
            "add",
            "TracedForever.one( int ), TracedForever::two(int); implements java.lang.Runnable",
            "--if",
            "time < 1h",
        )
        assert (
            added["added"]
            == ["TracedForever.one(int)", "TracedForever.two(int)", "implements java.lang.Runnable"]
            == [u["pattern"] for u in added["conditions"]]
        )
        assert {"TracedForever.one(I)I", "TracedForever.two(I)I"} <= set(
            added["methods_added"]
        ) and "TracedForever.one(int)" not in [u["pattern"] for u in added["unmatched"]]
        stated = jvmscope("trace", process.pid, "add", "TracedForever.one(long)").stdout
        assert "TracedForever is loaded and has no such method; there is one(int)" in stated, stated
        left = lab.read_json(
            "trace",
            "--json",
            process.pid,
            "remove",
            "TracedForever.one(int),implements java.lang.Runnable",
        )
        assert left["removed"] == [
            "TracedForever.one(int)",
            "implements java.lang.Runnable",
        ] and left["methods"] == ["TracedForever.two(I)I"]
        assert jvmscope("stop", "-o", tmp_path / "a.jfr", process.pid).returncode == 0
    finally:
        process.communicate("\n")


@pytest.mark.parametrize(
    "condition",
    [
        "arg0 > 1",
        "arg1 >",
        "arg1 > x",
        "time > 5q",
        "(arg1 > 1",
        "arg1 > 1 )",
        "",
        "foo",
        "arg1 < 'a'",
        "arg1 == 'a",
        "!" * 40 + "thrown",
        "time == 'x'",
        "thread == 5",
        "arg1.length == null",
        "depth != null",
    ],
)
def test_a_bad_condition_is_refused_in_one_line(condition):
    jdk = lab.Jdk(17)
    done = jdk.java(
        "Traced", jvm=(jdk.agent(f"format=r,trace=Traced,if={condition},file=/tmp/never.jfr"),)
    )
    assert (
        done.returncode == 1 and len(done.stderr.splitlines()) == 1 and done.stdout == ""
    ), done.stderr


# A condition on fields, and the numbers of the calls (0 to 9) that meet it; tests/java/Reached.java
# says what is where.
TAKE, PLAIN, BOXES = "Reached$Base.take", "Reached.plain", "Reached.boxes"
REACHED = (
    (TAKE, "this.level >= 8", [8, 9]),
    (TAKE, "this.next.level == 20", [2]),
    (TAKE, "this.next.level < 20", [0, 1]),
    (TAKE, "this.next != null && arg1 > 3", [4]),
    (TAKE, "this.next == null", [5, 6, 7, 8, 9]),
    (TAKE, "this.name == 'n4' || this.name == null", [3, 4]),
    (TAKE, "this.name.length == 2 && arg1 > 7", [8, 9]),
    (TAKE, "this.boxed == 1006", [6]),
    (TAKE, "this.parts.length == 3", [0, 2, 4, 6, 8]),
    (TAKE, "!(this.boxed > 0)", [1, 3, 5, 7, 9]),
    (TAKE, "arg2.level == 40", [4]),
    (TAKE, "Reached$Base.turn > 106", [7, 8, 9]),
    (TAKE, "Reached$Base.last == null", [8, 9]),
    (TAKE, "Reached$Base.last.next.level == 30", [3]),
    (TAKE, "Reached$Base.last.name.length == 2", [0, 1, 2, 4, 5, 6, 7]),
    (PLAIN, "arg2.level > 0 && arg1 > 6", [7, 8]),
    (PLAIN, "arg2.next.boxed == 1010", [1]),
    (PLAIN, "arg2.name == 'n1' && thread == 'main'", [1]),
    (PLAIN, "Reached$Base.tag == 't' && Reached$Base.small == 1 && arg1 == 2", [2]),
    (PLAIN, "Reached$Base.tag != null && Reached$Base.small < 127 && arg1 == 3", [3]),
    (BOXES, "arg1 == 7 && arg2 == 'x' && arg3 == null && return == true", [7]),
    (BOXES, "arg1 < 127 && arg3 != 5", [7]),
    (BOXES, "arg1 != null && arg1 > -128", [7]),
)


def selected(jdk, out, method, condition):
    """The numbers of the calls of tests/java/Compared.java that a condition selects, and the
    command's messages.
    """
    done = lab.jvmscope(
        "run",
        "--trace",
        f"Compared.{method}",
        "--if",
        condition,
        "-o",
        out,
        "--",
        *jdk.command("java", "-cp", lab.compiled("Compared"), "Compared"),
    )
    assert done.returncode == ("can never hold" in done.stderr) and done.stdout == "done\n", (
        condition,
        done.stderr,
    )
    return [
        c["args"][0]
        for c in json.loads(lab.jvmscope("trace", "--json", out).stdout or '{"calls": []}')["calls"]
    ], done.stderr


# Conditions on Compared.value, whose arg2 is of any type, and the numbers of the calls that meet
# them.
TEXTS = (
    ("arg2 == '\U0001f600'", [0]),
    (r"arg2 == '\ud83d\ude00' || arg2 == '\ud83d'", [0, 1]),
    (r"arg2 == 'a\u0000b'", [2]),
    ("arg2 != '\U0001f600' && arg1 < 4", [1, 2, 3]),
    ("thread == 'Z\u00fcrich \U0001f600 <b>'", [100]),
)


@pytest.mark.jdks(8, 17, 25)
def test_texts_are_compared_by_their_characters(jdk, tmp_path):
    """Characters beyond U+FFFF, half a pair of them, and U+0000 are equal in the JVM's modified
    UTF-8 and as they were typed.
    """
    for condition, want in TEXTS:
        assert selected(jdk, tmp_path / "t.jfr", "value", condition)[0] == want, condition


EVERY = list(range(12))
KINDS = (
    ("arg2 == 5", [4]),
    ("arg2 != 5 && arg1 < 100", [n for n in EVERY if n != 4]),
    ("arg2 != 5 && !(arg2 == 5) && arg1 == 9", [9]),
    ("arg2 == true", [7]),
    ("arg2 != true && arg1 < 100", [n for n in EVERY if n != 7]),
    ("arg2 < 6", [4, 6, 7, 8]),
    ("arg2 != 5 && arg2 != null && !(arg2 < 5) && !(arg2 > 5)", [0, 1, 2, 3, 10, 11]),
)


@pytest.mark.jdks(8, 17, 25)
def test_unequal_is_the_opposite_of_equal_for_values_of_every_kind(jdk, tmp_path):
    for condition, want in KINDS:
        assert selected(jdk, tmp_path / "t.jfr", "value", condition)[0] == want, condition


@pytest.mark.jdks(8, 17, 25)
def test_true_and_false_are_equal_to_booleans_only(jdk, tmp_path):
    """A condition that is reported to never hold selects nothing, and its opposite everything."""
    never = "arg1 of Compared.whole is an int and never true or false"
    for condition in ("arg1 == true", "arg1 == false", "arg1 > false"):
        seen, printed = selected(jdk, tmp_path / "t.jfr", "whole", condition)
        assert seen == [] and never in printed, (condition, printed)
    seen, printed = selected(jdk, tmp_path / "t.jfr", "whole", "arg1 != true")
    assert seen == [0, 1] and "never" not in printed, printed


@pytest.mark.jdks(8, 17, 25)
def test_texts_that_no_object_has_are_reported(jdk, tmp_path):
    for method, condition, why in (
        (
            "below",
            "arg2 == 'Ann'",
            "is a Compared$Below, whose objects are compared with null only, or by their fields",
        ),
        (
            "type",
            "arg2 == 'java.lang.String'",
            "is a class and compared as it is shown, as in 'java.lang.String.class'",
        ),
    ):
        seen, printed = selected(jdk, tmp_path / "t.jfr", method, condition)
        assert (
            seen == []
            and f"the condition can never hold: arg2 of Compared.{method} {why}\n" in printed
        ), printed
    for condition, want in (
        ("arg2 == 'java.lang.String.class'", [0]),
        ("arg2 == 'int[].class'", [1]),
        ("arg2 != 'java.lang.String'", [0, 1]),
    ):
        assert selected(jdk, tmp_path / "t.jfr", "type", condition)[0] == want, condition


PLAIN_OBJECT = "arg2 of Reached.plain is a Reached$Base, whose objects are compared with null only, or by their fields"
THIS_OBJECT = PLAIN_OBJECT.replace("arg2 of Reached.plain", "this of Reached$Base.take")
NO_FIELD = (
    (PLAIN, "arg2 > 5", PLAIN_OBJECT),
    (PLAIN, "arg2 == 'abc'", PLAIN_OBJECT),
    (TAKE, "this == 'Bob'", THIS_OBJECT),
    (TAKE, "this > 5", THIS_OBJECT),
    (TAKE, "this == null", "this of Reached$Base.take is never null"),
    (TAKE, "this.length > 1", "this of Reached$Base.take is a Reached$Base, which has no length"),
    (PLAIN, "arg2.length > 1", "arg2 of Reached.plain is a Reached$Base, which has no length"),
    (PLAIN, "arg2.next == 'Bob'", PLAIN_OBJECT.replace("arg2 of Reached.plain", "the field next")),
    (TAKE, "this.name == 3", "the field name is a text and never a number"),
    (TAKE, "Reached$Base.last.name > 3", "the field name is a text and never a number"),
    (TAKE, "this.nosuch > 1", "Reached$Base has no field nosuch"),
    (TAKE, "this.level.x > 1", "the field level is a number, which has no fields"),
    (TAKE, "this.next.nosuch == 1", "Reached$Base has no field nosuch"),
    (PLAIN, "arg1.x == 1", "arg1 of Reached.plain is an int, which has no fields"),
    (PLAIN, "Reached$Base.none == 1", "Reached$Base has no static field none"),
    (PLAIN, "no.Such.field == 1", "no class was loaded that has a static field no.Such.field"),
    (PLAIN, "Reached$Base.tag > 3", "the field tag is a text and never a number"),
    (PLAIN, "Reached$Base.turn == 'x'", "the field turn is a long and never a text"),
    (
        PLAIN,
        "Reached$Base.small > 1000",
        "the field small is a byte, none of which passes the comparison with 1000",
    ),
    (PLAIN, "Reached$Base.small == null", "the field small is a byte and never null"),
    (PLAIN, "Reached$Base.small.length > 1", "the field small is a byte, which has no length"),
    (
        TAKE,
        "this.level > 99999999999",
        "the field level is an int, none of which passes the comparison with 99999999999",
    ),
    (TAKE, "this.boxed == 'x'", "the field boxed is an int and never a text"),
    (TAKE, "this.parts == 3", "the field parts is an array and never a number"),
    (
        TAKE,
        "Reached$Base.last.next.level == 1.5",
        "the field level is an int, none of which passes the comparison with 1.5",
    ),
    (
        BOXES,
        "arg1 > 1000",
        "arg1 of Reached.boxes is a byte, none of which passes the comparison with 1000",
    ),
    (BOXES, "arg1 == 'x'", "arg1 of Reached.boxes is a byte and never a text"),
    (BOXES, "arg2 == 'xy'", "arg2 of Reached.boxes is a char and never a text of another length"),
    (BOXES, "arg3.length > 1", "arg3 of Reached.boxes is a long, which has no length"),
    (
        BOXES,
        "return == 2",
        "return of Reached.boxes is a boolean, none of which passes the comparison with 2",
    ),
)


def reached(jdk, jvmscope, out, *words):
    done = jdk.java(
        "Reached", jvm=("-Xmx64m", jdk.agent(",".join(("format=r", *words, f"file={out}"))))
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    done = jvmscope("trace", "--json", out)
    return json.loads(done.stdout)["calls"] if done.returncode == 0 else []


def test_conditions_reach_fields(jvmscope, tmp_path):
    """Own, inherited and private fields, those of objects below the declared type, static ones of a
    class that is loaded later, and null on the way.
    """
    for pattern, condition, want in REACHED:
        seen = reached(
            lab.Jdk(17), jvmscope, tmp_path / "t.jfr", f"trace={pattern}", f"if={condition}"
        )
        assert [c["args"][0] for c in seen] == want, condition


def test_conditions_reach_fields_on_every_jdk(jdk, jvmscope, tmp_path):
    seen = reached(
        jdk,
        jvmscope,
        tmp_path / "t.jfr",
        f"trace={TAKE}",
        "if=this.next.level == 20 || this.boxed == 1006 || Reached$Base.last.next.level == 30 || this.name == 'n4' || "
        "Reached$Base.turn > 108",
        f"trace={PLAIN}",
        "if=arg2.next.boxed == 1010 || arg2.parts.length == 3 && arg1 > 7",
    )
    for pattern, want in ((TAKE, [2, 3, 4, 6, 9]), (PLAIN, [1, 8])):
        assert [
            c["args"][0] for c in seen if c["method"].startswith(pattern + "(")
        ] == want, pattern


def test_a_field_that_does_not_exist_is_reported(jvmscope, tmp_path):
    for pattern, condition, why in NO_FIELD:
        done = lab.jvmscope(
            "run",
            "--trace",
            pattern,
            "--if",
            condition,
            "-o",
            tmp_path / "n.jfr",
            "--",
            *lab.Jdk(17).command("java", "-cp", lab.compiled("Reached"), "Reached"),
        )
        assert done.returncode == 1 and done.stdout == "done\n", done.stderr
        why = f"the condition can never hold: {why}"
        assert traced_nothing(done.stderr) == {pattern: why}, (condition, done.stderr)


def traced_nothing(stderr):
    """The patterns that have traced nothing, each with the reason, which is printed once: in this
    line or in the note before it.
    """
    stated = {}
    for text in stderr.splitlines():
        text = text.removeprefix("jvmscope: ")
        noted = re.match(r"note: --trace (.*?): traces nothing so far: (.*)", text)
        ended = re.match(r"(.*?): the pattern traced nothing(?:: (.*))?$", text)
        if noted:
            stated[noted[1]] = noted[2], False
        elif ended:
            why = stated.get(ended[1], (None, False))[0]
            assert bool(ended[2]) == (why is None) or ended[2] != why, stderr
            stated[ended[1]] = ended[2] or why, True
    return {pattern: why for pattern, (why, ended) in stated.items() if ended}


NEVER = (
    ("Traced$Calls.instance", "arg9 > 1", "Traced$Calls.instance has 1 argument and no arg9"),
    (
        "Traced$Calls.ints",
        "arg1 == null && time > 1ms",
        "arg1 of Traced$Calls.ints is a byte and never null",
    ),
    (
        "Traced$Calls.ints,Traced$Calls.longs",
        "arg9 > 1",
        "Traced$Calls.ints has 5 arguments and no arg9",
    ),
    ("Traced$Calls.ints", "arg4 == 'x'", "arg4 of Traced$Calls.ints is an int and never a text"),
    (
        "Traced$Calls.ints",
        "arg2.length > 1",
        "arg2 of Traced$Calls.ints is a short, which has no length",
    ),
    (
        "Traced$Calls.ints",
        "arg1 > 1000",
        "arg1 of Traced$Calls.ints is a byte, none of which passes the comparison with 1000",
    ),
    (
        "Traced$Calls.ints",
        "arg4 > 99999999999",
        "arg4 of Traced$Calls.ints is an int, none of which passes the comparison with 99999999999",
    ),
    (
        "Traced$Calls.ints",
        "arg4 == 1.5",
        "arg4 of Traced$Calls.ints is an int, none of which passes the comparison with 1.5",
    ),
    (
        "Traced$Calls.ints",
        "arg5 == 2",
        "arg5 of Traced$Calls.ints is a boolean, none of which passes the comparison with 2",
    ),
    (
        "Traced$Calls.ints",
        "arg4 == true",
        "arg4 of Traced$Calls.ints is an int and never true or false",
    ),
    (
        "Traced$Calls.longs",
        "arg1 < -1e19",
        "arg1 of Traced$Calls.longs is a long, none of which passes the comparison with -1e19",
    ),
    (
        "Traced$Calls.strings",
        "arg1 > 5 || return == 2",
        "arg1 of Traced$Calls.strings is a text and never a number",
    ),
    (
        "Traced$Calls.nothing",
        "return != null",
        "return of Traced$Calls.nothing is not there: the method returns nothing",
    ),
    (
        "Traced$Calls.nothing",
        "this != null",
        "this of Traced$Calls.nothing is not there: the method is static, or a constructor",
    ),
)


def test_a_condition_that_never_or_always_holds_whatever_the_method_is_refused_before_the_program_runs(
    tmp_path,
):
    for condition, printed in (
        ("arg1 > 5 && arg1 < 3", "exclude each other"),
        ("arg1 == 1 && arg2 > 3 && arg1 == 2", "exclude each other"),
        ("arg1 > 5 && arg1 <= 5", "exclude each other"),
        ("arg1 == 'a' && arg1 == 'b'", "exclude each other"),
        ("this.f == null && this.f == 'x'", "exclude each other"),
        ("arg1 == null && arg1 != null", "exclude each other"),
        ("thrown || time > 5ms && time < 1ms", "exclude each other"),
        ("thread == 'a' && (thread == 'b')", "exclude each other"),
        ("time < 0ms", "less than 0"),
        ("arg1.length < 0", "less than 0"),
        ("depth == -1", "less than 0"),
        ("thrown && return == 1", "exclude each other"),
        ("return != 1 && thrown == true", "exclude each other"),
        ("arg1.length <= -2", "less than 0"),
        ("!(arg1 == 1) && arg1 == 1", "exclude each other"),
        ("!(arg1 != 'x') && arg1 != 'x'", "exclude each other"),
        ("arg1 && !arg1", "exclude each other"),
        ("thrown && return", "exclude each other"),
        ("arg1.length > 3 && arg1.length < 4", "exclude each other"),
        ("arg1 && arg1 == null", "exclude each other"),
        ("arg1 == true && arg1 == 2", "exclude each other"),
        ("depth == true", "can never hold"),
        ("thrown == 5", 'at "thrown == 5" (character 1)'),
        ("arg1 == 3 || !(time < 5ms) && time < 2ms", "(character 14)"),
    ):
        done = lab.jvmscope(
            "run",
            "--trace",
            "Traced$Calls.ints",
            "--if",
            condition,
            "-o",
            tmp_path / "n.jfr",
            "--",
            "touch",
            tmp_path / "ran",
        )
        assert (
            done.returncode == 2
            and printed in done.stderr
            and "can never hold" in done.stderr
            and not list(tmp_path.iterdir())
        ), (condition, done.stderr)
    for condition, printed in (
        ("time >= 0ms", 'this always holds, at "time >= 0ms" (character 1)'),
        ("depth >= 0", "this always holds"),
        ("thrown < 2", "this always holds"),
        (
            "arg1 == 1 && (thrown || !thrown)",
            'one of these terms holds at any time, so this always holds, at "thrown || !thrown)" (character 15)',
        ),
        ("time > 5ms || time <= 5ms", "one of these terms"),
        ("!(thread == 'a' || thread != 'a')", "(character 3)"),
        ("arg1 || !arg1", "one of these terms"),
    ):
        done = lab.jvmscope(
            "run",
            "--trace",
            "Traced$Calls.ints",
            "--if",
            condition,
            "-o",
            tmp_path / "n.jfr",
            "--",
            "touch",
            tmp_path / "ran",
        )
        assert done.returncode == 2 and printed in done.stderr and not list(tmp_path.iterdir()), (
            condition,
            done.stderr,
        )
    for condition in (
        "arg1 > 5 && arg1 < 7",
        "arg1 > 5 || arg1 <= 5",
        "arg1 == null || arg1 != null",
        "arg1 == null && !arg1",
        "!thrown && !(return == 1)",
        "arg1 && arg1 == 0",
        "thread == 'a' && thread",
        "!(arg1 > 5) && !(arg1 <= 5)",
        "arg1 == true || arg1 == false",
        "arg1 >= 5 && arg1 <= 5",
        "arg1 != null && arg1 == 'x'",
        "arg1 == 'a' || arg1 == 'b'",
        "arg1.f == 1 && arg1.g == 2",
        "!(arg1 > 5) && arg1 < 3",
        "arg1 < 0",
        "arg1 == 'x' && arg1 > 5",
        "arg1.length == 0",
        "arg1.length < 3 && arg1 == 'x'",
        "arg1 != 1 && arg1 != 2",
        "thrown || return == 1",
        "thrown == false && return == 1",
        "!thrown && return == 1",
        "!(arg1 == true) && !(arg1 == false)",
        "arg1 == 1 && arg1 != true",
        "arg1 == true && arg1 == 1",
        "arg1 != 5 && !(arg1 < 5) && !(arg1 > 5) && arg1 != null",
    ):
        done = lab.jvmscope(
            "run",
            "--trace",
            "Traced$Calls.ints",
            "--if",
            condition,
            "-o",
            tmp_path / "n.jfr",
            "--",
            "true",
        )
        assert done.returncode != 2 and "condition:" not in done.stderr, (condition, done.stderr)


def test_a_condition_that_can_never_hold_is_reported_at_the_end(tmp_path):
    """This is not known in a program that is starting before its classes are loaded."""
    for pattern, condition, why in NEVER:
        done = lab.jvmscope(
            "run",
            "--trace",
            pattern,
            "--if",
            condition,
            "-o",
            tmp_path / "n.jfr",
            "--",
            *lab.Jdk(17).command("java", "-cp", lab.compiled("Traced"), "Traced"),
        )
        assert done.returncode == 1 and done.stdout == "done 0\n", done.stderr
        why = f"the condition can never hold: {why}"
        assert traced_nothing(done.stderr) == {pattern: why}, condition


@pytest.mark.jdks(8, 17, 25)
def test_a_condition_that_can_never_hold_is_reported_while_the_program_runs(jdk, tmp_path):
    """As soon as the classes that it depends on are loaded or, for a field that a class that is
    loaded later could still have, at the first call; and no longer at the end, when something else
    was recorded.
    """
    command = [
        lab.BUILD / "jvmscope",
        "run",
        "--trace",
        "TracedForever.two",
        "--trace",
        "TracedForever.one",
        "--if",
        "arg9 == 1",
        "--trace",
        "TracedForever.paint",
        "--if",
        "arg1 == 'PURPLE'",
        "--trace",
        "TracedForever$Item.grow",
        "--if",
        "arg1 > 5 && this.nosuch == 1",
        "-o",
        tmp_path / "n.jfr",
        "--",
        *jdk.command("java", "-cp", lab.compiled("TracedForever"), "TracedForever"),
    ]
    never = "traces nothing so far: the condition can never hold:"
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        stated = "".join(lab.read_until(process.stderr, "traces nothing so far") for _ in range(3))
        stated = sorted(line for line in stated.splitlines() if "traces nothing so far" in line)
        assert stated == [
            "jvmscope: note: --trace TracedForever$Item.grow: traces nothing so far: the condition holds for no class loaded so far: "
            "TracedForever$Item has no field nosuch",
            f"jvmscope: note: --trace TracedForever.one: {never} TracedForever.one has 1 argument and no arg9",
            f"jvmscope: note: --trace TracedForever.paint: {never} arg1 of TracedForever.paint is a TracedForever$Color, "
            "which has no constant PURPLE; there are RED, GREEN",
        ]
    finally:
        out, rest = process.communicate("\n", timeout=120)
    assert (
        process.returncode == 0
        and out == "ready\ndone\n"
        and "never" not in rest
        and "wrote" in rest
    ), rest


@pytest.mark.jdks(8, 17, 25)
def test_a_class_that_is_loaded_later_changes_no_reason(jdk, tmp_path):
    """The agent has compared the condition with the loaded classes before the class of the static
    field is loaded, and the calls come before it would do so again. That the condition can never
    hold is reported then too, and once.
    """
    command = [
        lab.BUILD / "jvmscope",
        "run",
        "--trace",
        "TracedLate.take",
        "--if",
        "TracedLate$Late.tag > 3",
        "--trace",
        "TracedLate.never",
        "--if",
        "arg9 == 1",
        "-o",
        tmp_path / "n.jfr",
        "--",
        *jdk.command("java", "-cp", lab.compiled("TracedLate"), "TracedLate"),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        first = lab.read_until(process.stderr, "traces nothing so far")
        assert (
            "TracedLate.never has 1 argument" in first
            and "take: traces nothing so far" not in first
        )
        process.stdin.write("\n")
        process.stdin.flush()
        then = lab.read_until(process.stderr, "traces nothing so far")
    finally:
        out, rest = process.communicate("\n", timeout=120)
    assert process.returncode == 1 and out == "done\n", rest
    why = "the condition can never hold: the field tag is a text and never a number"
    assert then.endswith(f"note: --trace TracedLate.take: traces nothing so far: {why}\n"), then
    assert "so far" not in rest and traced_nothing(first + then + rest)["TracedLate.take"] == why


@pytest.mark.jdks(8, 17, 25)
def test_a_condition_that_can_never_hold_is_refused_on_attach_and_add(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        out = tmp_path / "a.jfr"
        done = jvmscope(
            "attach",
            "-t",
            "200ms",
            "--trace",
            "TracedForever.one",
            "--if",
            "arg9 == 1",
            "-o",
            out,
            process.pid,
        )
        assert (
            done.returncode == 1 and not out.exists() and len(done.stderr.splitlines()) == 1
        ), done.stderr
        assert (
            "the condition can never hold: TracedForever.one has" in done.stderr
            and "and no arg9" in done.stderr
        )
        # One of two patterns cannot meet it: the other is recorded, and this is reported at once
        # and at the end.
        done = jvmscope(
            "attach",
            "-t",
            "200ms",
            "--trace",
            "TracedForever.one,TracedForever.paint",
            "--if",
            "arg1 == 'GREEN'",
            "-o",
            out,
            process.pid,
        )
        why = "the condition can never hold: arg1 of TracedForever.one is an int and never a text"
        assert (
            done.returncode == 0
            and f"note: --trace TracedForever.one: traces nothing so far: {why}\n" in done.stderr
        ), done.stderr
        assert done.stderr.count(why) == 1 and traced_nothing(done.stderr) == {
            "TracedForever.one": why
        }, done.stderr
        out.unlink()
        done = jvmscope(
            "attach",
            "-t",
            "200ms",
            "--trace",
            "TracedForever.one",
            "--if",
            "TracedForever.reader.no == 1",
            "-o",
            out,
            process.pid,
        )
        assert (
            done.returncode == 1
            and "the condition can never hold: java.lang.Thread has no field no" in done.stderr
        ), done.stderr
        purple = "is a TracedForever$Color, which has no constant PURPLE; there are RED, GREEN\n"
        for condition, subject in (
            ("arg1 == 'PURPLE'", "arg1 of TracedForever.paint"),
            ("return == 'PURPLE' && arg1 != 'RED'", "return of TracedForever.paint"),
            ("TracedForever.shade == 'PURPLE'", "the field shade"),
        ):
            done = jvmscope(
                "attach",
                "-t",
                "200ms",
                "--trace",
                "TracedForever.paint",
                "--if",
                condition,
                "-o",
                out,
                process.pid,
            )
            assert done.returncode == 1 and done.stderr.endswith(
                f"the condition can never hold: {subject} {purple}"
            ), (condition, done.stderr)
        # The end of an empty recording repeats why it is empty; the condition on a constant with a
        # body of its own is met by no call.
        done = jvmscope(
            "attach",
            "-t",
            "100ms",
            "--trace",
            "TracedForever.nosuch",
            "--trace",
            "TracedForever.paint",
            "--if",
            "arg1 == 'GREEN' || arg1 != 'PURPLE'",
            "-o",
            out,
            process.pid,
        )
        note, wrote, repeated, empty = done.stderr.splitlines()
        assert done.returncode == 0 and note.endswith(
            "--trace TracedForever.nosuch: traces nothing so far: TracedForever is loaded and has no such method"
        ), done.stderr
        assert (
            "wrote" in wrote
            and repeated
            == "jvmscope: TracedForever.nosuch: the pattern traced nothing"  # the note has said why
            and empty.endswith(
                "holds no calls: the methods to trace were not called, or no call "
                "met the condition of --if"
            )
        )
        # Nothing is left of it; a method for which it may hold is recorded, and one more is
        # refused.
        one = jvmscope(
            "attach",
            "--trace",
            "TracedForever.one",
            "--if",
            "return != 'x'",
            "-o",
            out,
            process.pid,
        )
        assert one.returncode == 0, one.stderr
        done = jvmscope("trace", process.pid, "add", "TracedForever.main", "--if", "return != 'x'")
        assert (
            done.returncode == 1
            and "return of TracedForever.main is not there: the method returns nothing"
            in done.stderr
        ), done.stderr
        done = jvmscope(
            "trace", process.pid, "add", "TracedForever.paint", "--if", "arg1 == 'PURPLE'"
        )
        assert done.returncode == 1 and done.stderr.endswith(
            f"arg1 of TracedForever.paint {purple}"
        ), done.stderr
        listed = lab.read_json("trace", "--json", process.pid, "list")
        assert listed["patterns"] == ["TracedForever.one"]
        assert jvmscope("stop", "-o", out, process.pid).returncode == 0
        assert {c["method"].split("(")[0] for c in calls(jvmscope, out)} == {"TracedForever.one"}
    finally:
        process.communicate("\n")


@pytest.mark.jdks(8, 17, 25)
def test_methods_are_named_as_requests_are_and_overloads_are_reported(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        out = tmp_path / "a.jfr"
        done = jvmscope(
            "attach", "-t", "300ms", "--trace", "TracedForever.one(..)", "-o", out, process.pid
        )
        assert done.returncode == 0 and "nothing" not in done.stderr, done.stderr
        assert {c["method"].split("(")[0] for c in calls(jvmscope, out)} == {"TracedForever.one"}
        done = jvmscope(
            "attach",
            "-t",
            "100ms",
            "--trace",
            "TracedForever.one",
            "--if",
            "time > 1h",
            "-o",
            out,
            process.pid,
        )
        assert (
            f"{out}: holds no calls: the methods to trace were not called, or no call met the condition of --if\n"
            in done.stderr
        ), done.stderr
        assert (
            jvmscope("trace", out).stderr
            == f"jvmscope: {out}: holds no calls: the methods to trace were not called, or no call met the condition of --if\n"
        )
        for pattern in (
            "TracedForever.one(long)",
            "TracedForever.one(F)I",
            "TracedForever.one(I)",
            "TracedForever.one(int, ..,int)",
        ):
            done = jvmscope("attach", "-t", "50ms", "--trace", pattern, "-o", out, process.pid)
            assert (
                "TracedForever is loaded and has no such method; there is one(int)\n" in done.stderr
            ), done.stderr
        done = jvmscope(
            "attach",
            "-t",
            "50ms",
            "--trace",
            "java.util.concurrent.ConcurrentHashMap.Node.*",
            "-o",
            out,
            process.pid,
        )
        assert ", but java.util.concurrent.ConcurrentHashMap$Node is\n" in done.stderr, done.stderr
        done = jvmscope(
            "attach", "-t", "50ms", "--requests", "TracedForever.nosuch(..)", "-o", out, process.pid
        )
        assert (
            "--requests TracedForever.nosuch(..): nothing so far: the class is loaded and has no such method\n"
            in done.stderr
        ), done.stderr
        assert (
            "--requests: nothing that was loaded matches: TracedForever.nosuch(..)\n" in done.stderr
            and f"{out}: holds no requests: no method that --requests names was called in this time\n"
            in done.stderr
        ), done.stderr
    finally:
        process.communicate("\n")


def test_a_condition_belongs_to_the_trace_before_it(jdk, jvmscope, tmp_path):
    """Each condition holds for the patterns of the trace before it, at the start and by `trace PID
    add`; `list` prints them.
    """
    out = tmp_path / "t.jfr"
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    array = "java.lang.reflect.Array.getInt"
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach",
            "--trace",
            "TracedForever.one",
            "--if",
            "arg1 > 1000000000",
            "--trace",
            "TracedForever.two,no.Such.x",
            "--if",
            "return > 0",
            "--trace",
            array,
            "-o",
            out,
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        listed = lab.read_json("trace", "--json", process.pid, "list")
        assert listed["patterns"] == ["TracedForever.one", "TracedForever.two", "no.Such.x", array]
        assert listed["conditions"] == [
            {"pattern": "TracedForever.one", "if": "arg1 > 1000000000"},
            {"pattern": "TracedForever.two", "if": "return > 0"},
            {"pattern": "no.Such.x", "if": "return > 0"},
        ]
        wait_for_calls(jvmscope, process)
        # A method of two patterns: a call is recorded when the condition of one of them holds.
        done = jvmscope(
            "trace",
            process.pid,
            "add",
            "TracedForever.one(I)I",
            "--if",
            "arg1 > 0 && thrown == false",
        )
        assert done.returncode == 0, done.stderr
        wait_for_calls(jvmscope, process)
        bad = jvmscope("trace", process.pid, "add", "TracedForever.two", "--if", "arg1 >")
        assert (
            bad.returncode == 1
            and "condition: " in bad.stderr
            and len(bad.stderr.splitlines()) == 1
        ), bad.stderr
        assert jvmscope("trace", process.pid, "remove", "TracedForever.one(I)I").returncode == 0
        assert jvmscope("stop", "-o", out, process.pid).returncode == 0
        of = {
            name: [c for c in calls(jvmscope, out) if f"{name}(" in c["method"]]
            for name in (".one", ".two", array)
        }
        assert all(of.values()), {k: len(v) for k, v in of.items()}
        assert all(0 < c["args"][0] <= 1000000000 for c in of[".one"]) and all(
            c["return"] > 0 for c in of[".two"]
        )
        first = min(
            c["start_ns"] for c in of[".one"]
        )  # none before the pattern whose condition they meet
        assert sum(c["start_ns"] < first for c in of[".two"]) > 3
    finally:
        process.communicate("\n")


@pytest.mark.jdks(8, 25)
def test_a_pattern_that_is_added_again_is_replaced_and_says_so(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def add(*words):
        done = jvmscope("trace", "--json", process.pid, "add", *words)
        state = json.loads(done.stdout) if done.returncode == 0 else {"conditions": None}
        return done.stderr, {c["pattern"]: c["if"] for c in state["conditions"] or []}

    one, two = "TracedForever.one", "TracedForever.two"
    try:
        assert process.stdout.readline() == "ready\n"
        assert (
            jvmscope("attach", "--trace", one, "-o", tmp_path / "a.jfr", process.pid).returncode
            == 0
        )
        assert add(one) == ("", {}), "nothing changes"
        assert add(one, "--if", "arg1 > 5") == (
            f"jvmscope: note: --trace {one}: replaced: now with --if arg1 > 5, instead of all calls\n",
            {one: "arg1 > 5"},
        )
        assert add(one, "--if", "arg1 > 5") == ("", {one: "arg1 > 5"})
        assert add(f"{two},{one}", "--if", "arg1 > 6") == (
            f"jvmscope: note: --trace {one}: replaced: now with --if arg1 > 6, instead of --if arg1 > 5\n",
            {one: "arg1 > 6", two: "arg1 > 6"},
        )
        assert add("TracedForever::one") == (
            f"jvmscope: note: --trace {one}: replaced: now all calls, instead of --if arg1 > 6\n",
            {two: "arg1 > 6"},
        )
        printed, _ = add(
            two, "--if", "arg9 == 1"
        )  # refused: the existing patterns are kept, and nothing is replaced
        assert "can never hold" in printed and "replaced" not in printed, printed
        listed = lab.read_json("trace", "--json", process.pid, "list")
        assert listed["conditions"] == [{"pattern": two, "if": "arg1 > 6"}] and sorted(
            listed["patterns"]
        ) == [one, two]
        assert jvmscope("trace", process.pid, "remove", "TracedForever::two").returncode == 0
        stopped = jvmscope("stop", "-o", tmp_path / "a.jfr", process.pid)
        assert stopped.returncode == 0 and "replaced" not in stopped.stderr, stopped.stderr
    finally:
        process.communicate("\n")


def test_a_method_reference_is_a_pattern_too(tmp_path):
    """Java writes night.Audit::over where the patterns have night.Audit.over; a colon alone still
    separates patterns.
    """

    def recorded(*options):
        out = tmp_path / "m.jfr"
        done = lab.jvmscope(
            "run",
            *options,
            "-o",
            out,
            "--",
            *lab.Jdk(17).command("java", "-cp", lab.compiled("Traced"), "Traced"),
        )
        assert done.returncode == 0 and "nothing" not in done.stderr, done.stderr
        return sorted(
            {c["method"].split("(")[0] for c in lab.read_json("trace", "--json", out)["calls"]}
        )

    longs, ints = "Traced$Calls.longs", "Traced$Calls.ints"
    assert recorded("--trace", "Traced$Calls::longs") == [longs]
    assert (
        recorded("--trace", "Traced$Calls::longs,Traced$Calls::ints")
        == [ints, longs]
        == recorded("--trace", f"{longs}:{ints}")
    )
    assert recorded("--trace", "Traced$Calls", "--exclude", "Traced$Calls::longs") == [
        m for m in recorded("--trace", "Traced$Calls") if m != longs
    ]
    done = lab.jvmscope(
        "run",
        "--requests=Traced$Calls::longs",
        "-o",
        tmp_path / "r.jfr",
        "--",
        *lab.Jdk(17).command("java", "-cp", lab.compiled("Traced"), "Traced"),
    )
    assert done.returncode == 0 and {
        n["name"] for n in lab.read_json("requests", "--json", tmp_path / "r.jfr")["requests"]
    } == {longs}, done.stderr


def test_limit_and_loss_are_counted(jvmscope, tmp_path):
    """The loss begins with the first call that was lost, after the last one that was recorded."""
    out = tmp_path / "t.jfr"
    jdk = lab.Jdk(17)
    for limit in ("limit=100", "bytes=4096", "rate=100"):
        record(jdk, out, "trace=Traced$Calls.longs", limit, args=("5000",))
        shown = json.loads(jvmscope("trace", "--json", "-n", 10000, out).stdout)
        recorded, (loss,) = shown["calls"], shown["losses"]
        (began,) = struct.unpack(">q", out.read_bytes()[32:40])  # of the first chunk
        times = sorted(c["start_ns"] - began for c in recorded)
        if limit == "rate=100":  # the seconds of the clock, of which each has a hundred calls
            assert times[0] < loss["from_ns"] and loss["amount"] > 0, (loss, times)
        else:
            assert 0 < times[-1] <= loss["from_ns"] <= times[-1] + 10**9, (loss, times[-1])
        if limit == "limit=100":
            assert len(recorded) == 100


def wait_for_calls(jvmscope, process, more=20):
    """Waits until the trace has this many more calls than now."""

    def written():
        return lab.read_json("status", "--json", process.pid)["trace.calls"]

    end = written() + more
    lab.wait_for(lambda: written() >= end, 30, f"{more} calls that are traced")


def test_switching_in_a_running_vm(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        nothing = jvmscope("trace", process.pid, "list")
        assert nothing.returncode == 1 and "recorded" in nothing.stderr
        done = jvmscope("attach", "--trace", "TracedForever.one", process.pid, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        wait_for_calls(jvmscope, process)
        listed = lab.read_json("trace", "--json", process.pid, "list")
        assert listed["patterns"] == ["TracedForever.one"] and listed["methods"] == [
            "TracedForever.one(I)I"
        ]
        assert "\n  int TracedForever.one(int)\n" in lab.output("trace", process.pid, "list")
        added = lab.read_json(
            "trace",
            "--json",
            process.pid,
            "add",
            "TracedForever.two,java.lang.reflect.Array.getInt",
        )
        assert (
            added["patterns"]
            == ["TracedForever.one", "TracedForever.two", "java.lang.reflect.Array.getInt"]
            and added["unmatched"] == []
        )
        two = ["TracedForever.two(I)I", "java.lang.reflect.Array.getInt(Ljava/lang/Object;I)I"]
        assert sorted(added["methods"]) == ["TracedForever.one(I)I", *two]
        left = lab.read_json("trace", "--json", process.pid, "remove", "TracedForever.one")
        assert (
            sorted(left["methods"]) == two and left["patterns"] == added["patterns"][1:]
        )  # only what is traced now
        wait_for_calls(jvmscope, process, 40)
        assert (
            jvmscope("trace", process.pid, "remove", "java.lang.reflect.Array.getInt").returncode
            == 0
        )
        wait_for_calls(jvmscope, process)
        done = jvmscope("trace", process.pid, "remove", "TracedForever.one")
        assert done.returncode == 1 and (
            f"not among the patterns; list them with: jvmscope trace {process.pid} list\n"
            in done.stderr
        ), done
        assert jvmscope("stop", "-o", out, process.pid).returncode == 0
        everything = calls(jvmscope, out)
        seen = [c for c in everything if "TracedForever" in c["method"]]
        ones = [c["start_ns"] for c in seen if ".one(" in c["method"]]
        twos = [c["start_ns"] for c in seen if ".two(" in c["method"]]
        assert len(ones) > 10 and len(twos) > 10
        assert all(c["return"] == c["args"][0] + (1 if ".one(" in c["method"] else 2) for c in seen)
        natives = [c for c in everything if c not in seen]
        assert len(natives) > 5 and {c["method"] for c in natives} == {
            "java.lang.reflect.Array.getInt(Ljava/lang/Object;I)I"
        }
        assert max(ones) < max(twos) and max(c["start_ns"] for c in natives) < max(twos)
        process.stdin.close()
        assert process.wait(20) == 0 and process.stdout.read() == "done\n"
    finally:
        process.kill()
        process.wait()


def test_json_of_a_recording_with_other_texts(jvmscope, tmp_path):
    """Text in the recording that is not JSON becomes a string in the output; `this` ends where its
    value does.
    """
    out, other = tmp_path / "t.jfr", tmp_path / "o.jfr"
    record(lab.Jdk(17), out, "trace=Traced$Calls.ints:Traced$Calls.instance")
    whole = calls(jvmscope, out)
    assert [c["args"] for c in whole if ".ints(" in c["method"]] == [[-1, 300, "c", 70000, True]]
    for old, new in (
        (b'[-1,300,"c"', b'[-1,300,"c'),
        (b"70000,", b'7\xff\x01"{,'),
        (b"70000,true]", b"70000]true]"),
    ):
        assert out.read_bytes().count(old) == 1
        other.write_bytes(out.read_bytes().replace(old, new.ljust(len(old))))
        seen = calls(jvmscope, other)  # parses
        assert len(seen) == len(whole) and isinstance(
            next(c for c in seen if ".ints(" in c["method"])["args"], str
        )
        assert [c["this"] for c in seen if ".instance(" in c["method"]] == [
            c["this"] for c in whole if ".instance(" in c["method"]
        ]


@pytest.mark.jdks(8, 17, 25)
def test_patterns_that_match_nothing_are_reported_at_the_end(jdk, tmp_path):
    command = [
        lab.BUILD / "jvmscope",
        "run",
        "--trace",
        ":".join(["TracedForever.one", *UNMATCHED]),
        "-o",
        tmp_path / "n.jfr",
        "--",
        *jdk.command("java", "-cp", lab.compiled("TracedForever"), "TracedForever"),
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout == "ready\ndone\n", done.stderr
    stated = dict(
        l.removeprefix("jvmscope: ").split(": the pattern traced nothing: ")
        for l in done.stderr.splitlines()
        if "traced nothing" in l
    )
    assert stated == {
        **UNMATCHED,
        UNLINKED: f"{UNLINKED} cannot be traced: it is native and was not linked: it was never called, or its library "
        "was not found",
    }


@pytest.mark.jdks(8, 17, 25)
def test_each_call_has_the_name_that_its_thread_has(jdk, tmp_path):
    """Calls, conditions and log lines have the name that the thread has at that time, not the one
    with which it started.
    """
    names = {
        1: "at-first",
        2: "sp\u00e4ter \U0001f600",
        3: None,
        4: "inside",
        5: "long " * 50,
        6: "main",
        7: "main-renamed",
    }

    def calls(*options):
        out = tmp_path / "r.jfr"
        done = lab.jvmscope(
            "run",
            *options,
            "-o",
            out,
            "--",
            *jdk.command("java", "-cp", lab.compiled("Renamed"), "Renamed"),
        )
        assert done.returncode == 0, done.stderr
        return out, lab.read_json("trace", "--json", out)

    out, traced = calls(
        "--trace", "Renamed.call,Renamed.rename", "--log", "Renamed:7 [{thread}] {n}"
    )
    got = {
        c["args"][0]: c["thread"] for c in traced["calls"] if c["method"].startswith("Renamed.call")
    }
    assert got.pop(3).startswith("thread #") and got == {
        n: name for n, name in names.items() if name
    }
    assert [c["thread"] for c in traced["calls"] if c["method"].startswith("Renamed.rename")] == [
        "inside"
    ]
    assert [e["text"] for e in traced["events"] if "text" in e] == [
        f"[{name or ''}] {n}" for n, name in names.items()
    ]
    assert [
        c["args"][0]
        for c in lab.read_json("trace", "--json", "--thread", "main-renamed,*ter*", out)["calls"]
    ] == [2, 7]
    for condition, wanted in (
        ("thread == 'main-renamed'", [7]),
        (f"thread == '{names[2]}'", [2]),
        ("thread == ''", [3]),
        ("thread != 'at-first'", [2, 3, 4, 5, 6, 7]),
    ):
        assert [
            c["args"][0] for c in calls("--trace", "Renamed.call", "--if", condition)[1]["calls"]
        ] == wanted, condition


@pytest.mark.jdks(8, 17)
def test_a_condition_that_is_refused_leaves_no_note(jdk, jvmscope, tmp_path):
    """It takes a while to change the classes, and meanwhile the condition used to be reported as
    one of the recording.
    """
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        assert (
            jvmscope(
                "attach", "--trace", "TracedForever.one", "-o", tmp_path / "a.jfr", process.pid
            ).returncode
            == 0
        )
        for n in range(3):
            done = jvmscope(
                "trace", process.pid, "add", "TracedForever.one,java.io.*", "--if", f"arg9 > {n}"
            )
            assert done.returncode == 1 and "the condition can never hold: " in done.stderr, done
        assert "so far" not in jvmscope("status", process.pid).stdout
        done = jvmscope("trace", process.pid, "list")
        assert (
            "so far" not in done.stdout + done.stderr
            and jvmscope("stop", process.pid).returncode == 0
        )
    finally:
        process.communicate(timeout=60)


UNLINKED = "TracedForever.unlinked"
UNMATCHED = {
    UNLINKED: f"{UNLINKED} cannot be traced: it is native, and its code was not found: it is not linked yet, or RegisterNatives has bound it",
    "String.length": "no class of this name is loaded, but java.lang.String is",
    "ArrayList.add": "no class of this name is loaded, but java.util.ArrayList is",
    "Color.values": "no class of this name is loaded, but TracedForever$Color is",
    "tracedforever.one": "no class of this name is loaded, but TracedForever is",
    "Map.Entry.getKey": "no class of this name is loaded, but java.util.Map$Entry is",
    "no.such.Class.*": "no class of this name is loaded",
    "TracedForever.on": "TracedForever is loaded and has no such method; there is one(int)",
    "TracedForever$$Lambda*.nosuch": "TracedForever$$Lambda is loaded and has no such method",
    "TracedForever$$Lambda.run": "TracedForever$$Lambda.run cannot be traced: the VM does not allow its class to be changed",
    "TracedForever$$Lambda[lambda$static$0].run": "the code of a lambda is traced as TracedForever.lambda$static$0",
    "TracedForever$$Lambda[a.B.c].run": "what a method reference calls is traced as a.B.c, with its package",
    "java.lang.Runnable.run": "java.lang.Runnable.run cannot be traced: it is abstract, and no loaded class of the program that can be traced "
    "implements it; the code of a lambda is traced by its own name, such as TracedForever.lambda$static$0",
    "java.lang.String.length": "java.lang.String.length cannot be traced: the trace itself calls methods of its class",
    "java.lang.Math.max(II)I": "java.lang.Math.max cannot be traced: the JIT replaces it as a whole, so that its code does not run",
}


@pytest.mark.jdks(8, 17, 25)
def test_patterns_that_match_nothing_are_reported_on_attach_and_add(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach",
            "--trace",
            "TracedForever.one," + ",".join(UNMATCHED),
            "--log",
            "no.Such:1 x;TracedForever:9999 y",
            "--watch",
            "TracedForever.nosuch,TracedForever.quiet,no.Such.field",
            "-o",
            tmp_path / "a.jfr",
            process.pid,
        )
        assert done.returncode == 0, done.stderr
        notes = [
            l.removeprefix("jvmscope: note: ") for l in done.stderr.splitlines() if "so far" in l
        ]
        assert sorted(notes) == sorted(
            [f"--trace {p}: traces nothing so far: {why}" for p, why in UNMATCHED.items()]
            + [
                "--log no.Such:1: nothing is logged so far: no class of this name is loaded",
                "--log TracedForever:9999: nothing is logged so far: the class is loaded and has no code for this line",
                "--watch TracedForever.nosuch: nothing is watched so far: the class is loaded and declares no field of this name",
                "--watch TracedForever.quiet: nothing is watched so far: no loaded code has an instruction that reads or writes this field; reflection, VarHandle, Unsafe and JNI are not seen",
                "--watch no.Such.field: nothing is watched so far: no class of this name is loaded",
            ]
        )
        added = json.loads(
            jvmscope("trace", "--json", process.pid, "add", "TracedForever.thre").stdout
        )
        assert {
            "pattern": "TracedForever.thre",
            "why": "TracedForever is loaded and has no such method",
        } in added["unmatched"]
        assert len(added["unmatched"]) == len(UNMATCHED) + 1
        assert (
            "TracedForever is loaded and has no such method"
            in jvmscope("trace", process.pid, "list").stdout
        )
        # The answer in text is only what was changed.
        listed = f"jvmscope trace {process.pid} list shows all that is traced\n"
        assert (
            lab.output("trace", process.pid, "add", "TracedForever.two")
            == "added (1)\n  TracedForever.two\nmethods added (1)\n  int TracedForever.two(int)\n"
            + listed
        )
        assert lab.output("trace", process.pid, "add", "String.trim") == (
            "added (1)\n  String.trim\nunmatched added (1)\n  pattern      why\n  String.trim  no class of this name is loaded, but java.lang.String is\n"
            + listed
        )
        assert (
            lab.output("trace", process.pid, "remove", "TracedForever.two")
            == "removed (1)\n  TracedForever.two\n" + listed
        )
    finally:
        process.communicate("\n")


CANNOT = " below this type cannot be traced: the VM does not allow those of lambdas, method references and hidden classes to be changed"
LAMBDA = "the code of a lambda is traced by its own name, such as Implemented.lambda$main$"
ABSTRACT = " cannot be traced: it is abstract"
UNTRACED = f"{ABSTRACT}, and no loaded class of the program that can be traced implements it"
# Patterns and what is reported about them: nothing if everything that they match is traced.
BY_LAMBDAS = {
    "implements Implemented$Job": (
        True,
        f"3 classes{CANNOT}; {LAMBDA}N, and what a method reference calls by its own name, such as Implemented$Helper.help",
    ),
    "implements Implemented$Task": (False, f"1 class{CANNOT}; {LAMBDA}N"),
    "implements Implemented$Step": (
        False,
        f"1 class{CANNOT}; what a method reference calls is traced by its own name, such as Implemented$Helper.help",
    ),
    "implements Implemented$Plain": (True, None),
    "implements Implemented$Worker": (True, None),
    "implements java.util.SortedMap": (False, "no loaded class of the program is below this type"),
    "implements Worker": (False, "no class of this name is loaded, but Implemented$Worker is"),
    "Implemented$Job.work": (
        False,
        f"Implemented$Job.work{ABSTRACT}: trace the methods that implement it with 'implements Implemented$Job'; {LAMBDA}N, and what a method reference calls by its own name, such as Implemented$Helper.help",
    ),
    "Implemented$Step.step": (
        False,
        f"Implemented$Step.step{UNTRACED}; what a method reference calls is traced by its own name, such as Implemented$Helper.help",
    ),
    "Implemented$Plain.plain": (
        False,
        f"Implemented$Plain.plain{ABSTRACT}: trace the methods that implement it with 'implements Implemented$Plain'",
    ),
    "Implemented$Task.run": (False, f"Implemented$Task.run{UNTRACED}; {LAMBDA}N"),
    "Implemented$$Lambda[Implemented$Helper::help].step": (
        False,
        "what a method reference calls is traced as Implemented$Helper.help",
    ),
    "Implemented$$Lambda[Optional::isPresent].test": (
        False,
        "what a method reference calls is traced as java.util.Optional.isPresent",
    ),
    "Implemented$$Lambda[Optional::get].test": (
        False,
        "what a method reference calls is traced as Optional.get, with its package",
    ),
}


def numbered(text):
    return re.sub(r"lambda\$main\$\d", "lambda$main$N", text)


@pytest.mark.jdks(8, 17, 25)
def test_lambdas_and_method_references_that_cannot_be_traced_are_reported(jdk, jvmscope, tmp_path):
    """Each is reported with the method that is traced instead, also if other classes below the type
    are traced.
    """
    program = ("-cp", lab.compiled("Implemented"), "Implemented")
    for pattern, (traced, why) in BY_LAMBDAS.items():
        done = jvmscope(
            "run",
            "--trace",
            pattern,
            "-o",
            tmp_path / "r.jfr",
            "--",
            *jdk.command("java", *program),
        )
        stated = [numbered(l) for l in done.stderr.splitlines() if "the pattern" in l]
        says = "did not trace all that it matches" if traced else "traced nothing"
        assert stated == (
            [f"jvmscope: {pattern.replace('::', '.')}: the pattern {says}: {why}"] if why else []
        ) and done.returncode == (0 if traced else 1), (pattern, done.stderr)
    process = jdk.start_java(
        "Implemented",
        "forever",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach", "--trace", ",".join(BY_LAMBDAS), "-o", tmp_path / "a.jfr", process.pid
        )
        assert done.returncode == 0, done.stderr
        notes = sorted(
            numbered(l.removeprefix("jvmscope: note: --trace "))
            for l in done.stderr.splitlines()
            if "note" in l
        )
        assert notes == sorted(
            f"{p.replace('::', '.')}: {'does not trace all that it matches' if traced else 'traces nothing so far'}: {why}"
            for p, (traced, why) in BY_LAMBDAS.items()
            if why
        ), done.stderr
        listed = lab.read_json("trace", "--json", process.pid, "list")
        for key, partly in (("unmatched", False), ("partly_traced", True)):
            assert {u["pattern"]: numbered(u["why"]) for u in listed[key]} == {
                p.replace("::", "."): why
                for p, (traced, why) in BY_LAMBDAS.items()
                if why and traced == partly
            }
        # The hints are right: what they name is traced.
        job = "implements Implemented$Job"
        hinted = re.findall(
            r"such as ([\w$.]+)",
            next(u["why"] for u in listed["partly_traced"] if u["pattern"] == job),
        )
        assert len(hinted) == 2
        added = lab.read_json("trace", "--json", process.pid, "add", ",".join([job, *hinted]))
        assert [u["pattern"] for u in added["partly_traced_added"]] == [job] and added[
            "unmatched_added"
        ] == []
        assert sorted(m.split("(")[0].split()[-1] for m in added["methods_added"]) == sorted(hinted)
    finally:
        process.communicate("\n", timeout=60)


def test_native_methods(jdk, jvmscope, tmp_path):
    """Every type in registers and on the stack, exceptions of native methods, and natives of the
    JDK that are bound already.
    """
    out = tmp_path / "t.jfr"
    library = lab.BUILD / "tests" / "agents" / "libtracejni.so"
    plain = jdk.java("TracedNative", library, jvm=("-Xmx64m",))
    agent = jdk.agent(f"trace=TracedNative:java.lang.reflect.Array,format=r,file={out}")
    done = jdk.java("TracedNative", library, jvm=(agent, "-Xmx64m", "-Xcheck:jni"))
    assert (
        done.returncode == 0
        and [l for l in done.stdout.splitlines() if not l.startswith("WARNING")]
        == plain.stdout.splitlines()
    )
    seen = {}
    for c in calls(jvmscope, out):
        name = c["method"].split("(")[0].replace("java.lang.reflect.", "")
        seen.setdefault(name, []).append(
            (c["args"], c.get("return", "absent"), c["exception"], c["depth"])
        )

    def one(name):
        assert len(seen["TracedNative." + name]) == 1
        args, back, thrown, depth = seen["TracedNative." + name][0]
        assert depth == 1
        return args, back if thrown is None else thrown

    many = one("many")
    assert many[0][:20] == [
        -1,
        {"number": str(1 << 60)},
        1.5,
        2.5,
        -3,
        -4,
        "c",
        True,
        None,
        3.5,
        4.5,
        5.5,
        6.5,
        7.5,
        8.5,
        9.5,
        77,
        -88,
        10.5,
        "t",
    ]
    assert (
        re.match(r"int\[3\]@[0-9a-f]+\{", many[0][20]["object"])
        and many[1]["number"] == plain.stdout.split()[0]
    )
    assert one("hello") == (["x", 3], "hello") and one("fails") == (
        [5],
        "java.lang.IllegalStateException",
    )
    assert (
        one("no") == ([], False)
        and one("bytes") == ([], -7)
        and one("chars") == ([], "\u263a")
        and one("shorts") == ([], -300)
    )
    assert (
        one("floats") == ([2.0], 0.5)
        and one("doubles") == ([3.0], 1.5)
        and one("same") == (["s"], "s")
    )
    assert one("locked") == ([4], 8)
    assert [(c[0], c[1], c[3]) for c in seen["TracedNative.calls"]] == [
        ([2], 2, 2),
        ([1], 1, 4),
        ([0], 0, 6),
    ]
    ((args, back, thrown, _),) = seen["Array.getByte"]
    assert (
        args[1] == 3 and back == "absent" and thrown == "java.lang.ArrayIndexOutOfBoundsException"
    )
    assert [c[0][1:] for c in seen["Array.setDouble"]] == [[1, 2.5]]


@pytest.mark.jdks(8, 17)
def test_methods_with_the_name_of_one_that_the_jit_replaces(jdk, jvmscope, tmp_path):
    """JDK 8 marks no intrinsics, so the agent knows their names; what has such a name and other
    parameters is called like any method.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "Sums",
        2000,
        jvm=(
            jdk.agent(
                f"format=r,trace=java.util.zip.CRC32.update:java.util.Arrays.equals,file={out}"
            ),
            "-Xmx64m",
        ),
    )
    assert done.returncode == 0 and done.stdout == "2000\n" and not done.stderr, done.stderr
    mine = collections.Counter(
        (c["method"].partition("(")[0], len(c["args"]))
        for c in calls(jvmscope, out)
        if c["thread"] == "sums"
    )
    # JDK 8 has update(byte[]) in the class itself; later versions have it in Checksum, where it
    # calls update(byte[], int, int).
    crc = {1: 4000, 3: 2000} if jdk.version == 8 else {1: 2000, 3: 4000}
    assert mine == {("java.util.zip.CRC32.update", n): count for n, count in crc.items()} | {
        ("java.util.Arrays.equals", 2): 2000
    }, mine


@pytest.mark.parametrize(
    "pattern, want",
    [
        ("@Typed$Timed", {"Other.first"}),
        ("@Typed$Timed2", {"Other.second", "Whole.one", "Whole.<init>"}),
        ("@Typed$Nothing", set()),
        (
            "implements Typed$Shape",
            {"Base.area", "Base.<init>", "Square.area", "Square.<init>", "Shape.twice"},
        ),
        (
            "implements Typed$Base:Typed$Other.third:Typed$Square.area",
            {"Base.area", "Base.<init>", "Square.area", "Square.<init>", "Other.third"},
        ),
        ("implements no.such.Type", set()),
    ],
)
def test_patterns_by_annotation_and_type(jdk, jvmscope, tmp_path, pattern, want):
    out = tmp_path / "t.jfr"
    done = jdk.java("Typed", jvm=("-Xmx64m", jdk.agent(f"format=r,trace={pattern},file={out}")))
    assert done.returncode == 0 and done.stdout == "done 39\n", done.stderr
    listed = jvmscope("trace", "--json", out)
    seen = (
        [c["method"] for c in json.loads(listed.stdout)["calls"]] if listed.returncode == 0 else []
    )
    assert {m.split("$")[1].split("(")[0] for m in seen} | ({"Whole.<init>"} & want) == want
    areas = [m for m in seen if ".area" in m]
    assert len(areas) == (2 if any("area" in w for w in want) else 0), "each call once"


def test_rate_and_bytes_are_limits(jvmscope, tmp_path):
    jdk = lab.Jdk(17)
    for option, most in (("rate=10", 40), ("bytes=2k", 30)):
        out = tmp_path / "t.jfr"
        record(jdk, out, "trace=Traced$Calls.longs", option, args=("2000",))
        assert 5 <= len(calls(jvmscope, out)) <= most, option


@pytest.mark.jdks(21, 25)
def test_virtual_threads_have_their_names(jdk, jvmscope, tmp_path):
    out = tmp_path / "v.jfr"
    done = jdk.java(
        "Virtual",
        "8",
        "3",
        release=21,
        jvm=(jdk.agent(f"format=r,trace=Virtual.rounds,file={out}"),),
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    assert sorted(c["thread"] for c in calls(jvmscope, out)) == [f"virtual-{i}" for i in range(8)]


@pytest.mark.jdks(8, 17, 25)
def test_no_call_of_others_is_lost_while_patterns_change(jdk, jvmscope, tmp_path):
    """Neither calls of the methods that are traced before and after the change, nor those in
    progress at the time.
    """
    out = tmp_path / "t.jfr"
    with jdk.start_java(
        "TracedTicks", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == "ready\n"
        patterns = "TracedTicks.tick,TracedTicks.slow,implements TracedTicks$Counted"
        assert jvmscope("attach", "--trace", patterns, "-o", out, process.pid).returncode == 0
        for words in (
            ["add", "TracedTicks.other"],
            ["add", "implements java.lang.Runnable"],
            ["add", "TracedTicks.other", "--if", "arg1 > 1000"],
            ["remove", "implements java.lang.Runnable"],
            ["remove", "TracedTicks.other"],
        ):
            time.sleep(0.1)
            done = jvmscope("trace", process.pid, *words)
            assert done.returncode == 0, done.stderr
        time.sleep(0.1)
        assert jvmscope("stop", process.pid).returncode == 0
        assert process.communicate("\n", timeout=60)[0] == "done\n" and process.returncode == 0
    of = collections.defaultdict(list)
    for c in calls(jvmscope, out):
        of[re.search(r"TracedTicks[\w$]*\.([\w$]+)", c["method"])[1]].append(c["args"][-1])
    for name, least in (("tick", 1000), ("count", 1000), ("slow", 20)):
        seen = sorted(of[name])
        assert len(seen) >= least and seen == list(range(seen[0], seen[-1] + 1)), (
            name,
            [(a, b) for a, b in zip(seen, seen[1:]) if b != a + 1],
        )
    assert of["other"]


@pytest.mark.jdks(21, 25, 27)
@pytest.mark.parametrize("threads, rounds", [(10, 30), (500, 4)])
def test_calls_of_virtual_threads_nest_as_they_were_made(jdk, jvmscope, tmp_path, threads, rounds):
    """Their entry and exit, and the calls in between, may be made on different carriers."""
    out, n = tmp_path / "v.jfr", threads * rounds
    done = jdk.java(
        "VirtualCalls",
        threads,
        rounds,
        release=21,
        jvm=(jdk.agent(f"format=r,trace=VirtualCalls.*,exclude=VirtualCalls.main,file={out}"),),
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    of = collections.Counter(
        (short(c["method"]), c["depth"], short(c["caller"]))
        for c in calls(jvmscope, out)
        if "lambda" not in c["method"]
    )
    base = 0 if ("rounds", 0, None) in of else 1  # the lambda is the outermost call
    assert of == {
        ("rounds", base, None if base == 0 else "lambda$main$0"): threads,
        ("outer", base + 1, "rounds"): n,
        ("inner", base + 2, "outer"): 2 * n,
        ("deep", base + 2, "outer"): n,
        ("deep", base + 3, "deep"): n,
        ("deep", base + 4, "deep"): n,
        ("beside", base + 1, "rounds"): n,
    }
    assert not lab.read_json("trace", "--json", out)["lost"]


def short(method):
    return method and re.search(r"VirtualCalls\.([\w$]+)", method)[1]


@pytest.mark.jdks(8, 21)
def test_threads_without_a_name_are_numbered_as_what_they_are(jdk, jvmscope, tmp_path):
    """Only a virtual thread may have null as its name; a platform thread may have an empty name."""
    out = tmp_path / "n.jfr"
    virtual = jdk.version == 21
    line = 1 + next(
        i
        for i, text in enumerate((lab.ROOT / "tests/java/Nameless.java").read_text().splitlines())
        if "// logged" in text
    )
    options = f"format=r,trace=Nameless.call,log=Nameless:{line} of [{{thread}}],watch=Nameless.last,file={out}"
    done = jdk.java("Nameless", release=21 if virtual else 8, jvm=(jdk.agent(options),))
    assert done.returncode == 0, done.stderr
    platform, *others = done.stdout.split()
    assert len(others) == virtual
    threads = [f"thread #{platform}", *(f"virtual #{n}" for n in others)]
    assert [c["thread"] for c in calls(jvmscope, out)] == threads
    events = lab.read_json("trace", "--json", out)["events"]
    assert [(e["kind"], e["thread"]) for e in events] == [
        (kind, t) for t in threads for kind in ("log", "access")
    ]
    assert {e["text"] for e in events if e["kind"] == "log"} == {"of []"}
    for t in threads:
        shown = [
            l.split(None, 2 if "Nameless.call()" in l else 1)[-1]
            for l in lab.output("trace", "--thread", t, out).splitlines()[1:]
        ]
        assert len(shown) == 3 and all(t in l for l in shown), shown


def test_fields_and_texts_of_objects(jdk, jvmscope, tmp_path):
    """A toString() that throws, loops or waits for a lock that the caller holds does no harm and is
    reported in one line each.
    """
    out = tmp_path / "s.jfr"
    words = (
        "trace=Shown.take:Shown$Nice.inner",
        "show=Shown$Base.id:Shown$Point.x:Shown$Point.y:Shown$Point.c:Shown$Point.flag:"
        "Shown$Point.name:Shown$Point.numbers:Shown$Point.next",
        "tostring=Shown$Nice:Shown$Throws:Shown$Loops:Shown$Waits:Shown$Nothing",
    )
    # Ahead of other programs, because a toString() that has no processor for 100 ms is given up.
    process = jdk.start_java(
        "Shown",
        jvm=("-Xmx64m", jdk.agent(f"format=r,{','.join(words)},file={out}")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lab.on_time,
    )
    stated = ""

    def ended():
        nonlocal stated
        asked = jvmscope("status", process.pid)
        stated = asked.stdout if "tostring" in asked.stdout else stated
        return process.poll() is not None

    lab.wait_for(ended, 120, "the end of the program")
    assert (
        process.wait() == 0
        and process.stdout.read() == "done true\n"
        and process.stderr.read() == ""
    )
    assert {
        line[len("note") :].strip() for line in stated.splitlines() if line.startswith("note ")
    } >= {
        "tostring: Shown$Throws.toString() threw java.lang.IllegalStateException",
        "tostring: Shown$Loops.toString() did not end in 100 ms: it is not called for a second, and longer if that happens again",
    }, stated
    seen = [re.sub("@[0-9a-f]+", "@", c["args"][0]["object"]) for c in calls(jvmscope, out)]
    assert seen[0] == (
        'Shown$Point@{x=3, y=2.5, c=\'z\', flag=true, name="a \\"point\\"", numbers=int[2]@, next=Shown$Point@, id=1099511627776}'
    )
    assert (
        "Shown$Nice@{n=7 nice}" in seen
        and "Shown$Nothing@{null}" in seen
        and seen.count("Shown$Throws@ (toString: threw java.lang.IllegalStateException)") == 3
    )
    for slow in ("Shown$Loops@ (toString: ", "Shown$Waits@ (toString: "):
        assert seen.count(f"{slow}longer than 100 ms)") + seen.count(f"{slow}not called)") == 4
    assert all(c["thread"] == "main" for c in calls(jvmscope, out)) and not any(
        "inner" in c["method"] for c in calls(jvmscope, out)
    )
    slow = [c["ns"] for c in calls(jvmscope, out) if c["ns"] > 90e6]
    assert len(slow) <= 3, "each class costs the program its time once"


@pytest.mark.measured
@pytest.mark.slow
@pytest.mark.jdks(8, 17, 25)
def test_a_million_calls_a_second_for_a_minute(jdk, jvmscope, tmp_path):
    """Memory is bounded, every call is written or counted as lost, and the program is never
    delayed: its thread waits no more often than without tracing.
    """
    out, seconds, short = tmp_path / "f.jfr", 60, 15
    _, _, slowest_alone_us, most_alone_us, waits_alone = map(
        int, jdk.java("Floods", str(short), jvm=("-Xmx64m",)).stdout.split()
    )
    process = jdk.start_java(
        "Floods",
        str(seconds),
        jvm=("-Xmx64m", jdk.agent(f"format=r,trace=Floods.work,limit=1000000,file={out}")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    resident, counters = [], {}
    for _ in range(2 * seconds):
        if process.poll() is not None:
            break
        text = open(f"/proc/{process.pid}/status").read() if process.poll() is None else ""
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        resident += [int(found[1]) >> 10] if found else []
        asked = jvmscope("status", "--json", process.pid)
        counters = json.loads(asked.stdout) if asked.returncode == 0 else counters
        time.sleep(2)
    calls_made, total, slowest_us, most_us, waits = map(int, process.stdout.read().split())
    assert (
        process.returncode == 0
        and process.stderr.read() == ""
        and total == calls_made == seconds * 1_000_000
    )
    lost = json.loads(jvmscope("trace", "--json", "-n", 1, out).stdout)["lost"]
    print(
        f"calls {calls_made}, {counters}, resident {resident[0]} to {max(resident)} MB, slowest 1000 calls {slowest_us} us "
        f"({most_us} us of CPU at most), untraced {slowest_alone_us} ({most_alone_us}); waits a second {waits / seconds:.2f}, untraced {waits_alone / short:.2f}"
    )
    # The first thousand calls are interpreted. By the clock a call may take longer, because its
    # thread waits for a processor, which the agent's thread uses too.
    assert most_us < 20_000
    # The VM's safepoints are waits too. The rings are emptied ten times a second, so waits for that
    # would be ten per second.
    assert waits / seconds <= waits_alone / short + 2
    assert counters["trace.calls"] == 1_000_000 and lost == calls_made - 1_000_000
    steady = resident[len(resident) // 2 :]
    assert max(steady) - min(steady) < 64 and max(resident) < 512


@pytest.mark.jdks(8, 17, 25)
def test_traced_calls_are_written_into_memory_that_was_used_before(jdk, jvmscope, tmp_path):
    """A burst of 4000 calls fills 100 pages. That these are touched for the first time doubled what
    a call costs. Without that, the fastest burst takes less than 3.5 readings of the clock per call,
    of which 2 are its own.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "TraceCost",
        "burst",
        jvm=("-Xmx128m", jdk.agent(f"format=r,limit=1000000,trace=TraceCost.called,file={out}")),
        check=True,
    )
    faults, clock_ns, fastest_ns = (float(x.replace(",", ".")) for x in done.stdout.split()[:3])
    recorded = lab.read_json("trace", "--json", "-n", "1", out)
    assert (recorded["calls_all"], recorded["lost"]) == (30 * 4000, 0), recorded
    assert faults <= 10, done.stdout
    assert fastest_ns <= 3.5 * clock_ns, done.stdout


@pytest.mark.jdks(8, 17, 25, daily=1)
def test_calls_that_do_not_fit_are_lost_without_inventing_others(jdk, tmp_path):
    """The agent's thread is stopped again and again, and in every second round goes on while the
    buffer is full: each call is recorded or counted as lost, and none has a caller that is not its
    own.
    """
    out, threads, rounds, calls_made = tmp_path / "n.jfr", 200, 12, 15_000
    process = jdk.start_java(
        "NestedFloods",
        threads,
        calls_made,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        jvm=(
            "-Xmx64m",
            jdk.agent(f"format=r,trace=NestedFloods.outer:NestedFloods.inner,file={out}"),
        ),
    )
    assert process.stdout.readline() == "ready\n"
    worker = lab.thread_named(process.pid, "jvmscope")
    for turn in range(rounds):
        with lab.thread_stopped(worker):
            print(file=process.stdin, flush=True)
            if turn % 2 == 0:  # in the others it goes on during the flood
                assert process.stdout.readline() == "done\n"
        assert turn % 2 == 0 or process.stdout.readline() == "done\n"
    process.stdin.close()
    assert process.wait(60) == 0
    found = collections.Counter(
        (c["method"].split("(")[0], c["depth"], (c["caller"] or "").split("(")[0])
        for c in lab.read_json("trace", "--json", "-n", "100000000", out)["calls"]
    )
    lost = lab.read_json("trace", "--json", "-n", "1", out)
    assert (
        all(loss["reason"] == "the buffer of the thread was full" for loss in lost["losses"])
        and lost["lost"] > 10_000
    ), lost["losses"]
    assert sum(found.values()) + lost["lost"] == 3 * (threads + rounds * calls_made), found
    alone = found.pop(("NestedFloods.inner", 0, ""), 0)  # calls whose caller is lost
    assert set(found) == {
        ("NestedFloods.outer", 0, ""),
        ("NestedFloods.inner", 1, "NestedFloods.outer"),
    }, found
    assert alone <= 0.01 * found["NestedFloods.outer", 0, ""], alone


def duration_ns(path):
    """From the start of the first chunk to the end of the last, as the chunks' headers say."""
    data, at, begins, ends = path.read_bytes(), 0, [], []
    while at < len(data):
        size, _, _, begin, duration = struct.unpack_from(">5q", data, at + 8)
        begins, ends, at = [*begins, begin], [*ends, begin + duration], at + size
    return max(ends) - min(begins)


@pytest.mark.jdks(25, slow=(17,))
def test_the_end_does_not_wait_for_later_calls(jdk, jvmscope, tmp_path):
    """Threads that call as fast as they can used to fill their buffers while these were written at
    the end. `stop` therefore first says that the recording ends ("ending"): no later call is
    recorded or counted, however long the rest takes. A recording whose time is over ends then, even
    while the agent reads what the buffers hold (it used to last until it had read them, 10 s on a
    busy machine).
    """
    out, timed = tmp_path / "f.jfr", tmp_path / "t.jfr"
    with jdk.start_java(
        "CallsFast", jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:

            def ask():
                process.stdin.write("\n")
                process.stdin.flush()
                return int(process.stdout.readline())

            def call_on(to):
                return lab.wait_for(lambda: (made := ask()) >= to and made, 120, f"{to} calls")

            assert process.stdout.readline() == "ready\n"
            assert (
                jvmscope(
                    "attach", "--trace", "CallsFast.step", "--bytes", "32m", "-o", out, process.pid
                ).returncode
                == 0
            )
            made = call_on(20_000_000)
            library = jdk.agent().removeprefix("-agentpath:").split("=")[0]
            sent = jdk.run("jcmd", process.pid, "JVMTI.agent_load", library, '"control=ending"')
            assert sent.returncode == 0 and "return code: 0" in sent.stdout, (
                sent.stdout + sent.stderr
            )
            ended = ask()
            call_on(ended + 20_000_000)
            assert jvmscope("stop", process.pid).returncode == 0
            assert (
                jvmscope(
                    "attach", "--trace", "CallsFast.step", "-t", "1500ms", "-o", timed, process.pid
                ).returncode
                == 0
            )
        finally:
            process.kill()
    assert 1.4e9 < duration_ns(timed) < 2.2e9
    seen = lab.read_json("trace", "--json", out)
    stated = len(seen["calls"]) + seen["lost"]
    assert made - 2 <= stated <= ended + 2, (made, stated, ended)


@pytest.mark.jdks(17)
def test_a_recording_ends_without_the_stop_that_was_to_come(jdk, jvmscope, tmp_path):
    """The command that said "ending" was killed before it sent "stop"."""
    out = tmp_path / "e.jfr"
    with jdk.start_java(
        "CallsFast", jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            assert jvmscope("attach", "--cpu", "-o", out, process.pid).returncode == 0
            library = jdk.agent().removeprefix("-agentpath:").split("=")[0]
            assert (
                jdk.run(
                    "jcmd", process.pid, "JVMTI.agent_load", library, '"control=ending"'
                ).returncode
                == 0
            )
            lab.wait_for(
                lambda: json.loads(jvmscope("status", "--json", process.pid).stdout)["state"]
                == "idle",
                120,
                "the end of the recording",
            )
            done = jvmscope("stop", process.pid)
            assert done.returncode == 0 and "wrote" in done.stderr, done.stderr
        finally:
            process.kill()
    assert "not ended" not in jvmscope("report", out).stderr


# Conditions of Kinds, and the calls that meet them, as they are printed.
PRINTED = (
    ("letter", "arg1 == '\"'", ["letter('\"') = 34"]),
    ("boxed", "arg1 == 'a'", ["boxed('a') = 'a'", 'boxed("a") = "a"']),
    (
        "text",
        r'arg1 == "q\"uo\\te" || arg1 == "tab\tline\n"',
        [r'text("q\"uo\\te") = "q\"uo\\te"', r'text("tab\tline\n") = "tab\tline\n"'],
    ),
    (
        "optional",
        "arg1 == 'x' || arg1 == 5 || arg1 == null",
        [
            f"optional(java.util.Optional{o}) = java.util.Optional{o}"
            for o in ("[\"x\"]", "[5]", ".empty")
        ],
    ),
    (
        "held",
        "arg1.some == 'x' && arg1.none == null && arg1.list.length == 2 && arg1.letter == '\\'' && arg1.boxed == '\\n'",
        None,
    ),
    (
        "real",
        None,
        [
            f"real({d}) = {d}"
            for d in (
                "100.0",
                "10000000.0",
                "1000000000000000.0",
                "1e16",
                "1e300",
                "-0.0",
                "0.001",
                "1e-5",
                "0.1",
                "5e-324",
            )
        ],
    ),
    (
        "letters",
        "arg1.length == 4",
        ["letters(char[4]{'a', '\\'', '\"', '\\n'}) = char[4]{'a', '\\'', '\"', '\\n'}"],
    ),
)


@pytest.mark.jdks(8, 17, 25)
def test_what_is_printed_of_a_value_can_be_compared_with_it(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    given = [
        w
        for name, condition, _ in PRINTED
        for w in (f"--trace=Kinds.{name}", *(["--if", condition] if condition else []))
    ]
    source = (lab.ROOT / "tests/java/Kinds.java").read_text().splitlines()
    logged = 1 + next(i for i, line in enumerate(source) if "// logged" in line)
    done = jvmscope(
        "run",
        *given,
        "--log",
        f"Kinds:{logged} {{h.some}} {{h.list}}",
        "-o",
        out,
        "--",
        *jdk.command("java", "-cp", lab.compiled("Kinds"), "Kinds"),
    )
    assert done.returncode == 0, done.stderr
    lines = [re.sub("@[0-9a-f]+", "", line) for line in lab.output("trace", out).splitlines()]
    for name, _, want in PRINTED:
        calls = [line.split("Kinds.", 1)[1] for line in lines if f" Kinds.{name}(" in line]
        assert (
            len(calls) == 1 and calls[0] == "held(Kinds$Holder, 1) = 1"
            if want is None
            else calls == want
        ), (name, calls)
    assert [line.split(" ", 1)[1] for line in lines if "Kinds.held:" in line and line.split()[-1]][
        0
    ].endswith('java.util.Optional["x"] java.util.Arrays$ArrayList(2){"a", "b"}')


ALL_KINDS = "arg6.length == 1 && arg7.length == 3 && arg8 == 0.1 && arg9 == 'boom'"
COMPARED = {
    **dict.fromkeys(("array", "objects", "list", "set", "collection"), "arg2.length == 3"),
    "map": "arg2.length == 1",
    **dict.fromkeys(("real", "single", "boxedReal", "decimal"), "arg2 == 0.1"),
    "whole": f"arg2 == {1 << 60}",
    "truth": "arg2 == true",
    "letter": "arg2 == 'x'",
    **dict.fromkeys(
        (
            "object",
            "text",
            "chars",
            "exception",
            "throwable",
            "failure",
            "optional",
            "reference",
            "soft",
            "weak",
            "file",
        ),
        "arg2 == 'boom'",
    ),
    "constant": "arg2 == 'RED'",
    "type": "arg2 == 'java.lang.String.class'",
    "atomic": "arg2 == 7",
    "ninth": ALL_KINDS,
    "tenth": ALL_KINDS,
    "Failure.describe": "this == 'boom'",
    "Color.shade": "this == 'RED'",
}


@pytest.mark.jdks(8, 17, 25)
def test_every_kind_of_argument_is_compared(jdk, tmp_path):
    """They are compared alone and several at once. An exception used to be equal to no text, not
    even to its message.
    """

    def seen(conditions):
        returned, rest = {}, list(conditions.items())
        while rest:  # JDK 8 takes 1,023 characters of options
            words = [
                w
                for name, condition in rest[:9]
                for w in (
                    "--trace",
                    f"Comparisons.{name}".replace(".Failure", "$Failure").replace(
                        ".Color", "$Color"
                    ),
                    "--if",
                    condition,
                )
            ]
            done = lab.jvmscope(
                "run",
                *words,
                "-o",
                tmp_path / "c.jfr",
                "--",
                *jdk.command("java", "-cp", lab.compiled("Comparisons"), "Comparisons"),
            )
            assert done.returncode == 0 and "nothing" not in done.stderr, done.stderr
            for call in lab.read_json("trace", "--json", tmp_path / "c.jfr")["calls"]:
                returned.setdefault(
                    call["method"].split("(")[0].removeprefix("Comparisons").replace("$", ".")[1:],
                    [],
                ).append(call["return"])
            del rest[:9]
        return returned

    assert seen(COMPARED) == {
        **{name: [1] for name in COMPARED},
        "object": [1] * 7,
        "chars": [1, 1],
        "exception": [1, 1],
    }
    # Objects without a value are equal to no text, an exception's empty message is; the opposite of
    # an equality holds for all others.
    assert seen(
        {
            "object": "arg2 == ''",
            "throwable": "arg2 != 'boom'",
            "reference": "arg2 == null || arg2 != 'boom'",
            "soft": "arg2 != null && arg2 != 'boom'",
        }
    ) == {"object": [2], "throwable": [2], "reference": [2, 3], "soft": [2]}


@pytest.mark.parametrize(
    "words, why",
    [
        (
            ("--trace", "a.B.c", "--if", "arg1 >"),
            "a number, text, true, false or null is missing at its end",
        ),
        (("--trace", "a.B.c", "--if", "time > 5"), "a unit is missing, as in time > 5ms,"),
        (
            ("--trace", "a.B.c", "--if", "time > 5 ms"),
            "the unit must follow without a blank, as in time > 5ms,",
        ),
        (("--trace", "a.B.c", "--if", r"arg1 == '\d'"), "no such escape"),
        (("--trace", "a.B.c", "--if", "arg0 == 1"), "arguments count from 1, so the first is arg1"),
        (("--trace", "a.B.c", "--if", "50 < arg1"), "goes to the left of the comparison"),
        (("--trace", "a.B.c", "--if", "null == arg2"), "goes to the left of the comparison"),
        (("--trace", "a.B.c", "--if", "'x' == arg2"), "goes to the left of the comparison"),
        (("--log", "Traced"), "a place such as pkg.Class:12 is missing"),
        (("--log", "Traced:3 {x"), "} is missing"),
    ],
)
def test_conditions_and_log_lines_are_checked_before_the_program_starts(words, why, tmp_path):
    done = lab.jvmscope("run", *words, "-o", tmp_path / "t.jfr", "--", "touch", tmp_path / "ran")
    assert (
        done.returncode == 2
        and done.stderr.startswith(f"jvmscope: run: {words[-2]}: ")
        and why in done.stderr
    ), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.jdks(17)
def test_texts_of_classes_that_a_pattern_means(jdk, jvmscope, tmp_path):
    """Values of classes that a pattern means are shown as text, and only the other pattern is
    reported as matching nothing.
    """
    out = tmp_path / "t.jfr"
    done = jvmscope(
        "run",
        "--trace=Kinds.optional",
        "--to-string=java.util.Opt*,no.*",
        "-o",
        out,
        "--",
        *jdk.command("java", "-cp", lab.compiled("Kinds"), "Kinds"),
    )
    assert (
        "--to-string: nothing that was loaded matches: no.*\n" in done.stderr
        and done.stderr.count("matches: ") == 1
    ), done.stderr
    assert "{Optional[x]}" in lab.output("trace", out)


@pytest.mark.jdks(8, 17)
def test_what_the_agent_does_itself_is_no_call(jdk, jvmscope, tmp_path):
    """The loader of the program's classes is asked for the classes of the probes, and the VM for
    their native methods: neither these calls nor the calls that they make belong to the program.
    The calls that enclose them are recorded.
    """
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "Traced",
        jvm=(
            jdk.agent(f"trace=*,cpu=times,exceptions=counts,format=r,limit=1000000,file={out}"),
            "-Xmx256m",
        ),
    )
    assert done.returncode == 0, done.stderr
    seen = calls(jvmscope, out)
    own = [c for c in seen if re.search(r"lang.Jvmscope", json.dumps(c))]
    assert not own, own[:3]
    assert any(".loadClass(" in c["method"] and "Traced" in json.dumps(c["args"]) for c in seen)
    assert any(c["method"].startswith("Traced") for c in seen)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("threads", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_the_vm_ends_while_threads_call_what_is_traced(jdk, jvmscope, tmp_path, threads):
    """The end does not wait until the threads have stopped, and the recording is whole up to it,
    the other captures' too.
    """
    out = tmp_path / "t.jfr"
    done = jvmscope(
        "run",
        "--trace",
        "CallsAtEnd.work",
        "--trace",
        "CallsAtEnd.hardly",
        "--alloc=exact",
        "-o",
        out,
        "--",
        *jdk.command(
            "java", "-Xmx64m", "-cp", lab.compiled("CallsAtEnd"), "CallsAtEnd", threads, 500
        ),
    )
    assert done.returncode == 7 and done.stdout == "ends\n", done
    assert "lacks" not in done.stderr and "not ended" not in done.stderr, done.stderr
    trace = json.loads(jvmscope("trace", "--json", "--method", "CallsAtEnd.hardly", out).stdout)
    assert not trace["unended"] and len(trace["calls"]) == 100, (
        len(trace["calls"]),
        trace["losses"],
    )
    report = json.loads(jvmscope("report", "--json", out).stdout)
    assert not report["unended"], report["losses"]
