# SPDX-License-Identifier: Apache-2.0
"""exceptions= and events=: throws, threads, classes and collections of a program that counts them
itself.
"""
import json
import re
import struct
import subprocess
import time
import unicodedata

import pytest

import lab

SOURCE = (lab.ROOT / "tests" / "java" / "Throws.java").read_text()


def line(text):
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def test_exceptions_and_events_of_the_vm(jdk, jvmscope, tmp_path):
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "Throws", jvm=("-Xmx64m", jdk.agent(f"format=r,exceptions=stacks,events=y,file={out}"))
    )
    assert (
        done.returncode == 0 and done.stdout == "done 321 Throws$Guest\n" and not done.stderr
    ), done.stderr
    listed = jvmscope("trace", "--json", out)
    assert listed.returncode == 0, listed.stderr
    events = json.loads(listed.stdout)["events"]
    own = [e for e in events if e["kind"] == "exception" and e["place"].startswith("Throws.")]
    explicit, implicit, uncaught = line("// explicit"), line("// implicit"), line("// uncaught")
    deep = [e for e in own if e["exception"] == "java.lang.IllegalStateException"]
    assert len(deep) == 300
    assert {(e["message"], e["place"], e["caught"], e["unwound"], e["thread"]) for e in deep} == {
        (
            "at the bottom",
            f"Throws.deep:{explicit}",
            f"Throws.main:{line('// first handler')}",
            6,
            "main",
        )
    }
    assert deep[0]["stack"] == [f"Throws.deep:{explicit}"] + [
        f"Throws.deep:{line('return deep(n - 1)')}"
    ] * 5 + [f"Throws.main:{line('caught += deep(5)')}"]
    table = jvmscope("trace", "--exceptions", "--json", out)
    counts = {
        (e["class"], e["place"], e["caught"]): e["count"]
        for e in json.loads(table.stdout)["exceptions"]
    }
    assert (
        counts[
            "java.lang.IllegalStateException",
            f"Throws.deep:{explicit}",
            f"Throws.main:{line('// first handler')}",
        ]
        == 300
    )
    assert (
        counts[
            "java.lang.ArithmeticException",
            f"Throws.divide:{implicit}",
            f"Throws.main:{line('// second handler')}",
        ]
        == 20
    )
    assert [
        c
        for (e, p, c), n in counts.items()
        if e == "java.lang.UnsupportedOperationException" and p.endswith(f":{uncaught}")
    ] == [None]
    assert any(e == "java.lang.ClassNotFoundException" for e, _, c in counts)

    vm = [(e["what"], e["thread"], e["text"]) for e in events if e["kind"] == "vm"]
    mine = [v for v in vm if "first name" in v or "second name" in v]
    assert mine[0] == ("thread start", "first name", None) and mine[-1][0] == "thread end"
    assert ("thread name", "first name", "second name") in mine
    assert ("class load failed", "main", "no.such.Class") in vm
    # The agent's own threads load classes as well, which do not belong to the program.
    assert not any("jvmscope" in (v[1] or "") for v in vm), [v for v in vm if "jvmscope" in str(v)]
    assert (
        vm.count(("class load", "main", "Throws$Guest")) == 1
        and ("class unload", None, "Throws$Guest") in vm
    )
    assert vm.index(("class load", "main", "Throws$Guest")) < vm.index(
        ("class unload", None, "Throws$Guest")
    )
    starts, ends = (sum(v[0] == f"gc {w}" for v in vm) for w in ("start", "finish"))
    assert starts >= 4 and starts == ends
    text = lab.output("trace", out)
    assert (
        f"throw java.lang.IllegalStateException: \"at the bottom\"  at Throws.deep:{explicit}, out of 6 calls, caught at"
        in text
    )
    # What is longest in its column does not shift the next one.
    head, *rows = lab.output("trace", "--exceptions", out).splitlines()
    rows = [row for row in rows if re.match(r" +\d+  \S", row)]
    for title in ("EXCEPTION", "THROWN AT", "CAUGHT AT"):
        at = head.index(title)
        assert rows and all(row[at - 2 : at] == "  " and row[at] != " " for row in rows), rows


def test_the_load_of_a_proxy_has_its_stable_name(jdk, jvmscope, tmp_path):
    out = tmp_path / "proxy.jfr"
    done = jdk.java("ProxyLoads", jvm=[jdk.agent(f"events=y,format=r,file={out}")])
    assert done.returncode == 0 and done.stdout == "4\n", done.stderr
    events = json.loads(jvmscope("trace", "--json", out).stdout)["events"]
    loads = [e["text"] for e in events if e.get("what") == "class load"]
    assert loads.count("$Proxy[ProxyLoads$Speaks]") == 1, [t for t in loads if "Proxy" in t]
    assert not any(t.startswith("$Proxy0") for t in loads)


def test_counts_by_probes(jdk, jvmscope, tmp_path):
    """Explicit and implicit throws, and uncaught ones, from eight threads at once: the counts are
    exact, and no event of the VM is enabled.
    """
    out = tmp_path / "c.jfr"
    done = jdk.java(
        "Throws",
        "threads",
        jvm=(
            "-Xmx64m",
            "-XX:-OmitStackTraceInFastThrow",
            jdk.agent(f"format=r,exceptions=counts,file={out}"),
        ),
    )
    assert done.returncode == 0 and done.stdout == "done 16000\n" and not done.stderr, done.stderr
    table = jvmscope("trace", "--exceptions", "--json", out)
    counts = {
        (e["class"], e["place"], e["caught"]): e["count"]
        for e in json.loads(table.stdout)["exceptions"]
    }
    explicit, implicit, again = (line(f"// {w}") for w in ("explicit", "implicit", "thrown again"))
    own = {
        k: n
        for k, n in counts.items()
        if k[1].startswith("Throws.") or (k[2] or "").startswith("Throws.")
    }
    assert own == {
        (
            "java.lang.IllegalStateException",
            f"Throws.deep:{explicit}",
            f"Throws.many:{line('// inner handler')}",
        ): 8000,
        (
            "java.lang.IllegalStateException",
            f"Throws.many:{again}",
            f"Throws.many:{line('// outer handler')}",
        ): 8000,
        (
            "java.lang.ArithmeticException",
            f"Throws.divide:{implicit}",
            f"Throws.many:{line('// other handler')}",
        ): 8000,
        ("java.lang.ArithmeticException", f"Throws.divide:{implicit}", None): 8,
    }


@pytest.mark.jdks(17, 21, 25)
def test_throws_of_hidden_classes_and_places_without_a_stack_trace_are_reported(jdk, tmp_path):
    """No agent may change a hidden class. Counts state that they lack its throws, and never claim
    that an exception was not caught if the class may have caught it. Recordings with stacks lack
    nothing.
    """
    rows, out = {}, {mode: tmp_path / f"{mode}.jfr" for mode in ("counts", "stacks")}
    for mode in out:
        done = jdk.java(
            "HiddenThrows",
            200_000 if mode == "counts" else 10,
            release=17,
            jvm=("-Xmx64m", "-Xbatch", jdk.agent(f"format=r,exceptions={mode},file={out[mode]}")),
        )
        assert (done.returncode, done.stdout) == (0, "left 20\n"), done.stderr
        table = lab.read_json("trace", "--exceptions", "--json", out[mode])
        of = {
            k: [r for r in table["exceptions"] if r["class"] == f"java.lang.{k}Exception"]
            for k in ("IllegalState", "UnsupportedOperation", "IndexOutOfBounds", "Arithmetic")
        }
        rows[mode] = {
            k: [
                (r["place"].split(":")[0], (r["caught"] or "nowhere").split(":")[0], r["count"])
                for r in v
            ]
            for k, v in of.items()
        }
        hidden = [loss for loss in table["losses"] if loss["what"] == "hidden classes"]
        printed = lab.jvmscope("trace", "--exceptions", out[mode])
        if mode == "stacks":
            assert not hidden and " ?: " not in printed.stdout
            continue
        assert (
            len(hidden) == 1
            and hidden[0]["amount"] == 2
            and "HiddenThrows$Hidden" in hidden[0]["reason"]
        ), table["losses"]
        assert hidden[0]["sentence"] in printed.stderr
        assert (
            sum(n for place, _, n in rows[mode]["Arithmetic"] if place == "?") > 100_000
            and sum(n for *_, n in rows[mode]["Arithmetic"]) == 200_000
        )
        assert (
            "\n ?: compiled code throws" in printed.stdout
            and "OmitStackTraceInFastThrow" in printed.stdout
        )
        assert not rows[mode]["IllegalState"]
        assert [(caught, n) for _, caught, n in rows[mode]["IndexOutOfBounds"]] == [
            ("not known", 30)
        ]
    assert [n for *_, n in rows["stacks"]["IllegalState"]] == [30]
    assert (
        [n for *_, n in rows["stacks"]["UnsupportedOperation"]]
        == [20]
        == [n for *_, n in rows["counts"]["UnsupportedOperation"]]
    )


@pytest.mark.jdks(8, 17, 25, daily=1)
def test_an_exception_on_its_way_while_counts_are_saved_counts_once(jdk, jvmscope, tmp_path):
    """Until its handler begins, an exception counts as not caught, and the recording has the counts
    of that moment.
    """
    out = tmp_path / "w.jfr"
    process = jdk.start_java(
        "Throws",
        "on the way",
        jvm=(jdk.agent(f"format=r,exceptions=counts,file={out}"),),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    for _ in range(10):
        done = jvmscope("dump", process.pid)
        assert done.returncode == 0, done.stderr
    printed, _ = process.communicate("\n", timeout=60)
    table = lab.read_json("trace", "--exceptions", "--json", out)
    own = [
        (e["place"], e["caught"], e["count"])
        for e in table["exceptions"]
        if e["place"].startswith("Throws.")
    ]
    assert own == [
        (
            f"Throws.deep:{line('// explicit')}",
            f"Throws.onTheWay:{line('// handler above')}",
            int(printed.split()[1]),
        )
    ], (own, printed)
    assert all(e["count"] > 0 for e in table["exceptions"]), table


def test_when_the_vm_runs_already(jvmscope, tmp_path):
    jdk = lab.Jdk(17)
    process = jdk.start_java(
        "TracedForever", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope(
            "attach", "--exceptions=stacks", "-t", "1s", "-o", tmp_path / "a.jfr", process.pid
        )
        assert done.returncode == 1 and done.stderr.endswith(
            ": cannot record: --exceptions=stacks: the VM shows each exception only to an agent that was there when it started; --exceptions counts them now, "
            "and jvmscope run with --exceptions=stacks has the stacks from the start\n"
        ), done.stderr
        done = jvmscope(
            "attach", "--exceptions", "-t", "300ms", "-o", tmp_path / "a.jfr", process.pid
        )
        assert done.returncode == 0 and "records without" not in done.stderr, done.stderr
        done = jvmscope("attach", "--events", "-t", "1s", "-o", tmp_path / "a.jfr", process.pid)
        assert (
            done.returncode == 0
            and "note: --events: records without exception events, which this VM reports only to an agent that was there when it started\n"
            in done.stderr
        )
        process.stdin.close()
        assert (
            process.wait(20) == 0
            and process.stdout.read() == "done\n"
            and process.stderr.read() == ""
        )
    finally:
        process.kill()
        process.wait()


def span(recording):
    """The start (in seconds since 1970) and the duration that the head of the only chunk states."""
    start, duration = struct.unpack(">QQ", recording.read_bytes()[32:48])
    return start / 1e9, duration / 1e9


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("capture", ["--exceptions", "--cpu=times"])
def test_the_span_of_a_recording_is_the_time_in_which_it_counts(jdk, jvmscope, tmp_path, capture):
    """Changing the classes takes longer than the recording itself. Exceptions and calls are
    counted, and samples taken, from the moment at which all probes are there.
    """
    out = tmp_path / "a.jfr"
    samples = [] if "cpu" in capture else ["--cpu", "--interval", "1ms"]
    process = jdk.start_java(
        "ThrowsForever", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        began = time.time()
        done = jvmscope("attach", capture, *samples, "-t", "1s", "-o", out, process.pid)
        ended = time.time()
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
        process.communicate()
    start, duration = span(out)
    assert 1 <= duration < 1.5 and ended - began > 2, (duration, ended - began, done.stderr)
    assert start < ended - 1
    if jdk.version >= 17:
        summary = jdk.run("jfr", "summary", out).stdout
        assert re.search(r"^ Duration: 1 s$", summary, re.M), summary
    head = jvmscope("report", out)
    value, unit = re.search(r", in ([\d.]+) (ms|s)\b", head.stdout).groups()
    in_s = float(value) / (1000 if unit == "ms" else 1)
    assert abs(in_s - duration) < 0.4, head.stdout
    before = lab.read_json("report", "--json", out).get("before")
    assert not before and "recorded up to" not in head.stderr + done.stderr
    if samples:
        # The classes were changed before.
        assert began + (ended - began - duration) / 4 < start
        used = re.search(r"CPU time of the process ([\d.]+) (ms|s)", head.stdout)
        assert float(used[1]) / (1000 if used[2] == "ms" else 1) < 2 * 1.5, "two processors"
        reported = jvmscope("trace", "--exceptions", out)
        assert (
            "ThrowsForever.thrower" in reported.stdout and "recorded up to" not in reported.stderr
        )


@pytest.mark.jdks(8, 17, 25)
def test_a_handler_without_a_probe_is_not_known(jdk, jvmscope, tmp_path):
    """The frame of main is older than the recording, so its handler runs without a probe: "not
    known", and never "nowhere". A handler in a new frame, and the end of a thread, are known. The
    same holds if --include leaves out the handler's class.
    """
    text = (lab.ROOT / "tests" / "java" / "ThrowsForever.java").read_text()
    at = lambda mark: f":{text[:text.index(mark)].count(chr(10)) + 1}"
    places = [
        f"ThrowsForever.thrower{at(m)}"
        for m in ("// for main", "// for a new frame", "// for nothing")
    ]

    def caught(out):
        rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
        table = lab.output("trace", "--exceptions", out)
        found = {e["place"]: e["caught"] for e in rows if e["place"] in places and e["count"] > 1}
        assert ("\n not known: the handler has no probe" in table) == (
            "not known" in [e["caught"] for e in rows]
        ), table
        for place, handler in found.items():
            assert any(
                l.endswith(handler or "nowhere") and place in l for l in table.splitlines()
            ), table
        return found

    process = jdk.start_java(
        "ThrowsForever", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        done = jvmscope("attach", "--exceptions", "-t", "1s", "-o", tmp_path / "a.jfr", process.pid)
        assert done.returncode == 0, done.stderr
        assert process.communicate("", timeout=20)[0] == "done\n" and process.returncode == 0
    finally:
        process.kill()
        process.wait()
    inner = f"ThrowsForever.catches{at('// inner handler')}"
    assert caught(tmp_path / "a.jfr") == dict(zip(places, ("not known", inner, None)))

    for nth, (options, outer) in enumerate(
        (
            ("", f"ThrowsForever.main{at('// outer handler')}"),
            (",include=ThrowsForever.thrower", "not known"),
        )
    ):
        out = tmp_path / f"{nth}.jfr"
        process = jdk.start_java(
            "ThrowsForever",
            jvm=[jdk.agent(f"format=r,exceptions=counts{options},file={out}")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            # time for more than one throw of each
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
            assert process.communicate("", timeout=20)[0] == "done\n" and process.returncode == 0
        finally:
            process.kill()
            process.wait()
        assert caught(out)[places[0]] == outer, caught(out)


@pytest.mark.jdks(8, 17, 25)
def test_rethrown_exceptions_count_at_each_throw_in_both_ways(jdk, jvmscope, tmp_path):
    """Each throw in the code counts as one, whatever javac makes of finally, monitors and
    resources, and even if two are in one line.
    """
    found = {}
    for mode in ("counts", "stacks"):
        out = tmp_path / f"{mode}.jfr"
        done = jdk.java("ThrowsOn", 10, jvm=[jdk.agent(f"format=r,exceptions={mode},file={out}")])
        assert done.returncode == 0 and done.stdout == "70\n" and not done.stderr, done.stderr
        table = lab.read_json("trace", "--exceptions", "--json", out)
        rows = table["exceptions"]
        # Which throws may be rethrows of an earlier one: all of them in methods that have a handler
        # for it.
        again = {
            e["class"].partition("$")[2]
            for e in rows
            if e["after_handler"] and e["class"].startswith("ThrowsOn$")
        }
        assert again == {"Rethrown", "Finally", "Block", "Resource"}
        assert table["throws"] == sum(e["count"] for e in rows)
        assert (
            table["throws_after_handler"]
            == sum(e["count"] for e in rows if e["after_handler"])
            >= 90
        )
        found[mode] = {
            (e["class"], (e["caught"] or "").startswith("ThrowsOn.main:")): 0 for e in rows
        }
        for e in rows:
            found[mode][e["class"], (e["caught"] or "").startswith("ThrowsOn.main:")] += e["count"]
        found[mode] = {
            (c.partition("$")[2], last): n
            for (c, last), n in found[mode].items()
            if c.startswith("ThrowsOn$")
        }
    # In the end main catches each of ten. Before that, a handler of their method rethrew some of
    # them; those of resources had two such handlers.
    ended = {
        (c, True): 10
        for c in ("Plain", "Rethrown", "Finally", "Method", "Block", "Resource", "Either")
    }
    assert found["counts"] == ended | {
        ("Rethrown", False): 10,
        ("Finally", False): 10,
        ("Block", False): 10,
        ("Resource", False): 20,
    }
    assert found["stacks"] == found["counts"]
    events = lab.read_json("trace", "--json", tmp_path / "stacks.jfr")["events"]
    assert (
        sum(e["kind"] == "exception" and e["exception"] == "ThrowsOn$Resource" for e in events)
        == 30
    )
    reported = lab.output("trace", "--exceptions", tmp_path / "counts.jfr").splitlines()[-1]
    assert re.fullmatch(
        r"\d+ throws, at most \d+ of them of an exception that was caught before: what a handler "
        r"throws on \(.*\) counts again",
        reported,
    ), reported


THROWS_ONCE = """
public class Once {
    static void fail(int i) { throw new IllegalStateException("no " + i); }
    public static void main(String[] args) {
        for (int i = 0; i < 5; i++)
            try { fail(i); } catch (IllegalStateException e) { }
    }
}
"""


@pytest.mark.jdks(17, 25)  # that of JDK 8 rethrows one before the program begins
@pytest.mark.parametrize("mode", ["counts", "stacks"])
def test_without_a_rethrow_nothing_was_caught_before(jdk, tmp_path, mode):
    """It said "at most 0 of them of an exception that was caught before"."""
    (tmp_path / "Once.java").write_text(THROWS_ONCE)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Once.java").returncode == 0
    out = tmp_path / "x.jfr"
    agent = jdk.agent(f"exceptions={mode},format=r,file={out}")
    assert jdk.run("java", agent, "-cp", tmp_path, "Once").returncode == 0
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    (last,) = lab.output("trace", "--exceptions", out).splitlines()[-1:]
    assert sum(r["count"] for r in rows if r["place"].startswith("Once.fail")) == 5, rows
    assert last == (
        f"{sum(r['count'] for r in rows)} throws, none of them of an exception that was caught before"
    ), last


@pytest.mark.jdks(8, 17, 25)
def test_both_ways_name_the_native_method_that_throws(jdk, tmp_path):
    """The VM reports what a compiled native method throws at the call in its caller. The tables of
    both ways are the same: places, handlers, throws, and which of them may be rethrows.
    """
    n, found = 3000, {}
    library = lab.BUILD / "tests" / "agents" / "libthrowjni.so"
    for mode in ("counts", "stacks"):
        out = tmp_path / f"{mode}.jfr"
        done = jdk.java(
            "ThrowsByNatives",
            library,
            n,
            jvm=[jdk.agent(f"format=r,exceptions={mode},file={out}")],
        )
        assert (done.returncode, done.stdout) == (0, f"{9 * n}\n"), done
        found[mode] = lab.read_json("trace", "--exceptions", "--json", out)
    rows = {
        mode: {
            (e["class"].rpartition(".")[2], e["place"], e["caught"], e["after_handler"]): e["count"]
            for e in table["exceptions"]
            if e["count"] >= n // 100  # less than were thrown before the methods were compiled
        }
        for mode, table in found.items()
    }
    assert rows["stacks"] == rows["counts"]
    for total in ("throws", "throws_after_handler"):
        assert found["stacks"][total] == found["counts"][total], total
    by_class = {}
    for (name, place, _, _), count in rows["stacks"].items():
        by_class.setdefault(name, {})[place] = count
    sleeps = "Thread.sleep" if jdk.version < 21 else "Thread.sleepNanos0"
    natives = {
        "InterruptedException": sleeps,
        "NoSuchElementException": "ThrowsByNatives.created",
        "NegativeArraySizeException": "reflect.Array.newArray",
        "ArrayIndexOutOfBoundsException": "System.arraycopy",
        "IllegalMonitorStateException": "Object.notify",
        "CloneNotSupportedException": "Object.clone",
    }
    for name, place in natives.items():
        places = {p.removeprefix("java.lang."): k for p, k in by_class[name].items()}
        assert places[place] == n, (name, places)
    # What a native method created and another method of the class throws is thrown there.
    ((place, count),) = by_class["ConcurrentModificationException"].items()
    assert place.startswith("ThrowsByNatives.raise:") and count == n, by_class
    events = lab.read_json("trace", "--json", tmp_path / "stacks.jfr")["events"]
    of_sleep = [e for e in events if e.get("exception") == "java.lang.InterruptedException"]
    tops = {e["stack"][0].rpartition(":")[0] for e in of_sleep if e["place"].endswith(sleeps)}
    assert tops == {f"java.lang.{sleeps}"}, of_sleep[:2]


@pytest.mark.jdks(21, 25)
def test_what_ends_a_virtual_thread_is_caught_nowhere_in_both_ways(jdk, tmp_path):
    found = {}
    for mode in ("counts", "stacks"):
        out = tmp_path / f"{mode}.jfr"
        done = jdk.java(
            "VirtualThrows",
            10,
            release=21,
            jvm=[jdk.agent(f"format=r,exceptions={mode},file={out}")],
        )
        assert done.returncode == 0, done.stderr
        rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
        found[mode] = {
            (e["class"], e["place"], e["caught"]): e["count"] for e in rows if e["count"] >= 10
        }
    assert found["stacks"] == found["counts"]
    (uncaught,) = [key for key in found["stacks"] if key[0].endswith("IllegalStateException")]
    assert uncaught[1].startswith("VirtualThrows.fails:") and uncaught[2] is None, uncaught
    assert found["stacks"][uncaught] == 10
    assert {key[0] for key in found["stacks"]} == {uncaught[0], "java.lang.InterruptedException"}


@pytest.mark.jdks(8, 17)
def test_a_handler_beyond_native_code_is_not_known(jdk, tmp_path):
    """The VM names the next handler in Java code, although native code, such as that of the first
    15 calls of Method.invoke, catches the exception before that. An exception that the program's
    own code catches has its handler.
    """
    out = tmp_path / "n.jfr"
    done = jdk.java("ThrowsInNative", jvm=[jdk.agent(f"format=r,exceptions=stacks,file={out}")])
    assert done.returncode == 0 and done.stdout == "10 10 5\n" and not done.stderr, done.stderr
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    found = {
        (
            e["class"].removeprefix("ThrowsInNative$"),
            e["caught"] and e["caught"].partition(":")[0],
        ): e["count"]
        for e in rows
        if e["class"].startswith("ThrowsInNative$")
        or e["caught"]
        and e["caught"].startswith("ThrowsInNative.")
    }
    assert found == {
        ("Ended", "not known"): 10,
        ("java.lang.reflect.InvocationTargetException", "ThrowsInNative.wrapped"): 10,
        ("java.lang.reflect.InvocationTargetException", "ThrowsInNative.again"): 5,
        ("Plain", "ThrowsInNative.plain"): 10,
        ("Again", "not known"): 5,
    }
    assert "native code" in lab.output("trace", "--exceptions", out)
    events = [
        e for e in lab.read_json("trace", "--json", out)["events"] if e["kind"] == "exception"
    ]
    assert {e["caught"] for e in events if e["exception"] == "ThrowsInNative$Ended"} == {
        "not known"
    }


@pytest.mark.jdks(8, 17, 25)
def test_report_names_the_command_that_shows_exceptions(jdk, tmp_path):
    """A recording of exceptions alone has no samples, and `report` says which command shows it
    instead.
    """
    out = tmp_path / "e.jfr"
    done = lab.jvmscope(
        "run",
        "--exceptions",
        "-o",
        out,
        "--",
        *jdk.command("java", "-cp", lab.compiled("Throws"), "Throws"),
    )
    assert done.returncode == 0, done.stderr
    for words in (["report"], ["report", "--json"], ["convert", "-o", tmp_path / "e.collapsed"]):
        done = lab.jvmscope(*words, out)
        assert done.returncode == 1 and done.stderr == (
            f"jvmscope: {out}: holds no samples: neither CPU samples nor allocations nor waits for locks (--cpu, --alloc, --monitors); see what it holds with: "
            f"jvmscope trace --exceptions {out}\n"
        ), done.stderr
    assert "Throws." in lab.output("trace", "--exceptions", out)


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("mode", ["counts", "stacks"])
def test_the_frames_of_probes_are_no_places(jdk, tmp_path, mode):
    """A stack often overflows in a probe that the program's method called. The place is that
    method. Neither exceptions, their stacks, samples nor calls name a frame of the agent.
    """
    out = tmp_path / "o.jfr"
    done = jdk.java(
        "Overflow",
        20,
        jvm=[
            jdk.agent(
                f"format=r,cpu=times,alloc=exact,trace=Overflow.overflows,exceptions={mode},file={out}"
            )
        ],
    )
    assert done.returncode == 0 and done.stdout == "20 20\n" and not done.stderr, done.stderr
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    found = {}
    for e in rows:
        if e["class"] == "java.lang.StackOverflowError":
            place = e["place"].partition(":")[0], e["caught"].partition(":")[0]
            found[place] = found.get(place, 0) + e["count"]
    assert found == {
        ("Overflow.first", "Overflow.overflows"): 20,
        ("Overflow.second", "Overflow.overflows"): 20,
    }, rows
    for words in (
        ["trace", "--exceptions", "--json"],
        ["trace", "--json"],
        ["report", "--json", "--limit", "100000"],
        ["report", "--json", "--limit", "100000", "--metric", "allocations"],
    ):
        done = lab.jvmscope(*words, out)
        assert (
            done.returncode == 0
            and "Overflow" in done.stdout
            and "java.lang.Jvmscope" not in done.stdout
        ), (words, done.stderr, done.stdout[:2000])


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.mark.jdks(17)
def test_columns_are_as_wide_as_what_they_show_but_no_wider_than_a_table_may_be(jdk, tmp_path):
    """Widths were counted in bytes, of which such a character has three for its two columns, and a
    single long name moved the whole table.
    """
    out = tmp_path / "w.jfr"
    done = jdk.java(
        "WideNames",
        jvm=("-Xmx64m", jdk.agent(f"format=r,threads=y,exceptions=stacks,file={out}")),
    )
    assert done.returncode == 0 and done.stdout == "done\n", done
    table = lab.jvmscope("trace", "--exceptions", out).stdout.splitlines()
    at = columns(table[0][: table[0].index("THROWN AT")])
    assert at == 12 + 2 + 56 + 2, table[0]  # the longest name is longer
    short = [t for t in table[1:] if " WideNames.raise:" in t and "LongerThan" not in t]
    assert len(short) == 2, table
    for row in short:
        assert columns(row[: row.index("WideNames.raise:")]) == at, (row, table[0])
    # threads timeline, for the column of the thread: of the selected ones only
    for thread, wide in (("\u6f22\u5b57*", 10), ("plain-1", 7)):
        table = lab.jvmscope("threads", "timeline", "--thread", thread, out).stdout.splitlines()
        head = table[0]
        assert columns(head[: head.index("what it")]) == columns(head[: head.index("thread")]) + (
            wide + 2
        ), head
