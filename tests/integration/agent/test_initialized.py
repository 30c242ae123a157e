# SPDX-License-Identifier: Apache-2.0
"""Which classes and threads of the JDK a VM has because it is recorded. A program without virtual
threads has none of their classes initialized: that would start the JDK's thread
"VirtualThread-unblocker" and would be part of the program's allocations.
"""
import json
import re
import subprocess

import pytest

import lab

PROBES = (
    "--trace=Rounds.traced",
    "--watch=Rounds.field",
    "--log=Rounds:18 {n}",
)
SAMPLED = (*PROBES, "--cpu", "--alloc", "--threads", "--events", "--requests", "--deadlocks")
EXACT = ("--cpu=times", "--alloc=exact", "--live=exact", "--monitors", "--exceptions", "--cover")
OF_VIRTUAL_THREADS = re.compile(r"Initializing '([\w/$]*(?:VirtualThread|CarrierThread)[^']*)'")
LOG = ("-Xlog:class+init=info:stdout",)


def initialized(log):
    assert "Initializing 'Rounds'" in log, log[:2000]
    return OF_VIRTUAL_THREADS.findall(log)


@pytest.mark.jdks(21, 25, 27)
@pytest.mark.parametrize("options", (SAMPLED, EXACT), ids=("sampled", "exact"))
def test_a_run_initializes_no_class_of_virtual_threads(jdk, tmp_path, options):
    done = lab.jvmscope(
        "run",
        *options,
        "-o",
        tmp_path / "r.jfr",
        "--",
        *jdk.command("java", *LOG, "-Xmx96m", "-cp", lab.compiled("Rounds"), "Rounds"),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert initialized(done.stdout) == []


@pytest.mark.jdks(21, 25, 27)
@pytest.mark.parametrize("options", (SAMPLED, EXACT), ids=("sampled", "exact"))
def test_an_attach_adds_no_thread_and_initializes_no_class_of_virtual_threads(
    jdk, tmp_path, options
):
    log = tmp_path / "init.log"
    process = jdk.start_java(
        "Rounds",
        jvm=("-Xmx96m", f"-Xlog:class+init=info:file={log}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"

        def threads():
            of = json.loads(lab.output("inspect", "--json", process.pid, "threads"))["threads"]
            return {t["name"] for t in of}

        before = threads()
        lab.output("attach", *options, "-t", "1s", "-o", tmp_path / "r.jfr", process.pid)
        # The compilers' threads come and go, and a request to the VM starts its listener.
        added = {n for n in threads() - before if "Compiler" not in n and n != "Attach Listener"}
        assert added == set()
    finally:
        process.communicate()
    assert initialized(log.read_text()) == []
