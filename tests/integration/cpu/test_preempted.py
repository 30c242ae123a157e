# SPDX-License-Identifier: Apache-2.0
"""Time in which a thread was ready to run without a processor, with more busy threads than
processors.
"""
import json
import os

import pytest

import lab


@pytest.mark.jdks(8, 17, 25)
def test_preempted_time_is_what_linux_counts(jdk, tmp_path):
    check_busy_threads(jdk, tmp_path)


@pytest.mark.jdks(21, 25)
def test_virtual_threads_lack_the_processor_that_their_carrier_lacks(jdk, tmp_path):
    carriers = 4 * os.cpu_count()
    check_busy_threads(
        jdk,
        tmp_path,
        "virtual",
        jvm=[
            f"-Djdk.virtualThreadScheduler.{what}={carriers}"
            for what in ("parallelism", "maxPoolSize")
        ],
    )


def check_busy_threads(jdk, tmp_path, *args, jvm=()):
    out = tmp_path / "out.jfr"
    done = jdk.java(
        "BusyThreads",
        *args,
        jvm=[jdk.agent(f"threads=y,format=r,file={out}"), "-Xmx64m", *jvm],
        timeout=120,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    busy = {
        name: [int(n) for n in numbers]
        for name, *numbers in (line.split() for line in done.stdout.splitlines())
    }
    assert len(busy) >= 4
    measured = 0
    for name, (took, delay, cpu) in list(busy.items()) if args else list(busy.items())[:4]:
        shown = lab.jvmscope("threads", "critical-path", "--json", "--end", name, out)
        assert shown.returncode == 0, shown.stderr
        path = json.loads(shown.stdout)
        states = dict.fromkeys(("run", "preempted", "io", "lock"), 0)
        for s in path["segments"]:
            if s["thread"] == name:
                states[s["state"]] = states.get(s["state"], 0) + s["ns"]
                # Where in a run a processor was missing is unknown; when a virtual thread had no
                # carrier is known.
                assert s["state"] != "preempted" or s["inferred"] or args
        # When a virtual thread reads a file, JDK 21 may start another carrier, using a lock. The
        # path then continues with its owner.
        if args and sum(states.values()) < 0.9 * took:
            continue
        measured += 1
        # Four times as many as there are processors: most of the time a thread has none.
        assert delay > 0.3 * took, (name, took, delay)
        # Linux includes delays in waits for files. The thread's own beginning and end, before and
        # after what the program times, are under the same load.
        others, outside = states["io"] + states["lock"], max(sum(states.values()) - took, 0)
        # Time that interrupts and other virtual machines on the host took while the thread had a
        # processor is neither delay nor CPU time.
        stolen = max(took - delay - cpu, 0)
        assert 0.95 * delay - others <= states["preempted"] <= 1.05 * delay + outside + stolen, (
            name,
            took,
            delay,
            cpu,
            states,
        )
    assert measured >= 4
    # What people read calls it what `requests` and the page call it.
    for verb in ("critical-path", "timeline"):
        shown = lab.jvmscope("threads", verb, "-n", 10**6, out).stdout
        assert verb == "timeline" or " waiting for a processor" in shown, shown
        assert " preempted" not in shown, shown
