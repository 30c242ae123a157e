# SPDX-License-Identifier: Apache-2.0
"""Tests what `top` and `list` show of a VM that publishes no counters, and what they leave out."""
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
