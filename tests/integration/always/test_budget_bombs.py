# SPDX-License-Identifier: Apache-2.0
"""Programs that only do what costs a recorder most. The budget holds from five seconds after their
start on, according to the kernel's CPU times of threads and to perf's samples.
"""
import contextlib
import json
import subprocess
import time

import pytest

import lab
from always_lab import cpu_of, cpu_of_agents_threads, status
from perf_shares import shares

THREADS = 10_000


@contextlib.contextmanager
def bomb(jdk, tmp_path, mode, n, budget):
    """The program Bomb, five seconds after its start."""
    words = f"always=y,maxsize=16m,budget={budget},file={tmp_path}/{mode}-{budget[:-1]}.ring" + (
        ",requests=Bomb.request" if mode in ("served", "requests") else ""
    )
    process = jdk.start_java(
        "Bomb", mode, n, jvm=["-Xmx128m", jdk.agent(words)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(5):
            assert process.stdout.readline().startswith("did ")
        yield process
    finally:
        process.kill()
        process.wait()


def reduced(now):
    return {
        now[key]: now[key.replace("what", "one_of")]
        for key in now
        if key.startswith("budget.") and key.endswith(".what")
    }


def cost_of_agents_threads(pid, seconds):
    """CPU time that the threads with the agent's names use in a second, in ms, according to the
    kernel.
    """
    began, before = time.monotonic(), cpu_of_agents_threads(pid)
    time.sleep(seconds)  # this test is about time
    return (cpu_of_agents_threads(pid) - before) / 1e6 / (time.monotonic() - began)


@pytest.mark.jdks(8, 17, 25, daily=1)
def test_ten_thousand_threads_cost_the_agent_little(jdk, tmp_path):
    """Each round used to visit every thread, and each chunk of a small ring was full of threads
    immediately: 240 ms per second.
    """
    with bomb(jdk, tmp_path, "threads", THREADS, "1%") as process:
        cost, now = cost_of_agents_threads(process.pid, 8), status(process.pid)
        print(cost, reduced(now))
        assert cost < 40, (cost, now)
        # The agent's own threads are reduced first, which costs no data.
        assert reduced(now).get("rounds of the agent", 1) > 1, now
        part = tmp_path / "part.jfr"
        assert lab.jvmscope("dump", "-o", part, process.pid).returncode == 0
    report = json.loads(lab.jvmscope("report", "--json", part).stdout)
    assert any(
        r["what"] == "rounds of the agent" and r["one_of"] > 1 for r in report["reduced"]
    ), report["reduced"]


def perf_needed():
    if not lab.perf_permitted():
        pytest.skip("perf events are not permitted here")


@pytest.mark.measured
@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("mode, n", (("waits", 8), ("served", 2)))
def test_the_budget_holds_under_a_bomb(jdk, tmp_path, mode, n):
    """As many contended waits per second as the machine can make, and 100,000 requests."""
    perf_needed()
    found = {}
    for budget in ("1%", "100%"):
        with bomb(jdk, tmp_path, mode, n, budget) as process:
            all_, own, callbacks = shares(process.pid, 10, tmp_path / "perf.data")
            found[budget] = (own + callbacks) / all_
            print(
                mode,
                budget,
                f"{own / all_:.4f} {callbacks / all_:.4f}",
                reduced(status(process.pid)),
            )
    # A quarter allows for chance in the samples, and for the cost of callbacks that their own
    # measurement does not see.
    assert found["1%"] < 0.0125, found
    assert found["100%"] > 0.0125, found


@pytest.mark.measured
@pytest.mark.jdks(8, 17, 25)
def test_the_budget_holds_with_ten_thousand_threads(jdk, tmp_path):
    """By the kernel's CPU times, because perf cannot open this many threads. The test above has the
    cost of callbacks for four threads.
    """
    with bomb(jdk, tmp_path, "threads", THREADS, "1%") as process:
        before, began = cpu_of(process.pid), time.monotonic()
        cost = cost_of_agents_threads(process.pid, 10)
        used = 1000 * (cpu_of(process.pid) - before) / (time.monotonic() - began)
        print(f"{cost:.1f} of {used:.0f} ms per second", reduced(status(process.pid)))
    assert cost < 0.0125 * used, (cost, used)


@pytest.mark.measured
@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("mode, n", (("waits", 8), ("served", 2), ("requests", 2), ("parks", 2)))
def test_the_account_is_what_perf_finds(jdk, tmp_path, mode, n):
    perf_needed()
    with bomb(jdk, tmp_path, mode, n, "100%") as process:
        before = status(process.pid)
        all_, own, callbacks = shares(process.pid, 20, tmp_path / "perf.data")
        after = status(process.pid)
    used = {key: after[key] - before[key] for key in after if key.startswith("cost.")}
    whole = used.pop("cost.process_ns")
    printed, found = sum(used.values()) / whole, (own + callbacks) / all_
    print(mode, f"said {printed:.4f}, found {found:.4f}")
    assert printed == pytest.approx(found, rel=0.1, abs=0.002)
