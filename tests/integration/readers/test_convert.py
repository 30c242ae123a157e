# SPDX-License-Identifier: Apache-2.0
"""Readers and exporters compared with other people's programs: protoc for pprof, the original HPROF
of JDK 8.
"""
import itertools
import json
import re
import shlex
import subprocess
import zlib

import pytest

import hproftext
import lab
import outputs


def report(path, *args):
    done = lab.jvmscope("report", "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def stacks(tmp_path):
    path = tmp_path / "s.collapsed"
    path.write_text(
        "a.A.main;b.B.run_[j];c.C.leaf_[i] 12\na.A.main;b.B.run_[j] 5\na.A.main;b.B.run_[j];b.B.run_[j];x.Y.z 7\n"
        "a.A.main;[unknown] 3\n[truncated];q.R.s 2\n"
    )
    return path


def test_report_counts_recursion_once_and_marks_apart(stacks):
    samples = report(stacks)["samples"]
    assert (samples["total"], samples["unattributed"], samples["truncated"]) == (29, 3, 2)
    methods = {m["method"]: (m["self"], m["total"]) for m in samples["methods"]}
    assert methods == {
        "a.A.main": (0, 27),
        "b.B.run": (5, 24),
        "c.C.leaf": (12, 12),
        "x.Y.z": (7, 7),
        "q.R.s": (2, 2),
    }
    assert [m["method"] for m in samples["methods"]] == [
        "c.C.leaf",
        "x.Y.z",
        "b.B.run",
        "q.R.s",
        "a.A.main",
    ]


@pytest.mark.jdks(17)
def test_a_page_lacks_what_a_selection_cannot_divide(jdk, tmp_path):
    """A page of the whole recording shows the time of counted calls. A page of a part lacks it, and
    a note says so.
    """
    whole, page = tmp_path / "w.jfr", tmp_path / "p.html"
    options = f"cpu=samples,cpu=times,format=r,file={whole}"
    done = jdk.java("Busy", 1, jvm=[jdk.agent(options)])
    assert done.returncode == 0, done.stderr
    for words in (), ("--thread", "main"), ("--from", "10ms"):
        done = lab.jvmscope("convert", *words, whole, "-o", page)
        assert done.returncode == 0, done.stderr
        shown = [m["title"] for m in outputs.page(page)["metrics"]]
        there = "Time of counted calls" in shown
        assert "CPU samples" in shown and there == (not words), (words, shown)
        assert ("note: the output lacks Time of counted calls: " in done.stderr) == (
            not there
        ), done.stderr


@pytest.mark.jdks(17)
def test_what_a_selection_cannot_divide_is_not_chosen(jdk, tmp_path):
    """Where counted allocations and waits for locks were recorded, a part shows the locks, and says
    that it lacks the allocations, which come first in the whole recording.
    """
    whole = tmp_path / "w.jfr"
    options = f"alloc=exact,monitor=y,cutoff=0,format=r,file={whole}"
    assert jdk.java("Monitors", jvm=[jdk.agent(options)]).returncode == 0
    titles = {"Allocated bytes": "allocations", "Time blocked on locks": "locks"}
    for extension, words in itertools.product(
        ("html", "pb.gz", "otlp", "jfr", "collapsed"), ((), ("--from", "1ns"))
    ):
        out = tmp_path / f"p.{extension}"
        done = lab.jvmscope("convert", *words, whole, "-o", out)
        assert done.returncode == 0, (extension, done.stderr)
        noted = f"{whole}: note: the output lacks Allocated bytes: " in done.stderr
        assert noted == bool(words), (extension, done.stderr)
        if extension == "html":
            shown = {titles.get(m["title"]) for m in outputs.page(out)["metrics"]}
        else:
            shown = set(report(out))
        wanted = {"locks"} if words else set(titles.values())
        if extension in ("collapsed", "pb.gz") and not words:
            wanted = {"allocations"}  # the first, of which alone they have the weight
        assert shown & set(titles.values()) == wanted, (extension, words, shown)
    found = report(whole, "--from", "1ns")
    assert "locks" in found and found["not_selected"] == ["allocations"]
    done = lab.jvmscope("convert", "--metric", "allocations", "--from", "1ns", whole, "-o", out)
    assert done.returncode == 1 and "cannot select a part of what is counted" in done.stderr


def test_filters(stacks):
    assert report(stacks, "--class", "c.C")["samples"]["total"] == 12
    assert report(stacks, "--class", "*.B")["samples"]["total"] == 24


@pytest.mark.parametrize(
    "option, name, why",
    [
        ("--class", "*.none", "no class of a stack has this name: *.none"),
        (
            "--thread",
            "nobody",
            "--thread cannot select a part of samples that name no thread: the file does not state "
            "which thread a sample is of",
        ),
    ],
)
def test_a_name_that_nothing_has_is_an_error(stacks, tmp_path, option, name, why):
    out = tmp_path / "x.pb.gz"
    for command in (
        ["report", stacks],
        ["report", "--json", stacks],
        ["diff", stacks, stacks],
        ["convert", "-o", out, stacks],
    ):
        done = lab.jvmscope(*command, option, name)
        assert (done.returncode, done.stdout) == (1, ""), command
        assert done.stderr == f"jvmscope: {stacks}: {why}\n"
    assert not out.exists()


def test_collapsed_comes_back(stacks, tmp_path):
    again = tmp_path / "again.collapsed"
    assert lab.jvmscope("convert", stacks, "-o", again).returncode == 0
    assert report(again) == report(stacks)
    assert lab.jvmscope("diff", "--json", stacks, again).stdout.count('"change":0') == 5


def test_pprof_is_understood_by_protoc(stacks, tmp_path):
    out = tmp_path / "s.pb.gz"
    assert lab.jvmscope("convert", stacks, "-o", out).returncode == 0
    data = zlib.decompress(out.read_bytes(), 31)
    messages = decode(data)
    strings = [v.decode() for f, v in messages if f == 6]
    functions = {dict(decode(v))[1]: strings[dict(decode(v))[2]] for f, v in messages if f == 5}
    locations = {}
    for field, value in messages:
        if field == 4:
            location = dict(decode(value))
            locations[location[1]] = functions[dict(decode(location[4]))[1]]
    seen = {}
    for field, value in messages:
        if field == 2:
            sample = dict(decode(value))
            stack = ";".join(locations[i] for i in reversed(varints(sample[1])))
            seen[stack] = varints(sample[2])[0]
    assert seen == {
        "a.A.main;b.B.run;c.C.leaf": 12,
        "a.A.main;b.B.run": 5,
        "a.A.main;b.B.run;b.B.run;x.Y.z": 7,
        "a.A.main;[unknown]": 3,
        "[truncated];q.R.s": 2,
    }
    assert strings[0] == ""
    done = subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True)
    assert done.returncode == 0 and done.stdout.count(b"\n2 {") == 5


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def decode(data):
    """Fields of a protobuf message, as (number, int or bytes)."""
    fields, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            fields.append((key >> 3, varint()))
        else:
            assert key & 7 == 2
            length = varint()
            fields.append((key >> 3, data[at : at + length]))
            at += length
    return fields


@pytest.mark.jdks(8)
def test_the_original_agents_text_and_binary_are_read(jdk, tmp_path):
    text, binary = tmp_path / "o.hprof.txt", tmp_path / "o.hprof"
    for path, form in ((text, "a"), (binary, "b")):
        done = jdk.java(
            "Busy", 1, jvm=(f"-agentlib:hprof=cpu=samples,interval=1,format={form},file={path}",)
        )
        assert done.returncode == 0
    rows = re.findall(r"^ +\d+ +[\d.]+% +[\d.]+% +(\d+) +\d+ (\S+)$", text.read_text(), re.M)
    mine = {m["method"]: m["self"] for m in report(text)["samples"]["methods"] if m["self"]}
    theirs = {}
    for count, method in rows:
        theirs[method] = theirs.get(method, 0) + int(count)
    assert mine == theirs and mine
    assert report(binary)["samples"]["methods"][0]["method"] == max(theirs, key=theirs.get)


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_plain_flight_recordings(jdk, tmp_path):
    """Counts of what JFR itself recorded agree with those that the JDK's own jfr prints."""
    path = tmp_path / "plain.jfr"
    done = jdk.java(
        "Busy",
        2,
        2,
        0.6,
        jvm=("-Xmx64m", f"-XX:StartFlightRecording=filename={path},settings=profile"),
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(
        jdk.run(
            "jfr", "print", "--json", "--stack-depth", "64", "--events", "jdk.ExecutionSample", path
        ).stdout
    )
    theirs = {}
    for event in printed["recording"]["events"]:
        frame = event["values"]["stackTrace"]["frames"][0]["method"]
        name = frame["type"]["name"].replace("/", ".") + "." + frame["name"]
        theirs[name] = theirs.get(name, 0) + 1
    samples = report(path)["samples"]
    assert samples["total"] == sum(theirs.values()) > 10
    assert {m["method"]: m["self"] for m in samples["methods"] if m["self"]} == theirs
    assert samples["methods"][0]["method"] == "Busy.work"
    assert samples["interval_ns"] in (10_000_000, 20_000_000)


def test_a_recording_cut_anywhere_is_read_or_refused_in_words(jvmscope, tmp_path):
    whole = tmp_path / "whole.jfr"
    done = jvmscope(
        "run", "-o", whole, "--", "java", "-Xmx64m", "-cp", lab.compiled("Busy"), "Busy", 1
    )
    assert done.returncode == 0, done.stderr
    data = whole.read_bytes()
    for size in list(range(0, 200, 13)) + [len(data) * i // 23 for i in range(23)]:
        part = tmp_path / "part.jfr"
        part.write_bytes(data[:size])
        done = jvmscope("report", part)
        assert done.returncode in (0, 1), (size, done.returncode, done.stderr)
        assert done.returncode == 0 or done.stderr.startswith("jvmscope: "), size


@pytest.mark.parametrize("metric", ["samples", "wall"])
@pytest.mark.parametrize("form", ["hprof.txt", "hprof"])
def test_hprof_outputs_keep_samples_and_their_kind(form, metric, stacks, tmp_path):
    out = tmp_path / f"s.{form}"
    stacks.write_text(f"# jvmscope: {metric} 0\n" + stacks.read_text())
    assert lab.jvmscope("convert", stacks, "-o", out).returncode == 0
    assert report(out) == report(stacks) and report(out)[metric]["total"] == 29


@pytest.mark.jdks(8, 17, 27)
def test_hprof_of_elapsed_time_is_named_so_with_all_its_samples(jdk, tmp_path):
    """cpu=wall: text and binary that are read again are wall-clock samples, and those below the
    file's cutoff count.
    """
    for form, name in (("a", "w.hprof.txt"), ("b", "w.hprof")):
        out, again = tmp_path / name, tmp_path / f"{name}.collapsed"
        done = jdk.java(
            "Busy",
            1,
            jvm=("-Xmx64m", jdk.agent(f"cpu=wall,interval=1,cutoff=0.1,format={form},file={out}")),
        )
        assert done.returncode == 0, done.stderr
        wall = report(out, "--idle")
        assert list(wall) == ["wall"] + [k for k in wall if k != "wall"] and "samples" not in wall
        if form == "a":
            text = hproftext.Text(out)
            rows = text.ranked["CPU SAMPLES"][0]
            assert text.wall and wall["wall"]["total"] == text.totals["CPU SAMPLES"][0] > sum(
                r.count for r in rows
            )
        assert wall["wall"]["unattributed"] > 0 and lab.output("report", out).startswith(
            f"{out}: Wall-clock samples: "
        )
        assert lab.jvmscope("convert", "-o", again, out).returncode == 0
        assert again.read_text().startswith("# jvmscope: wall 0\n")


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_a_part_of_a_recording_is_a_recording(jdk, tmp_path):
    """A part of a recording that JFR made: the JDK's own jfr reads it, and it contains what the
    filters select of the whole.
    """
    whole, part = tmp_path / "whole.jfr", tmp_path / "part.jfr"
    done = jdk.java(
        "Busy", 2, 2, jvm=("-Xmx64m", f"-XX:StartFlightRecording=filename={whole},settings=profile")
    )
    assert done.returncode == 0, done.stderr
    flags = ("--thread", "busy-1", "--from", "0.5s")
    assert lab.jvmscope("convert", *flags, whole, "-o", part).returncode == 0
    wanted = report(whole, "--metric", "samples", *flags)["samples"]
    assert (
        report(part, "--metric", "samples")["samples"]["methods"] == wanted["methods"]
        and wanted["total"] > 0
    )
    printed = json.loads(
        jdk.run("jfr", "print", "--json", "--events", "jdk.ExecutionSample", part).stdout
    )["recording"]["events"]
    assert len(printed) == wanted["total"]
    assert all(
        e["values"]["sampledThread"]["javaName"] == "busy-1" and e["values"]["stackTrace"]["frames"]
        for e in printed
    )


@pytest.mark.jdks(17)
def test_a_part_of_our_recording(jdk, jvmscope, tmp_path):
    whole, part = tmp_path / "whole.jfr", tmp_path / "part.jfr"
    assert (
        jvmscope(
            "run", "-o", whole, "--", "java", "-Xmx64m", "-cp", lab.compiled("Busy"), "Busy", 1, 2
        ).returncode
        == 0
    )
    assert jvmscope("convert", "--thread", "main", whole, "-o", part).returncode == 0
    wanted = report(whole, "--thread", "main")["samples"]
    del wanted["sampler"]  # the cost of sampling covers the whole recording
    assert report(part)["samples"] == wanted and wanted["total"] > 0
    printed = jdk.run(
        "jfr", "print", "--events", "jdk.ExecutionSample,jvmscope.UnattributedSample", part
    )
    assert printed.returncode == 0, printed.stderr
    whole_stacks = len(re.findall(r"^jdk\.ExecutionSample \{", printed.stdout, re.M))
    assert (
        whole_stacks + sum(map(int, re.findall(r"^  samples = (\d+)", printed.stdout, re.M)))
        == wanted["total"]
    )


@pytest.fixture(scope="module", params=[8, 17, 25])
def halves(request, tmp_path_factory):
    """A recording of Halves, and the options that select its second half."""
    jdk, out = lab.Jdk(request.param), tmp_path_factory.mktemp("halves") / "whole.jfr"
    options = (
        "cpu=samples,interval=1ms,alloc=exact,threads=y,cover=y,include=Halves,exceptions=counts,trace=Halves.pause,"
        f"requests=Halves.ask*(..),format=r,file={out}"
    )
    done = jdk.java("Halves", jvm=("-Xmx64m", jdk.agent(options)))
    assert done.returncode == 0, done.stderr
    (pause,) = re.findall(r"^ *([\d.]+) .*Halves\.pause", lab.output("trace", out), re.M)
    return out, f"{float(pause) * 1000 + 600:.0f}ms"


def test_a_part_counts_what_is_in_it(halves, tmp_path):
    """Sums that are saved at the end of a recording cover all of it. A part has the sums that a
    command computes with the same selection.
    """
    whole, middle = halves

    def counts(*words):
        return {
            r["name"]: (r["count"], r["exact"], r["total_ns"])
            for r in lab.read_json("requests", "--json", *words)["requests"]
        }

    assert {name: n for name, (n, _, _) in counts(whole).items()} == {
        "Halves.askEarly": 30,
        "Halves.askLate": 12,
    }
    for option, name, n in (("--from", "Halves.askLate", 12), ("--to", "Halves.askEarly", 30)):
        part = tmp_path / f"part{option}.jfr"
        done = lab.jvmscope("convert", option, middle, whole, "-o", part)
        assert done.returncode == 0, done.stderr
        assert (
            counts(part) == counts(option, middle, whole)
            and counts(part)[name][0] == n
            and len(counts(part)) == 1
        ), option
        # Data that cannot be divided is left out, and this is reported.
        assert (
            f"{whole}: note: the output lacks Allocated bytes: --from and --to cannot select a part of what is counted\n"
            in done.stderr
        ), done.stderr
        assert "the counts of exceptions, coverage\n" in done.stderr, done.stderr
        for command in (
            ("trace", "--exceptions"),
            ("coverage",),
            ("report", "--metric", "allocations"),
        ):
            shown = lab.jvmscope(*command, part)
            assert shown.returncode == 1 and not shown.stdout, (command, shown.stdout)


def test_a_part_knows_how_threads_were_recorded(halves, tmp_path):
    """Events at the beginning of a recording say how threads were recorded, and waits that last
    into a part belong to it.
    """
    whole, middle = halves
    part = tmp_path / "part.jfr"
    assert lab.jvmscope("convert", "--from", middle, whole, "-o", part).returncode == 0
    wanted, found = (
        lab.read_json("threads", "summary", "--json", *words)
        for words in (("--from", middle, whole), (part,))
    )
    for key in (
        "contanalysis",
        "owner_unknown",
        "owner_unknown_virtual",
        "inferred",
        "waits_over_1ms",
        "with_cause",
    ):
        assert found[key] == wanted[key], (key, found, wanted)
    assert found["contanalysis"] is True and found["owner_unknown"] == found["inferred"] == 0, found
    of = [
        {
            t["name"]: (t["blocked"], t["waited"])
            for t in answer["threads"]
            if t["name"] in ("main", "idle")
        }
        for answer in (wanted, found)
    ]
    assert of[0] == of[1] and of[1]["main"][0] == 5 and of[1]["idle"][1] == 1, of
    # Parts that are selected by thread do, too.
    assert lab.jvmscope("convert", "--thread", "main", whole, "-o", part).returncode == 0
    assert lab.read_json("threads", "summary", "--json", part)["contanalysis"] is True


STACKS = (".html", ".collapsed", ".pb.gz", ".otlp", ".hprof.txt", ".hprof", ".jfr")
THREADS = (".trcxml", ".pftrace", ".json")
# What is left out, as the note reports it, and the formats that have it.
KINDS = {
    "samples, which .html, .collapsed, .pb.gz, .otlp, .hprof.txt, .hprof and .jfr hold": STACKS,
    "the counts of calls, which .html, .hprof.txt and .jfr hold": (".html", ".hprof.txt", ".jfr"),
    "the waits of threads, which .html, .jfr, .trcxml, .pftrace and .json hold": (
        ".html",
        ".jfr",
        *THREADS,
    ),
    "requests, which .html, .otlp and .jfr hold": (".html", ".otlp", ".jfr"),
    "traced calls, which .html and .jfr hold": (".html", ".jfr"),
    "log records and accesses to fields, which .jfr holds and jvmscope trace shows": (".jfr",),
    "the counts of exceptions, which .jfr holds and jvmscope trace --exceptions shows": (".jfr",),
    "coverage, which .html and .jfr hold": (".html", ".jfr"),
    "the VM's own activity, which .jfr holds and jvmscope vm shows": (".jfr", ".html"),
    "most of the VM's own activity, which .jfr holds and jvmscope vm shows": (
        *set(STACKS) - {".html"},
        *THREADS,
    ),
    "pauses for collections, which .html, .jfr, .pftrace and .json hold": (
        ".html",
        ".jfr",
        ".pftrace",
        ".json",
    ),
}


@pytest.mark.jdks(8, 25)
def test_what_a_format_has_no_place_for_is_reported(jdk, tmp_path):
    """Covers every kind of data and every format. Formats with room for one metric name the other
    metrics, unless one is chosen.
    """
    out = tmp_path / "all.jfr"
    options = (
        "cpu=samples,cpu=times,alloc=exact,threads=y,events=y,cover=y,include=Amounts,exceptions=counts,trace=Amounts.called,log=Amounts:16 {i},"
        f"requests=Amounts.called(..),format=r,file={out}"
    )
    done = jdk.java("Amounts", jvm=("-Xmx128m", jdk.agent(options)))
    assert done.returncode == 0, done.stderr
    there = re.findall(r"^  also there: (.*)$", lab.output("report", out), re.M)
    assert len(there) >= 2, there
    # test_what_has_no_place_for_pauses_says_so is about a program that is certain to have some.
    paused = lab.read_json("vm", "--json", out)["collections"]["pauses"] > 0
    kinds = {k: v for k, v in KINDS.items() if paused or not k.startswith("pauses")}
    for extension in (*STACKS, *THREADS):
        other = tmp_path / f"x{extension}"
        done = lab.jvmscope("convert", out, "-o", other)
        stated = [
            line.removeprefix(f"jvmscope: {other}: note: the output lacks ")
            for line in done.stderr.splitlines()
            if "note: the output lacks " in line
        ]
        # Short runs have little of this time; test_the_time_of_threads_without_samples_is_reported
        # checks the amount.
        assert any("threads that run no Java code" in line for line in stated) == (
            extension in STACKS and extension not in (".html", ".jfr")
        )
        # The VM may wait for a file while it loads a class.
        stated = [
            line
            for line in stated
            if "threads that run no Java code" not in line
            and not re.match(r"\d+ waits? for I/O, for which the format", line)
        ]
        metrics = there if extension in (".collapsed", ".pb.gz", ".hprof", ".hprof.txt") else []
        assert done.returncode == 0 and stated == metrics + [
            kind for kind, holds in kinds.items() if extension not in holds
        ], (extension, done.stderr)
        if (
            extension in STACKS and extension != ".jfr" and ".hprof" not in extension
        ):  # .hprof has no place for allocations at all, and says so
            done = lab.jvmscope("convert", "--metric", "allocations", out, "-o", other)
            assert done.returncode == 0 and "lacks" not in done.stderr, done.stderr


SAMPLES = {"--thread", "--class", "--from", "--to", "--request", "--slowest", "--metric"}
FOLLOWS = (
    {extension: SAMPLES for extension in STACKS}
    | {".jfr": SAMPLES - {"--request", "--slowest", "--metric"}}
    | {extension: set() for extension in THREADS}
)


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A recording with all kinds of data, most of which are not of the thread "main" alone. The
    request uses CPU time, so it has samples.
    """
    out = tmp_path_factory.mktemp("traced") / "all.jfr"
    options = (
        "cpu=samples,threads=y,events=y,cover=y,include=Amounts,exceptions=counts,trace=Amounts.called,log=Amounts:16 {i},"
        f"requests=Amounts.spin(..),format=r,file={out}"
    )
    done = lab.Jdk(17).java(
        "Amounts", "all", 300, input="\n", jvm=("-Xmx128m", lab.Jdk(17).agent(options))
    )
    assert done.returncode == 0, done.stderr
    return out


def test_help_and_manual_list_every_format():
    known = [
        (extension, re.search(r'\.what = "(.*)"', part)[1])
        for file in sorted((lab.ROOT / "src/export").glob("*.c"))
        for part in file.read_text().split("\nconst struct export_format export_format_")[1:]
        for extension in re.findall(r'\.extension = "(.*)"', part)
    ]
    assert {extension for extension, _ in known} == {*STACKS, *THREADS}
    listed = lab.output("convert", "--help").split("\nFormats, by the extension")[1]
    listed = re.findall(r"(?m)^  (\.\S+) +(.*)$", listed.split("\n\n")[0])
    manual = lab.output("manual", "convert").split("\n# FORMATS\n")[1].split("\n# ")[0]
    manual = re.findall(r"(?m)^\*(\..*)\*\n\t(.*)\.$", manual)
    assert sorted(listed) == sorted(known) and manual == listed, (listed, manual)


def test_every_format_follows_a_selection_or_refuses_it(traced, tmp_path):
    """Every format of the program's list, and every selection: the format follows the selection, or
    it is refused in one line.
    """
    known = (
        lab.jvmscope("convert", traced, "-o", "x.nosuch")
        .stderr.split("formats are ")[1]
        .strip()
        .split(", ")
    )
    assert set(known) == set(FOLLOWS)
    values = {
        "--thread": "nosuch",
        "--class": "nosuch",
        "--from": "1h",
        "--to": "1us",
        "--request": "nosuch",
        "--slowest": "1%",
        "--metric": "samples",
    }
    for extension, follows in FOLLOWS.items():
        for option, value in values.items():
            other = tmp_path / f"x{extension}"
            done = lab.jvmscope("convert", option, value, traced, "-o", other)
            if option not in follows:
                assert done.returncode == 2 and done.stderr.count("\n") == 1, (
                    extension,
                    option,
                    done,
                )
                assert f"{other}: {option} cannot select a part for this format: " in done.stderr, (
                    extension,
                    option,
                    done,
                )
                assert ("-o part.jfr" in done.stderr) == (
                    option in ("--thread", "--class", "--from", "--to")
                ), (option, done)
            else:
                assert "cannot select a part for this format" not in done.stderr, (
                    extension,
                    option,
                    done,
                )
            if option not in follows or value in ("nosuch", "1h"):
                assert done.returncode != 0 and not other.exists(), (extension, option, done)
            other.unlink(missing_ok=True)


def test_a_part_says_what_the_selection_leaves_out(traced, tmp_path):
    part = tmp_path / "part.jfr"
    done = lab.jvmscope("convert", "--thread", "main", traced, "-o", part)
    assert done.returncode == 0, done.stderr
    (note,) = [
        line for line in done.stderr.splitlines() if "the selection leaves out all of: " in line
    ]
    assert (
        "coverage" in note and "the counts of exceptions" in note and "traced calls" not in note
    ), note
    assert lab.output("trace", part) == lab.output("trace", "--thread", "main", traced).replace(
        str(traced), str(part)
    )
    # Nothing is left out without a selection.
    done = lab.jvmscope("convert", traced, "-o", part)
    assert done.returncode == 0 and "the selection" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    "selection", (("--thread", "main"), ("--class", "Amounts"), ("--from", "10ms"))
)
def test_a_part_without_counts_does_not_say_that_nothing_happened(selection, traced, tmp_path):
    part = tmp_path / "part.jfr"
    done = lab.jvmscope("convert", *selection, traced, "-o", part)
    assert done.returncode == 0, done.stderr
    for verb in (("trace", "--exceptions"), ("coverage",)):
        done = lab.jvmscope(*verb, part)
        what = "coverage" if verb[0] == "coverage" else "exceptions"
        why = "this is a part of a recording, so look at the whole of it"
        assert (done.returncode, done.stdout, done.stderr) == (
            1,
            "",
            f"jvmscope: {part}: holds no {what}: {why}\n",
        )


@pytest.mark.jdks(8, 17)
def test_a_part_before_the_end_of_a_killed_recorder_is_whole(jdk, tmp_path):
    out, part = tmp_path / "killed.jfr", tmp_path / "part.jfr"
    options = f"cpu=samples,exceptions=counts,format=r,file={out}"
    process = jdk.start_java("Shares", jvm=("-Xmx64m", jdk.agent(options)), stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        lab.wait_for(
            lambda: "the counts of" in lab.jvmscope("report", out).stderr, 30, "counts in the file"
        )
        lab.use_cpu(process, 1)
    finally:
        process.kill()
        process.communicate()
    printed = lab.jvmscope("report", out).stderr
    end = re.search(
        r"was not ended: everything after ([\d.]+) s is missing(?:, and some .*?)?; the counts of",
        printed,
    )
    assert end, printed
    middle, beyond = f"{float(end[1]) / 2:.1f}s", f"{float(end[1]) + 1:.1f}s"
    for selection, missing in (
        (("--to", middle), ""),
        (("--from", middle), "everything after "),
        (("--to", beyond), f"everything after {end[1]} s "),
    ):
        done = lab.jvmscope("convert", *selection, out, "-o", part)
        assert done.returncode == 0, done.stderr
        printed = lab.jvmscope("report", part).stderr
        # The part has no counts, so nothing says of until when they are.
        assert missing in printed and ("was not ended" in printed) == bool(missing), (
            selection,
            printed,
        )
        assert "the counts of" not in printed, (selection, printed)


def test_a_page_of_a_part_says_what_is_of_the_whole(traced, tmp_path):
    page = tmp_path / "x.html"
    kinds = "the waits of threads, requests, traced calls, coverage"
    for part in (
        ["--thread", "main"],
        ["--from", "1234567ns", "--to", "100000d"],
        ["--thread", "=main", "--class", "*mounts"],
        ["--slowest", "50%"],
    ):
        done = lab.jvmscope("convert", *part, traced, "-o", page)
        assert done.returncode == 0, (part, done.stderr)
        assert (
            f"note: only the samples are limited to the selection; these cover the whole recording: {kinds}\n"
            in done.stderr
        ), (part, done.stderr)
        assert outputs.page(page)["whole"] == kinds
        assert shlex.split(outputs.page(page)["part"]) == part, "as it can be given again"
    done = lab.jvmscope("convert", traced, "-o", page)
    assert (
        done.returncode == 0
        and "of the selection" not in done.stderr
        and outputs.page(page)["whole"] is None
        and outputs.page(page)["part"] is None
    )


def test_the_time_of_threads_without_samples_is_reported(traced, tmp_path):
    """The note has the amount that report shows. There is no note if threads are selected."""
    third = lab.read_json("report", "--json", traced)["span_ns"] // 3000
    for part in ([], ["--from", f"{third}us"]):
        cpu = report(traced, *part)["samples"]["cpu_time_ns"]
        others = sum(
            ns for what, ns in cpu.items() if what not in ("process", "java", "not sampled")
        )
        for extension in set(STACKS) - {".html", ".jfr"}:
            done = lab.jvmscope("convert", *part, traced, "-o", tmp_path / f"x{extension}")
            amount = re.search(
                r"note: the output lacks the CPU time of threads that run no Java code, ([\d.]+) (ms|s) of [\d.]+ m?s, which",
                done.stderr,
            )
            assert float(amount[1]) * {"ms": 1e6, "s": 1e9}[amount[2]] == pytest.approx(
                others, rel=0.01
            ), (extension, cpu)
    done = lab.jvmscope("convert", "--thread", "main", traced, "-o", tmp_path / "x.pb.gz")
    assert done.returncode == 0 and "no Java code" not in done.stderr, done.stderr


@pytest.mark.jdks(17)
@pytest.mark.parametrize("sampled", [True, False])
def test_a_thread_without_samples_has_a_part(sampled, jdk, tmp_path):
    """A thread that only sleeps and calls has no CPU samples, which report says. A part of the
    recording has its waits and calls. A class may occur only in stacks of waits. Nothing has the
    given name.
    """
    out, part = tmp_path / "all.jfr", tmp_path / "part.jfr"
    done = jdk.java(
        "Sleepers",
        3,
        jvm=(
            jdk.agent(
                f"{'cpu=samples,interval=100ms,' if sampled else ''}trace=Sleepers.*,threads=y,format=r,file={out}"
            ),
        ),
    )
    assert done.returncode == 0, done.stderr
    # By chance, the first sample of a thread is taken during the little that it computes.
    name, done = next(
        (name, done)
        for name in ("s3-1", "s3-0", "s3-2")
        if ": CPU samples: " not in (done := lab.jvmscope("report", "--thread", name, out)).stdout
    )
    if done.returncode == 0:  # Threads that end together may wait for their group's monitor.
        assert done.stdout.startswith(f"{out}: Time blocked on locks: "), done.stdout
        assert "java.lang.Thread.exit" in done.stdout, done.stdout
    else:
        assert (done.returncode, done.stdout, done.stderr) == (
            1,
            "",
            f"jvmscope: {out}: the thread has no samples: {name}\n",
        )
    lab.jvmscope("convert", "--class", "Sleepers", out, "-o", part, check=True)
    assert any(
        t["name"] == name and t["waited"]
        for t in lab.read_json("threads", "summary", "--json", part)["threads"]
    )
    done = lab.jvmscope("convert", "--thread", name, out, "-o", part)
    assert done.returncode == 0, done.stderr
    wanted = lab.read_json("trace", "--json", "--thread", name, out)["calls"]
    assert wanted and lab.read_json("trace", "--json", part)["calls"] == wanted
    for option, what in (("--thread", "thread"), ("--class", "class of a stack")):
        part.unlink(missing_ok=True)
        for command in (["report"], ["convert", "-o", part]):
            done = lab.jvmscope(*command, option, "nosuch", out)
            assert (done.returncode, done.stderr) == (
                1,
                f"jvmscope: {out}: no {what} has this name: nosuch\n",
            ), done
    # Each of the options selects something, but both together select nothing.
    done = lab.jvmscope("convert", "-o", part, "--thread", name, "--to", "1us", out)
    assert (done.returncode, done.stderr, part.exists()) == (
        1,
        f"jvmscope: {part}: cannot write: the selection has no events\n",
        False,
    )


@pytest.mark.jdks(17)
@pytest.mark.parametrize("recorder", ["jvmscope", "JFR"])
def test_the_span_of_a_part_is_that_of_the_selection(recorder, jdk, tmp_path, on_time):
    """This also holds for a recording that JFR made, whose ticks are not nanoseconds. The program
    has a processor in each part.
    """
    whole, part = tmp_path / "whole.jfr", tmp_path / "part.jfr"
    how = (
        jdk.agent(f"cpu=samples,threads=y,events=y,format=r,file={whole}")
        if recorder == "jvmscope"
        else f"-XX:StartFlightRecording=filename={whole},settings=profile"
    )
    assert jdk.java("Busy", 4, 2, jvm=("-Xmx64m", how)).returncode == 0
    flags = ("--from", "0.5s", "--to", "3.5s")  # long enough for an event that comes every second
    assert lab.jvmscope("convert", *flags, whole, "-o", part).returncode == 0
    assert lab.read_json("vm", "--json", part)["duration_ns"] == pytest.approx(3e9, abs=1000)
    # Waits that outlast the part, and threads that start after it, do not prolong it.
    if recorder == "jvmscope":
        found = lab.read_json("threads", "summary", "--json", part)
        assert found["end_ns"] == pytest.approx(3e9, abs=1000)
    assert ", in 3.00 s" in lab.output("report", part)
    assert [m["self"] for m in report(part)["samples"]["methods"]] == [
        m["self"] for m in report(whole, *flags)["samples"]["methods"]
    ]
    # Times count from the start of the part.
    early, late = (
        report(part, "--to", "0.4s")["samples"]["total"],
        report(whole, "--from", "0.5s", "--to", "0.9s")["samples"]["total"],
    )
    assert abs(early - late) <= 1 and early > 0


@pytest.mark.jdks(17)
def test_run_says_what_its_output_has_no_place_for(jdk, tmp_path):
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu=times",
        "-o",
        tmp_path / "run.pb.gz",
        "--",
        "java",
        "-cp",
        lab.compiled("Busy"),
        "Busy",
        "1",
    )
    stated = [line for line in done.stderr.splitlines() if "note: the output lacks" in line]
    assert done.returncode == 0 and stated == [
        f"jvmscope: {tmp_path / 'run.pb.gz'}: note: the output lacks the counts of calls, which .html, .hprof.txt and .jfr hold"
    ], done.stderr
    # A plain file of samples has nothing else.
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu",
        "-o",
        tmp_path / "s.pb.gz",
        "--",
        "java",
        "-cp",
        lab.compiled("Busy"),
        "Busy",
        "1",
    )
    stated = [line for line in done.stderr.splitlines() if "lacks" in line]
    assert (
        done.returncode == 0 and len(stated) == 1 and "threads that run no Java code" in stated[0]
    ), done.stderr


def test_what_counts_have_not_is_reported(tmp_path):
    """Counts of a whole recording have no part, and nothing about threads. In HPROF's text, times
    with too few readings count as none, whether it is converted or written by the agent.
    """
    jdk, out = lab.Jdk(17), tmp_path / "times.jfr"
    done = jdk.java("Amounts", jvm=(jdk.agent(f"cpu=times,format=r,file={out}"),))
    assert done.returncode == 0, done.stderr
    for words in (
        ("report", out),
        ("report", "--json", out),
        ("convert", "-o", tmp_path / "part.pb.gz", out),
    ):
        for part in (("--from", "1ms"), ("--to", "10s"), ("--from", "0s", "--to", "50ms")):
            done = lab.jvmscope(*words, *part)
            assert (done.returncode, done.stdout) == (
                1,
                "",
            ) and "cannot select a part of what is counted" in done.stderr, (words, part, done)
    # The same after they were sent, and for every format without times.
    for extension in (".otlp", ".pb.gz", ".collapsed", ".hprof.txt"):
        sent = tmp_path / f"sent{extension}"
        lab.jvmscope("convert", out, "-o", sent, check=True)
        for words, part in itertools.product(
            (("report",), ("report", "--json"), ("convert", "-o", tmp_path / "part.pb.gz")),
            (("--from", "1ms"), ("--to", "10s")),
        ):
            done = lab.jvmscope(*words, *part, sent)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (
                1,
                "",
                1,
            ) and re.search(
                "cannot select a part of what (is counted|has no times): ", done.stderr
            ), (
                sent,
                words,
                part,
                done,
            )
    # Besides samples: counts are left out of a part, and of a selection by thread if they are those
    # of all threads together.
    both = tmp_path / "both.jfr"
    done = jdk.java(
        "Amounts", jvm=(jdk.agent(f"cpu=samples,interval=1ms,alloc=exact,format=r,file={both}"),)
    )
    assert done.returncode == 0, done.stderr
    whole = lab.read_json("report", "--json", both)
    assert whole["not_selected"] == [] and whole["allocations"]["sites"]
    for part in (("--from", "1ms"), ("--thread", "main")):
        found = lab.read_json("report", "--json", *part, both)
        assert (
            found["not_selected"] == ["allocations"]
            and "allocations" not in found
            and "samples" in found
        ), part
        shown = lab.output("report", *part, both)
        assert "  left out: Allocated bytes: " in shown and "class and site" not in shown, shown
        done = lab.jvmscope("report", "--metric", "allocations", *part, both)
        assert (done.returncode, done.stdout) == (
            1,
            "",
        ) and "cannot select a part of what is counted" in done.stderr, done
    sent, part = tmp_path / "sent.otlp", tmp_path / "part.otlp"
    lab.jvmscope("convert", both, "-o", sent, check=True)
    found = lab.read_json("report", "--json", "--from", "1ms", sent)
    assert (
        found["not_selected"] == ["allocations"]
        and "allocations" not in found
        and "samples" in found
    ), found
    done = lab.jvmscope("convert", "--from", "1ms", both, "-o", part)
    assert (
        done.returncode == 0 and f"{both}: note: the output lacks Allocated bytes: " in done.stderr
    ), done.stderr
    assert not {"allocations"} & set(lab.read_json("report", "--json", part))
    for extension in (".json", ".pftrace", ".trcxml"):
        other = tmp_path / f"x{extension}"
        done = lab.jvmscope("convert", out, "-o", other)
        assert (done.returncode, done.stderr) == (
            1,
            f"jvmscope: {other}: cannot write: the recording holds nothing about threads: record with --threads\n",
        )
        assert not other.exists()
    text = tmp_path / "x.hprof.txt"
    done = lab.jvmscope("convert", out, "-o", text)
    assert (
        done.returncode == 0
        and f"jvmscope: {text}: note: the output lacks the time of " in done.stderr
    ), done.stderr
    assert "\nTHREAD START (" not in text.read_text()  # the times are those of all threads together
    readings = {
        m["method"]: m["readings"]
        for m in lab.read_json("report", "--json", out)["times"]["methods"]
    }
    rows = re.findall(r"^ *\d+ +([\d.]+)% +[\d.]+% +\d+ +\d+ (\S+)$", text.read_text(), re.M)
    assert len(rows) > 100 and min(readings.values()) < 10
    assert all(float(self) == 0 for self, method in rows if readings.get(method, 10) < 10), rows[
        :20
    ]


def test_hprof_text_omits_rough_times_and_reports_their_sum(tmp_path):
    """HPROF's text has no place for a rough time. If 100 readings stand for 1 s, times below 100 ms
    are rough; what is left out is reported. If there are no such times, nothing is reported.
    """
    first, text = tmp_path / "a.collapsed", tmp_path / "a.hprof.txt"
    head = "# jvmscope: times 0\n# jvmscope note: times rest on 100 readings of the CPU clock 0\n"
    first.write_text(
        head
        + "Main.main;Main.work 850000000\nMain.main 100000000\nMain.main;Main.few 30000000\nMain.few 20000000\n"
    )
    done = lab.jvmscope("convert", "-o", text, first)
    assert (done.returncode, done.stderr) == (
        0,
        f"jvmscope: {text}: note: the output lacks the time of 2 stacks, 50.0 ms of 1.00 s: each rests on fewer than "
        "10 readings of the CPU clock\n",
    )
    assert "\nTHREAD START (" not in text.read_text()
    found = {m["method"]: m["self_ns"] for m in report(text)["times"]["methods"]}
    assert found == {
        "Main.work": 850_000_000,
        "Main.main": 100_000_000,
        "[in no row of the file]": 50_000_000,
    }
    first.write_text(head + "Main.main;Main.work 900000000\nMain.main 100000000\n")
    text.unlink()
    done = lab.jvmscope("convert", "-o", text, first)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_what_the_profiler_itself_ran_is_no_gap(tmp_path):
    """Stacks that consist only of the agent's classes have a separate root: they are counted and
    shown, and do not count as stacks without a method.
    """
    first = tmp_path / "a.collapsed"
    first.write_text("Main.main 7\n[jvmscope] 3\n[truncated];[jvmscope] 2\n[no frame] 1\n")
    for again in (first, tmp_path / "a.pb.gz", tmp_path / "a.hprof.txt"):
        if again != first:
            assert lab.jvmscope("convert", "-o", again, first).returncode == 0
        samples = json.loads(lab.jvmscope("report", "--json", again).stdout)["samples"]
        assert (samples["total"], samples["unattributed"], samples["profiler"]) == (13, 1, 5), again
        assert "  of the profiler itself: 5 (38.46 %)\n" in lab.jvmscope("report", again).stdout


@pytest.mark.jdks(8, 17)
def test_threads_with_samples_are_counted_by_metric_and_format(jdk, tmp_path):
    """The heading gives the number of threads that have samples of its metric, whatever else was
    recorded, and says if the file names none. Idle threads that are known only by their names are
    then among the samples, which is reported.
    """
    out = tmp_path / "wall.jfr"
    done = jdk.java(
        "Sleepers", 3, jvm=(jdk.agent(f"cpu=wall,monitor=y,threads=y,format=r,file={out}"),)
    )
    assert done.returncode == 0, done.stderr
    assert lab.jvmscope("report", "--metric", "locks", out).stdout.splitlines()[:1] in (
        [],
        [f"{out}: Time blocked on locks: 0 ns"],
    )
    whole = report(out)["wall"]
    assert "threads_named" not in whole and whole["idle"] > 0
    head = re.search(r", from (\d+) threads\n", lab.output("report", "--metric", "wall", out))
    assert head and 4 <= int(head[1]) <= 6, head  # main, the three, and what runs at the end
    for extension, named in (
        (".pb.gz", True),
        (".otlp", True),
        (".collapsed", False),
        (".hprof.txt", False),
    ):
        converted = tmp_path / f"x{extension}"
        lab.jvmscope("convert", "--metric", "wall", "-o", converted, out, check=True)
        text, found = lab.output("report", converted), report(converted)["wall"]
        assert found["total"] + found["idle"] == whole["total"] + whole["idle"]
        assert (", from " + head[1] + " threads\n" in text) == named and (
            ", from " in text
        ) == named, text
        assert (
            "; the VM's own are among the samples, because the file names no threads\n" in text
        ) == (not named), text
        assert found.get("threads_named", True) == named


@pytest.mark.jdks(17)
def test_exceptions_of_a_part_refer_to_the_list_of_throws(jdk, tmp_path):
    """A part of a recording has single throws and no counts. `trace --exceptions`, which needs
    the counts, names the command that shows the throws.
    """
    whole, part = tmp_path / "whole.jfr", tmp_path / "part.jfr"
    done = jdk.java(
        "Hot", "exceptions", 300, jvm=(jdk.agent(f"exceptions=stacks,format=r,file={whole}"),)
    )
    assert done.returncode == 0, done.stderr
    first = float(lab.output("trace", "-n", "1", whole).splitlines()[1].split()[0])
    lab.jvmscope("convert", "--to", f"{1000 * first + 100:.0f}ms", "-o", part, whole, check=True)
    done = lab.jvmscope("trace", "--exceptions", part)
    why = "holds no counts of exceptions: jvmscope trace lists the throws that it holds"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"jvmscope: {part}: {why}\n")
    assert "throw java.lang.IllegalStateException" in lab.output("trace", "-n", "1", part)


@pytest.mark.jdks(17)
def test_native_libraries_keep_their_names(jdk, tmp_path):
    """libc.so.6 used to become libc.so in HPROF's binary output."""
    out = tmp_path / "wall.jfr"
    done = jdk.java("EveryView", jvm=[jdk.agent(f"format=r,cpu=wall,file={out}")])
    assert done.returncode == 0, done.stderr

    def libraries(file):
        rows = lab.read_json("report", "--json", "--metric", "wall", "--idle", file)["wall"]
        return {m["method"] for m in rows["methods"] if ".so." in m["method"]}

    recorded = libraries(out)
    assert any(re.match(r"lib\w+\.so\.\d+\.\w", name) for name in recorded), recorded
    for extension in (".hprof", ".hprof.txt", ".pb.gz", ".otlp"):
        part = tmp_path / ("wall" + extension)
        done = lab.jvmscope("convert", "--metric", "wall", "-o", part, out)
        assert done.returncode == 0, done
        # HPROF and some others leave out the threads of the VM.
        kept = libraries(part)
        assert kept <= recorded and any(re.match(r"libc\.so\.\d", name) for name in kept), kept


@pytest.mark.jdks(17)
def test_a_thread_cannot_be_selected_where_no_sample_has_one(jdk, tmp_path):
    """It used to be called unknown, as if another name would do."""
    out = tmp_path / "x.jfr"
    done = jdk.java("Busy", 1, jvm=[jdk.agent(f"format=r,cpu=samples,file={out}")])
    assert done.returncode == 0, done.stderr
    for extension in (".collapsed", ".hprof", ".hprof.txt"):
        file = tmp_path / ("x" + extension)
        assert lab.jvmscope("convert", "-o", file, out).returncode == 0
        assert lab.jvmscope("report", file).returncode == 0
        for words in (
            ("report",),
            ("report", "--json"),
            ("report", "--metric", "samples"),
            ("convert", "-o", tmp_path / "y.html"),
        ):
            for thread in ("main", "nosuch"):
                done = lab.jvmscope(*words, "--thread", thread, file)
                assert (done.returncode, done.stdout) == (1, ""), (words, file, done)
                assert done.stderr == (
                    f"jvmscope: {file}: --thread cannot select a part of samples that name no "
                    "thread: the file does not state which thread a sample is of\n"
                ), (words, file, done)
    done = lab.jvmscope("report", "--thread", "nosuch", out)
    assert "no thread has this name: nosuch" in done.stderr
