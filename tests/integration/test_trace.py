# SPDX-License-Identifier: Apache-2.0
"""trace=: arguments, results and exceptions of calls whose answers are known; conditions, limits, switching."""
import json
import re
import subprocess
import time

import lab
import pytest


def record(jdk, out, *options, args=()):
    done = jdk.java("Traced", *args, jvm=(jdk.agent("format=r," + ",".join(options) + f",file={out}"), "-Xmx64m"))
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
    seen = [(c["method"].split("$", 1)[1].split("(")[0], c["args"], c.get("return", "absent"), c["exception"]) for c in all_calls]

    def one(name):
        return [s[1:] for s in seen if s[0] == name]

    assert one("Calls.ints") == [([-1, 300, "c", 70000, True], 70399, None)]
    assert one("Calls.longs") == [([str(1 << 60), 2], str((1 << 60) + 2), None), ([-5, 3], -2, None)]
    assert one("Calls.doubles") == [([1.5, 2.0], 3.0, None), (["NaN", 1.0], "NaN", None)]
    assert one("Calls.floats") == [(["Infinity"], "Infinity", None)]
    assert one("Calls.chars") == [(["é"], "é", None)]
    assert one("Calls.booleans") == [([True], False, None)]
    strings = one("Calls.strings")
    assert strings[0][0][0] == 'café "quoted"' and re.fullmatch(r"java\.util\.ArrayList@[0-9a-f]+", strings[0][0][1])
    assert strings[0][1] == 'café "quoted"!'
    assert strings[1] == ([None, None], None, None)
    assert strings[2][0][0] == "x" * 64 + "... (100)" and strings[2][0][1].startswith("java.lang.Integer@")
    arrays = one("Calls.arrays")[0]
    assert re.fullmatch(r"int\[3\]@[0-9a-f]+", arrays[0][0]) and arrays[1] == arrays[0][0]
    assert re.fullmatch(r"java\.lang\.String\[2\]\[\]@[0-9a-f]+", arrays[0][1]) and arrays[0][2] is None
    assert one("Calls.varargs")[0][1] == 3 and re.match(r"java\.lang\.Object\[3\]@", one("Calls.varargs")[0][0][1])
    assert one("Calls.nothing") == [([], "absent", None)]
    assert one("Calls.<init>") == [([10, "ten"], "absent", None)]
    assert one("Calls.instance") == [([5], 15, None)] and one("Calls.locked") == [([21], 42, None)]
    this = next(c["this"] for c in all_calls if ".instance(" in c["method"])
    assert re.fullmatch(r"Traced\$Calls@[0-9a-f]+", this)
    assert one("Calls.thrower") == [([1], 1, None), ([3], "absent", "java.lang.IllegalStateException")]
    assert one("Calls.catcher") == [([1], 1, None), ([3], -1, None)]
    thrower = [c for c in all_calls if ".thrower(" in c["method"]]
    assert all(c["depth"] == 1 and c["caller"] == "Traced$Calls.catcher(I)I" for c in thrower)
    assert one("Calls.recursive") == [([n], n, None) for n in (3, 2, 1, 0)]
    assert [c["depth"] for c in all_calls if ".recursive(" in c["method"]] == [0, 1, 2, 3]
    assert one("Calls.overloaded") == [([1], 1, None), ([2], 2, None)]
    assert one("StringMaker.make") == [(["ab"], "abab", None), (["ab"], "abab", None)]  # the bridge, then the method
    starts = [c["start_ns"] for c in all_calls]
    assert starts == sorted(starts) and all(c["ns"] >= 0 for c in all_calls)


def test_threads_apart(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.recursive")
    for t in range(4):
        mine = calls(jvmscope, out, "--thread", f"worker-{t}")
        assert len(mine) == 50 * (t + 1)
        assert sorted({c["depth"] for c in mine}) == list(range(t + 1))


@pytest.mark.jdks(8, 17, 27)
@pytest.mark.parametrize("condition, want", [
    ("arg1 > 1 && arg1 <= 3", [3, 2]),
    ("return == 2 || arg1 == 0", [2, 0]),
    ("depth >= 2", [1, 0]),
    ("!(arg1 != 1)", [1]),
    ("time > 1h", []),
    ("arg2 == 0", []),
    ("thrown", []),
])
def test_conditions(jdk, jvmscope, tmp_path, condition, want):
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.recursive", f"if={condition}")
    done = jvmscope("trace", "--json", "--thread", "main", out)
    found = json.loads(done.stdout)["calls"] if done.returncode == 0 else []
    assert [c["args"][0] for c in found] == want


@pytest.mark.jdks(17)
def test_text_null_and_exception_conditions(jdk, jvmscope, tmp_path):
    for condition, want in (("arg1 == null", 1), ("arg1 != null && arg2 != null", 2), ("arg1 == 'nope'", 0)):
        out = tmp_path / "t.jfr"
        record(jdk, out, "trace=Traced$Calls.strings", f"if={condition}")
        done = jvmscope("trace", "--json", out)
        assert (len(json.loads(done.stdout)["calls"]) if done.returncode == 0 else 0) == want, condition
    out = tmp_path / "t.jfr"
    record(jdk, out, "trace=Traced$Calls.thrower", "if=thrown")
    assert [c["exception"] for c in calls(jvmscope, out)] == ["java.lang.IllegalStateException"]


def test_a_descriptor_chooses_one_of_a_name(jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    record(lab.Jdk(17), out, "trace=Traced$Calls.overloaded(J)I")
    assert [c["method"] for c in calls(jvmscope, out)] == ["Traced$Calls.overloaded(J)I"]


@pytest.mark.parametrize("condition", ["arg0 > 1", "arg1 >", "arg1 > x", "time > 5q", "(arg1 > 1", "arg1 > 1 )", "", "foo",
                                       "arg1 < 'a'", "arg1 == 'a", "!" * 40 + "thrown"])
def test_a_bad_condition_is_refused_in_one_line(condition):
    jdk = lab.Jdk(17)
    done = jdk.java("Traced", jvm=(jdk.agent(f"format=r,trace=Traced,if={condition},file=/tmp/never.jfr"),))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and done.stdout == "", done.stderr


def test_limit_and_loss_are_counted(jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    jdk = lab.Jdk(17)
    record(jdk, out, "trace=Traced$Calls.longs", "limit=100", args=("5000",))
    assert len(calls(jvmscope, out)) == 100


def wait_for_calls(jvmscope, process, more=20):
    """Until the trace has that many calls more than now."""
    def written():
        return int(re.search(r"trace\.calls\D+(\d+)", jvmscope("status", process.pid).stdout)[1])

    end, until = written() + more, time.monotonic() + 30
    while written() < end:
        assert time.monotonic() < until, "no calls are traced"
        time.sleep(0.02)


def test_switching_in_a_running_vm(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    process = jdk.start_java("TracedForever", jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        nothing = jvmscope("trace", process.pid, "list")
        assert nothing.returncode == 1 and "recorded" in nothing.stderr
        done = jvmscope("attach", "--trace", "TracedForever.one", process.pid)
        assert done.returncode == 0, done.stderr
        wait_for_calls(jvmscope, process)
        listed = json.loads(jvmscope("trace", "--json", process.pid, "list").stdout)
        assert listed["patterns"] == ["TracedForever.one"] and listed["methods"] == ["TracedForever.one(I)I"]
        assert jvmscope("trace", process.pid, "add", "TracedForever.two").returncode == 0
        assert jvmscope("trace", process.pid, "add", "java.lang.reflect.Array.getInt").returncode == 0
        assert jvmscope("trace", process.pid, "remove", "TracedForever.one").returncode == 0
        wait_for_calls(jvmscope, process, 40)
        assert jvmscope("trace", process.pid, "remove", "java.lang.reflect.Array.getInt").returncode == 0
        wait_for_calls(jvmscope, process)
        assert jvmscope("trace", process.pid, "remove", "TracedForever.one").returncode == 1
        assert jvmscope("stop", "-o", out, process.pid).returncode == 0
        everything = calls(jvmscope, out)
        seen = [c for c in everything if "TracedForever" in c["method"]]
        ones = [c["start_ns"] for c in seen if ".one(" in c["method"]]
        twos = [c["start_ns"] for c in seen if ".two(" in c["method"]]
        assert len(ones) > 10 and len(twos) > 10
        assert all(c["return"] == c["args"][0] + (1 if ".one(" in c["method"] else 2) for c in seen)
        natives = [c for c in everything if c not in seen]
        assert len(natives) > 5 and {c["method"] for c in natives} == {"java.lang.reflect.Array.getInt(Ljava/lang/Object;I)I"}
        assert max(ones) < max(twos) and max(c["start_ns"] for c in natives) < max(twos)
        process.stdin.close()
        assert process.wait(20) == 0 and process.stdout.read() == "done\n"
    finally:
        process.kill()
        process.wait()


def test_json_of_a_recording_with_other_texts(jvmscope, tmp_path):
    """What is no JSON in the recording is a string in the output; `this` ends where its value does."""
    out, other = tmp_path / "t.jfr", tmp_path / "o.jfr"
    record(lab.Jdk(17), out, "trace=Traced$Calls.ints:Traced$Calls.instance")
    whole = calls(jvmscope, out)
    assert [c["args"] for c in whole if ".ints(" in c["method"]] == [[-1, 300, "c", 70000, True]]
    for old, new in ((b'[-1,300,"c"', b'[-1,300,"c'), (b"70000,", b'7\xff\x01"{,'), (b"70000,true]", b"70000]true]")):
        assert out.read_bytes().count(old) == 1
        other.write_bytes(out.read_bytes().replace(old, new.ljust(len(old))))
        seen = calls(jvmscope, other)  # parses
        assert len(seen) == len(whole) and isinstance(next(c for c in seen if ".ints(" in c["method"])["args"], str)
        assert [c["this"] for c in seen if ".instance(" in c["method"]] == [c["this"] for c in whole if ".instance(" in c["method"]]


def test_patterns_that_match_nothing_are_told_at_the_end(tmp_path):
    command = [lab.BUILD / "jvmscope", "run", "--trace", "TracedForever.one:no.such.Class.*:TracedForever.on", "-o", tmp_path / "n.jfr", "--",
               *lab.Jdk(17).command("java", "-cp", lab.compiled("TracedForever"), "TracedForever")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "ready\ndone\n", done.stderr
    assert [l for l in done.stderr.splitlines() if "matches" in l] == [
        f"jvmscope: {pattern}: no method matches: the pattern traced nothing" for pattern in ("no.such.Class.*", "TracedForever.on")]


def test_native_methods(jdk, jvmscope, tmp_path):
    """Every type in registers and on the stack, what a native throws, and natives of the JDK that are bound already."""
    out = tmp_path / "t.jfr"
    library = lab.BUILD / "tests" / "agents" / "libtracejni.so"
    plain = jdk.java("TracedNative", library, jvm=("-Xmx64m",))
    agent = jdk.agent(f"trace=TracedNative:java.lang.reflect.Array,format=r,file={out}")
    done = jdk.java("TracedNative", library, jvm=(agent, "-Xmx64m", "-Xcheck:jni"))
    assert done.returncode == 0 and [l for l in done.stdout.splitlines() if not l.startswith("WARNING")] == plain.stdout.splitlines()
    seen = {}
    for c in calls(jvmscope, out):
        name = c["method"].split("(")[0].replace("java.lang.reflect.", "")
        seen.setdefault(name, []).append((c["args"], c.get("return", "absent"), c["exception"], c["depth"]))

    def one(name):
        assert len(seen["TracedNative." + name]) == 1
        args, back, thrown, depth = seen["TracedNative." + name][0]
        assert depth == 1
        return args, back if thrown is None else thrown

    many = one("many")
    assert many[0][:20] == [-1, str(1 << 60), 1.5, 2.5, -3, -4, "c", True, None, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 77, -88, 10.5, "t"]
    assert re.fullmatch(r"int\[3\]@[0-9a-f]+", many[0][20]) and many[1] == plain.stdout.split()[0]
    assert one("hello") == (["x", 3], "hello") and one("fails") == ([5], "java.lang.IllegalStateException")
    assert one("no") == ([], False) and one("bytes") == ([], -7) and one("chars") == ([], "\u263a") and one("shorts") == ([], -300)
    assert one("floats") == ([2.0], 0.5) and one("doubles") == ([3.0], 1.5) and one("same") == (["s"], "s")
    assert one("locked") == ([4], 8)
    assert [(c[0], c[1], c[3]) for c in seen["TracedNative.calls"]] == [([2], 2, 2), ([1], 1, 4), ([0], 0, 6)]
    (args, back, thrown, _), = seen["Array.getByte"]
    assert args[1] == 3 and back == "absent" and thrown == "java.lang.ArrayIndexOutOfBoundsException"
    assert [c[0][1:] for c in seen["Array.setDouble"]] == [[1, 2.5]]


@pytest.mark.parametrize("pattern, want", [
    ("@Typed$Timed", {"Other.first"}), ("@Typed$Timed2", {"Other.second", "Whole.one", "Whole.<init>"}), ("@Typed$Nothing", set()),
    ("implements Typed$Shape", {"Base.area", "Base.<init>", "Square.area", "Square.<init>", "Shape.twice"}),
    ("implements Typed$Base:Typed$Other.third:Typed$Square.area", {"Base.area", "Base.<init>", "Square.area", "Square.<init>", "Other.third"}),
    ("implements no.such.Type", set())])
def test_patterns_by_annotation_and_type(jdk, jvmscope, tmp_path, pattern, want):
    out = tmp_path / "t.jfr"
    done = jdk.java("Typed", jvm=("-Xmx64m", jdk.agent(f"format=r,trace={pattern},file={out}")))
    assert done.returncode == 0 and done.stdout == "done 39\n", done.stderr
    listed = jvmscope("trace", "--json", out)
    seen = [c["method"] for c in json.loads(listed.stdout)["calls"]] if listed.returncode == 0 else []
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
    done = jdk.java("Virtual", "8", "3", release=21, jvm=(jdk.agent(f"format=r,trace=Virtual.rounds,file={out}"),))
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    assert sorted(c["thread"] for c in calls(jvmscope, out)) == [f"virtual-{i}" for i in range(8)]


def test_fields_and_texts_of_objects(jdk, jvmscope, tmp_path):
    """A toString() that throws, loops or waits for a lock that the caller holds harms nothing and is told in one line each."""
    out = tmp_path / "s.jfr"
    words = ("trace=Shown.take:Shown$Nice.inner", "show=Shown$Base.id:Shown$Point.x:Shown$Point.y:Shown$Point.c:Shown$Point.flag:"
             "Shown$Point.name:Shown$Point.numbers:Shown$Point.next", "tostring=Shown$Nice:Shown$Throws:Shown$Loops:Shown$Waits:Shown$Nothing")
    process = jdk.start_java("Shown", jvm=("-Xmx64m", jdk.agent(f"format=r,{','.join(words)},file={out}")), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    told = ""
    while process.poll() is None:
        asked = jvmscope("status", process.pid)
        told = asked.stderr if "tostring" in asked.stderr else told
        time.sleep(0.05)
    assert process.wait() == 0 and process.stdout.read() == "done true\n" and process.stderr.read() == ""
    assert {line.split(": ", 2)[2] for line in told.splitlines()} >= {
        "tostring: Shown$Throws.toString() threw java.lang.IllegalStateException: its objects are shown without",
        "tostring: Shown$Loops.toString() did not end in 100 ms: its objects are shown without"}, told
    seen = [re.sub("@[0-9a-f]+", "@", c["args"][0]) for c in calls(jvmscope, out)]
    assert seen[0] == ('Shown$Point@{x=3, y=2.5, c=z, flag=true, name=a "point", numbers=int[2]@, next=Shown$Point@, id=1099511627776}')
    assert "Shown$Nice@{n=7 nice}" in seen and "Shown$Nothing@{null}" in seen and seen.count("Shown$Throws@") == 3
    assert seen.count("Shown$Loops@") == 4 and seen.count("Shown$Waits@") == 4
    assert all(c["thread"] == "main" for c in calls(jvmscope, out)) and not any("inner" in c["method"] for c in calls(jvmscope, out))
    slow = [c["ns"] for c in calls(jvmscope, out) if c["ns"] > 90e6]
    assert len(slow) <= 3, "each class costs the program its time once"


@pytest.mark.measured
@pytest.mark.slow
@pytest.mark.jdks(8, 17, 25)
def test_a_million_calls_a_second_for_a_minute(jdk, jvmscope, tmp_path):
    """Bounded memory, every call written or counted, the program never held up: its thread waits no more often than untraced."""
    out, seconds, short = tmp_path / "f.jfr", 60, 15
    _, _, slowest_alone_us, most_alone_us, waits_alone = map(int, jdk.java("Floods", str(short), jvm=("-Xmx64m",)).stdout.split())
    process = jdk.start_java("Floods", str(seconds), jvm=("-Xmx64m", jdk.agent(f"format=r,trace=Floods.work,file={out}")),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    resident, counters = [], {}
    while process.poll() is None:
        text = open(f"/proc/{process.pid}/status").read() if process.poll() is None else ""
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        resident += [int(found[1]) >> 10] if found else []
        asked = jvmscope("status", "--json", process.pid)
        counters = json.loads(asked.stdout) if asked.returncode == 0 else counters
        time.sleep(2)
    calls_made, total, slowest_us, most_us, waits = map(int, process.stdout.read().split())
    assert process.returncode == 0 and process.stderr.read() == "" and total == calls_made == seconds * 1_000_000
    seen = sum(counters[f"trace.{n}"] for n in ("calls", "over_limit", "over_rate", "over_bytes", "lost_no_room", "lost_no_exit", "open"))
    lost = counters["trace.lost_ring_full"]
    print(f"calls {calls_made}, {counters}, resident {resident[0]} to {max(resident)} MB, slowest 1000 calls {slowest_us} us "
          f"({most_us} us of CPU at most), untraced {slowest_alone_us} ({most_alone_us}); waits a second {waits / seconds:.2f}, untraced {waits_alone / short:.2f}")
    # The first thousand calls are interpreted. Longer by the clock is who waits for a processor, which the agent's thread uses too.
    assert most_us < 20_000
    # The VM's safepoints are waits too; the rings are emptied ten times a second, so that waiting for that would be ten.
    assert waits / seconds <= waits_alone / short + 2
    # An entry and an exit are lost one by one: a call may count once or twice among the lost.
    asked_at = counters["elapsed_ns"] / 1e9
    assert seen <= calls_made and seen + lost >= 0.95 * (asked_at - 1.5) * 1e6
    assert counters["trace.calls"] <= 1_000_000 and counters["trace.over_rate"] + counters["trace.over_limit"] > 0
    steady = resident[len(resident) // 2:]
    assert max(steady) - min(steady) < 64 and max(resident) < 512
