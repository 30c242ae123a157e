# SPDX-License-Identifier: Apache-2.0
"""requests=: a web server whose client and tasks print when they ran. Every request and every
hand-over is recorded, and none is longer than printed.
"""
import collections
import json
import os
import pathlib
import re
import subprocess

import pytest

import lab
from request_lab import SERVERS, jars, jetty12, served

DUMP = lab.BUILD / "tests" / "unit" / "jfr_dump"
WAYS = (
    "plain",
    "executor",
    "queue",
    "fork-join",
    "stream",
    "future",
    "async-future",
    "thread",
    "timer",
    "schedule",
    "method",
    "error",
    "virtual",
    "cancelled",
    "rejected",
    "structured",
    "other",
)
NAMED = "RequestsTruth$Shop.order(..)"
# otherwise the server's answers would wait 40 ms for acknowledgements
NODELAY = "-Dsun.net.httpserver.nodelay=true"

Request = collections.namedtuple(
    "Request", "start ns thread id parent name kind status exception kept"
)
Work = collections.namedtuple("Work", "start ns thread request way queued submitter")
Task = collections.namedtuple("Task", "way thread start end")
Asked = collections.namedtuple("Asked", "path status start end handler_start handler_end")


def events(path, kind, fields):
    done = subprocess.run(
        [DUMP, f"--get={fields}", path, kind], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        values = [
            value.split("(")[0] if value[:1].isdigit() or value[:1] == "-" else value
            for value in line.split("\t")
        ]
        yield [int(v) if v.lstrip("-").isdigit() else None if v == "null" else v for v in values]


def requests_in(path):
    return [
        Request(*e)
        for e in events(
            path,
            "jvmscope.Request",
            "startTime,duration,eventThread.javaName,id,parent,name,kind,status,exception,kept",
        )
    ]


def works_in(path):
    return [
        Work(*e)
        for e in events(
            path,
            "jvmscope.RequestWork",
            "startTime,duration,eventThread.javaName,request,handOver,queued,submitter.javaName",
        )
    ]


def least_ns(bucket):
    """Returns the least latency of a bucket, as doc/format.md describes it."""
    e = max(bucket // 64 - 1, 0)
    return (bucket - 64 * e << e) * 1000


def totals_in(path):
    """Returns the last event of each name: kind, count, errors, sum and longest."""
    last = {}
    for _, name, kind, count, errors, total, longest in sorted(
        events(path, "jvmscope.RequestTotals", "startTime,name,kind,count,errors,totalTime,maxTime")
    ):
        last[name] = (kind, count, errors, total, longest)
    return last


def check_examples(path, asked):
    """Each folded name has the path of one of its requests, without the query string."""
    last = {
        name: example
        for _, name, example in sorted(
            events(path, "jvmscope.RequestTotals", "startTime,name,example")
        )
    }
    for name in {name_of(a.path) for a in asked}:
        assert last[name] in {a.path.split("?")[0] for a in asked if name_of(a.path) == name}, (
            name,
            last[name],
        )
    rows = lab.read_json("requests", "--json", path)["requests"]
    assert {r["name"]: r["example"] for r in rows} == last
    groups = lab.read_json("requests", "slow", "--json", path)["groups"]
    shown = lab.output("requests", "slow", path)
    assert groups and all(g["example"] == last[g["name"]] for g in groups), groups
    g = groups[0]
    assert f"\n{g['name']}{', for instance ' + g['example'] if g['example'] else ''}\n" in shown, (
        g,
        shown,
    )


def lost_in(path):
    return [
        e for e in events(path, "jvmscope.Lost", "capture,what,reason,total") if e[0] == "requests"
    ]


def truth_of(text):
    tasks, asked = [], []
    for line in text.splitlines():
        word, *rest = line.split(" ")
        if word == "task":
            tasks.append(Task(rest[0], rest[1], int(rest[2]), int(rest[3])))
        elif word == "request":
            asked.append(Asked(rest[0], *map(int, rest[1:])))
    return tasks, asked


def name_of(path):
    way = path.split("/")[1]
    return f"{'POST' if way == 'post' else 'GET'} /{way}/{{id}}"


def fit(requests, asked, kind="http"):
    """Returns the offset of the recording's clock with which each request begins between its client
    and its handler, and ends after the handler's last byte. There is no such offset if a request
    begins too early or too late, is too short, or is missing.
    """
    top = sorted((r for r in requests if r.kind == kind), key=lambda r: r.start)
    assert [r.name for r in top] == [name_of(a.path) for a in asked]
    assert [r.status for r in top] == [a.status for a in asked]
    low = max(max(a.start - r.start, a.handler_end - r.start - r.ns) for a, r in zip(asked, top))
    high = min(a.handler_start - r.start for a, r in zip(asked, top))
    assert low <= high, (low, high)
    # Each latency includes that of its handler, so it exceeds the sum of the waits and naps alone.
    assert all(r.ns >= a.handler_end - a.handler_start for a, r in zip(asked, top))
    return top, low, high


def check_callers(path, asked, top):
    """Each request has the ids that its client sent."""
    done = subprocess.run(
        [DUMP, "--get=id,traceId,spanId", path, "jvmscope.Request"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    ids = {
        int(number): (trace, span)
        for number, trace, span in (line.split("\t") for line in done.stdout.splitlines())
    }
    assert [ids[r.id] for r in top] == [(f"{a.start:032x}", f"{a.start + 1:016x}") for a in asked]


def check_bytes(path, top, bodies):
    """For answers whose length the server states."""
    done = subprocess.run(
        [DUMP, "--get=id,bytes", path, "jvmscope.Request"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    reported = dict(map(int, line.split("(")[0].split("\t")) for line in done.stdout.splitlines())
    assert {reported[r.id] for r in top if r.name in bodies} == {len("answer")}, [
        (r.name, reported[r.id]) for r in top
    ]


def check_tasks(tasks, works, asked, top, low, high):
    """Each task lies within work of its own kind and thread, which belongs to the request whose
    client waited for it.
    """
    of = {r.id: a for r, a in zip(top, asked)}
    missing = []
    for t in tasks:
        if t.way == "none":
            continue
        # A server continues a request with a task of its pool, or at once on the current thread.
        ways = ("async", "executor") if t.way == "async" else (t.way,)
        found = [
            w
            for w in works
            if w.way in ways
            and w.thread == t.thread
            and w.request in of
            and w.start + low <= t.start
            and w.start + w.ns + high >= t.end
            and of[w.request].start <= t.start <= of[w.request].end
        ]
        if not found:
            missing.append(t)
    assert len(missing) <= len(tasks) // 100, (len(missing), len(tasks), missing[:5])


def check_stages(tasks, works, asked, top, high):
    """A stage of a CompletableFuture is in a pool's queue from when the stage before it ended, not
    from when it was created.
    """
    for r, a in zip(top, asked):
        if r.name != name_of("/async-future/1"):
            continue
        naps = sorted((t for t in tasks if a.start <= t.start <= a.end), key=lambda t: t.start)
        stages = sorted(
            (w for w in works if w.request == r.id and w.way in ("executor", "fork-join")),
            key=lambda w: w.start,
        )
        assert [w.way for w in stages] == ["executor", "executor", "fork-join"] and len(
            naps
        ) == len(stages), stages
        for before, stage in zip(naps, stages[1:]):
            assert stage.start - stage.queued + high >= before.end, (before, stages)


def check_cancelled(path, text, rounds, requests, works):
    """A task that is cancelled in its queue is not work. The time for which its request waited for
    it is time in that queue, which ends then.
    """
    waited = [int(n) for n in re.findall(r"^waited (\d+)$", text, re.M)]
    cancelled = [r for r in requests if r.name == "GET /cancelled/{id}"]
    assert len(waited) == len(cancelled) == rounds
    for r, ns in zip(sorted(cancelled, key=lambda r: r.start), waited):
        own = [w for w in works if w.request == r.id]
        # Tasks of both pools; that of the timer was not due.
        assert sorted(w.way for w in own) == ["cancelled", "cancelled", "entry", "executor"], own
        for w in own:
            assert (
                w.way != "cancelled"
                or w.ns == 0
                and w.thread == w.submitter
                and ns <= w.queued <= r.ns
            ), (r, ns, own)
        parts = json.loads(lab.jvmscope("requests", "show", "--json", r.id, path).stdout)["parts"]
        queue = sum(p["ns"] for p in parts if p["cause"] == "queue" and p["start_ns"] > 0)
        assert 19_000_000 <= queue <= ns and not [p for p in parts if p["cause"] == "unknown"], (
            ns,
            parts,
        )


def check(path, text, rounds):
    tasks, asked = truth_of(text)
    requests, works = requests_in(path), works_in(path)
    assert len(asked) == rounds * len(WAYS) and {r.kept for r in requests} == {"all"}
    top, low, high = fit(requests, asked)
    check_callers(path, asked, top)
    check_bytes(path, top, {r.name for r in top})
    check_examples(path, asked)
    check_tasks(tasks, works, asked, top, low, high)
    check_stages(tasks, works, asked, top, high)
    busiest, n = max(
        ((r, sum(w.request == r.id for w in works)) for r in requests), key=lambda pair: pair[1]
    )
    shown = lab.output("requests", "show", "-n", 1, busiest.id, path)
    left = re.search(
        r"threads that worked for it\n.*\n  \.\.\. and (\d+) more pieces? of work \(--limit\)\n",
        shown,
    )
    assert n > 1 and left and int(left[1]) == n - 1, (n, shown)
    named = [r for r in requests if r.kind == "method"]
    by_id = {r.id: r for r in requests}
    assert len(by_id) == len(requests) and min(by_id) == 1
    assert [(r.name, by_id[r.parent].name) for r in named] == [
        ("RequestsTruth$Shop.order", "GET /method/{id}")
    ] * rounds
    for r in requests:
        own = [w for w in works if w.request == r.id and w.way == "entry"]
        assert (
            len(own) == 1
            and own[0].start - own[0].queued == r.start
            and own[0].start + own[0].ns == r.start + r.ns
        )
    queued = [
        w.queued
        for w in works
        if w.way == "executor" and by_id[w.request].name == "GET /queue/{id}"
    ]
    assert (
        len(queued) == 2 * rounds and sum(q >= 2_000_000 for q in queued) >= rounds
    ), queued  # one waits for the other's 2 ms
    check_cancelled(path, text, rounds, requests, works)
    totals = totals_in(path)
    for name in {r.name for r in requests}:
        own = [r for r in requests if r.name == name]
        assert totals[name] == (
            own[0].kind,
            len(own),
            sum(r.status >= 500 or r.exception is not None for r in own),
            sum(r.ns for r in own),
            max(r.ns for r in own),
        ), name
    assert "secret" not in json.dumps([r.name for r in requests])
    assert not lost_in(path)


def preview(jdk):
    return ["--enable-preview"] if jdk.version >= 21 else []  # for StructuredTaskScope


def test_each_request_and_each_hand_over(jdk, tmp_path):
    out, rounds = tmp_path / "r.jfr", 7
    done = jdk.java(
        "RequestsTruth",
        rounds,
        ",".join(WAYS),
        jvm=(NODELAY, *preview(jdk), jdk.agent(f"format=r,requests={NAMED},file={out}")),
    )
    assert done.returncode == 0 and not done.stderr and done.stdout.endswith("done\n"), done.stderr
    check(out, done.stdout, rounds)


@pytest.mark.jdks(8, 25)
def test_attached(jdk, jvmscope, tmp_path):
    out, rounds = tmp_path / "a.jfr", 5
    process = jdk.start_java(
        "RequestsTruth",
        rounds,
        ",".join(WAYS),
        "wait",
        jvm=(NODELAY, *preview(jdk)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    done = jvmscope("attach", "--requests", NAMED, "-o", out, process.pid)
    assert done.returncode == 0, done.stderr
    print("", file=process.stdin, flush=True)
    text = lab.read_until(process.stdout, "done\n")
    done = jvmscope("stop", process.pid)
    assert done.returncode == 0, done.stderr
    process.communicate("\n", timeout=60)
    assert process.returncode == 0
    check(out, text, rounds)


@pytest.mark.jdks(17)
def test_what_was_thrown(jdk, tmp_path):
    out = tmp_path / "t.jfr"
    done = jdk.java(
        "RequestsTruth",
        3,
        "thrown",
        jvm=(jdk.agent(f"format=r,requests=RequestsTruth$Shop.refuse,file={out}"),),
    )
    assert done.returncode == 0, done.stderr
    requests = requests_in(out)
    assert {(r.name, r.exception) for r in requests} == {
        (name, "java.lang.IllegalArgumentException")
        for name in ("GET /thrown/{id}", "RequestsTruth$Shop.refuse")
    }
    assert all(count == errors for _, count, errors, *_ in totals_in(out).values())


@pytest.mark.jdks(17)
def test_patterns_that_name_no_method_are_refused(jdk, jvmscope, tmp_path):
    for pattern, why in (
        ("Shop", "names no method"),
        ("a.b(int x)", "parameters are types"),
        ("a b.c(int)", "names a method as"),
        ("a.b(", "is not closed"),
        ("java.util.List.add", "cannot be requests"),
    ):
        done = jvmscope(
            "run",
            f"--requests={pattern}",
            "-o",
            tmp_path / "x.jfr",
            "--",
            *jdk.command("java", "-version"),
        )
        assert why in done.stderr and not (tmp_path / "x.jfr").exists(), done.stderr


SERVED = {
    "Tomcat10": ("sync", "async", "dispatch", "fail", "missing"),
    "Jetty9": ("sync", "async", "dispatch", "fail", "missing"),
    "Netty4": ("sync", "async", "post", "fail", "missing"),
}
STATUS = {"fail": 500, "missing": 404}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.jdks(11, 25)
def test_servers(jdk, tmp_path, server):
    """Requests that are answered later as well: from the pool's queue to the end, with the work of
    other threads and a second dispatch.
    """
    out, rounds = tmp_path / "s.jfr", 8
    done = served(jdk, server, out, rounds, SERVED[server])
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (done.stdout, done.stderr)
    tasks, asked = truth_of(done.stdout)
    requests, works = requests_in(out), works_in(out)
    kind = "http" if server == "Netty4" else "servlet"
    assert len(asked) == rounds * len(SERVED[server]) and {r.kind for r in requests} == {kind}
    top, low, high = fit(requests, asked, kind)
    check_callers(out, asked, top)
    if server != "Netty4":
        check_bytes(out, top, {name_of(f"/{way}/1") for way in ("sync", "async", "dispatch")})
    check_tasks(tasks, works, asked, top, low, high)
    assert {t.way for t in tasks} == {"entry", "executor", "async"}
    assert [r.status for r in top] == [STATUS.get(way, 200) for way in SERVED[server]] * rounds
    assert {n: t[1:3] for n, t in totals_in(out).items()} == {
        name_of(f"/{way}/1"): (rounds, rounds if way == "fail" else 0) for way in SERVED[server]
    }
    assert not lost_in(out)


@pytest.mark.skipif(jetty12() is None, reason="npm's vnu-jar is not there")
@pytest.mark.jdks(17, 21, 25)
def test_jetty_12(jdk, tmp_path):
    """A real one: each request is recorded from its handler's call to its answer."""
    out, rounds, ways = tmp_path / "s.jfr", 8, ("sync", "async", "fail", "missing")
    done = served(jdk, "Jetty12", out, rounds, ways)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (done.stdout, done.stderr)
    tasks, asked = truth_of(done.stdout)
    requests, works = requests_in(out), works_in(out)
    assert len(asked) == rounds * len(ways) and {r.kind for r in requests} == {"http"}
    top, low, high = fit(requests, asked)
    check_callers(out, asked, top)
    check_tasks(tasks, works, asked, top, low, high)
    assert [r.status for r in top] == [STATUS.get(way, 200) for way in ways] * rounds
    assert {n: t[1:3] for n, t in totals_in(out).items()} == {
        name_of(f"/{way}/1"): (rounds, rounds if way == "fail" else 0) for way in ways
    }
    assert not lost_in(out)


@pytest.mark.parametrize("server", (*SERVERS, "Httpd"))
def test_pipelined_and_cancelled_requests(tmp_path, server):
    """Three requests in one packet are three, and a request whose client goes away ends, once and
    no earlier than its handler.
    """
    out, cancelled = tmp_path / "h.jfr", 4
    done = served(lab.Jdk(17), server, out, "hostile", ["-"])
    assert done.returncode == 0 and done.stdout == "answered 3\n", (done.stdout, done.stderr)
    requests = requests_in(out)
    assert {n: t[1] for n, t in totals_in(out).items()} == {
        "GET /sync/{id}": 2 + cancelled,
        "GET /async/{id}": 1 + cancelled,
    }, requests
    # A server may know in time that a client has gone, and then reports the request as failed.
    failed = [r for r in requests if r.status != 200]
    late = (
        {"GET /async/{id}"} if server != "Httpd" else {"GET /async/{id}", "GET /sync/{id}"}
    )  # that server has no requests that are answered later
    assert (
        {r.name for r in failed} <= late
        and {r.status for r in failed} <= {0, 500}
        and len(failed) <= len(late) * cancelled
    ), failed
    assert sum(t[2] for t in totals_in(out).values()) == sum(
        r.status == 500 or r.exception is not None for r in failed
    ), failed
    assert {r.exception for r in failed} <= {None, "java.io.IOException"} and (
        server == "Httpd" or not any(r.exception for r in failed)
    ), failed
    assert {r.parent for r in requests} == {0} and len(requests) == 3 + 2 * cancelled, requests
    # Each handler naps 5 ms. Netty's request whose channel is closed is over, although its handler
    # is not.
    short = [r for r in requests if r.ns < 5_000_000]
    assert (
        not short
        or server == "Netty4"
        and {r.name for r in short} == {"GET /async/{id}"}
        and len(short) <= cancelled
    ), short
    assert not lost_in(out)


LATE = {"cancelled": 503, "unanswered": 500, "unanswered-refused": 504, "unanswered-queued": 500}


@pytest.mark.parametrize("server", ("Tomcat10", "Jetty9"))
@pytest.mark.jdks(17, 25)
def test_requests_that_are_given_up_or_not_answered_in_time(jdk, tmp_path, server):
    """They end once, when their server answers in place of a thread that did not. What they waited
    for is not what its threads wait for when they have nothing to do.
    """
    out = tmp_path / "l.jfr"
    done = served(jdk, server, out, "late", LATE)
    assert done.returncode == 0, (done.stdout, done.stderr)
    _, asked = truth_of(done.stdout)
    requests, works = requests_in(out), works_in(out)
    top, *_ = fit(requests, asked, "servlet")
    assert len(top) == len(requests) == 3 * len(LATE) and not lost_in(out), (requests, lost_in(out))
    assert {n: t[1:3] for n, t in totals_in(out).items()} == {
        name_of(f"/{way}/1"): (3, 3) for way in LATE
    }
    for r, a in zip(top, asked):
        way, own = a.path.split("/")[1], [w for w in works if w.request == r.id]
        parts = json.loads(lab.jvmscope("requests", "show", "--json", r.id, out).stdout)["parts"]
        ns = collections.Counter()
        for p in parts:
            ns[p["cause"], p["culprit"]] += p["ns"]
            ns[p["cause"]] += p["ns"]
        assert r.status == LATE[way] and r.ns >= 100_000_000, (r, a)
        # The client has its answer before the server has finished the request, which may take time
        # on a busy machine. The task that came too late may be running by then.
        waited = ns["unknown"] + (ns["queue"] if way == "cancelled" else 0)
        assert waited <= a.end - a.start, (r, a, parts)
        ways = collections.Counter(w.way for w in own)
        assert ns["park"] < 10_000_000, (r, parts)
        if way == "cancelled":
            assert (
                (ways["cancelled"], ways["executor"]) == (1, 0)
                and ns["queue", None] >= 99_000_000
                and not ns["unknown"]
            ), (r, own, parts)
        elif way == "unanswered-queued":
            assert (ways["cancelled"], ways["executor"]) == (0, 1) and not ns["unknown"], (
                r,
                own,
                parts,
            )
            assert ns["queue", "reports-1"] >= 50_000_000, (r, own, parts)
        else:
            assert (ways["cancelled"], ways["executor"]) == (0, 0) and ns[
                "unknown"
            ] >= 50_000_000, (r, own, parts)


def exact(path, requests):
    """The totals agree with the requests, all of which are there; returns their number."""
    totals = totals_in(path)
    assert set(totals) == {r.name for r in requests} and {r.kept for r in requests} <= {"all"}
    for name, (_, count, errors, total, longest) in totals.items():
        own = [r.ns for r in requests if r.name == name]
        assert (count, errors, total, longest) == (len(own), 0, sum(own), max(own)), name
    return len(requests)


def descriptors(pid):
    """How many a process has but for those whose number depends on how busy the machine is: sockets,
    which are the program's connections, and the memory of the process, which the agent opens once,
    when a thread first waits for a monitor.
    """
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            n += not re.match(r"socket:|.*/proc/\d+/mem$", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:  # closed meanwhile
            pass
    return n


def figures(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "descriptors": descriptors(pid),
        "memory": int(re.search(r"RssAnon:\s+(\d+)", status)[1]),
    }


def cycles(jdk, folder, n, warm, *jvm, ends=("descriptors",)):
    """Recordings begin and end in the middle of requests, whose tasks and threads continue. Returns
    how many requests each has, and how much the process grew after the first `warm` ones.
    """
    process = jdk.start_java(
        "RequestsTruth",
        1000000,
        "executor,fork-join,future,async-future,thread,method,virtual",
        "silent",
        jvm=(NODELAY, "-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", *jvm),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        seen = []
        for i in range(n):
            if i == warm:
                before = figures(process.pid)
            out = folder / f"{i}.jfr"
            done = lab.jvmscope(
                "attach", "--requests", NAMED, "-t", "200ms", "-o", out, process.pid, timeout=300
            )
            # On a busy machine a recording may see no request, which the command reports.
            none = "holds no requests" in done.stderr
            assert done.returncode == none, (i, done.stderr, process.poll())
            requests, works = requests_in(out), works_in(out)
            ids = [r.id for r in requests]
            assert len(set(ids)) == len(ids) and all(r.ns > 0 for r in requests), i
            assert all(w.ns < 60_000_000_000 and w.queued < 60_000_000_000 for w in works), i
            assert {r.name for r in requests} <= {name_of(f"/{w}/1") for w in WAYS} | {
                "RequestsTruth$Shop.order"
            }
            seen.append(exact(out, requests))
            out.unlink()
        # The agent's threads answer before they end, which on a busy machine is later.
        after = lab.wait_for(
            lambda: all((now := figures(process.pid))[k] <= before[k] for k in ends) and now,
            60,
            f"the end of the agent's {ends}",
        )
    finally:
        process.kill()
    assert "Exception" not in process.communicate()[1]
    return seen, {key: after[key] - before[key] for key in before}


@pytest.mark.jdks(8, 25)
def test_begun_and_ended_in_the_middle(jdk, tmp_path):
    seen, growth = cycles(jdk, tmp_path, 4, 2)
    assert sum(seen) > 4 and growth["descriptors"] <= 0, (seen, growth)


@pytest.mark.slow
def test_begun_and_ended_a_hundred_times(jdk, tmp_path, record_property):
    """Threads, descriptors and the agent's memory do not grow. Uses -Xint, so that the memory of
    the compilers does not count.
    """
    seen, growth = cycles(jdk, tmp_path, 120, 20, "-Xint", ends=("descriptors", "threads"))
    record_property("growth", str(growth))
    assert sum(n > 0 for n in seen) > 100, seen
    assert (
        growth["threads"] <= 0 and growth["descriptors"] <= 0 and growth["memory"] <= 4096
    ), growth


JETTY = jars(
    "jetty9-server",
    "jetty9-servlet",
    "jetty9-util",
    "jetty9-http",
    "jetty9-io",
    "jetty9-security",
    "jetty9-util-ajax",
    "servlet-api",
)
ROUTES = {
    "Spring4": [
        *JETTY,
        *jars(
            "spring3-core",
            "spring3-beans",
            "spring3-context",
            "spring3-aop",
            "spring3-expression",
            "spring3-web",
            "spring3-web.servlet",
            "commons-logging",
        ),
    ],
    "Resteasy3": [
        *JETTY,
        *jars(
            "resteasy-jaxrs",
            "jaxrs-api",
            "jboss-logging",
            "geronimo-annotation-1.3-spec",
            "slf4j-api",
            "slf4j-nop",
        ),
    ],
    "Grpc": jars(
        "grpc-api",
        "grpc-context",
        "grpc-core",
        "grpc-netty",
        "grpc-stub",
        "guava",
        "perfmark-api",
        "gson",
        "netty-buffer",
        "netty-codec",
        "netty-codec-http",
        "netty-codec-http2",
        "netty-common",
        "netty-handler",
        "netty-handler-proxy",
        "netty-resolver",
        "netty-transport",
        "netty-transport-native-unix-common",
        "netty-transport-native-epoll",
    ),
    "Activemq5": jars(
        "activemq-client",
        "activemq-broker",
        "geronimo-jms_1.1_spec",
        "geronimo-j2ee-management-1.1-spec",
        "hawtbuf",
        "slf4j-api",
        "slf4j-nop",
    ),
}

ROUTED = {
    "Spring4": (
        8,
        "servlet",
        {
            "GET /eu/shop/v2/carts/{owner}/items/{item}": (10, 0),
            "GET /eu/shop/v2/refused/{item}": (5, 5),
            "GET /eu/nowhere/{id}": (5, 0),
        },
    ),
    "Resteasy3": (
        17,
        "servlet",
        {
            "GET /shop/v2/carts/{owner}/items/{item}": (10, 0),
            "GET /shop/v2/refused/{item}": (5, 5),
            "GET /nowhere/{id}": (5, 0),
        },
    ),
    "Grpc": (
        25,
        "grpc",
        {
            f"shop.v2.Cart/{name}": (6, 6 if name in ("Fail", "Missing") else 0)
            for name in ("Get", "Late", "Fail", "Wrong", "Missing", "List")
        },
    ),
    "Activemq5": (17, "message", {"process orders.{id}": (8, 0), "process bills": (8, 0)}),
}


@pytest.mark.parametrize("framework", ROUTED)
def test_routes_and_services_and_messages(framework, tmp_path):
    """Names that do not come from a path, exact counts, and the work of threads to which a service
    or listener handed over the request.
    """
    version, kind, names = ROUTED[framework]
    out, everything = tmp_path / "f.jfr", [j for of in ROUTES.values() for j in of]
    path = [lab.compiled("Routes", 8, everything), *ROUTES[framework]]
    jdk = lab.Jdk(version)
    done = jdk.run(
        "java",
        jdk.agent(f"format=r,requests=auto,file={out}"),
        "-cp",
        ":".join(map(str, path)),
        framework,
        cwd=tmp_path,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    totals = {name: t for name, t in totals_in(out).items() if t[0] != "task"}
    if (
        framework == "Grpc"
    ):  # their deadline passes: the server cancels them, or the client is faster
        slow = [r for r in requests_in(out) if r.name == "shop.v2.Cart/Slow"]
        assert {r.status for r in slow} <= {1, 4}, slow
        names = {**names, "shop.v2.Cart/Slow": (6, sum(r.status == 4 for r in slow))}
    assert {name: t[1:3] for name, t in totals.items()} == names and {
        t[0] for t in totals.values()
    } == {kind}, totals
    examples = {
        name: example
        for name, example in events(out, "jvmscope.RequestTotals", "name,example")
        if name in names
    }
    for name, example in examples.items():  # of a path, with what the route names in braces
        pattern = re.sub(r"\{\w+\}", "[^/]+", name.partition(" ")[2])
        assert (example is None) == (kind != "servlet") and (
            example is None or re.fullmatch(pattern, example) and "{" not in example
        ), examples
    requests, works = [r for r in requests_in(out) if r.kind == kind], works_in(out)
    if framework == "Grpc":
        # The client names its trace in every call but those of List.
        callers = collections.Counter(
            map(tuple, events(out, "jvmscope.Request", "name,traceId,spanId"))
        )
        named = (f"{0xCA11:032x}", f"{0x5BA:016x}")
        assert callers == {
            (r.name, *((None, None) if r.name.endswith("/List") else named)): totals[r.name][1]
            for r in requests
        }, callers
    long = collections.Counter(
        w.request for w in works if w.way == "executor" and w.ns >= 2_000_000
    )
    for r in requests:
        if r.name in ("shop.v2.Cart/Get", "shop.v2.Cart/Late", "process orders.{id}"):
            assert long[r.id] >= 1, (r, [w for w in works if w.request == r.id])
    if framework == "Activemq5":
        sent = [
            e
            for e in events(out, "jvmscope.RequestChild", "request,kind,name")
            if e[1] == "message"
        ]
        assert sorted(sent) == sorted(
            [r.id, "message", "bills"] for r in requests if r.name == "process orders.{id}"
        ), sent
    assert not lost_in(out)


@pytest.mark.jdks(8, 17, 25)
def test_scheduled_tasks_and_servers_that_debian_lacks(jdk, tmp_path):
    """Each run of a task is a request, including one whose failure the JDK hides; Kafka, Jetty 12
    and OkHttp 4 are stubs with their names.
    """
    out = tmp_path / "s.jfr"
    done = jdk.java("RequestStubs", jvm=(jdk.agent(f"format=r,requests=auto,file={out}"),))
    assert done.returncode == 0 and not done.stderr, done.stderr
    truth = {
        name: (int(count), int(errors))
        for name, count, errors in (line.rsplit(" ", 2) for line in done.stdout.splitlines())
    }
    totals = totals_in(out)
    assert {name: t[1:3] for name, t in totals.items() if "Lambda" not in name} == truth, totals
    requests, works = sorted(requests_in(out)), works_in(out)  # a file has its events by thread
    named = {r.name: r for r in requests}
    assert {r.status for r in requests if r.name == "GET /late/{id}"} == {503}
    assert {r.status for r in requests if r.name == "GET /quick/{id}"} == {200}
    assert named["POST /broken/{id}"].exception == "java.lang.IllegalStateException"
    assert [r.exception for r in requests if r.name == "RequestStubs$Cleanup"] == [None] * 9 + [
        "java.lang.IllegalStateException"
    ]
    assert all(
        any(w.request == r.id and w.way == "executor" and w.ns >= 2_000_000 for w in works)
        for r in requests
        if r.name == "GET /late/{id}"
    )
    # Each run takes 2 ms and is due every millisecond, so each was later than the one before.
    late = [
        w.queued
        for r in requests
        if r.name == "RequestStubs$Cleanup"
        for w in works
        if w.request == r.id
    ]
    assert late == sorted(late) and late[-1] >= 9_000_000, late
    of = {r.id: r for r in requests}
    calls = collections.Counter()
    for start, ns, request, *what in events(
        out,
        "jvmscope.RequestChild",
        "startTime,duration,request,kind,peer,exception,traceId,spanId",
    ):
        within = of[request]
        assert within.start <= start and start + ns <= within.start + within.ns and ns >= 3_000_000
        calls[(within.name, *what)] += 1
    assert calls == {
        ("GET /asks/{id}", "http", "shop", None, f"{0xA5C:032x}", f"{0xA5:016x}"): 5,
        ("GET /asks/{id}", "http", "nowhere", "java.net.ConnectException", None, None): 5,
    }, calls
    assert not lost_in(out)


DATABASE = jars(
    "h2",
    "HikariCP",
    "commons-dbcp2",
    "commons-pool2",
    "commons-logging",
    "slf4j-api",
    "slf4j-nop",
    "httpclient",
    "httpcore",
    "commons-codec",
    "okhttp",
    "okio",
    "tomcat10-dbcp",
    "tomcat10-jdbc",
    "tomcat10-juli",
)


@pytest.mark.jdks(11, 25)
def test_statements_connections_and_calls(jdk, tmp_path):
    """Each call is recorded once, although pools wrap the driver's objects; the recording has no
    literal of a statement and no query string.
    """
    out, rounds = tmp_path / "e.jfr", 6
    path = ":".join(map(str, [lab.compiled("Elsewhere", 11, DATABASE), *DATABASE]))
    done = jdk.run(
        "java",
        jdk.agent(f"format=r,requests=Elsewhere.order:Elsewhere.call,file={out}"),
        "-cp",
        path,
        "Elsewhere",
        rounds,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (done.stdout, done.stderr)
    requests = {r.id: r for r in requests_in(out)}
    found = collections.Counter()
    for start, ns, request, *what in events(
        out, "jvmscope.RequestChild", "startTime,duration,request,kind,name,peer,rows,exception"
    ):
        within = requests[request]
        # The program gets an asynchronous answer before the agent does, and may continue.
        assert within.start <= start <= start + ns and (
            start + ns <= within.start + within.ns or what[1] in ("127.0.0.4", "127.0.0.5")
        )
        if within.kind == "method":
            found[(within.name, *what)] += 1
    select, update, fails = (
        "SELECT name FROM goods WHERE id = ? AND name <> ?",
        "UPDATE goods SET name = ? WHERE id IN (?)",
        "SELECT nothing FROM nowhere WHERE id = ?",
    )
    missing = "org.h2.jdbc.JdbcSQLSyntaxErrorException"
    order, call = "Elsewhere.order", "Elsewhere.call"
    # Closing a connection of a pool commits or rolls back too.
    commits, _ = (
        found.pop((order, "jdbc", end, None, -1, None), 0) for end in ("COMMIT", "ROLLBACK")
    )
    assert commits >= 4 * rounds
    assert found == {
        (order, "pool", "HikariDataSource", None, -1, None): rounds,
        (order, "pool", "BasicDataSource", None, -1, None): 2 * rounds,
        (order, "pool", "DataSourceProxy", None, -1, None): rounds,
        (order, "jdbc", select, None, -1, None): 4 * rounds,
        (order, "jdbc", update, None, 2, None): 4 * rounds,
        (order, "jdbc", fails, None, -1, missing): 4 * rounds,
        (call, "http", "127.0.0.1", "127.0.0.1", -1, None): rounds,
        (call, "http", "localhost", "localhost", -1, None): rounds,
        (call, "http", "127.0.0.2", "127.0.0.2", -1, None): rounds,
        (call, "http", "127.0.0.3", "127.0.0.3", -1, None): rounds,
        (call, "http", "127.0.0.4", "127.0.0.4", -1, None): rounds,
        (call, "http", "127.0.0.5", "127.0.0.5", -1, "java.net.ConnectException"): rounds,
        (call, "http", "127.0.0.6", "127.0.0.6", -1, None): rounds,
        (call, "http", "127.0.0.7", "127.0.0.7", -1, "java.net.ConnectException"): rounds,
    }, found
    assert b"secret" not in out.read_bytes() and not lost_in(out)
    reported = collections.Counter(
        tuple(e)
        for e in events(out, "jvmscope.RequestChild", "kind,peer,traceId,spanId")
        if e[0] == "http"
    )
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert reported == {
        ("http", "127.0.0.5", None, None): rounds,
        ("http", "127.0.0.7", None, None): rounds,
        **{
            ("http", peer, trace, 16 * letter): rounds
            for peer, letter in (
                ("127.0.0.1", "a"),
                ("localhost", "b"),
                ("127.0.0.2", "c"),
                ("127.0.0.3", "d"),
                ("127.0.0.4", "e"),
                ("127.0.0.6", "f"),
            )
        },
    }, reported
    shown = [
        json.loads(lab.jvmscope("requests", "show", "--json", r.id, out).stdout)
        for r in requests.values()
        if r.name == call
    ]
    ids = (
        [(trace, 16 * letter) for letter in "abe"]
        + [(None, None)]
        + [(trace, 16 * letter) for letter in "cdf"]
        + [(None, None)]
    )
    assert all([(c["trace_id"], c["span_id"]) for c in s["calls"]] == ids for s in shown), shown


def run_many(jdk, out, what, n, *jvm, more=""):
    methods = (
        "requests=RequestsMany.quick:RequestsMany.slow:RequestsMany.endless:RequestsMany.large"
    )
    done = jdk.java(
        "RequestsMany", what, n, jvm=(*jvm, jdk.agent(f"format=r,{methods}{more},file={out}"))
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.jdks(8, 17, 25)
def test_what_a_task_does_on_a_thread_that_had_tasks_before(jdk, tmp_path):
    """The agent is not called when such a thread takes a task, but it knows the work when something
    else happens in it, and at its end.
    """
    out, n = tmp_path / "t.jfr", 5
    done = jdk.java(
        "RequestTasks",
        "kinds",
        n,
        jvm=(jdk.agent(f"format=r,requests=RequestTasks.outer:RequestTasks.inner,file={out}"),),
    )
    assert done.returncode == 0 and not done.stderr and done.stdout.endswith("done\n"), done.stderr
    tasks, _ = truth_of(done.stdout)
    works = works_in(out)
    outer, inner = (
        [r for r in sorted(requests_in(out)) if r.name == f"RequestTasks.{name}"]
        for name in ("outer", "inner")
    )
    assert len(outer) == n and [r.parent for r in inner] == [r.id for r in outer], inner
    for i, r in enumerate(outer):
        own = sorted((w for w in works if w.request == r.id), key=lambda w: w.start)
        assert [w.way for w in own] == ["entry"] + 4 * ["executor"], own
        for w, t in zip(own[1:], tasks[4 * i :]):
            assert (
                w.thread == t.thread
                and w.submitter == "main"
                and w.ns >= t.end - t.start
                and 0 <= w.queued <= r.ns
            ), (w, t)
            assert (
                r.start + w.queued <= w.start and w.start + w.ns <= r.start + r.ns + 5_000_000_000
            ), (r, w)
    if (
        jdk.version >= 25
    ):  # the JDK's own tool shows the request on the events of its thread and time
        printed = jdk.run("jfr", "print", "--events", "jdk.ThreadSleep", out).stdout
        assert (
            printed.count('Context: Request.name = "RequestTasks.inner"') == n
            and printed.count("jdk.ThreadSleep {") == 5 * n
        ), printed
    children = sorted(
        events(out, "jvmscope.RequestChild", "request,kind,name,eventThread.javaName")
    )
    assert children == [
        [r.id, "http", "127.0.0.1", tasks[4 * i].thread] for i, r in enumerate(outer)
    ], children
    assert not lost_in(out)


@pytest.mark.jdks(8, 17, 25)
def test_hand_overs_seldom_read_the_clock_of_their_thread(jdk, tmp_path):
    """This takes a system call, which is longer than everything else that is done when a task
    begins or ends.
    """
    out, n = tmp_path / "c.jfr", 200000
    preload = f"LD_PRELOAD={lab.BUILD}/tests/agents/libclockcount.so"
    done = jdk.run(
        "env",
        preload,
        "java",
        jdk.agent(f"format=r,requests=RequestTasks.many,threads=n,file={out}"),
        "-cp",
        lab.compiled("RequestTasks"),
        "RequestTasks",
        "many",
        n,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    assert (
        int(re.search(r"(\d+) readings of a thread's clock", done.stderr)[1]) < n / 50
    ), done.stderr
    lost = sum(total for _, what, _, total in lost_in(out) if what != "requests")
    assert len(works_in(out)) + lost >= n, lost_in(out)


@pytest.mark.jdks(17)
def test_many_are_counted_and_a_sample_is_kept(jdk, tmp_path):
    """Requests that were kept and those that were left out are together all of them; the file does
    not exceed its limit.
    """
    out, n = tmp_path / "f.jfr", 600000
    run_many(jdk, out, "fast", n)
    requests = [r for r in requests_in(out) if r.name == "RequestsMany.quick"]
    kind, count, errors, total, longest = totals_in(out)["RequestsMany.quick"]
    assert (kind, count, errors) == ("method", n, 0) and max(r.ns for r in requests) == longest
    kept = collections.Counter(r.kept for r in requests)
    lost = {(what, reason): total for _, what, reason, total in lost_in(out)}
    left_out = sum(
        total for (what, _), total in lost.items() if what in ("details of requests", "requests")
    )
    assert len(requests) + left_out == n, (kept, lost)
    assert len(requests) < 60000 and kept["slow"] >= 20, kept
    # The whole is counted. A part of the time has only the details that were kept, and says so in
    # text and JSON.
    whole = lab.read_json("requests", "--json", out)["requests"]
    assert [(r["count"], r["exact"]) for r in whole if r["name"] == "RequestsMany.quick"] == [
        (n, True)
    ]
    # The histogram has no buckets below a microsecond, so such a percentile is marked as a bound.
    (row,) = (r for r in whole if r["name"] == "RequestsMany.quick")
    assert row["p50_ns"] == 999 and row["upper_bounds"][0] == "p50_ns", row
    assert all(
        (row[key] == 999) == (key in row["upper_bounds"])
        for key in ("p50_ns", "p90_ns", "p99_ns", "p999_ns")
    ), row
    shown = next(
        line
        for line in lab.output("requests", out).splitlines()
        if line.endswith(" RequestsMany.quick")
    )
    assert shown.count("< 1 us") == len(row["upper_bounds"]), shown
    assert next(r for r in whole if r["name"] == "RequestsMany.slow")["upper_bounds"] == []
    # Causes and CPU are estimated from the random sample. Each request in it counts with all of its
    # latency, so the sum is the mean of all as far as the histogram knows it: not within the first
    # microsecond, and within 1/64 above.
    sampled = [r.ns for r in requests if r.kept != "slow"]
    assert len(sampled) <= row["causes_of"] < row["kept"]
    last = max(
        (
            e
            for e in events(out, "jvmscope.RequestTotals", "name,count,buckets")
            if e[0] == "RequestsMany.quick"
        ),
        key=lambda e: e[1],
    )
    histogram = [tuple(map(int, pair.split(":"))) for pair in last[2].split()]
    assert sum(count for _, count in histogram) == n
    least, most = (
        sum(count * least_ns(bucket + more) for bucket, count in histogram) / n for more in (0, 1)
    )
    assert least - 10 <= sum(row["causes"].values()) <= most, (least, row, most)
    groups = lab.read_json("requests", "slow", "--json", out)["groups"]
    group = next(g for g in groups if g["name"] == "RequestsMany.quick")
    where = re.compile(r"^    (where they|what thread)", re.M)
    # Requests of microseconds may have no sample, so that it is not known where they were.
    known = any(c["frames"] or c["waiting_frames"] for g in groups for c in g["causes"])
    assert bool(where.search(lab.output("requests", "slow", out))) == known, groups
    assert not where.search(lab.output("requests", "slow", "--stacks", "0", out))
    # The parts of each name add up to the mean latency of all of its requests.
    for r in whole:
        assert r["exact"] and sum(r["causes"].values()) == pytest.approx(
            r["total_ns"] / r["count"], abs=1
        ), r
    # Of a name whose requests were all kept nothing is an estimate but the CPU time.
    known = next(r for r in whole if r["name"] == "RequestsMany.slow")
    assert known["uncertain"] == [] and {
        k for k, error in known["causes_error"].items() if error
    } <= {"cpu"}, known
    # The number of slow requests is stated if it is not the hundredth that was requested.
    share = group["slow_of_all"] / n
    assert group["slow_share"] == share and (" instead of 1.0 %: " in group["sentence"]) == (
        abs(share - 0.01) > 0.001
    ), group["sentence"]
    slow = [r for r in requests if r.ns >= group["limit_ns"]]
    assert group["limit_ns"] >= 1000 and len(slow) <= group["slow_of_all"] <= n / 10, group
    assert group["slowest"] == [r.id for r in sorted(slow, key=lambda r: r.ns)[:-4:-1]], group
    # The figures themselves and the JSON say that details are missing, so standard error does not.
    for verb in (
        ["requests"],
        ["requests", "--json"],
        ["requests", "slow"],
        ["requests", "slow", "--json"],
        ["requests", "show", str(requests[0].id)],
    ):
        done = lab.jvmscope(*verb, out)
        assert done.returncode == 0 and "details of requests" not in done.stderr, (
            verb,
            done.stderr,
        )
        if "--json" in verb:
            assert any(
                x["what"] == "details of requests" for x in json.loads(done.stdout)["losses"]
            ), verb
    # Where the file did not grow in time, requests are lost as well, which is another loss with a
    # line of its own.
    (fast,) = (
        total
        for (what, reason), total in lost.items()
        if what == "details of requests" and "too fast" in reason
    )
    more = f"of the requests whose details were kept; {fast:,} more ended in this time"
    assert more not in lab.output("requests", "slow", out) and more in lab.output(
        "requests", "slow", "--to", "1000s", out
    )
    part = lab.jvmscope("requests", "--from", "0s", out)
    assert "are those of the requests whose details were kept" not in part.stdout
    part = lab.jvmscope("requests", "--to", "1000s", out)
    more = re.search(
        r"^ counts and times are those of the requests whose details were kept; ([\d,]+) more ended in this time",
        part.stdout,
        re.M,
    )
    assert int(more[1].replace(",", "")) == fast, part.stdout
    part = lab.read_json("requests", "--json", "--to", "1000s", out)["requests"]
    assert [
        (r["count"] == r["kept"], r["exact"]) for r in part if r["name"] == "RequestsMany.quick"
    ] == [(True, False)]


@pytest.mark.jdks(8, 17, 25)
def test_what_rests_on_few_of_the_requests_of_a_ring_is_marked(jdk, tmp_path):
    """The budget of a ring is used up, so most requests have no details, and of a rare name few
    were chosen: no count, no rate and no percentile is shown as if it were that of all requests.
    """
    ring, out = tmp_path / "r.ring", tmp_path / "r.jfr"
    done = jdk.java(
        "RequestsRare",
        8,
        jvm=(
            jdk.agent(
                "always=y,budget=0.01%,requests=RequestsRare.quick(..);RequestsRare.rare(..),"
                f"file={ring}"
            ),
        ),
    )
    assert done.returncode == 0, done.stderr
    quick, rare = map(int, done.stdout.split())
    assert lab.jvmscope("dump", "-o", out, ring).returncode == 0
    found = lab.read_json("requests", "--json", out)
    rows = {row["name"].removeprefix("RequestsRare."): row for row in found["requests"]}
    assert any(row["what"] == "requests" for row in found["reduced"]), found["reduced"]
    text = lab.output("requests", out)
    more = re.search(r"kept; about ([\d,]+) more ended in this time", text)
    left_out = int(more[1].replace(",", ""))
    kept = sum(row["count"] for row in rows.values())
    assert left_out + kept == pytest.approx(quick + rare, rel=0.1), (left_out, kept, quick, rare)
    assert re.fullmatch(r"[1-9]\d{0,2}0*", str(left_out)), "three digits that count"
    keys = ["p50_ns", "p90_ns", "p99_ns", "p999_ns"]
    for name, row in rows.items():
        line = next(x for x in text.splitlines() if x.endswith(f" RequestsRare.{name}"))
        count, rate, errors, rest = line.split(maxsplit=3)
        assert count == f">{row['count']}" and rate[0] == ">" and row["exact"] is False, line
        assert errors == (f">{row['errors']}" if row["errors"] else "0"), line
        shown = re.findall(r"~?[\d.]+ [num]?s|< 1 us", rest)[:4]
        assert [t[0] == "~" for t in shown] == [k in row["uncertain_percentiles"] for k in keys]
    if "rare" in rows:
        assert rows["rare"]["count"] < rare and "p999_ns" in rows["rare"]["uncertain_percentiles"]
    assert "p50_ns" not in rows["quick"]["uncertain_percentiles"]
    assert ("\n ~ percentile: " in text) == any(r["uncertain_percentiles"] for r in rows.values())


@pytest.mark.jdks(8, 17, 25)
def test_causes_of_requests_at_different_rates_are_those_of_all(jdk, tmp_path):
    """The recording has all of the slow requests that came at a low rate, and few of those with the
    same latency that came at a high rate.
    """
    out = tmp_path / "p.jfr"
    done = jdk.java(
        "RequestPhases", jvm=(jdk.agent(f"format=r,requests=RequestPhases.request(..),file={out}"),)
    )
    assert done.returncode == 0, done.stderr
    n, slept, waited = map(int, done.stdout.split())
    (row,) = lab.read_json("requests", "--json", out)["requests"]
    locks = sum(1 for r in requests_in(out) if r.ns > 1_500_000) - 200
    assert row["count"] == n and 20 <= locks < 500
    # The locks that were kept by chance are a sample: four standard errors.
    assert row["causes"]["lock"] == pytest.approx(waited / n, rel=4 / locks**0.5), (
        row,
        slept / n,
        locks,
    )
    assert row["causes"]["sleep"] == pytest.approx(
        slept / n, rel=0.05 + 4 / locks**0.5 * waited / (slept + waited)
    ), (row, locks)
    # The stated error holds: twice the 95 % interval is not exceeded. What the program measured
    # includes the time for which the thread waited for a processor.
    for cause, true_ns in (("lock", waited / n), ("sleep", slept / n)):
        assert (
            (cause == "sleep" or 0 < row["causes_error"][cause])
            and row["causes_error"][cause] < true_ns
            and cause not in row["uncertain"]
        ), row
        off, ran = row["causes"][cause] - true_ns, row["causes"]["runnable"] + row["causes"]["cpu"]
        assert (
            -ran - 0.1 * true_ns < off + 2 * row["causes_error"][cause]
            and off - 2 * row["causes_error"][cause] < 0.03 * true_ns
        ), (cause, true_ns, row)
    # On a busy machine the thread may have had no processor for most of the time; an error below
    # half a per cent is not shown.
    worst = max(row["causes"], key=row["causes"].get)
    error = row["causes_error"][worst] / sum(row["causes"].values())
    assert re.search(
        rf" {worst} \d+{'[+]-[0-9]+' if error >= 0.005 else ''} %", lab.output("requests", out)
    ), (worst, error)
    (group,) = lab.read_json("requests", "slow", "--over", "1500us", "--json", out)["groups"]
    # On a busy machine the threads also wait for a processor.
    causes = {c["cause"]: c for c in [c for c in group["causes"] if c["cause"] != "runnable"][:2]}
    assert set(causes) == {"lock", "sleep"}, group["causes"]
    lock, sleep = causes["lock"], causes["sleep"]
    # They are in their true order unless the errors, and the time without a processor, which the
    # program counts as waiting, are larger than the difference.
    delayed = sum(c["share"] for c in group["causes"] if c["cause"] in ("runnable", "cpu"))
    if (
        abs(waited - slept) / (waited + slept)
        > 2 * (lock["share_error"] + sleep["share_error"]) + delayed
    ):
        assert next(iter(causes)) == ("lock" if waited > slept else "sleep"), (
            waited,
            slept,
            group["causes"],
        )
    assert (
        0 < lock["share_error"] < lock["share"]
        and not lock["uncertain"]
        and 20 <= lock["slow_requests"] < 500
    ), lock
    # The sentence counts the same requests as the means do: all of them, by an estimate.
    first = group["causes"][0]
    text = group["sentence"]
    reported = re.search(
        r"^([\d,]+) of 200,200 requests .*; (?:about|all) ([\d,]+) of them \((?:\+-([\d,]+), )?estimated from ([\d,]+)\) (waited|slept|were|ran) ",
        text,
    )
    slow, most, error, of = (int((x or "0").replace(",", "")) for x in reported.groups()[:4])
    assert (slow, of) == (group["slow_of_all"], group["slow"]["count"]), text
    assert (
        abs(most - first["largest_share"] * slow) <= 1
        and abs(error - first["largest_share_error"] * slow) <= 1
    ), (text, first)
    # All but the 200 that slept waited for the lock. On a busy machine some of them spent more time
    # without a processor.
    idle = all(c["share"] < 0.02 for c in group["causes"] if c["cause"] in ("runnable", "cpu"))
    if first is lock:
        assert most <= slow - 200 + 2 * error and (
            most >= 0.95 * (slow - 200) - 2 * error or not idle
        ), (text, group)
    assert (
        sleep["slow_requests"] >= 190
        and 0 < group["slow"]["mean_error_ns"] < 0.3 * group["slow"]["mean_ns"]
    ), group


@pytest.mark.jdks(21, 25)
def test_virtual_threads_have_an_identity_of_their_own(jdk, tmp_path):
    """Many requests at once on few carriers: each request belongs to its own thread, none is within
    another, and none continues on a carrier.
    """
    out, n = tmp_path / "v.jfr", 400
    run_many(jdk, out, "virtual", n, "-Djdk.virtualThreadScheduler.parallelism=2")
    requests, works = requests_in(out), works_in(out)
    assert len(requests) == 2 * n and {r.parent for r in requests} == {0}
    assert len(works) == 2 * n and {w.way for w in works} == {"entry"}
    assert sum(r.ns for r in requests) > 4 * 2_000_000 * n  # what the naps alone took
    ids = [thread for thread, in events(out, "jvmscope.Request", "eventThread.javaThreadId")]
    assert sorted(collections.Counter(ids).values()) == [2] * n


@pytest.mark.jdks(8, 17, 25)
def test_requests_that_ran_when_the_recording_began_are_reported(jdk, tmp_path):
    """They are not in the recording, because it is not known when they began."""
    out = tmp_path / "r.jfr"
    process = jdk.start_java("Ticks", stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline()  # its main method runs
        done = lab.jvmscope(
            "attach",
            "--requests=Ticks.main(..)",
            "--requests=Ticks.request(..)",
            "-t",
            "1s",
            "-o",
            out,
            process.pid,
        )
    finally:
        process.kill()
        process.communicate()
    assert done.returncode == 0, done.stderr
    assert {r.name for r in requests_in(out)} == {"Ticks.request"}
    assert ["requests", "requests", "already in progress when the recording began", 1] in lost_in(
        out
    )
    shown, loss = lab.jvmscope("requests", out), "1 request was lost"
    assert loss in done.stderr and loss in shown.stdout + shown.stderr, (done, shown)
    assert [
        (x["what"], x["amount"]) for x in lab.read_json("requests", "--json", out)["losses"]
    ] == [("requests", 1)]


@pytest.mark.jdks(8, 25)
def test_requests_that_never_end_are_reported(jdk, tmp_path):
    out = tmp_path / "o.jfr"
    run_many(jdk, out, "open", 7)
    assert not requests_in(out)
    assert ["requests", "requests", "not ended when the recording ended", 7] in lost_in(out)


@pytest.mark.jdks(8, 25)
def test_a_million_names_and_loaders_that_are_dropped(jdk, jvmscope, tmp_path):
    """A thousand names are kept apart, and all others count together. Nothing keeps a class loader
    alive whose classes made requests, tasks or errors.
    """
    out, n, loaders = tmp_path / "n.jfr", 1000000, 8
    done = jdk.java(
        "RequestNames",
        n,
        loaders,
        jvm=("-Xmx128m", jdk.agent(f"format=r,requests=RequestNames$Shop.order,file={out}")),
    )
    assert done.returncode == 0 and done.stdout == f"dropped {loaders}\n", (
        done.stdout,
        done.stderr,
    )
    totals = totals_in(out)
    assert sum(t[1] for t in totals.values()) == n + 2 * loaders, sorted(totals)[:5]
    assert len(totals) == 1001 and totals["[other names]"][1] == n - 999, (
        len(totals),
        totals["[other names]"],
    )
    assert totals["RequestNames$Shop.order"][:3] == ("method", loaders, loaders)
    table = json.loads(jvmscope("requests", "--json", out).stdout)["requests"]
    assert {r["name"]: r["count"] for r in table} == {name: t[1] for name, t in totals.items()}
    assert out.stat().st_size < 40_000_000, out.stat().st_size


@pytest.mark.jdks(17, 25)
def test_what_a_request_allocates(jdk, jvmscope, tmp_path):
    """Allocations of all threads that work for a request, and nothing that they or others allocate
    for no request.
    """
    out, n = tmp_path / "a.jfr", 800
    run_many(jdk, out, "alloc", n, more=",alloc=sampled")
    (row,) = lab.read_json("requests", "--json", "--name", "RequestsMany.large", out)["requests"]
    # A sample is taken every 512 KiB on average: 1,600 samples are off by a fortieth, as standard
    # deviation.
    assert row["count"] == n and 0.85 < row["alloc_bytes"] / (1 << 20) < 1.15, row
    assert 0 < row["alloc_error_bytes"] < 0.2 * row["alloc_bytes"], row
    assert abs(row["alloc_bytes"] - (1 << 20)) < 2 * row["alloc_error_bytes"], row
    assert 1200 < row["alloc_samples"] < 2000, row
    note, _, head, first = lab.output("requests", out).splitlines()[1:5]
    assert note.startswith(" alloc is estimated from samples ("), note
    # Of 1,600 samples the error is about 5 %, from which on it is marked.
    mark = "~" if row["alloc_error_bytes"] >= 0.05 * row["alloc_bytes"] else " "
    assert head.split()[9] == "alloc" and re.search(mark + r"\d[\d.]* [KM]iB", first), (head, first)
    # So few that each amount rests on a few samples, or on none.
    run_many(jdk, out, "alloc", 1, more=",alloc=sampled")
    (row,) = lab.read_json("requests", "--json", "--name", "RequestsMany.large", out)["requests"]
    assert row["alloc_error_bytes"] >= 3 * (100 << 10) and row["alloc_samples"] < 12, row
    assert abs(row["alloc_bytes"] - (1 << 20)) < 2 * row["alloc_error_bytes"], row
    assert re.search(r"[~<]\d[\d.]* [KM]iB", lab.output("requests", out).splitlines()[4])


@pytest.mark.jdks(8, 25)
def test_counted_allocations_are_not_those_of_a_request(jdk, jvmscope, tmp_path):
    """Allocations that are counted by site have no request: the figure is unknown, with the reason,
    and not zero.
    """
    out, n, why = (
        tmp_path / "a.jfr",
        200,
        "not known, because allocations were counted by site, not by request",
    )
    run_many(jdk, out, "alloc", n, more=",alloc=exact")
    rows = lab.read_json("requests", "--json", out)["requests"]
    assert {(r["alloc_bytes"], r["alloc_note"]) for r in rows} == {(None, why)} and sum(
        r["count"] for r in rows
    ) == n, rows
    note, _, head, first = lab.output("requests", out).splitlines()[1:5]
    assert note == f" alloc: {why}" and head.split()[9] == "alloc", (note, head)
    assert first[head.index("alloc") :][: len("alloc")] == "    -" and " 0 B " not in first, (
        head,
        first,
    )
