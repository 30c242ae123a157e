# SPDX-License-Identifier: Apache-2.0
"""What `jvmscope vm` says the VM did, against the VM's own logs of the same run."""
import json
import re

import pytest

import lab

PROGRAM = "VmDoings"


def run(jdk, out, *options, words="events=y", program=("1",)):
    return jdk.run("java", "-Xmx100m", "-Xmn16m", *options, f"-agentpath:{lab.BUILD}/libhprof.so={words},format=r,file={out}",
                   "-cp", lab.compiled(PROGRAM), PROGRAM, *program)


def shown(out, *options):
    done = lab.jvmscope("vm", "--json", *options, out)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def logged(version, log):
    """Safepoints and pauses of the log: (number, seconds, seconds of the way there), (number, seconds)."""
    text = log.read_text()
    if version >= 13:
        stops = [(int(m[2]) / 1e9, int(m[1]) / 1e9) for m in re.finditer(r"Reaching safepoint: (\d+) ns.* Total: (\d+) ns", text)]
    else:
        stops = [(float(m[1]), float(m[2])) for m in re.finditer(r"threads were stopped: ([\d.]+) seconds, Stopping threads took: ([\d.]+)", text)]
    if version >= 9:
        pauses = [float(m[1]) / 1000 for m in re.finditer(r"GC\(\d+\) (?:[YyO]: )?Pause .*?([\d.]+)ms\n", text)]
    else:
        # JVM TI reports no collection for G1's pause "cleanup" on JDK 8; it is a safepoint only. Two threads may write one line.
        concurrent = re.findall(r"(?:concurrent-[a-z-]+|cleanup[^,]*), ([\d.]+) secs\]", text)
        seconds = sum(map(float, re.findall(r", ([\d.]+) secs\]", text))) - sum(map(float, concurrent))
        pauses = [seconds] + [0] * (len(re.findall(r"\[(?:Full )?GC (?:pause|remark|\()", text)) - 1)
    assert len(stops) > 20 and len(pauses) > 10, text[:2000]
    return (len(stops), sum(s for s, _ in stops), sum(w for _, w in stops)), (len(pauses), sum(pauses))


def log_options(version, log):
    if version >= 9:
        return [f"-Xlog:safepoint=info,gc=info,gc+phases=info:file={log}:tn,tg"]
    return [f"-Xloggc:{log}", "-XX:+PrintGC", "-XX:+PrintGCApplicationStoppedTime"]


COLLECTORS = [(8, "Parallel"), (8, "G1"), (11, "G1"), (17, "Serial"), (21, "G1"), (25, "ZGC"), (25, "Parallel"), (27, "G1")]


@pytest.mark.parametrize("version, collector", COLLECTORS)
def test_totals_are_those_of_the_log(version, collector, tmp_path):
    jdk, out, log = lab.Jdk(version), tmp_path / "vm.jfr", tmp_path / "vm.log"
    done = run(jdk, out, *lab.COLLECTORS[version][collector], *log_options(version, log))
    assert done.returncode == 0 and not done.stderr, done.stderr
    (stops, stopped, way), (pauses, paused) = logged(version, log)
    vm = shown(out)
    safepoints, collections = vm["safepoints"], vm["collections"]
    # What came before the recording and after it is in the log alone.
    assert stops - 4 <= safepoints["count"] <= stops, (safepoints, stops)
    assert safepoints["time_ns"] / 1e9 == pytest.approx(stopped, rel=0.01)
    assert safepoints["way_ns"] / 1e9 == pytest.approx(way, rel=0.01, abs=0.001)
    # JDK 8: the pause "remark" of a cycle that was given up is no collection for JVM TI.
    assert pauses - log.read_text().count("concurrent-mark-abort") <= collections["pauses"] <= pauses
    assert collections["pause_ns"] / 1e9 == pytest.approx(paused, rel=0.01, abs=1e-5 * pauses)
    assert collections["pause_ns"] == sum(c["pause_ns"] for c in collections["causes"])
    assert any(c["cause"] == "System.gc()" for c in collections["causes"]), collections
    assert all(c["collector"] and c["cause"] for c in collections["list"] if c["pause_ns"] and "Old" not in c["collector"]), collections["list"]
    if version >= 9:
        assert safepoints["each_known"] == safepoints["count"]
        assert sum(o["time_ns"] for o in safepoints["operations"]) == pytest.approx(safepoints["time_ns"], rel=0.01)
        assert any(o["operation"] == "ThreadDump" for o in safepoints["operations"])
    heaps = [c for c in collections["list"] if "before_bytes" in c]
    assert len(heaps) > 10 and all(c["after_bytes"] <= c["capacity_bytes"] or not c["capacity_bytes"] for c in heaps)
    if version >= 9:  # JDK 8 says what the heap held up to 50 ms before
        assert collections["allocated_bytes"] > 100 << 20
