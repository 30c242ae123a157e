# SPDX-License-Identifier: Apache-2.0
"""Tests what `top` and `list` show of a VM that publishes no counters, and what they leave out."""
import re
import subprocess

import pytest

import lab

WHY = "it was started with -XX:-UsePerfData"
COUNTED = (
    "threads",
    "daemons",
    "peak_threads",
    "classes_loaded",
    "classes_unloaded",
    "compile_ns",
    "safepoints",
    "safepoint_ns",
)


@pytest.mark.jdks(8, 17, 25)
def test_a_vm_without_counters_has_a_version_and_no_zeros(jdk):
    process = jdk.start_java(
        "TracedForever",
        jvm=("-Xmx64m", "-XX:-UsePerfData"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        table = lab.output("top", "-n", 1, "-i", "50ms", process.pid)
        head = table.splitlines()[1:3]
        assert head[0].endswith("threads -  classes -  compiling -  safepoints -"), table
        assert head[1].endswith(f" are not known: {WHY}."), table
        assert "POOL" not in table and "COLLECTOR" not in table and "THREAD" in table
        line = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", process.pid)
        assert {line[key] for key in COUNTED} == {None} and line["counters_unknown"] == WHY
        assert line["resident"] > 0 and line["busiest"] and not line["pools"]
        (listed,) = [v for v in lab.read_json("list", "--json") if v["pid"] == process.pid]
        begins = "1.8.0_" if jdk.version == 8 else str(jdk.version)
        assert (listed["version"] or "?").startswith(begins), listed
    finally:
        process.communicate("\n", timeout=60)


@pytest.mark.jdks(17)
def test_a_vm_with_counters_has_them_all(jdk):
    process = jdk.start_java(
        "TracedForever",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        line = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", process.pid)
        assert None not in {line[key] for key in COUNTED} and "counters_unknown" not in line
    finally:
        process.communicate("\n", timeout=60)


@pytest.mark.jdks(17, 25, slow=(11, 27))
def test_shenandoah_s_counter_of_phases_is_not_called_full_collections(jdk, tmp_path):
    """The VM calls it "Shenandoah full": there were 1,090 of them where 161 collections, none of
    them full, had been made.
    """
    log = tmp_path / "gc.log"
    process = jdk.start_java(
        "TracedForever",
        jvm=(
            *("-Xmx64m", "-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"),
            *("-XX:ShenandoahGuaranteedGCInterval=50", f"-Xlog:gc:file={log}"),
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        lab.wait_for(lambda: "GC(9)" in log.read_text(), 30, "ten collections")
        line = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", process.pid)
        begun = max(int(n) for n in re.findall(r"GC\((\d+)\)", log.read_text())) + 1
        table = lab.output("top", "-n", 1, "-i", "50ms", process.pid)
    finally:
        process.communicate("\n", timeout=60)
    assert "Pause Full" not in log.read_text()
    (counted,) = line["collectors"]
    assert counted["name"] == "Shenandoah phases, concurrent ones too", counted
    assert counted["collections"] > begun, "phases are more than collections"
    rows = table[table.index("COLLECTOR") :].splitlines()[1:3]
    assert re.match(r"Shenandoah phases, concurrent ones too +\d+ +\+\d+ ", rows[0]), table
    assert not rows[1].strip(), table
