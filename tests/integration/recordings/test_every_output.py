# SPDX-License-Identifier: Apache-2.0
"""Every capture in its default form, in every output that run and attach write, is compared with
what the program says it did.
"""
import json
import re
import subprocess
from dataclasses import dataclass

import pytest

import lab
import outputs
from amounts import BYTES, CALLS, HOLD_MS, OBJECTS, SOURCE, THROWS, line

js = lab.read_json
SPIN_MS, ROUNDS = 300, 10
ALLOCATED = ROUNDS * OBJECTS * (BYTES + 16)
WRITES = CALLS + THROWS + 2  # of Amounts.sum, in each of which it is read too

STACKS = (".jfr", ".html", ".collapsed", ".pb.gz", ".otlp")
TEXT, BINARY = (".hprof.txt",), (".hprof",)
THREADS = (".pftrace", ".json", ".trcxml")
FORMATS = STACKS + TEXT + BINARY + THREADS


@dataclass
class Truth:
    """What the program says of itself."""

    spun_ns: int
    version: int


def near(value, truth, bounds):
    low, high = bounds
    assert low * truth <= value <= high * truth, (value, truth, bounds)


def metric(name, method, own, check):
    """Checks a method's weight, and that the sum is not less, in what the outputs with stacks
    say.
    """

    def all_of(path, form, truth):
        if form == ".html":
            data = outputs.page(path)
            found = outputs.page_weights(
                data, next(m for m in data["metrics"] if m["name"] == name)
            )
        elif form == ".collapsed":
            found = outputs.collapsed_weights(path)
        elif form == ".pb.gz":
            found = outputs.pprof(path)[0]
        else:
            table = js("report", "--json", "-n", "100000", path)[name]
            found = outputs.Weights(table["total"] if "total" in table else table["total_ns"])
            for m in table["methods"]:
                found.own[m["method"]] = m["self"] if "self" in m else m["self_ns"] or 0
                found.total[m["method"]] = m["total"] if "total" in m else m["total_ns"] or 0
        got = (found.own if own else found.total)[method]
        check(got, form, truth)
        assert found.sum >= got

    return all_of


def cpu_samples(got, form, truth):
    """One sample per 10 ms, within five standard errors of independent samples. Samples of a timer
    are more regular than those.
    """
    expected = truth.spun_ns / 1e7
    assert abs(got - expected) < 5 * expected**0.5, (got, expected)


def cpu_time(got, form, truth):
    """As the samples: the CPU clock is read each 10 ms."""
    cpu_samples(got / 1e7, form, truth)


def sampled(got, form, truth):
    """A sample stands for some 512 KB. JDK 8 counts."""
    if truth.version == 8:
        return exact(got, form, truth)
    assert abs(got - ALLOCATED) < 5 * (2**19 * ALLOCATED) ** 0.5, (got, ALLOCATED)


def exact(got, form, truth):
    assert got == ALLOCATED


def counted(path, form, truth):
    """HPROF's SITES list live objects, of which there are none here: the sum has these objects, or
    the report says that it does not.
    """
    if form not in TEXT + BINARY:
        return metric("allocations", "Amounts.allocate", True, exact)(path, form, truth)
    table = js("report", "--json", path)["allocations"]
    assert table["total"] >= ALLOCATED or table["listed_only"], table


def held(got, form, truth):
    near(got / 1e6, HOLD_MS, (0.5, 5))


def wall(got, form, truth):
    near(10 * got, HOLD_MS, (0.5, 5))


def blocked_threads(path, form, truth):
    """How long the main thread waited for the lock, in the formats that hold threads."""
    if form == ".json":
        events = json.loads(path.read_text())["traceEvents"]
        waits = [
            e["dur"] * 1000
            for e in events
            if e["ph"] == "X" and e["name"] == "wait-lock java.lang.Object"
        ]
    elif form == ".trcxml":
        assert js("threads", "monitors", "--json", path)["classes"]
        times = [
            [
                int(t.replace(".", ""))
                for t in re.findall(
                    rf'<monContended{what} threadIdRef="\d+" time="([\d.]+)"', path.read_text()
                )
            ]
            for what in ("Enter", "Entered")
        ]
        waits = [e - b for b, e in zip(*times)]
    else:
        done = subprocess.run(
            [
                "protoc",
                f"--proto_path={lab.ROOT / 'tests' / 'data'}",
                "--decode=Trace",
                "perfetto.proto",
            ],
            input=path.read_bytes(),
            capture_output=True,
            check=True,
        )
        waits, open_ = [], {}
        for packet in done.stdout.decode().split("\npacket {"):
            at, track = (
                re.search(rf"^ *{what}: (\d+)", packet, re.M)
                for what in ("timestamp", "track_uuid")
            )
            if "TYPE_SLICE_BEGIN" in packet:
                open_[track[1]] = (int(at[1]), 'name: "wait-lock java.lang.Object"' in packet)
            elif "TYPE_SLICE_END" in packet and open_[track[1]][1]:
                waits.append(int(at[1]) - open_[track[1]][0])
    # The JDK has locks of this class, too, for which a thread may wait; none is held for long.
    held(max(waits), form, truth)
    assert sum(waits) - max(waits) < 1e6 * HOLD_MS / 4, waits


def locks(path, form, truth):
    (blocked_threads if form in THREADS else metric("locks", "Amounts.main", True, held))(
        path, form, truth
    )


def times(path, form, truth):
    metric("times", "Amounts.spin", False, cpu_time)(path, form, truth)
    if form in (".jfr", ".hprof.txt"):
        calls = {
            m["method"]: m["calls"]
            for m in js("report", "--json", "-n", "100000", path)["times"]["methods"]
        }
        assert calls["Amounts.called"] == CALLS
        assert (
            form != ".jfr" or calls["Amounts.fail"] == THROWS
        )  # HPROF's text leaves out what is below cutoff=


def calls(path, form, truth):
    if form == ".html":
        assert outputs.page(path)["trace"]["total"] == CALLS
    else:
        found = js("trace", "--json", path)
        assert (len(found["calls"]), found["lost"]) == (CALLS, 0)


def covered(path, form, truth):
    found = outputs.page(path)["coverage"] if form == ".html" else js("coverage", "--json", path)
    amounts = next(c for c in found["classes"] if c["class"] == "Amounts")
    hit = {x["line"]: x["hit"] for x in amounts["by_line"]}
    assert (
        hit[line("thrown")]
        and hit[line("uncaught")]
        and not hit[SOURCE[: SOURCE.index("sum--")].count("\n") + 1]
    )


def thrown(path, form, truth):
    table = {
        (e["place"], e["caught"]): e["count"]
        for e in js("trace", "--exceptions", "--json", path)["exceptions"]
    }
    assert table[f"Amounts.fail:{line('thrown')}", f"Amounts.main:{line('caught')}"] == THROWS
    # "not known": a method that ran when the recording began may have a handler without a probe
    # (doc/format.md).
    assert (
        sum(
            n
            for (place, caught), n in table.items()
            if place == f"Amounts.ends:{line('uncaught')}" and caught in (None, "not known")
        )
        == 1
    )


def events(kind):
    def all_of(path, form, truth):
        found = js("trace", "--json", "-n", "1000000", path)
        assert found["lost"] == 0
        rows = [e for e in found["events"] if e["kind"] == kind]
        if kind == "vm":
            assert {"ends", "holder"} <= {e["thread"] for e in rows if e["what"] == "thread start"}
        elif kind == "log":
            assert len(rows) == CALLS
        else:
            assert sum(e["write"] for e in rows) == WRITES

    return all_of


@dataclass
class Capture:
    words: list
    formats: tuple  # those that can hold it; the others are refused before the program starts
    check: callable


def capture(words, formats, check):
    return words[0].split("(")[0], Capture(words, formats, check)


CAPTURES = dict(
    [
        capture(
            ["--cpu"], STACKS + TEXT + BINARY, metric("samples", "Amounts.spin", False, cpu_samples)
        ),
        capture(
            ["--cpu=wall"], STACKS + TEXT + BINARY, metric("wall", "Amounts.sleep", False, wall)
        ),
        capture(["--cpu=times"], STACKS + TEXT, times),
        capture(
            ["--alloc"],
            STACKS + TEXT + BINARY,
            metric("allocations", "Amounts.allocate", True, sampled),
        ),
        capture(
            ["--alloc=exact"],
            STACKS + TEXT + BINARY,
            metric("allocations", "Amounts.allocate", True, exact),
        ),
        capture(["--live"], STACKS + TEXT + BINARY, counted),
        capture(["--heap=sites"], STACKS + TEXT + BINARY, counted),
        capture(["--monitors"], STACKS + TEXT + THREADS, locks),
        capture(["--threads"], STACKS + THREADS, locks),
        capture(["--locks", "java.lang.Object"], STACKS + THREADS, locks),
        capture(["--deadlocks"], STACKS + THREADS, locks),
        capture(
            ["--requests=Amounts.hold(..)"],
            STACKS + THREADS,
            lambda path, form, truth: (
                blocked_threads
                if form in THREADS
                else metric("samples", "Amounts.spin", False, cpu_samples)
            )(path, form, truth),
        ),
        capture(["--trace", "Amounts.called"], (".jfr", ".html"), calls),
        capture(["--cover", "--include", "Amounts"], (".jfr", ".html"), covered),
        capture(["--exceptions"], (".jfr",), thrown),
        capture(["--events"], (".jfr",), events("vm")),
        capture(["--log", f"Amounts:{line('called')} {{i}}"], (".jfr",), events("log")),
        capture(["--watch", "Amounts.sum"], (".jfr",), events("access")),
    ]
)
# What is known of these is in test_heap.py, test_always.py and test_flight.py.
ELSEWHERE = {"--on-oom", "--jfr"}
PAIRS = [(name, form) for name, c in CAPTURES.items() for form in c.formats]


def test_all_captures_and_formats_are_here():
    formats = "".join(p.read_text() for p in (lab.ROOT / "src" / "export").glob("*.c"))
    assert set(re.findall(r'\.extension = "(.*?)"', formats)) == set(FORMATS)
    rows = (lab.ROOT / "src" / "options" / "table.c").read_text().split("\n    [OPT_")
    flags = {flag[1] for r in rows if ".gives" in r and (flag := re.search(r'"(--[\w-]+)"', r))}
    assert flags == {name.split("=")[0] for name in CAPTURES} | ELSEWHERE


def truth_of(text, jdk):
    return Truth(int(re.search(r"spun (\d+)", text)[1]), jdk.version)


def by_run(jdk, name, form, tmp_path):
    out = tmp_path / f"run{form}"
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        *CAPTURES[name].words,
        "-o",
        out,
        "java",
        "-Xmx64m",
        "-cp",
        lab.compiled("Amounts"),
        "Amounts",
        "all",
        SPIN_MS,
        input="\n",
    )
    assert done.returncode == 0 and not lab.lost(done.stderr), (name, form, done.stderr)
    CAPTURES[name].check(out, form, truth_of(done.stdout, jdk))
    if form == ".jfr" and ".html" not in CAPTURES[name].formats:
        lab.no_page(out)


def by_attach(jdk, process, name, form, tmp_path):
    out = tmp_path / f"attach{form}"
    done = lab.jvmscope("attach", *CAPTURES[name].words, "-o", out, process.pid)
    assert done.returncode == 0, (name, form, done.stderr)
    process.stdin.write("\n")
    process.stdin.flush()
    printed = lab.read_until(process.stdout, "sum ")
    # A file that is made from the recording is named at its end, as attach says.
    done = lab.jvmscope(
        "stop", *(["-o", out] if f"stop -o {out}" in done.stderr else []), process.pid
    )
    assert done.returncode == 0 and not lab.lost(done.stderr), (name, form, done.stderr)
    CAPTURES[name].check(out, form, truth_of(printed, jdk))


def attached(jdk, pairs, tmp_path):
    """One program for all of them, as one that runs for long."""
    process = jdk.start_java(
        "Amounts", "all", SPIN_MS, jvm=("-Xmx64m",), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for name, form in pairs:
            by_attach(jdk, process, name, form, tmp_path)
    finally:
        process.kill()
        process.communicate()


def each_format_once(shift):
    """A capture for each format, another one on each JDK and in each way."""
    for i, form in enumerate(FORMATS):
        able = [name for name, c in CAPTURES.items() if form in c.formats]
        yield able[(i + shift) % len(able)], form


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(25)
def test_run_writes_what_happened(jdk, tmp_path):
    for name, form in each_format_once(0):
        by_run(jdk, name, form, tmp_path)


@pytest.mark.usefixtures("on_time")
@pytest.mark.jdks(8)
def test_attach_writes_what_happened(jdk, tmp_path):
    attached(jdk, each_format_once(jdk.version), tmp_path)


@pytest.mark.usefixtures("on_time")
@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_each_capture_in_each_output(jdk, name, tmp_path):
    pairs = [(name, form) for form in CAPTURES[name].formats]
    for _, form in pairs:
        by_run(jdk, name, form, tmp_path)
    attached(jdk, pairs, tmp_path)


def test_what_a_format_cannot_hold_is_refused_before(tmp_path):
    for name, c in CAPTURES.items():
        for form in set(FORMATS) - set(c.formats):
            out = tmp_path / f"refused{form}"
            for verb in ("run", "attach"):
                done = lab.jvmscope(
                    verb, *c.words, "-o", out, *(["false"] if verb == "run" else ["1"])
                )
                assert done.returncode == 2 and done.stdout == "" and not out.exists(), (
                    name,
                    form,
                    done,
                )
                assert re.search(
                    r"this format|a page can show|HPROF's output|cannot be used with"
                    r"|cannot be recorded into",
                    done.stderr,
                ), (name, form, done.stderr)


@pytest.mark.jdks(17)
def test_waits_alone_give_no_stacks_which_is_reported_before(jdk, tmp_path):
    """The program is not contended, so what shows stacks stays empty; whoever recorded heard of it
    afterwards alone. The recording is kept, and what the hint names exists.
    """
    waiting = ("--threads", "--monitors", "--locks=java.lang.Object", "--deadlocks")
    program = jdk.command("java", "-cp", lab.compiled("Busy"), "Busy", "1", "2")
    for form in (".collapsed", ".pb.gz", ".otlp"):
        for capture_of in waiting:
            out = tmp_path / f"x{form}"
            done = lab.jvmscope("run", capture_of, "-o", out, "--", *program)
            lines = done.stderr.splitlines()
            assert done.returncode == 1 and not out.exists(), (form, capture_of, done.stderr)
            assert lines[0].startswith(
                f"jvmscope: note: {out}: this format shows only the waits for locks"
            ), (form, capture_of, lines)
            [kept] = [
                re.match(
                    r"jvmscope: the recording is still at: ([^:]+)(?:: see it with: (.*))?$", line
                )
                for line in lines
                if "is still at" in line
            ]
            # A hint names this file and a command that shows it.
            assert (kept[2] is None) == (capture_of == "--monitors"), lines
            if kept[2]:
                words = kept[2].split()
                assert words[0] == "jvmscope" and words[-1] == kept[1], lines
                shown = lab.jvmscope(*words[1:])
                assert shown.returncode == 0 or "deadlocks" in words, (words, shown)
            (tmp_path / kept[1]).unlink()
        done = lab.jvmscope(
            "run", "--threads", "--cpu", "-o", tmp_path / f"y{form}", "--", *program
        )
        assert (
            done.returncode == 0 and "note: " not in done.stderr.split("lacks")[0][:60]
        ), done.stderr
