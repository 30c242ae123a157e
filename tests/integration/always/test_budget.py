# SPDX-License-Identifier: Apache-2.0
"""The budget of a recording that is always on: the stated cost is right, what is left out is
reported, and the totals are those of the program.
"""
import json
import re
import subprocess
import time

import pytest

import lab
from always_lab import cpu_of, cpu_of_agents_threads, status
from recording import events


def method(rows, name):
    return next(m["self"] for m in rows if m["method"] == name)


@pytest.mark.jdks(8, 17, 25)
def test_what_the_budget_reduces_leaves_totals_right(jdk, tmp_path):
    ring, whole = tmp_path / "r.ring", tmp_path / "all.jfr"
    words = f"always=y,file={ring},maxsize=64m,interval=200us,budget=0.2%"
    process = jdk.start_java(
        "Burns", 3, 200, jvm=["-Xmx128m", jdk.agent(words)], stdout=subprocess.PIPE
    )
    assert process.stdout.readline().strip() == "ready"
    pid, began, used = process.pid, time.monotonic(), cpu_of(process.pid)

    def reduced():
        assert process.poll() is None, "it ended with nothing reduced"
        return "one in" in (text := lab.jvmscope("status", pid).stdout) and text

    text = lab.wait_for(reduced, 300, "a reduction")
    assert re.search(
        r"^budget +0.2 % of the CPU time \(an idle process counts as a tenth of a processor\); .* % in the last second; one in \d+ [a-zA-Z ]+ since 20\d\d-",
        text,
        re.M,
    ), text
    assert re.search(
        r"^cost +[\d.]+ % of the CPU time of the process \(.+ of .+\)$", text, re.M
    ), text
    # The kernel's CPU times of the agent's threads, read before and after the agent's own figure.
    before = cpu_of_agents_threads(pid)
    now = status(pid)
    after = cpu_of_agents_threads(pid)
    assert 0.9 * before <= now["cost.threads_ns"] <= 1.1 * after, (
        before,
        now["cost.threads_ns"],
        after,
    )
    # Far above the budget, each reduction needs one check (one second), not one for each of its
    # levels. A program that gets little of the processor uses so little in a second that the
    # agent's own threads exceed the budget, and nothing reduces those.
    had_a_processor = cpu_of(pid) - used > 0.8 * (time.monotonic() - began)
    assert now["budget.changes"] >= 1 and (
        now["budget.over_seconds"] <= 8 or not had_a_processor
    ), now
    cpu, allocated = map(
        int, re.search(r"cpu (\d+) allocated (\d+)", process.stdout.read()).groups()
    )
    done = lab.jvmscope("dump", "-o", whole, ring)
    assert done.returncode == 0, done.stderr
    done = lab.jvmscope("report", "--json", whole)
    report = json.loads(done.stdout)
    reduced = {r["what"]: r["one_of"] for r in report["reduced"]}
    assert reduced and "to stay within the budget" in done.stderr, done.stderr
    # If samples had no weights for those that were left out, only a fraction of the time would be
    # recorded; chance explains a few percent.
    left_out = reduced.get("CPU samples", 1)
    interval = report["samples"]["interval_ns"]
    # The kernel checks the timers every 4 ms, so whole ticks are recorded or left out, each of
    # which stands for many intervals.
    tick = max(interval, 4_000_000)
    chance = 4 * (left_out * cpu / tick) ** 0.5 * tick
    assert chance < 0.8 * cpu
    assert method(report["samples"]["methods"], "Burns.compute") * interval == pytest.approx(
        cpu, rel=0.1, abs=chance
    )
    if jdk.version >= 11:
        found = report["allocations"]
        bound = 0.02 * allocated + 4 * found["standard_error"]
        assert bound < allocated and method(found["methods"], "Burns.allocate") == pytest.approx(
            allocated, abs=bound
        ), found["total"]


def bomb(jdk, tmp_path, mode, *words, seconds=5, budget="0.5%"):
    """What the program Bomb did in some seconds, according to itself, and the part of it that is in
    the ring.
    """
    ring, part = tmp_path / f"{mode}.ring", tmp_path / f"{mode}.jfr"
    agent = jdk.agent(",".join((f"always=y,maxsize=16m,budget={budget}", f"file={ring}", *words)))
    done = jdk.run("java", agent, "-Xmx64m", "-cp", lab.compiled("Bomb"), "Bomb", mode, 2, seconds)
    taken = lab.jvmscope("dump", "-o", part, ring)
    assert taken.returncode == 0, taken.stderr
    return int(re.search(r"^all (\d+)$", done.stdout, re.M)[1]), part


def reduced_in(part):
    return {
        r["what"]: r["one_of"]
        for r in json.loads(lab.jvmscope("report", "--json", part).stdout)["reduced"]
    }


@pytest.mark.jdks(8, 25)
def test_what_costs_less_than_counting_it(jdk, tmp_path):
    """Millions of requests, and of parks, per second: a sample of the requests is recorded,
    wake-ups are counted as left out, and both are reported.
    """
    made, part = bomb(jdk, tmp_path, "requests", "requests=Bomb.request")
    counted = [
        int(re.search(r" count=(\d+)", line)[1])
        for line in events(part, "jvmscope.RequestTotals")
        if '"Bomb.request"' in line
    ]
    # Each event counts from the start. Events in a file are not in chronological order.
    assert max(counted) == pytest.approx(made, rel=0.05)
    assert reduced_in(part)["requests"] >= 4
    made, part = bomb(jdk, tmp_path, "parks")
    lost = [
        int(re.search(r" total=(\d+)", line)[1])
        for line in events(part, "jvmscope.Lost")
        if '"wake-ups"' in line
    ]
    assert 0.3 * made < max(lost) <= made
    assert reduced_in(part)["wake-ups"] >= 4


@pytest.mark.jdks(8, 25)
def test_status_counts_the_requests_that_are_left_out(jdk, tmp_path):
    agent = jdk.agent(
        f"always=y,maxsize=16m,budget=0.5%,file={tmp_path / 's.ring'},requests=Bomb.request"
    )
    process = jdk.start_java("Bomb", "requests", 2, jvm=(agent, "-Xmx64m"), stdout=subprocess.PIPE)

    def done():
        for line in process.stdout:
            if line.startswith("did "):
                return int(line.split()[1])

    try:
        for _ in range(5):
            before = done()
        status = lab.read_json("status", "--json", process.pid)
        after = done()
        assert status["requests.estimated"] == 1, status
        assert 0.9 * before < status["requests.begun"] < 1.1 * after, (before, status, after)
        shown = lab.output("status", process.pid)
        assert re.search(r"(?m)^requests +about \d+ requests", shown), shown
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(17)
def test_waits_of_objects_are_left_out_like_others(jdk, tmp_path):
    # Short waits are reduced third, and each level takes a second.
    made, part = bomb(jdk, tmp_path, "hands", seconds=10)
    lost = [
        int(re.search(r" total=(\d+)", line)[1])
        for line in events(part, "jvmscope.Lost")
        if '"waits"' in line
    ]
    assert 0.3 * made < max(lost) <= made
    assert reduced_in(part)["short waits"] >= 4


@pytest.mark.jdks(8, 17, 25)
def test_waits_for_sockets_are_in_the_account_and_left_out(jdk, tmp_path):
    """A server's reads count as waits in the account of the budget, and are left out when it is
    exceeded.
    """
    made, part = bomb(jdk, tmp_path, "reads", seconds=10, budget="0.1%")
    lost = [
        int(re.search(r" total=(\d+)", line)[1])
        for line in events(part, "jvmscope.Lost")
        if '"waits"' in line
    ]
    # The other end of each connection reads as often.
    assert 0.2 * made < max(lost) <= 2.1 * made
    assert reduced_in(part)["short waits"] >= 4


@pytest.mark.parametrize("kind", ["platform", "virtual"])
@pytest.mark.jdks(17, 21, 25)
def test_long_waits_after_short_ones_keep_their_cause(jdk, tmp_path, kind):
    """Whether a wait is worth its cost is guessed from the last one, which here was always short:
    sleeps of virtual threads had no stack and were "runnable", and parks of 4 ms were left out.
    """
    if kind == "virtual" and jdk.version < 21:
        pytest.skip("has no virtual threads")
    ring, part, requests = tmp_path / "w.ring", tmp_path / "w.jfr", 100
    words = f"always=y,file={ring},maxsize=16m,budget=0.2%,requests=BudgetedWaits.serve"
    process = jdk.start_java(
        "BudgetedWaits",
        kind,
        requests,
        jvm=["-Xmx64m", jdk.agent(words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline().strip() == "ready"
    lab.wait_for(
        lambda: "times of short parks" in lab.jvmscope("status", process.pid).stdout,
        120,
        "a reduction",
    )
    out, _ = process.communicate("\n", timeout=300)
    truth = re.search(r"^sleep (\d+) park (\d+)$", out, re.M)
    assert lab.jvmscope("dump", "-o", part, ring).returncode == 0
    assert reduced_in(part)["short waits"] > 1 and reduced_in(part)["times of short parks"] > 1
    (row,) = lab.read_json("requests", "--json", part)["requests"]
    assert row["count"] == requests, row
    # Time without a processor or a carrier after a wait may count as another cause.
    for cause, measured, least_ms in (("sleep", truth[1], 2 * 10), ("park", truth[2], 3 * 4)):
        found = row["causes"][cause]
        error = row["causes_error"][cause]
        assert 0.95e6 * least_ms - error < found < 1.02 * int(measured) / requests + error, row
    # What the waits that were left out may have taken is an error of other causes too, but those
    # that no request had are not called uncertain.
    assert row["causes_error"]["lock"] > 0 == row["causes"]["lock"], row
    assert all(row["causes"][cause] for cause in row["uncertain"]), row
    (group,) = lab.read_json("requests", "slow", "--json", "--slowest", "10%", part)["groups"]
    assert group["slow"]["hidden_ns"] > 0 and group["typical"]["hidden_ns"] > 0, group
    for cause in group["causes"]:
        if cause["cause"] in ("cpu", "park", "runnable"):
            assert cause["slow_error_ns"] > 0 and cause["share_error"] > 0, cause
    slow = lab.output("requests", "slow", "--slowest", "10%", part)
    assert group["hidden_note"].startswith("waits of less than 1 ms were left out"), group
    assert group["hidden_note"] in slow, slow
    (identity, *_) = group["slowest"]
    shown = lab.read_json("requests", "show", "--json", identity, part)
    assert (shown["cpu_hidden_ns"] > 0) == (
        "up to" in lab.output("requests", "show", identity, part)
    ), shown


@pytest.mark.jdks(17)
def test_what_the_agents_threads_cost_leaves_no_requests_out(jdk, tmp_path):
    """The agent's own threads alone exceed such a small budget, after the amount that it allows for
    the start. Leaving out requests, which cost next to nothing, would not help.
    """
    made, part = bomb(jdk, tmp_path, "quiet", "requests=Bomb.request", seconds=40, budget="0.2%")
    (row,) = lab.read_json("requests", "--json", part)["requests"]
    assert row["count"] == row["kept"] == made, row
    assert not {"requests", "details of requests"} & set(reduced_in(part))


def test_a_wrong_budget_is_refused():
    for given in ("1", "0%", "101%", "0.001%", "x%", "-1%", "1%%", ""):
        done = lab.jvmscope("run", "--always", f"--budget={given}", "--", "true")
        assert done.returncode == 2 and "budget" in done.stderr.splitlines()[0], (
            given,
            done.stderr,
        )
    done = lab.jvmscope("run", "--budget", "1%", "--", "true")
    assert done.returncode == 2 and "has no effect without --always=y" in done.stderr
