# SPDX-License-Identifier: Apache-2.0
"""What `jvmscope vm` reports about the VM, compared with the VM's own logs of the same run."""
import json
import re
import statistics
import struct
import subprocess
import time

import pytest

import lab

PROGRAM = "VmActivity"
# In a separate pid namespace the program's first threads get numbers of two digits, and later ones
# of three. The VM pads the shorter ones in its log, as it does wherever the numbers have passed a
# power of ten or begin again after the machine's limit.
NUMBERS_GROW = [
    "unshare",
    "--pid",
    "--fork",
    "--mount",
    "--propagation",
    "unchanged",
    "sh",
    "-c",
    "mount --make-private /proc && "
    'mount -t proc proc /proc && echo 94 >/proc/sys/kernel/ns_last_pid && exec "$@"',
    "-",
]


def run(jdk, out, *options, words="events=y", program=("1",), inside=(), form="format=r,"):
    return jdk.run(
        *inside,
        "java",
        "-Xmx100m",
        "-Xmn16m",
        *options,
        f"-agentpath:{lab.BUILD}/libhprof.so={words},{form}file={out}",
        "-cp",
        lab.compiled(PROGRAM),
        PROGRAM,
        *program,
    )


def window(path):
    """Returns when a recording begins and ends, in ns since 1970, according to the headers of its
    chunks.
    """
    data, at, start, end = path.read_bytes(), 0, None, 0
    while at < len(data):
        size, _, _, begun, lasts = struct.unpack(">5q", data[at + 8 : at + 48])
        start, end, at = start or begun, max(end, begun + lasts), at + size
    return start, end


def shown(out, *options):
    done = lab.jvmscope("vm", "--json", *options, out)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def logged(version, text):
    """Returns the safepoints and pauses of the log: a list of (seconds, seconds to reach it), and
    (number, seconds).
    """
    if version >= 13:
        stops = [
            (int(m[2]) / 1e9, int(m[1]) / 1e9)
            for m in re.finditer(r"Reaching safepoint: (\d+) ns.* Total: (\d+) ns", text)
        ]
    else:
        stops = [
            (float(m[1]), float(m[2]))
            for m in re.finditer(
                r"threads were stopped: ([\d.]+) seconds, Stopping threads took: ([\d.]+)", text
            )
        ]
    if version >= 9:
        pauses = [
            float(m[1]) / 1000
            for m in re.finditer(r"GC\(\d+\) (?:[YyO]: )?Pause .*?([\d.]+)ms\n", text)
        ]
    else:
        # JVM TI reports no collection for G1's pause "cleanup" on JDK 8; it is only a safepoint.
        # Two threads may write into one line.
        concurrent = re.findall(r"(?:concurrent-[a-z-]+|cleanup[^,]*), ([\d.]+) secs\]", text)
        seconds = sum(map(float, re.findall(r", ([\d.]+) secs\]", text))) - sum(
            map(float, concurrent)
        )
        pauses = [seconds] + [0] * (
            len(re.findall(r"\[(?:Full )?GC (?:pause|remark|\()", text)) - 1
        )
    assert len(stops) > 20 and len(pauses) > 10, text[:2000]
    return stops, (len(pauses), sum(pauses))


def left_out_of(version, log):
    """Returns by how much JDK 8 understates its pauses: it reads the clock before it writes the
    line, which may take milliseconds on a busy machine while all threads are stopped. The line of
    the stop, which follows, includes that time.
    """
    if version >= 9:
        return 0
    left_out, pauses, stop = (
        [],
        0,
        re.compile(r"threads were stopped: ([\d.]+) seconds, Stopping threads took: ([\d.]+)"),
    )
    for line in log.read_text().splitlines():
        if m := stop.search(line):
            if pauses:
                left_out.append(float(m[1]) - float(m[2]) - pauses)
            pauses = 0
        elif (m := re.search(r", ([\d.]+) secs\]$", line)) and not re.search(
            r"concurrent-[a-z-]+, [\d.]+ secs\]$", line
        ):
            pauses += float(m[1])
    usual = statistics.median(left_out)
    return sum(max(0, x - 2 * usual) for x in left_out)


def phases_logged(text):
    """Returns the seconds of all parts of pauses. Their sum may exceed the pause, because JDK 11
    counts some times twice under load.
    """
    return sum(
        float(m[1]) / 1000
        for m in re.finditer(
            r"\]\[gc,phases *\] GC\(\d+\) +(?!Pause|Concurrent)\S.*?([\d.]+)ms$", text, re.M
        )
    )


def log_until(text, end):
    """Returns the lines that were written before a moment, or all lines of JDK 8, which has no such
    times.
    """
    return "".join(
        line
        for line in text.splitlines(True)
        if not (m := re.match(r"\[(\d+)ns", line)) or int(m[1]) <= end
    )


def log_options(version, log):
    if version >= 9:
        return [f"-Xlog:safepoint=info,gc=info,gc+phases=info:file={log}:tn,tg"]
    return [f"-Xloggc:{log}", "-XX:+PrintGC", "-XX:+PrintGCApplicationStoppedTime"]


COLLECTORS = [
    (8, "Parallel"),
    (8, "G1"),
    (11, "G1"),
    (17, "Serial"),
    (21, "G1"),
    (25, "ZGC"),
    (25, "Parallel"),
    (27, "G1"),
]


@pytest.mark.parametrize("version, collector", COLLECTORS)
def test_totals_are_those_of_the_log(version, collector, tmp_path):
    jdk, out, log = lab.Jdk(version), tmp_path / "vm.jfr", tmp_path / "vm.log"
    inside = NUMBERS_GROW if jdk.run(*NUMBERS_GROW, "true").returncode == 0 else []  # needs root
    done = run(
        jdk, out, *lab.COLLECTORS[version][collector], *log_options(version, log), inside=inside
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    whole = log.read_text()
    stops, (pauses, paused) = logged(version, whole)
    ended = log_until(whole, int(re.search(r"ends (\d+)", done.stdout)[1]))
    (_, (least, paused_least)) = logged(version, ended)
    lab.no_page(out)
    vm = shown(out)
    assert not [x for x in vm["losses"] if x["capture"] == "events"], vm["losses"]
    safepoints, collections = vm["safepoints"], vm["collections"]
    # What happened before and after the recording, such as after the return of main, is only in the
    # log; on a busy machine it may take long.
    count = safepoints["count"]
    assert len(stops) - 4 <= count <= len(stops), (safepoints, stops)
    sums = [[sum(ns) for ns in zip(*stops[i : i + count])] for i in range(len(stops) - count + 1)]
    assert any(
        safepoints["time_ns"] / 1e9 == pytest.approx(stopped, rel=0.01)
        and safepoints["way_ns"] / 1e9 == pytest.approx(way, rel=0.01, abs=0.001)
        for stopped, way in sums
    ), (safepoints["time_ns"], safepoints["way_ns"], sums)
    # JDK 8: the pause "remark" of a cycle that was given up is not a collection for JVM TI.
    assert least - whole.count("concurrent-mark-abort") <= collections["pauses"] <= pauses
    allowed = max(0.01 * paused, 1e-5 * pauses)
    assert (
        paused_least - allowed
        <= collections["pause_ns"] / 1e9
        <= paused + allowed + left_out_of(version, log)
    )
    assert collections["pause_ns"] == sum(c["pause_ns"] for c in collections["causes"])
    assert any(c["cause"] == "System.gc()" for c in collections["causes"]), collections
    assert all(
        c["collector"] and c["cause"]
        for c in collections["list"]
        if c["pause_ns"] and "Old" not in c["collector"]
    ), collections["list"]
    if version >= 9:
        assert safepoints["each_known"] == safepoints["count"]
        assert sum(o["time_ns"] for o in safepoints["operations"]) == pytest.approx(
            safepoints["time_ns"], rel=0.01
        )
        assert any(o["operation"] == "ThreadDump" for o in safepoints["operations"])
    if version >= 11 and collector in ("G1", "Parallel", "Serial"):
        phases = sum(p["time_ns"] for p in collections["phases"] if not p["concurrent"]) / 1e9
        assert phases_logged(ended) - 1e-5 <= phases <= phases_logged(whole) + 1e-5, collections[
            "phases"
        ]
        assert phases > 0
    assert any(p["concurrent"] for p in collections["phases"]) == (collector == "ZGC"), collections[
        "phases"
    ]
    heaps = [c for c in collections["list"] if "before_bytes" in c]
    assert len(heaps) > 10 and all(
        c["after_bytes"] <= c["capacity_bytes"] or not c["capacity_bytes"] for c in heaps
    )
    if version >= 9:  # JDK 8 says what the heap held up to 50 ms before
        assert collections["allocated_bytes"] > 100 << 20


@pytest.mark.jdks(17, 25)
def test_totals_of_a_part_are_those_of_the_log(jdk, tmp_path):
    """The VM's own count is read from time to time, and a part begins and ends between two
    readings. However slow the machine is, the part has the second half of 200 stops or more.
    """
    ring, part, log = tmp_path / "r.ring", tmp_path / "part.jfr", tmp_path / "vm.log"
    done = run(
        jdk,
        ring,
        f"-Xlog:safepoint=info:file={log}:tn,tg",
        words="always=y,maxsize=16m,budget=100%",
        program=("5", "100"),
        form="",
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    to_epoch = time.time_ns() - time.monotonic_ns()
    ended = int(re.search(r"ends (\d+)", done.stdout)[1])
    stops = [
        (int(m[1]) - int(m[3]), int(m[3]), int(m[2]))
        for m in re.finditer(
            r"\[(\d+)ns\].*Reaching safepoint: (\d+) ns.* Total: (\d+) ns", log.read_text()
        )
    ]
    last_ms = (ended - stops[len(stops) // 2][0]) // 10**6
    done = lab.jvmscope("dump", "--last", f"{last_ms}ms", "-o", part, ring)
    assert done.returncode == 0, done.stderr
    vm = shown(part)
    start, end = (ns - to_epoch for ns in window(part))
    stops = [s for s in stops if start <= s[0] < end]
    safepoints = vm["safepoints"]
    assert len(stops) > 100 and abs(safepoints["count"] - len(stops)) <= max(
        2, 0.01 * len(stops)
    ), (safepoints["count"], len(stops))
    assert safepoints["time_ns"] == pytest.approx(sum(s[1] for s in stops), rel=0.01)
    assert safepoints["way_ns"] == pytest.approx(sum(s[2] for s in stops), rel=0.01, abs=10**6)
    assert (
        safepoints["each_known"]
        == safepoints["count"]
        == sum(o["count"] for o in safepoints["operations"])
    )


@pytest.mark.jdks(11, 17, 27)
def test_each_safepoint_that_is_counted_is_known(jdk, tmp_path):
    """A recording begins and ends while there is one safepoint after the other. What the VM has
    counted by its end has a line in the log.
    """
    out = tmp_path / "vm.jfr"
    process = jdk.start_java("Safepoints", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    for _ in range(10):
        done = lab.jvmscope("attach", "--events", "-t", "200ms", "-o", out, process.pid)
        assert done.returncode == 0, done.stderr
        safepoints = shown(out)["safepoints"]
        assert safepoints["count"] == safepoints["each_known"] > 20, safepoints


@pytest.mark.parametrize("version, collector", [(11, "G1"), (17, "Serial"), (25, "Serial")])
def test_what_the_log_lacks_is_reported(version, collector, tmp_path):
    """The program cuts the VM's log, or writes into it: the recorded pauses and those reported as
    lost add up to what the VM counted.
    """
    for what in ("cut", "write"):
        jdk, out = lab.Jdk(version), tmp_path / f"{what}.jfr"
        done = jdk.run(
            "java",
            *lab.COLLECTORS[version][collector],
            f"-agentpath:{lab.BUILD}/libhprof.so=events=y,format=r,file={out}",
            "-cp",
            lab.compiled("LogCut"),
            "LogCut",
            what,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        vm = json.loads(lab.jvmscope("vm", "--json", out).stdout)
        lost = {x["what"]: x["amount"] for x in vm["losses"] if x["capture"] == "events"}
        pauses, cuts, lines = (
            lost.pop(w, 0) for w in ("collection pauses", "VM log parts", "VM log lines")
        )
        assert not lost and vm["collections"]["pauses"] + pauses == 41, (
            vm["collections"]["causes"],
            vm["losses"],
        )
        text = lab.jvmscope("vm", out)
        if what == "cut":
            assert pauses, vm["losses"]
            stated = f" {pauses} collection pauses were lost"
        else:
            assert (pauses, cuts, lines) == (0, 0, 60), vm["losses"]
            stated = " 60 VM log lines were lost"
        assert stated in text.stdout + text.stderr, (text.stdout[:800], text.stderr)


@pytest.mark.parametrize(
    "version", (*(pytest.param(version, marks=pytest.mark.slow) for version in (8, 17, 21, 27)), 25)
)
def test_a_late_thread_is_named(version, tmp_path):
    jdk, out = lab.Jdk(version), tmp_path / "late.jfr"
    # Since JDK 10 counted loops have safepoints unless an option says otherwise.
    options = ["-XX:-UseCountedLoopSafepoints", "-XX:LoopStripMiningIter=0"] if version > 8 else []
    assert (
        run(jdk, out, *options, words="events=y,cpu=samples", program=("2", "late")).returncode == 0
    )
    late = [s for s in shown(out, "-n", "1000")["safepoints"]["late"] if s["way_ns"] > 50e6]
    named = [
        s
        for s in late
        if (s["late_thread"], s["late_method"]) == ("the counter", "VmActivity.countsLong")
    ]
    assert late and len(named) >= 0.9 * len(late), late
    assert all(s["late_line"] in range(36, 42) for s in named), named
    for s in named:
        assert (s["late_stack"][0]["method"], s["late_stack"][0]["line"]) == (
            s["late_method"],
            s["late_line"],
        )
        assert s["late_stack"][-1]["method"] in (
            "VmActivity$1.run",
            "java.lang.Thread.run",
            "java.lang.Thread.runWith",
        ), s
    text = lab.jvmscope("vm", out).stdout
    assert re.search(
        r" m?s +.* the counter +VmActivity.countsLong:\d+\n +by VmActivity", text
    ), text


@pytest.mark.parametrize("version", (11, 21, 25))
def test_compilations_and_deoptimizations_are_those_of_the_log(version, tmp_path):
    jdk, out, log = lab.Jdk(version), tmp_path / "vm.jfr", tmp_path / "vm.log"
    tags = "jit+compilation=debug" + (",deoptimization=debug" if version >= 21 else "")
    # Callers wait for the compiler (-Xbatch), which on a busy machine would not be done with the
    # code for one class of shapes when the program goes on to the next.
    assert run(jdk, out, "-Xbatch", f"-Xlog:{tags}:file={log}:tn,tg").returncode == 0
    vm = shown(out, "-n", "1000000")
    began = min(int(m[1]) for m in re.finditer(r"\[(\d+)ns\]", log.read_text()))
    lines = [
        line
        for line in log.read_text().splitlines()
        if "VmActivity::" in line or "VmActivity." in line
    ]
    assert began and lines
    compiled = [
        line for line in lines if "jit,compilation" in line and "made not entrant" not in line
    ]
    discarded = [line for line in lines if "made not entrant" in line]
    traps = [line for line in lines if "deoptimization" in line.split("]")[1]]
    assert sum(
        m["count"] for m in vm["compilations"]["methods"] if m["method"].startswith("VmActivity.")
    ) == len(compiled)
    mine = [d for d in vm["deoptimizations"] if d["method"].startswith("VmActivity.")]
    assert sum(d["count"] for d in mine if d["discarded"]) == len(discarded) > 0
    assert sum(d["count"] for d in mine if not d["discarded"]) == len(traps)
    if version >= 21:
        assert {
            d["reason"] for d in mine if not d["discarded"] and d["method"] == "VmActivity.areas"
        } & {"bimorphic_or_optimized_type_check", "bimorphic", "class_check"}, mine
    assert vm["compilations"]["count"] >= len(compiled) and vm["compilations"]["code_bytes"] > 0


HOT_LAMBDA = """
import java.util.function.IntUnaryOperator;
public class Hot {
    static int sum;
    public static void main(String[] args) {
        IntUnaryOperator f = n -> n + 1;
        for (int i = 0; i < 2_000_000; i++)
            sum = f.applyAsInt(sum);
        System.out.println(sum);
    }
}
"""


@pytest.mark.jdks(17, 21, 25)
def test_methods_of_generated_classes_have_stable_names(jdk, tmp_path):
    """The VM's log has "Hot$$Lambda/0x0000000035082208.applyAsInt"."""
    (tmp_path / "Hot.java").write_text(HOT_LAMBDA)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Hot.java").returncode == 0
    out = tmp_path / "vm.jfr"
    agent = jdk.agent(f"events=y,format=r,file={out}")
    assert jdk.run("java", agent, "-Xbatch", "-cp", tmp_path, "Hot").returncode == 0
    vm = shown(out, "-n", "1000000")
    compiled = [m["method"] for m in vm["compilations"]["methods"]]
    named = compiled + [d["method"] for d in vm["deoptimizations"]]
    named += [c["method"] for c in vm["compilations"].get("longest", [])]
    assert "Hot$$Lambda.applyAsInt" in compiled and "Hot.main" in compiled, compiled
    assert not [n for n in named if re.search(r"/0x|\$\$Lambda\$?\d", n)], named
    text = lab.output("vm", "-n", "1000000", out)
    assert "Lambda/0x" not in text and "Lambda$1" not in text, text


@pytest.mark.jdks(8, 17, 25)
def test_all_compilations_since_the_start_are_counted(jdk, tmp_path):
    """JDK 8 publishes the counters of its compilers long after the agent has begun."""
    out = tmp_path / "vm.jfr"
    done = run(jdk, out, "-XX:+CITime", program=("1.5",))
    truth = int(
        re.search(r"Total compiled methods +: +(\d+) methods", done.stdout + done.stderr)[1]
    )
    compilations = shown(out)["compilations"]
    assert truth > 20 and abs(compilations["count"] - truth) <= max(10, truth / 10), (
        compilations,
        truth,
    )
    assert compilations["time_ns"] > 0 and compilations["code_bytes"] > 0, compilations


def of_arrays(version, out, n, *options):
    """A program that allocates n MiB in arrays of 1 MiB and keeps none."""
    done = lab.Jdk(version).run(
        "java",
        "-Xmx300m",
        *options,
        f"-agentpath:{lab.BUILD}/libhprof.so=events=y,format=r,file={out}",
        "-cp",
        lab.compiled("Humongous"),
        "Humongous",
        n,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    return shown(out)["collections"]


@pytest.mark.parametrize(
    "version, option, note",
    [
        (8, "ParallelGC", "lower bounds"),
        (8, "ConcMarkSweepGC", "lower bounds"),
        (8, "G1GC", None),
        (17, "SerialGC", None),
        (17, "ParallelGC", None),
        (25, "G1GC", None),
        (17, "ZGC", "leave out what was allocated during the collections"),
        (25, "ZGC", "leave out what was allocated during the collections"),
        (17, "ShenandoahGC", "leave out what was allocated during the collections"),
        (25, "ShenandoahGC", "leave out what was allocated during the collections"),
        (27, "ShenandoahGC", "leave out collections for which the VM's log does not show"),
    ],
)
def test_bytes_that_are_not_the_truth_say_so(version, option, note, tmp_path):
    """What is freed and allocated if the VM does not report the use of the heap at a collection:
    JDK 8, except for G1; ZGC; and Shenandoah. Collectors without generations have no old one.
    """
    out, n = tmp_path / "vm.jfr", 1000
    collections = of_arrays(version, out, n, f"-XX:+Use{option}")
    table = lab.output("vm", out)
    assert (collections["heap_note"] is None) == (note is None), collections["heap_note"]
    generations = option != "ShenandoahGC" and (version, option) != (17, "ZGC")
    assert (collections["old_generation_grown_bytes"] is not None) == generations
    assert generations or "old generation" not in table, table
    if option == "ShenandoahGC":
        # The cause has no figures of a reason such as "Free (91266K) is below ...", and
        # "System.gc()" is complete.
        causes = {row["cause"]: row for row in collections["causes"]}
        assert (
            not any(re.search(r"\d|\([^)]*$", cause or "") for cause in causes) and len(causes) < 8
        ), causes
        rows = [c for c in collections["list"] if "after_bytes" in c]
        assert len(rows) >= 5 and all(
            ("before_bytes" in c) == (version < 26) for c in rows if "Full" not in str(c)
        ), rows
    if note:
        assert (
            note in collections["heap_note"] and f"\n {collections['heap_note']}\n" in table
        ), table
    else:
        # What is allocated before the first collection and after the last one is not between them.
        # G1 has whole regions.
        assert (
            0.6 * n < collections["allocated_bytes"] / (1 << 20) < 2.1 * n
            and "freed and allocated" not in table
        ), table


@pytest.mark.parametrize(
    "version, option", [(8, "G1GC"), (17, "G1GC"), (25, "SerialGC"), (25, "ParallelGC")]
)
def test_sums_of_whole_megabytes_say_how_far_off_they_may_be(version, option, tmp_path):
    """40 collections of about 1 MiB each. The VM's log has whole megabytes, and JDK 8's counters of
    G1 whole regions. The true value is within the error that the line below the table states.
    """
    out, n, each = tmp_path / "vm.jfr", 40, 1_001_600
    done = lab.Jdk(version).run(
        "java",
        "-Xmx100m",
        f"-XX:+Use{option}",
        f"-agentpath:{lab.BUILD}/libhprof.so=events=y,format=r,file={out}",
        "-cp",
        lab.compiled("SmallCollections"),
        "SmallCollections",
        n,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    collections = shown(out)["collections"]
    note, off = collections["heap_note"], abs(collections["allocated_bytes"] - (n - 1) * each)
    table = lab.output("vm", out)
    assert note and f"\n {note}\n" in table, (note, table)
    if version == 8:
        assert "lower bounds: G1's counters count whole regions" in note
        assert (
            collections["allocated_bytes"] <= n * each
            and sum(c["freed_bytes"] for c in collections["causes"]) <= n * each
        )
        return
    assert "whole megabytes" in note
    assert float(re.search(r"together up to ([\d.]+) MiB$", note)[1]) == collections["count"] >= n
    assert off < collections["count"] << 20, (collections["allocated_bytes"], n)


def test_a_cycle_that_was_undone_is_no_collection(tmp_path):
    """G1 begins to mark, finds that the arrays are gone, and writes of a "Concurrent Undo Cycle",
    which collects nothing.
    """
    log = tmp_path / "gc.log"
    collections = of_arrays(25, tmp_path / "vm.jfr", 1000, "-XX:+UseG1GC", f"-Xlog:gc:file={log}")
    text = log.read_text()
    assert "Concurrent Undo Cycle" in text
    marks = len(set(re.findall(r"GC\((\d+)\) Concurrent Mark Cycle", text)))
    assert (
        collections["count"] == len(re.findall(r"GC\(\d+\) Pause (?:Young|Full)", text)) + marks
    ), (collections["causes"], text)


@pytest.mark.jdks(8, 17, 25)
def test_figures_of_the_process(jdk, tmp_path):
    out = tmp_path / "vm.jfr"
    assert run(jdk, out, program=("2.5",)).returncode == 0
    vm = shown(out)
    process = vm["process"]
    assert 30 << 20 < process["rss_bytes"]["most"] < 1 << 30
    assert (
        0.05 < process["cpu_user"]["most"] <= 1
        and process["cpu_machine"]["most"] >= process["cpu_user"]["mean"] / 2
    )
    assert 3 <= process["threads"]["least"] <= process["threads"]["most"] < 40
    assert (
        3
        <= process["open_files"]["least"]
        <= process["open_files"]["most"]
        < process["open_files_limit"]["last"]
    )
    assert process["classes_loaded"]["last"] > 400
    assert vm["collections"]["old_generation_grown_bytes"] > 0
    memory = {p["pool"]: p for p in vm["memory"]}
    code = [p for name, p in memory.items() if name.startswith("Code")]
    assert len(code) == (1 if jdk.version == 8 or "CodeHeap" not in str(memory) else 3), memory
    for p in [
        *code,
        memory["Metaspace"],
        *(p for name, p in memory.items() if "Old" in name or "Tenured" in name),
    ]:
        assert 0 < p["used_bytes"] <= p["most_bytes"] and p["used_bytes"] <= p["committed_bytes"], p
        assert not p["limit_bytes"] or p["committed_bytes"] <= p["limit_bytes"], p
    assert sum(p["limit_bytes"] for p in code) >= 40 << 20
    text = lab.output("vm", out)
    assert re.search(r"^ Metaspace +\d.* -$", text, re.M), text
    # Counts in a part are read once per second. Up to a second at each edge is not counted, and
    # both outputs say so.
    part = shown(out, "--from", "300ms", "--to", "2200ms")
    counted, compiled, classes = (
        part["compilations"]["counted_ns"],
        part["compilations"],
        part["process"]["classes_loaded"],
    )
    assert counted == classes["counted_ns"] < 1.5e9 < vm["compilations"]["counted_ns"], (
        counted,
        vm["compilations"],
    )
    assert (
        0 <= classes["grown"] <= process["classes_loaded"]["grown"]
        and compiled["each_known"] <= compiled["count"]
    ), part
    text = lab.output("vm", "--from", "300ms", "--to", "2200ms", out)
    output_text = re.findall(
        r"^ counted from the first reading to the last, over (.*) of the 1\.90 s$", text, re.M
    )
    assert (
        output_text and len(set(output_text)) == 1 and len(output_text) == 1 + (" took " in text)
    ), text
    assert (
        re.search(rf"^ {compiled['count']} compilations?( took|$)", text, re.M)
        or not compiled["count"]
    ), text
    assert f" loaded {classes['grown']} class" in text, text


@pytest.mark.jdks(8, 17, 25)
def test_classes_by_their_loaders(jdk, tmp_path):
    out = tmp_path / "vm.jfr"
    done = jdk.run(
        "java",
        "-Xmx64m",
        f"-agentpath:{lab.BUILD}/libhprof.so=events=y,format=r,file={out}",
        "-cp",
        lab.compiled("Unload"),
        "Unload",
        "60000",
        "40",
    )
    assert done.returncode == 0, done.stderr
    gone, loaders = map(int, re.search(r"unloaded (\d+) of (\d+)", done.stdout).groups())
    loading = {c["class"]: c for c in shown(out)["class_loaders"]}
    own = loading["Unload$Loader"]
    # The VM may report the last ones after the program has seen that they are gone.
    assert (
        own["loaded"] == loaders == 40
        and 0 < own["unloaded"] <= loaders
        and own["unloaded"] >= gone - 5
    ), (own, done.stdout)
    assert loading["bootstrap"]["loaded"] > 20
    [app] = [c for name, c in loading.items() if name.endswith("AppClassLoader")]
    assert app["loaded"] >= 2 and app["unloaded"] == 0
    assert re.search(r"^ +40 +\d+  Unload\$Loader$", lab.output("vm", out), re.M)
    for limit, left in (
        (1, f"{len(loading) - 1} more loaders"),
        (len(loading) - 1, "1 more loader"),
    ):
        assert f"\n ... and {left} (--limit)\n" in lab.output("vm", "-n", limit, out)
    # JSON has all rows unless it is asked for fewer; text says how many stops it leaves out.
    whole, few = shown(out), shown(out, "-n", "1")
    methods = whole["compilations"]["methods"]
    assert sum(m["count"] for m in methods) == whole["compilations"]["each_known"]
    # JDK 8 reports them only when the program runs for longer.
    assert len(methods) > 10 or jdk.version == 8
    assert len(few["compilations"]["methods"]) == min(1, len(methods))
    stops = len(whole["safepoints"]["longest"])
    assert stops == whole["safepoints"]["each_known"] and len(few["safepoints"]["longest"]) == 1
    stated = re.search(
        r"\nThe longest stops\n.*\n.*\n \.\.\. and (\d+) more stops? \(--limit\)\n",
        lab.output("vm", "-n", "1", out),
    )
    assert stops > 1 and stated and int(stated[1]) == stops - 1


@pytest.mark.jdks(8, 17, 25)
def test_classes_that_are_never_linked(jdk, tmp_path):
    """A leak of loaders whose classes were only loaded is visible. If the rows are not what the VM
    counted, a line says what they add up to.
    """
    out = tmp_path / "vm.jfr"
    done = jdk.run(
        "java",
        "-Xmx64m",
        "-XX:+UseSerialGC",
        f"-agentpath:{lab.BUILD}/libhprof.so=events=y,format=r,file={out}",
        "-cp",
        lab.compiled("LoadedOnly"),
        "LoadedOnly",
        "70",
        "30",
    )
    assert done.returncode == 0 and done.stdout == "unloaded 100 of 100\n", (
        done.stdout,
        done.stderr,
    )
    answer = shown(out)
    loading = {c["class"]: c for c in answer["class_loaders"]}
    # The VM may report the last ones after the program has seen that they are gone.
    for name, n in (("LoadedOnly$Loading", 70), ("LoadedOnly$Linking", 30)):
        assert loading[name]["loaded"] == n and n - 5 <= loading[name]["unloaded"] <= n, loading[
            name
        ]
    rows = [sum(c[key] for c in loading.values()) for key in ("loaded", "unloaded")]
    counted = [answer["process"][key]["grown"] for key in ("classes_loaded", "classes_unloaded")]
    output_text = re.findall(
        r"^ the rows by loader add up to (\d+) loaded and (\d+) unloaded$",
        lab.output("vm", out),
        re.M,
    )
    assert output_text == ([] if rows == counted else [tuple(map(str, rows))]), (
        output_text,
        rows,
        counted,
    )


@pytest.mark.jdks(8, 17, 25)
def test_recordings_of_the_jdk_are_read(jdk, tmp_path):
    out = tmp_path / "jdk.jfr"
    done = jdk.run(
        "java",
        "-Xmx100m",
        "-Xmn16m",
        f"-XX:StartFlightRecording=filename={out},settings=profile",
        "-XX:+UseSerialGC",
        "-cp",
        lab.compiled(PROGRAM),
        PROGRAM,
        "2.5",
    )
    assert done.returncode == 0, done.stderr
    vm = shown(out)
    printed = lab.Jdk(21).run(
        "jfr", "print", "--json", "--events", "jdk.GCPhasePause,jdk.GarbageCollection", out
    )
    events = json.loads(printed.stdout)["recording"]["events"]
    pauses = [
        float(e["values"]["duration"][2:-1]) for e in events if e["type"] == "jdk.GCPhasePause"
    ]
    assert vm["collections"]["pauses"] == len(pauses) > 10
    assert vm["collections"]["pause_ns"] / 1e9 == pytest.approx(sum(pauses), rel=1e-6)
    assert vm["collections"]["count"] == len(events) - len(pauses)
    assert any(c["cause"] == "System.gc()" for c in vm["collections"]["causes"])
    assert vm["collections"]["allocated_bytes"] > 0
    assert (
        vm["collections"]["phases"]
        and {p["pool"] for p in vm["memory"]} >= {"Metaspace"}
        and len(vm["memory"]) >= 2
    ), vm["memory"]
    assert all(0 < p["used_bytes"] <= 256 << 20 for p in vm["memory"]), vm["memory"]
    assert (
        0 < vm["process"]["cpu_user"]["most"] <= 1 and vm["process"]["classes_loaded"]["last"] > 400
    )
    assert "\nCollections\n" in lab.output("vm", out)


@pytest.mark.jdks(11, 17, 25)
def test_what_the_jdks_settings_leave_out_is_reported(jdk, tmp_path):
    """Short times to reach a safepoint and the ends of safepoints are missing, so it is unknown how
    long threads were stopped.
    """
    settings = tmp_path / "some.jfc"
    settings.write_text(
        """<configuration version="2.0"><event name="jdk.SafepointBegin"><setting name="enabled">true</setting>
        <setting name="threshold">%s</setting></event>
        <event name="jdk.ActiveSetting"><setting name="enabled">true</setting></event>
        <event name="jdk.GarbageCollection"><setting name="enabled">true</setting></event></configuration>"""
        % ("1 h" if jdk.version == 17 else "0 ns")
    )
    out = tmp_path / "some.jfr"
    done = jdk.run(
        "java",
        f"-XX:StartFlightRecording=filename={out},settings={settings}",
        "-cp",
        lab.compiled(PROGRAM),
        PROGRAM,
        "0.5",
    )
    assert done.returncode == 0, done.stderr
    text = lab.jvmscope("vm", out).stdout.splitlines()
    if jdk.version == 17:
        assert (
            text[1]
            == " no safepoint is recorded; those that took less than 3600 s are not in this recording"
        )
        return
    safepoints = shown(out)["safepoints"]
    assert (
        safepoints["count"] > 0 and not safepoints["time_known"] and safepoints["least_way_ns"] == 0
    ), safepoints
    assert re.fullmatch(
        rf" {safepoints['count']} safepoints? took [\d.]+ [mu]?s until all threads had stopped; how long the threads were then stopped is not known",
        text[1],
    ), text[1]
    assert {
        line.split()[1]
        for line in text[text.index("Safepoints") + 2 :]
        if re.match(r" +\d+ +-  ", line)
    } == {"-"}


def test_a_recording_that_says_nothing_of_it(tmp_path):
    out = tmp_path / "cpu.jfr"
    assert run(lab.Jdk(17), out, words="cpu=samples", program=("0.1",)).returncode == 0
    done = lab.jvmscope("vm", out)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"jvmscope: {out}: holds nothing about the VM's activity: record with --events\n"
    )


@pytest.fixture
def cpu_group():
    """A control group of either version with a CPU limit: its folder, and the file with the limit.
    It is scheduled before other groups, so that its limit takes the CPU from it rather than the
    rest of the machine.
    """
    with lab.control_group("cpu", "cpu.cfs_quota_us", "cpu.max", 400000) as group:
        if not group:
            pytest.skip(
                "no control group of CPU can be made here (needs root and a writable /sys/fs/cgroup)"
            )
        lab.go_before_other_groups(group[0])
        yield group


def throttled_ns(folder):
    found = re.search(r"throttled_(usec|time) (\d+)", (folder / "cpu.stat").read_text())
    return int(found[2]) * (1000 if found[1] == "usec" else 1)


@pytest.mark.jdks(8, 17, 25)
def test_a_container_out_of_cpu_is_a_cause_of_its_own(jdk, cpu_group, tmp_path):
    (folder, limit), out = cpu_group, tmp_path / "vm.jfr"
    agent = f"-agentpath:{lab.BUILD}/libhprof.so=events=y,threads=y,cpu=samples,requests=Throttled.serve(..),format=r,file={out}"
    try:
        process = jdk.start(
            "sh",
            "-c",
            f"echo $$ >{folder}/cgroup.procs && exec java -Xmx64m '{agent}' -cp {lab.compiled('Throttled')} "
            "Throttled 40 12",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout.readline() == "ready\n"
        before = throttled_ns(folder)
        limit.write_text("30000")  # of 100 ms
        process.stdin.write("go\n")
        process.stdin.flush()
        took, used = map(int, process.stdout.readline().split())
        limit.write_text("400000")
        assert process.wait() == 0
        group = throttled_ns(folder) - before
    finally:
        jdk.kill_started()
    lost = took - used
    assert lost > 2 * used, "the limit took no CPU from the program"
    vm = shown(out)["container"]
    assert vm["cpu_period_us"] == 100000 and vm["throttled_slices"] > 5
    assert 0.95 * group <= vm["throttled_ns"] <= throttled_ns(folder)
    assert sum(t["throttled_ns"] for t in vm["throttled"]) == vm["throttled_ns"]
    # The kernel counts each processor separately, but only one thread computes here. If other
    # programs have the processor meanwhile, too, the delay counts as the container's.
    stated = min(lost, group)
    done = lab.jvmscope("requests", "--json", out)
    assert done.returncode == 0, done.stderr
    [served] = json.loads(done.stdout)["requests"]
    assert 0.5 * stated < served["count"] * served["causes"]["throttled"] < 1.05 * lost, (
        served,
        stated,
        lost,
    )
    if group > 0.6 * lost:  # and other programs took less from it than its limit did
        assert served["most"] == "throttled", (served, group, lost)
    assert "the container was out of CPU" in lab.output("requests", "slow", out)
    path = lab.read_json("threads", "critical-path", "--end", "main", "--json", out)
    throttled = sum(s["ns"] for s in path["segments"] if s["state"] == "throttled")
    assert 0.5 * stated < throttled < 1.05 * lost, (throttled, stated)
