# SPDX-License-Identifier: Apache-2.0
"""A recording that is begun in a running program contains what happened within its span, and
nothing from the time in which the classes were changed for it.
"""
import re
import struct

import lab
import pytest
from outputs import method

CLASSES = 300


def span(recording):
    """The beginning and the end in the header of the only chunk, in ms since 1970."""
    start, duration = struct.unpack(">QQ", recording.read_bytes()[32:48])
    return start / 1e6, (start + duration) / 1e6


def times(out):
    report = lab.read_json("report", "--json", out)["times"]
    return [
        method(report["methods"], f"Ticks.{name}")["calls"] for name in ("tick", "allocate", "fail")
    ]


def alloc(out):
    sites = lab.read_json("report", "--json", out)["allocations"]["sites"]
    return [sum(s["objects"] for s in sites if "Ticks.allocate" in "".join(s["trace"][:1]))]


def thrown(out):
    rows = lab.read_json("trace", "--exceptions", "--json", out)["exceptions"]
    return [sum(r["count"] for r in rows if r["class"] == "java.lang.IllegalStateException")]


def requests(out):
    rows = lab.read_json("requests", "--json", out)["requests"]
    return [sum(r["count"] for r in rows)]


def trace(out):
    return [len(lab.read_json("trace", "--json", "--method", "Ticks.tick*", out)["calls"])]


def traced(out):
    """When each traced call of tick began and ended, in ms since 1970."""
    calls = lab.read_json("trace", "--json", "--method", "Ticks.tick*", out)["calls"]
    return sorted((c["start_ns"] / 1e6, (c["start_ns"] + c["ns"]) / 1e6) for c in calls)


def log(out):
    return [len(lab.read_json("trace", "--log", "--json", out)["log"])]


def threads(out):
    """Returns the times at which the thread slept."""
    main = next(
        t for t in lab.read_json("threads", "--json", out)["threads"] if t["name"] == "main"
    )
    return [main["sleeps"]]


INCLUDE = ("--include", "Ticks*")  # there are fewer classes to change, but still several hundred
CAPTURES = {
    "times": (("--cpu=times", *INCLUDE), times),
    "elapsed": (("--cpu=times", "--clock", "elapsed", *INCLUDE), times),
    "alloc": (("--alloc=exact", *INCLUDE), alloc),
    "live": (("--alloc=exact", "--live=exact", *INCLUDE), alloc),
    "exceptions": (("--exceptions", *INCLUDE), thrown),
    "requests": (("--requests=Ticks.request(..)",), requests),
    "trace": (("--trace", "Ticks.tick"), trace),
}


class Ticking:
    """Ticks, with its classes loaded, and how many ticks it had made at each moment."""

    def __init__(self, jdk, path, *args):
        self.path = path
        with path.open("w") as stdout:
            self.process = jdk.start_java(
                "Ticks", CLASSES, *args, jvm=("-Xmx128m",), stdout=stdout, stderr=-1
            )
        lab.wait_for(lambda: path.stat().st_size > 2000, 60, "ticks")

    def between(self, start_ms, end_ms):
        """The number of ticks in a span: the lowest and the highest that agree with what was
        printed.
        """
        lab.wait_for(lambda: self.ticks()[-1][0] > end_ms + 50, 60, "the end of the span")
        ticks = self.ticks()
        before = [max(n for ms, n in ticks if ms <= at) for at in (start_ms, end_ms)]
        after = [min(n for ms, n in ticks if ms >= at) for at in (start_ms, end_ms)]
        return before[1] - after[0], after[1] - before[0]

    def ticks(self):
        return [
            tuple(map(int, line.split()))
            for line in self.path.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]


@pytest.mark.jdks(8, 17, 21, 25, daily=1)
def test_what_is_counted_is_of_the_span(jdk, tmp_path, record_property):
    """Each capture alone, and all at once, twice in the same VM: the numbers are those of the
    program from the beginning to the end that the recording states, and no note says anything
    else.
    """
    ticking = Ticking(jdk, tmp_path / "said")
    together = tuple(
        dict.fromkeys(
            option
            for name in ("times", "alloc", "exceptions", "requests")
            for option in CAPTURES[name][0]
        )
    )
    runs = [
        *((name, options, (counts,)) for name, (options, counts) in CAPTURES.items()),
        *((f"together {n}", together, (times, alloc, thrown, requests)) for n in (1, 2)),
    ]
    found, wrong = {}, {}
    for name, options, counts in runs:
        out = tmp_path / f"{name}.jfr"
        done = lab.jvmscope("attach", *options, "-t", "1s", "-o", out, ticking.process.pid)
        assert done.returncode == 0, (name, done.stderr)
        least, most = ticking.between(*span(out))
        numbers = [n for count in counts for n in count(out)]
        found[name] = (round(span(out)[1] - span(out)[0]), least, most, *numbers)
        # 30 ms: the clocks of the program and the recording are compared to within some
        # milliseconds, and on a busy machine captures write their counts one after the other.
        if (
            not all(least - 30 <= n <= most + 30 for n in numbers)
            or "recorded up to" in done.stderr
        ):
            wrong[name] = found[name], done.stderr
    record_property("found", str(found))
    print(found)
    assert not wrong, wrong


@pytest.mark.jdks(8, 17, 25)
def test_a_trace_lasts_as_long_as_the_recording(jdk, tmp_path, record_property):
    """With each other capture, and with all of them: what these do at the end of a recording takes
    them 17 to 50 ms, in which calls continue. The first and the last ten of the recorded calls,
    which have times, are compared with the program's own lines, and each call lies in the span.
    """
    ticking, found, wrong = Ticking(jdk, tmp_path / "said"), {}, {}
    with_trace = [
        *((name,) for name in CAPTURES if name != "trace"),
        ("live", "requests"),
        ("times", "live", "exceptions", "requests"),
    ]
    for names in with_trace:
        name, out = "-".join(names), tmp_path / f"{'-'.join(names)}.jfr"
        options = tuple(dict.fromkeys(option for n in names for option in CAPTURES[n][0]))
        done = lab.jvmscope(
            "attach", "--trace", "Ticks.tick", *options, "-t", "1s", "-o", out, ticking.process.pid
        )
        assert done.returncode == 0, (name, done.stderr)
        start, end = span(out)
        least, most = ticking.between(start, end)
        calls, numbers = traced(out), [n for c in names for n in CAPTURES[c][1](out)]
        found[name] = (
            round(end - start),
            least,
            most,
            len(calls),
            round(calls[0][0] - start, 1),
            round(end - calls[-1][0], 1),
            *numbers,
        )
        # A line has the ms in which it was printed, after the tick that it counts.
        inside = all(before <= end and after >= start for before, after in calls)
        if not (
            inside
            and least - 3 <= len(calls) <= most + 3
            and all(least - 30 <= n <= most + 30 for n in numbers)
        ) or re.search(r"calls? w(as|ere) lost", done.stderr):
            wrong[name] = found[name], done.stderr
    record_property("found", str(found))
    print(found)
    assert not wrong, wrong


@pytest.mark.usefixtures("on_time")  # counts are read one after the other, trace last
@pytest.mark.jdks(8, 17, 25, daily=1)
def test_counts_end_with_the_span(jdk, tmp_path):
    """At the end of a recording, finding a similar name for each of 100 patterns that match no
    class takes some 100 ms, in which the program continues. That time is within the span, so what
    is counted is of it too: as many calls as are traced, which have times.
    """
    ticking, out = Ticking(jdk, tmp_path / "said"), tmp_path / "t.jfr"
    include = ",".join(("Ticks*", *(f"Tik{n:x}" for n in range(100))))
    options = ("--cpu=times", "--alloc=exact", "--exceptions", "--requests=Ticks.request(..)")
    found = []
    for _ in range(3):
        done = lab.jvmscope(
            "attach",
            *("--trace", "Ticks.tick", *options, "--include", include),
            *("-t", "300ms", "-o", out, ticking.process.pid),
        )
        assert done.returncode == 0, done.stderr
        counts = [n for count in (times, alloc, thrown, requests) for n in count(out)]
        found.append((trace(out)[0], min(counts), max(counts)))
    print(found)
    assert min(calls - least for calls, least, _ in found) <= 5, found


@pytest.mark.jdks(8, 17, 25, daily=1)
def test_no_call_begins_after_the_end(jdk, tmp_path):
    """Two threads call a method without a pause while the recording ends."""
    process = jdk.start_java("CallsFast", stdin=-1, stdout=-1, stderr=-1)
    lab.read_until(process.stdout, "ready")
    process.stdin.write("\n")
    process.stdin.flush()
    lab.read_until(process.stdout, "\n")
    for n in range(3):
        out = tmp_path / f"{n}.jfr"
        done = lab.jvmscope(
            "attach", "--trace", "CallsFast.step", "-t", "100ms", "-o", out, process.pid
        )
        assert done.returncode == 0, done.stderr
        start, end = span(out)
        calls = lab.read_json("trace", "--json", out)["calls"]
        assert len(calls) > 1000
        late = [c for c in calls if c["start_ns"] / 1e6 > end]
        early = [c for c in calls if (c["start_ns"] + c["ns"]) / 1e6 < start]
        assert not late and not early, (len(calls), len(late), len(early), start, end, late[:3])


@pytest.mark.jdks(17)
def test_that_coverage_begins_before_is_reported_with_every_output(jdk, tmp_path):
    """This also holds for formats that have no place for coverage, and if only such a format is
    requested. Some hundred classes are changed each time, so that it takes long enough to be
    reported before the recording begins.
    """
    ticking, out = Ticking(jdk, tmp_path / "said"), tmp_path / "c.jfr"
    include = ("--include", "Ticks*,java.lang.*,java.util.*")
    sentence = ": coverage: some was recorded up to "

    def printed(stderr):
        """An output that has no place for coverage names its losses among those of other
        captures.
        """
        return (
            stderr.count(sentence)
            + len(re.findall(r": losses of other captures: .*coverage", stderr))
            == 1
        )

    done = lab.jvmscope(
        "attach", "--cover", "--cpu", *include, "-t", "1s", "-o", out, ticking.process.pid
    )
    assert done.returncode == 0 and done.stderr.count(sentence) == 1, done.stderr
    # A capture that lost something as well is named once, with what it lost.
    lost = [x["capture"] for x in lab.read_json("coverage", "--json", out)["losses"]]
    others = re.findall(r"losses of other captures: (.*)", lab.jvmscope("report", out).stderr)
    assert "coverage" in lost and len(others) == 1, (lost, others)
    assert re.findall(r"coverage(?: \d+ \w+)? \(", others[0]) == [
        f"coverage {n} " + "method" + ("s" if n > 1 else "") + " ("
        for n in [
            x["amount"]
            for x in lab.read_json("coverage", "--json", out)["losses"]
            if x["capture"] == "coverage"
        ]
    ], others
    for name in ("c.html", "c.collapsed", "c.pb.gz", "c.otlp", "c.hprof.txt", "d.jfr"):
        done = lab.jvmscope("convert", "-o", tmp_path / name, out)
        assert done.returncode == 0 and printed(done.stderr), (name, done.stderr)
    for name in ("a.pb.gz", "a.collapsed"):
        done = lab.jvmscope(
            "attach",
            "--cover",
            "--cpu",
            *include,
            "-t",
            "1s",
            "-o",
            tmp_path / name,
            ticking.process.pid,
        )
        assert done.returncode == 0 and printed(done.stderr), (name, done.stderr)


@pytest.mark.jdks(8, 17, 25)
def test_waits_from_before_count_from_the_start(jdk, tmp_path):
    """While classes are changed for a recording, it has not begun, but the capture of threads has.
    Waits that began then count from the recording's start on, which the summary states. Waits that
    ended then are not in the recording.
    """
    ticking, out = Ticking(jdk, tmp_path / "said"), tmp_path / "t.jfr"
    done = lab.jvmscope(
        "attach", "--threads", "--alloc=exact", *INCLUDE, "-t", "1s", "-o", out, ticking.process.pid
    )
    assert done.returncode == 0, done.stderr
    start, _ = span(out)
    found = lab.read_json("threads", "summary", "--json", out)
    assert abs(found["origin_ns"] / 1e6 - start) < 0.001 and found["began_before"] >= 1, found
    assert (
        max(t["blocked_ns"] + t["waited_ns"] + t["idle_ns"] + t["io_ns"] for t in found["threads"])
        <= found["end_ns"]
    ), found
    text = lab.output("threads", "summary", out)
    assert re.search(
        r"^\d+ waits? began before the recording: counted from its start on$", text, re.M
    ), text


@pytest.mark.jdks(17)
def test_the_head_says_how_long_the_selected_part_is(jdk, tmp_path):
    """With --from and --to, in text and as JSON, also when one of them is outside of the
    recording. A thread computes all the time, so that every part has samples.
    """
    ticking, out = Ticking(jdk, tmp_path / "said", "busy"), tmp_path / "t.jfr"
    done = lab.jvmscope(
        "attach",
        "--cpu",
        "--interval",
        "1ms",
        "--threads",
        "--events",
        "--requests=Ticks.request(..)",
        "-t",
        "2s",
        "-o",
        out,
        ticking.process.pid,
    )
    assert done.returncode == 0, done.stderr
    whole = {
        v: lab.read_json(*v.split(), "--json", out)["span_ns"]
        for v in ("report", "threads summary")
    }
    assert all(ns >= 1_990_000_000 for ns in whole.values()), whole
    for words, of in (
        (("--from", "500ms", "--to", "1.25s"), lambda end: 750_000_000),
        (("--from", "1.5s"), lambda end: end - 1_500_000_000),
        (("--to", "1s"), lambda end: 1_000_000_000),
        (("--from", "1s", "--to", "1h"), lambda end: end - 1_000_000_000),
    ):
        assert {v: lab.read_json(*v.split(), "--json", *words, out)["span_ns"] for v in whole} == {
            v: of(end) for v, end in whole.items()
        }
    part = ("--from", "500ms", "--to", "1.25s", out)
    assert ", in 750 ms\n" in lab.output("report", *part)
    assert ": 750 ms of 2." in lab.output("threads", "summary", *part)
    assert ": 750 ms\n" in lab.output("vm", *part)
    assert lab.read_json("vm", "--json", *part)["duration_ns"] == 750_000_000
    assert " of 1 name in 0.8 s\n" in lab.output("requests", *part)
    assert "critical path of 750 ms" in lab.output("threads", "critical-path", *part)
    assert lab.read_json("threads", "critical-path", "--json", *part)["makespan_ns"] == 750_000_000


@pytest.mark.jdks(17, 25)
def test_nothing_is_counted_from_before_the_span(jdk, tmp_path, record_property):
    """Ten recordings one after the other: allocations that were counted while the counts were
    cleared would be too many.
    """
    ticking, out, found = Ticking(jdk, tmp_path / "said"), tmp_path / "a.jfr", []
    for _ in range(10):
        done = lab.jvmscope(
            "attach", "--alloc=exact", *INCLUDE, "-t", "300ms", "-o", out, ticking.process.pid
        )
        assert done.returncode == 0, done.stderr
        found.append((*ticking.between(*span(out)), *alloc(out)))
    record_property("found", str(found))
    print(found)
    assert all(least - 30 <= n <= most for least, most, n in found), found
