# SPDX-License-Identifier: Apache-2.0
"""For how long captures stop a running program when they change its classes, according to the VM's
own log. The limit is that one of a hundred requests that arrive meanwhile is delayed by 5 ms. How
long a stop takes depends on the machine, but how long the pause after it must be does not.
`bench/attach` measures a server's latencies.
"""
import re
import subprocess

import pytest

import lab

MS = 1_000_000
CAPTURES = {
    "exceptions": ("--exceptions", "--include", "java.*"),
    "live": ("--live", "--include", "java.*"),
    "times": ("--cpu=times", "--include", "java.util.*"),
    "trace": ("--trace", "java.util.*"),
}
DAILY = {(17, "exceptions"), (25, "times")}
AT_ONCE = {11: 4, 17: 128, 25: 128}  # classes
FELT, LONG, CLASS = (
    4 * MS,
    40 * MS,
    30 * MS,
    # stops that count are longer than FELT; they count up to LONG; CLASS: pauses at most per class
)

STOP = re.compile(
    r'Safepoint "(\w+)", Time since last: (\d+) ns,.* At safepoint: (\d+) ns,.* Total: (\d+) ns'  # since JDK 13
    r'|Application time: (?P<since>[\d.]+) seconds'
    r'|Entering safepoint region: (?P<operation>\w+)'
    r'|Total time for which application threads were stopped: (?P<total>[\d.]+) seconds, Stopping threads took: (?P<way>[\d.]+)'
)


def batches(text):
    """Returns for each batch of classes in a part of the log how many there were, for how many ns
    the VM stopped for it, and for how many ns the program then ran before the next batch.
    """
    found, classes, ran, since, operation = [], 0, 0, 0, None
    for line in text.splitlines():
        if "] redefined name=" in line:
            classes += 1
        elif match := STOP.search(line):
            if match["since"]:
                since = round(float(match["since"]) * 1e9)
                continue
            if match["operation"]:
                operation = match["operation"]
                continue
            if match["total"]:
                stopped = round((float(match["total"]) - float(match["way"])) * 1e9)
            else:
                operation, since, stopped = match[1], int(match[2]), int(match[3])
            ran += since
            if operation == "RedefineClasses":
                if found:
                    found[-1][2] = ran
                found.append([classes, stopped, None])
                classes = ran = 0
    return found


@pytest.mark.parametrize(
    "version, capture",
    [
        pytest.param(v, c, marks=[pytest.mark.slow] * ((v, c) not in DAILY))
        for v in AT_ONCE
        for c in CAPTURES
    ],
)
def test_classes_are_changed_in_small_parts_with_pauses_in_between(
    version, capture, jvmscope, tmp_path
):
    jdk, log, felt = lab.Jdk(version), tmp_path / "log", 0
    with jdk.start_java(
        "ServesHttp",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        jvm=(f"-Xlog:safepoint=info,redefine+class+load=info:file={log}",),
    ) as server:
        try:
            server.stdout.readline()
            for command in (["attach", *CAPTURES[capture], "-o", tmp_path / "x.jfr"], ["stop"]):
                before = len(log.read_text())
                done = jvmscope(*command, server.pid)
                assert done.returncode == 0, done.stderr
                lab.wait_for(
                    lambda: "restoring" not in jvmscope("status", server.pid).stdout,
                    120,
                    "the old code of all classes",
                )
                found = batches(log.read_text()[before:])
                classes = sum(n for n, _, _ in found)
                assert len(found) > 1 and max(n for n, _, _ in found) <= AT_ONCE[version], found
                for _, stopped, ran in found[:-1]:
                    felt += stopped > FELT
                    # At least twice the stop, and 200 times the part of it that is noticed, unless
                    # the pauses amount to 30 ms per class.
                    counts = min(stopped, LONG)
                    pause = max(
                        2 * counts, min(200 * (counts - FELT), CLASS * classes // len(found))
                    )
                    assert ran >= 0.99 * pause - MS, (command[0], stopped, ran, found)
        finally:
            server.kill()
    print(f"JDK {version}, {capture}: {felt} stops were longer than {FELT // MS} ms")


@pytest.mark.jdks(21, 25)
def test_what_stops_all_threads_does_not_depend_on_virtual_threads(jdk, tmp_path):
    """Attaching with captures that change classes stops all threads once for a batch of classes,
    whether the program has no virtual threads or 2,000, and the program continues in between.
    """
    stops, gaps = {}, {}
    for n in (0, 2000):
        printed, log = tmp_path / f"{n}.printed", tmp_path / f"{n}.log"
        with printed.open("w") as stdout:
            process = jdk.start_java(
                "ManyVirtual",
                n,
                release=21,
                jvm=("-Xmx512m", f"-Xlog:safepoint:file={log}"),
                stdout=stdout,
                stderr=-1,
            )
        lab.wait_for(lambda: printed.stat().st_size > 100, 60, "the program")
        before = len(printed.read_text().splitlines())
        captures = ("--threads", "--locks", "*", "--exceptions", "--include", "ManyVirtual*")
        done = lab.jvmscope(
            "attach", *captures, "-t", "1s", "-o", tmp_path / f"{n}.jfr", process.pid
        )
        assert done.returncode == 0, done.stderr
        gaps[n] = max(int(ms) for ms in printed.read_text().split()[before:-1])
        process.kill()
        kinds = re.findall(r'Safepoint "(\w+)"', log.read_text())
        stops[n] = sum("Collect" not in k and k not in ("G1PauseCleanup", "Cleanup") for k in kinds)
    print(stops, gaps)
    assert stops[0] > 3 and stops[2000] <= 2 * stops[0] + 20, (stops, gaps)
    # A program that waits for a processor, too, has turns in between.
    assert gaps[2000] < 5000, (stops, gaps)
