# SPDX-License-Identifier: Apache-2.0
"""heap=sites, allocation by site: exact counts, and with alloc=sampled estimates from the VM's
samples (from JDK 11 on).
"""
import collections
import json
import os
import re
import struct
import subprocess
import time

import pytest

import hprofbinary
import hproftext
import lab
from hprof_front_end import FrontEnd

N = 2200000


def by_method(text, rows, name):
    """Returns the sums of a class's rows by the allocating method."""
    sums = {}
    for r in rows:
        if r.name == name and text.traces[r.trace]:
            method = text.traces[r.trace][0][0]
            live, alloc, size = sums.get(method, (0, 0, 0))
            sums[method] = (live + r.live_objects, alloc + r.alloc_objects, size + r.alloc_bytes)
    return sums


@pytest.mark.jdks(11, 17, 21, 25, 27)
def test_estimates_are_near_the_truth(jdk, tmp_path):
    done = jdk.java(
        "Allocates",
        str(N),
        jvm=[jdk.agent(f"heap=sites,alloc=sampled,cutoff=0,file={tmp_path}/s.txt"), "-Xmx512m"],
    )
    assert (done.returncode, done.stdout) == (0, f"allocated {N // 4}\n"), done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    assert text.site_orders == ["live bytes"]
    rows = text.sites[0]
    # By live bytes; those that are below their error come last.
    errors = text.live_errors[0] if text.live_errors else {}
    live = [r.live_bytes for i, r in enumerate(rows) if r.live_bytes > errors.get(i + 1, (0, 0))[0]]
    assert (
        live
        and live == [r.live_bytes for r in rows][: len(live)]
        and live == sorted(live, reverse=True)
    )
    arrays = by_method(text, rows, "byte[]")["Allocates.arrays"]
    # 223 MB in samples of 512 KiB: 426 samples, a standard error of 4.8 %; four standard errors are
    # allowed.
    assert arrays[1] == pytest.approx(N / 10, rel=0.2)
    assert arrays[2] == pytest.approx(N / 10 * 1016, rel=0.2)
    # At least 53 MB: 100 samples, 10 %; for a quarter of them 20 %.
    small = by_method(text, rows, "Allocates$Small")["Allocates.small"]
    assert small[1] == pytest.approx(N, rel=0.45)
    assert small[0] == pytest.approx(N / 4, rel=0.9)
    assert re.search(
        r"estimated from \d+ samples, standard error of all bytes \d+\.\d\d %", done.stderr
    )


@pytest.mark.jdks(11, 25)
def test_the_interval_follows_the_rate(jdk, tmp_path):
    """Gigabytes per second would give ten thousand samples a second at 512 KiB: after the first few,
    a thousand a second are taken, weighted by their intervals.
    """
    begin = time.monotonic()
    done = jdk.java(
        "AllocSteady",
        "300",
        jvm=[jdk.agent(f"heap=sites,alloc=sampled,cutoff=0,file={tmp_path}/s.txt"), "-Xmx256m"],
    )
    seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stderr
    samples, error = re.search(
        r"from (\d+) samples, standard error of all bytes (\d+\.\d+) %", done.stderr
    ).groups()
    assert 4096 < int(samples) < 4096 + 2000 * seconds + 128
    rows = hproftext.Text(tmp_path / "s.txt").sites[0]
    points = sum(r.alloc_objects for r in rows if r.name == "AllocSteady$Point")
    # A part of the bytes has about twice the error of all bytes: five standard errors.
    assert float(error) < 6 and points == pytest.approx(300 * 400000, rel=0.3)


@pytest.mark.jdks(8)
def test_a_vm_without_samples_says_so(jdk, tmp_path):
    """A VM without sampling counts every allocation instead."""
    done = jdk.java(
        "Exits", "3", jvm=[jdk.agent(f"heap=sites,alloc=sampled,file={tmp_path}/s.txt")]
    )
    assert (
        done.returncode == 3
        and "so all are counted instead" in done.stderr
        and "allocated exact" in done.stderr
    )


def name_of(name):
    """Removes the number that the VM gives to a lambda's class."""
    return re.sub(r"(\$\$Lambda).*", r"\1", name)


def counted(text):
    """Returns objects and bytes by class and allocating method, and by class ("*")."""
    objects, sizes = collections.Counter(), collections.Counter()
    for r in text.sites[0]:
        method = text.traces[r.trace][0][0].rpartition(".")[2] if text.traces[r.trace] else ""
        for key in ((r.name, method), (name_of(r.name), "*")):
            objects[key] += r.alloc_objects
            sizes[key] += r.alloc_bytes
    return objects, sizes


def compare(stdout, objects, lines=29):
    truth = [line.split() for line in stdout.splitlines()]
    assert len(truth) == lines
    wrong = {
        c: {m: n for (of, m), n in objects.items() if of == c}
        for c, m, n in truth
        if objects[c, m] != int(n)
    }
    assert not wrong, (wrong, truth)  # where else the objects of these classes were counted


def check_counts(jdk, tmp_path, options, **kwargs):
    done = jdk.java(
        "AllocTruth",
        "6000",
        "4",
        jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt{options}")],
        **kwargs,
    )
    assert done.returncode == 0 and "not counted" not in done.stderr, done.stderr
    objects, sizes = counted(hproftext.Text(tmp_path / "s.txt"))
    compare(done.stdout, objects)
    # The sizes of the arrays of 0 to 49 bytes, as the VM rounds them (16 or 12 bytes before the
    # elements).
    head = 12 if jdk.version == 27 else 16
    assert sizes["byte[]", "arrays"] == 4 * sum((head + i % 50 + 7) // 8 * 8 for i in range(6000))
    ints = (
        [i % 9 if i % 2 == odd else 3 for i in range(6000) for odd in (0, 1)]
        + [70000]
        + 5999 * [4]
        + 6000 * [200]
    )
    assert sizes["int[]", "lengths"] == 4 * sum((head + 4 * n + 7) // 8 * 8 for n in ints)
    assert sizes["java.lang.String[]", "lengths"] == 4 * 6000 * ((head + 4 * 2 + 7) // 8 * 8)
    assert sizes["AllocTruth$Derived[]", "lengths"] == 4 * 6000 * ((head + 4 * 5 + 7) // 8 * 8)


def test_counts_are_the_truth(jdk, tmp_path):
    """Every way to allocate, in four threads, is counted to the last object. There are enough
    objects for the JIT to compile and inline the code.
    """
    check_counts(jdk, tmp_path, "")


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21), daily=1)
def test_concatenation_by_invokedynamic(jdk, tmp_path):
    """Strings made by method handles and by code that the JIT replaces: each string and its array
    count once, for the caller. Later callers share its places, and a stratum in which the caller
    changes is attributed to one of them. It is at most 1/16 of the count so far, so the standard
    error is below 3 %.
    """
    n, release = 60000, 8 if jdk.version == 8 else 11
    done = jdk.java(
        "AllocTruth",
        str(n),
        "2",
        jvm=[jdk.agent(f"heap=sites,cutoff=0,depth=12,file={tmp_path}/s.txt")],
        release=release,
    )
    assert done.returncode == 0, done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    found = collections.Counter()
    for r in text.sites[0]:
        assert r.live_objects <= r.alloc_objects and r.live_bytes <= r.alloc_bytes
        if any(f[0] == "AllocTruth.length" for f in text.traces[r.trace]):
            found[r.name] += r.alloc_objects
    assert not any("Jvmscope" in f[0] for trace in text.traces.values() for f in trace)
    arrays = 2 if release == 8 else 1  # the builder's, and the string's
    assert found["char[]" if jdk.version == 8 else "byte[]"] == pytest.approx(
        2 * n * arrays, rel=0.12
    )
    assert found["java.lang.String"] == pytest.approx(2 * n, rel=0.12)


@pytest.mark.jdks(8, 25)
@pytest.mark.parametrize("options", [",depth=1,thread=y", ",depth=20"])
def test_counts_do_not_depend_on_the_depth(jdk, tmp_path, options):
    check_counts(jdk, tmp_path, options)


@pytest.mark.jdks(8, 25, daily=1)
def test_counts_do_not_depend_on_the_processor_time_that_there_is(jdk, tmp_path):
    """All threads stand still for nine tenths of each second, including one that has the lock of
    the table, for which the others wait.
    """
    with lab.control_group("cpu", "cpu.cfs_quota_us", "cpu.max", 100_000) as group:
        if not group:
            pytest.skip("no control group with a limit of processor time can be made")
        folder, limit = group
        if limit.name == "cpu.max":
            limit.write_text("100000 1000000")
        else:
            (folder / "cpu.cfs_period_us").write_text("1000000")
        check_counts(
            jdk,
            tmp_path,
            ",depth=1,thread=y",
            preexec_fn=lambda: (folder / "cgroup.procs").write_text(str(os.getpid())),
        )


@pytest.mark.jdks(8, 17, 25)
def test_live_objects_are_counted_one_by_one(jdk, tmp_path):
    """live=exact: every object is tracked, even while samples are taken. heap=all: each object of
    the dump has the stack that allocated it.
    """
    for options in ("heap=sites,live=exact", "alloc=sampled,live=exact", "heap=all"):
        done = jdk.java(
            "AllocTruth", "5000", "4", jvm=[jdk.agent(f"{options},cutoff=0,file={tmp_path}/s.txt")]
        )
        assert done.returncode == 0 and re.search(
            r"; objects followed from their allocation: \d+ still alive, 0 not followed; ",
            done.stderr,
        ), done.stderr
        text = hproftext.Text(tmp_path / "s.txt")
        compare(done.stdout, counted(text)[0])
        live = {
            r.name: (r.live_objects, r.live_bytes)
            for r in text.sites[0]
            if r.name.startswith("AllocTruth$")
        }
        size = live.pop("AllocTruth$Kept")[1] // 2000
        assert size in (8, 16) and live.get("AllocTruth$Plain", (0, 0)) == (0, 0)
        assert [
            (r.live_objects, r.live_bytes) for r in text.sites[0] if r.name == "AllocTruth$Kept"
        ] == [(2000, 2000 * size)]
    traces = [
        text.traces[trace]
        for name, _, trace in text.heaps[0].instances.values()
        if name == "AllocTruth$Kept"
    ]
    assert len(traces) == 2000 and {tuple(f[0] for f in t[:2]) for t in traces} == {
        ("AllocTruth.kept", "AllocTruth.all")
    }


@pytest.mark.jdks(8, 25)
def test_live_objects_are_estimated(jdk, tmp_path):
    done = jdk.java(
        "Allocates",
        "1000000",
        jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt"), "-Xmx512m"],
    )
    assert done.returncode == 0 and re.search(
        r"standard error of live bytes \d+\.\d\d %", done.stderr
    ), done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    small = by_method(text, text.sites[0], "Allocates$Small")["Allocates.small"]
    assert small[1] == 1000000
    # At least 46 samples of 512 KiB, and 11 of live objects: the probability that none of these is
    # alive is one in 60,000, and that of four times as many is less.
    assert 0 < small[0] < 4 * 250000
    assert text.sites[0][0].live_bytes >= text.sites[0][-1].live_bytes


@pytest.mark.jdks(8, 25)
def test_heap_all_is_the_default(jdk, tmp_path):
    done = jdk.java("Exits", "3", jvm=[jdk.agent(f"file={tmp_path}/s.txt")])
    assert done.returncode == 3, done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    assert len(text.heaps) == 1 and len(text.sites) == 1 and not text.ranked
    done = jdk.java("Exits", "3", jvm=[jdk.agent(f"monitor=y,file={tmp_path}/m.txt")])
    text = hproftext.Text(tmp_path / "m.txt")
    assert done.returncode == 3 and not text.heaps and not text.sites


@pytest.mark.jdks(8, 17, 25)
def test_callers_share_an_exact_count(jdk, tmp_path):
    """Two paths lead to one place, three to another: the sum is exact, the shares are close. Two
    million objects have about 500 walks, so the standard error of a share is 2.6 %.
    """
    n = 2000000
    done = jdk.java(
        "Allocates", str(n), jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt")]
    )
    assert done.returncode == 0, done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    shares = {
        text.traces[r.trace][1][0]: r.alloc_objects
        for r in text.sites[0]
        if r.name == "Allocates$Shared"
    }
    assert set(shares) == {"Allocates.often", "Allocates.seldom"} and sum(shares.values()) == n
    assert shares["Allocates.often"] == pytest.approx(n * 3 / 4, rel=0.12)


def test_what_fails_is_not_counted(jdk, tmp_path):
    """Classes whose initialization throws (what their <clinit> allocates counts), negative lengths,
    and arrays beyond the VM's limit.
    """
    done = jdk.java(
        "AllocFails", "2000", jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt")]
    )
    assert done.returncode == 0, done.stderr
    objects, sizes = counted(hproftext.Text(tmp_path / "s.txt"))
    compare(done.stdout, objects, lines=7)
    assert sizes["long[]", "large"] == objects["long[]", "large"] * (8 * 70000 + 16)


@pytest.mark.slow
def test_counts_are_the_truth_in_long_runs(jdk, tmp_path):
    done = jdk.java(
        "AllocTruth", "300000", "6", jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt")]
    )
    assert done.returncode == 0, done.stderr
    compare(done.stdout, counted(hproftext.Text(tmp_path / "s.txt"))[0])


@pytest.mark.jdks(8, 17, 27)
def test_sites_in_a_recording(jdk, tmp_path):
    """alloc=exact with format=r: the same counts in jvmscope.AllocationSite, also when dumped
    twice.
    """
    out = tmp_path / "s.jfr"
    done = jdk.java("AllocTruth", "3000", "2", jvm=[jdk.agent(f"alloc=exact,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    printed = lab.jvmscope("report", "--json", out)
    assert printed.returncode == 0, printed.stderr
    objects = collections.Counter()
    for site in json.loads(printed.stdout)["allocations"]["sites"]:
        if site.pop("estimated", False):
            continue
        assert set(site) - {"live_objects_error", "live_bytes_error"} == {
            "class",
            "trace",
            "objects",
            "bytes",
            "live_objects",
            "live_bytes",
        }
        method = re.sub(r".*\.([\w$<>]+)(:\d+)?$", r"\1", site["trace"][0]) if site["trace"] else ""
        objects[site["class"], method] += site["objects"]
        objects[name_of(site["class"]), "*"] += site["objects"]
    compare(done.stdout, objects)


@pytest.mark.jdks(17, 27)
def test_sites_and_summary_by_command(jdk):
    f = FrontEnd(jdk, "format=b,heap=sites,cutoff=0")
    f.send(4)
    f.send(3, struct.pack(">Hf", 2 | 4, 0.0))
    f.wait(lambda s: len(s.summaries) == 1 and len(s.sites) == 1)
    flags, cutoff, totals, rows = f.stream.sites[0]
    assert flags == 6 and cutoff == 0
    assert all(a[5] >= b[5] for a, b in zip(rows, rows[1:])), "by allocation"
    assert all(r[1] in f.stream.classes and r[2] in f.stream.traces for r in rows)
    f.send(3, struct.pack(">Hf", 1, 0.25))
    f.wait(lambda s: len(s.sites) == 2)
    f.end()
    assert len(f.stream.sites) == 3 and f.stream.data == b""


@pytest.mark.jdks(8, 25)
def test_attach_counts_twice(jdk, tmp_path):
    """Counters are inserted into a running program, removed, and inserted again, while other agents
    are present. The first time they go into every class and the second time only into the
    program's, because the VM changes classes in parts with pauses in between, on JDK 8 one by one,
    so there it is the program's twice.
    """
    own = ["--include", "AllocSteady*"]
    p = jdk.start_java(
        "AllocSteady",
        "100000",
        jvm=["-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )

    def counts_of(verb, out):
        """What AllocSteady.round allocated, by class. A call that is in progress when the recording
        begins is not counted.
        """
        printed = lab.jvmscope(verb, "-o", out, p.pid)
        assert printed.returncode == 0, printed.stderr
        counts = collections.Counter()
        for s in lab.read_json("report", "--json", out)["allocations"]["sites"]:
            if s["trace"] and s["trace"][0].startswith("AllocSteady.round"):
                counts[s["class"]] += s["objects"]
        return counts

    try:
        assert "Listening" in p.stdout.readline()
        for out, words in (
            (tmp_path / "1.jfr", own if jdk.version == 8 else []),
            (tmp_path / "2.jfr", own),
        ):
            printed = lab.jvmscope("attach", "--alloc=exact", *words, "-o", out, p.pid)
            assert printed.returncode == 0, printed.stderr
            # There are so many that what the program makes while the reader of its counters has no
            # processor is less than 5 % of them.
            lab.wait_for(
                lambda: counts_of("dump", tmp_path / "now.jfr")["java.util.ArrayList"] > 3_000_000,
                120,
                "calls that begin after the recording",
            )
            counts = counts_of("stop", out)
            lists = counts["java.util.ArrayList"]
            # The program continues while its counters are read one after the other.
            assert lists > 3_000_000 and counts["AllocSteady$Point"] == pytest.approx(
                8 * lists, rel=0.05
            )
            assert counts["byte[]"] == pytest.approx(lists, rel=0.05)
    finally:
        p.kill()
        p.wait()


@pytest.mark.jdks(8, 25)
def test_jdwp_and_the_linked_in_agent(jdk, tmp_path):
    """heap=all together with the JDK's debugger agent, and in a launcher that has our agent linked
    in.
    """
    jdwp = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"
    options = f"heap=all,cutoff=0,verbose=n,file={tmp_path}/s.txt"
    runs = [
        jdk.java("AllocTruth", "1000", "2", jvm=[jdwp, jdk.agent(options)]),
        jdk.run(
            lab.BUILD / "tests/native/launcher",
            f"-agentlib:hprof={options}",
            f"-Djava.class.path={lab.compiled('AllocTruth')}",
            "AllocTruth",
            "1000",
            "2",
        ),
    ]
    for done in runs:
        assert done.returncode == 0, done.stderr
        out = "".join(
            line for line in done.stdout.splitlines(True) if not line.startswith("Listening")
        )
        text = hproftext.Text(tmp_path / "s.txt")
        compare(out, counted(text)[0])
        assert len(text.heaps) == 1


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21), daily=1)
def test_objects_that_native_code_makes(jdk, tmp_path):
    """JNI's functions, constructors called by reflection, clones, Unsafe's objects and deserialized
    ones are counted to the last object. They are called often enough for the JIT, which on JDK 8
    would replace Unsafe's native method in the VM's own code for method handles too, where nothing
    can count.
    """
    library = lab.BUILD / "tests" / "agents" / "liballocjni.so"
    done = jdk.java(
        "AllocJni",
        library,
        "15000",
        "3",
        jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt")],
    )
    assert done.returncode == 0, done.stderr
    compare(done.stdout, counted(hproftext.Text(tmp_path / "s.txt"))[0], lines=20)


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_more_classes_than_counters(jdk, tmp_path):
    """About 16,000 pairs of a place and a class that it creates. Now and then the VM samples the
    agent's own objects for them, which once stopped the program for good.
    """
    done = jdk.java(
        "ManyTypes", jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt")], timeout=120
    )
    assert done.returncode == 0, done.stderr
    objects = collections.Counter()
    for r in hproftext.Text(tmp_path / "s.txt").sites[0]:
        if r.name.count("[]") > 3:
            objects[r.name] += r.alloc_objects
    assert len(objects) == 8 * 247 and set(objects.values()) == {int(done.stdout)}


def test_classes_that_are_unloaded(jdk, tmp_path):
    """UNLOAD CLASS appears once for each class of a trace that was unloaded, although its name is
    loaded again and again.
    """
    done = jdk.java(
        "Unload",
        "60000",
        "12",
        jvm=[jdk.agent(f"heap=sites,format=b,cutoff=0,depth=3,file={tmp_path}/s.hprof"), "-Xmx64m"],
    )
    unloaded = re.search(r"^unloaded (\d+) of (\d+)", done.stdout, re.M)
    assert done.returncode == 0 and unloaded, done.stderr
    stream = hprofbinary.Stream()
    stream.feed((tmp_path / "s.hprof").read_bytes())
    stated, gone = set(), []
    for r in stream.records:
        if r.tag in (0x02, 0x03):
            (serial,) = struct.unpack(">I", r.body[:4])
            assert (serial in stated) == (r.tag == 0x03), "reported once before it ends"
            stated.add(serial)
            if r.tag == 0x03:
                stated.remove(serial)
                gone.append(stream.classes[serial])
    # A class at the address of an earlier one of the same name is mistaken for it. Some VMs report
    # the last two later, from a thread of their own.
    assert int(unloaded[1]) >= 10 and set(gone) == {"Unload$Work"} and len(gone) >= 3
    still = [c for serial, c in stream.classes.items() if serial in stated and c == "Unload$Work"]
    assert len(still) <= int(unloaded[2]) - int(unloaded[1]) + 2


@pytest.mark.jdks(25)
def test_more_than_32_bits_hold(jdk, tmp_path):
    """The record has 32 bits for the bytes of a site. Larger values are written as the largest
    number, which is reported; the totals have 64 bits.
    """
    done = jdk.java(
        "Gigabytes",
        "65",
        jvm=[jdk.agent(f"heap=sites,format=b,cutoff=0.5,file={tmp_path}/s.hprof"), "-Xmx256m"],
    )
    assert (
        done.returncode == 0
        and "1 total beyond the format's 32 bits, written as 4294967295" in done.stderr
    )
    stream = hprofbinary.Stream()
    stream.feed((tmp_path / "s.hprof").read_bytes())
    _, _, totals, rows = stream.sites[0]
    assert [row[5] for row in rows if row[6] == 65] == [0xFFFFFFFF] and totals[2] > 65 << 26


@pytest.mark.jdks(8, 27)
def test_report_reports_what_the_cutoff_left_out(jdk, tmp_path):
    """Sites without live objects are in the file if they allocated much. What is left out is in the
    head of the binary form and in a section of the text form.
    """
    for form, name in (("b", "s.hprof"), ("a", "s.txt")):
        done = jdk.java(
            "Allocates",
            "1000000",
            jvm=[jdk.agent(f"heap=sites,format={form},file={tmp_path}/{name}"), "-Xmx512m"],
        )
        assert done.returncode == 0, done.stderr
    binary, text = (
        lab.read_json("report", "--json", tmp_path / f"s.{e}")["allocations"]
        for e in ("hprof", "txt")
    )
    arrays = 100000 * 1016  # none of these lives
    for found in (binary, text):
        assert found["total"] >= 1000000 * 24 + arrays and "listed_only" not in found
        listed = sum(m["self"] for m in found["methods"])
        # Each of the sites left out has less than 0.01 % of the bytes.
        assert listed >= 0.98 * (1000000 * 24 + arrays)
        assert listed + found["unattributed"] == found["total"]
    sections = hproftext.Text(tmp_path / "s.txt")
    ((sites, rest, objects),) = sections.left_out
    assert (
        rest == text["unattributed"]
        and 0 < sites <= objects
        and rest < 0.0001 * sites * text["total"]
    )
    assert sum(row.alloc_bytes for row in sections.sites[0]) + rest == text["total"]
    assert "of the sites that the file lists" not in lab.output("report", tmp_path / "s.txt")


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
@pytest.mark.parametrize("options", ["", ",thread=y"])
def test_objects_of_a_class_that_all_threads_found_uninitialized(jdk, tmp_path, options):
    """The size of such objects is unknown when they are counted, and the counts of a thread are
    final when it ends. There is no object of the class that failed.
    """
    done = jdk.java(
        "BegunTogether", jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt{options}")]
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    rows = hproftext.Text(tmp_path / "s.txt").sites[0]
    slow = [(r.alloc_objects, r.alloc_bytes) for r in rows if r.name == "BegunTogether$Slow"]
    size = 16 if jdk.version == 27 else 24
    assert slow == ([(1, size)] * 4 if options else [(4, 4 * size)])
    assert not [r for r in rows if r.name == "BegunTogether$Fails"]
