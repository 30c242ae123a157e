# SPDX-License-Identifier: Apache-2.0
"""Why requests are slow: a server with a path for each cause, whose handlers and client measure the
truth.
"""
import json
import os
import re
import subprocess

import pytest

import lab
from request_lab import served
from slow_disk import slow_disk

SLOW = 2  # requests of a path, of 120
# The cause of each path, its object, the thread that is to blame, and a method on that thread's
# stack.
CAUSES = {
    "lock": ("lock", "RequestCauses$Store", "compactor", "RequestCauses$Store.compact"),
    "park": (
        "park",
        "java.util.concurrent.locks.ReentrantLock$NonfairSync",
        "auditor",
        "RequestCauses$Audit.check",
    ),
    "queue": ("queue", None, "reports-1", "RequestCauses$Report.render"),
    "sleep": ("sleep", None, None, "RequestCauses.pause"),
    "socket": ("io", "socket ", None, "RequestCauses.ask"),
    "cpu": ("cpu", None, None, "RequestCauses.compute"),
    "gc": ("gc", None, None, None),
    "class-init": ("class-load", None, "catalog", "RequestCauses$Catalog.read"),
    "class-load": ("class-load", None, None, "RequestCauses$Loader.findClass"),
    "file": ("io", "file /", None, "RequestCauses.readFile"),
    "runnable": ("runnable", None, None, None),
}
RUNNABLE_CPU_NS = 10_000_000  # which such a request uses meanwhile


def requests(*words):
    done = lab.jvmscope("requests", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(jdk, out, *options):
    """Runs the server; returns by path the time of the cause and the latency that the client saw,
    over all slow requests.
    """
    done = jdk.java(
        "RequestCauses",
        jvm=[jdk.agent(f"requests=auto,format=r,file={out}"), "-Xmx512m", *options],
        timeout=240,
    )
    return truth_of(done)


def truth_of(done):
    assert done.returncode == 0, done.stderr
    return {
        path: [SLOW * int(n) for n in numbers]
        for path, *numbers in (line.split() for line in done.stdout.splitlines())
    }


def first_of(causes, cause, slow=SLOW):
    """The causes, leaving out those of a busy machine, which takes processors from the server and
    from the threads that would take a task from its queue. If it made further requests slow, the
    means include those, and their computing, which takes longer on such a machine, may come before
    the cause of the two requests that the program slowed down.
    """
    return next(
        c
        for c in causes
        if c["cause"] not in {"runnable", "queue", *(["cpu"] if slow > SLOW else [])} - {cause}
    )


def waited_for(first, group, out):
    """The time of the first cause in all slow requests. A request also waits in the queue of the
    server itself until a thread takes it and the program's clock starts. For queues, this is the
    time in that of the thread that was busy.
    """
    slow = group["slow"]["count"]
    if first["cause"] != "queue":
        return first["slow_ns"] * slow
    assert len(group["slowest"]) == slow, group
    parts = [
        p
        for n in group["slowest"]
        for p in json.loads(requests("show", "--json", n, out))["parts"]
        if p["cause"] == "queue"
    ]
    assert abs(sum(p["ns"] for p in parts) - first["slow_ns"] * slow) <= slow, (first, parts)
    return sum(p["ns"] for p in parts if p["culprit"] == first["thread"])


def check_time(first, group, true_ns, out, client_ns=0):
    """Within 3 % of what the program measured, which includes the time that the thread ran or was
    preempted meanwhile. Before and after the handler the thread computes and may lack a processor
    too.
    """
    if first["cause"] == "runnable":
        outside = client_ns - true_ns - SLOW * RUNNABLE_CPU_NS
        assert 0.97 * true_ns <= first["slow_ns"] * group["slow"]["count"], (first, true_ns)
        assert group["slow"]["count"] > SLOW or first["slow_ns"] * SLOW <= 1.03 * true_ns + max(
            outside, 0
        ), (first, true_ns, client_ns)
        return
    slow, running = group["slow"]["count"], ("cpu", "runnable", "queue", "gc", "safepoint")
    ran = sum(c["slow_ns"] for c in group["causes"] if c["cause"] in running and c is not first)
    outside = max(client_ns - true_ns, 0) if first["cause"] == "cpu" else 0
    assert slow > SLOW or waited_for(first, group, out) <= 1.03 * true_ns + outside, (
        first,
        true_ns,
        client_ns,
    )
    assert (first["slow_ns"] + ran) * slow >= 0.97 * true_ns, (first, ran, true_ns)


def check_slow(out, path, cause_ns, client_ns):
    cause, thing, thread, method = CAUSES[path.split(":")[-1]]
    (group,) = json.loads(
        requests("slow", "--json", "--over", "40ms", "--name", f"GET /{path}", out)
    )["groups"]
    slow, causes = group["slow"], group["causes"]
    assert group["name"] == f"GET /{path}" and slow["count"] >= SLOW, group
    total = {c["cause"]: 0 for c in causes}
    for c in causes:
        total[c["cause"]] += c["slow_ns"] * slow["count"]
    # The parts add up to the latency. The client saw all of it except for what the server did after
    # the answer.
    assert abs(sum(total.values()) - slow["mean_ns"] * slow["count"]) <= len(causes) * slow["count"]
    assert slow["mean_ns"] * slow["count"] >= 0.99 * cause_ns, (group, cause_ns)
    first = first_of(causes, cause, slow["count"])
    # On a busy machine a thread may run, or wait for what others have, after the client has its
    # answer.
    behind = sum(total.values()) - first["slow_ns"] * SLOW
    assert slow["count"] > SLOW or slow["mean_ns"] * SLOW <= 1.02 * client_ns + behind, (
        group,
        client_ns,
    )
    assert first["cause"] == cause and (first["largest_in"] > 0 or first is not causes[0]), causes
    assert thing is None or first["object"].startswith(thing), first
    assert first["thread"] == thread, first
    assert method is None or any(f.startswith(method) for f in first["frames"]), first
    check_time(first, group, cause_ns, out, client_ns)
    assert group["typical"]["count"] >= 50
    return group


@pytest.mark.jdks(8, 17, 21, 25)
def test_the_first_cause_is_the_true_one(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    truth = recorded(jdk, out)
    assert set(truth) == set(CAUSES)
    table = {r["name"]: r for r in json.loads(requests("--json", out))["requests"]}
    missing = lab.jvmscope("requests", "show", 10**9, out)
    assert missing.returncode == 1 and "`jvmscope requests slow` lists" in missing.stderr, missing
    for path, (cause_ns, client_ns, _) in truth.items():
        row = table[f"GET /{path}"]
        assert (row["count"], row["errors"]) == (120, 0), row
        assert row["unknown_share"] <= 0.01, (path, row)
        assert (
            row["p50_ns"]
            <= row["p90_ns"]
            <= row["p99_ns"]
            <= row["p999_ns"]
            <= row["max_ns"] * 1.02
        ), row
        group = check_slow(out, path, cause_ns, client_ns)
        shown = json.loads(requests("show", "--json", str(group["slowest"][0]), out))
        assert (
            sum(p["ns"] for p in shown["parts"]) == shown["latency_ns"]
            and shown["name"] == row["name"]
        ), shown
        # The table of one request calls a cause what its waterfall and the sentences call it.
        text = requests("show", str(group["slowest"][0]), out)
        assert not re.search(r" %  .* (runnable|class-load|gc|io|cpu)\n", text), text
        if path == "runnable":
            assert text.count("waiting for a processor") >= 2, text
    text = requests("slow", "--name", "GET /lock", "--over", "40ms", out)
    assert " requests took longer than 40.0 ms" in text, text
    assert "  share: of the " in text, text
    assert "held by thread compactor in RequestCauses$Store.compact, which slept" in " ".join(
        text.split()
    ), text
    assert "GET /lock" in requests(out)
    # Each stack is printed once, and says of which causes it is.
    for block in requests("slow", out).split("\n\n  the slowest: "):
        stacks = re.findall(r"(?m)^    where they (\w+) \((.+)\):\n((?:      .+\n)+)", block)
        assert len({stack for *_, stack in stacks}) == len(stacks), block
        assert "where they" not in block or stacks, block
        for did, of, _ in stacks:
            causes = of.split("; ")
            assert did in ("ran", "waited", "were"), block
            assert (did == "ran") == all(c.startswith(("CPU", "pages of")) for c in causes), block
            assert all(f" %  {c}" in block for c in causes), (causes, block)
    # A cause that only some of the slow requests had is stated in ms as the mean over all of them.
    reported = re.findall(
        r"(\d+) of [\d,]+ requests took \S+ \S+ or more; (\d+) of them (.*?) slow typical share ",
        " ".join(requests("slow", out).split()),
    )
    assert len(reported) >= 3
    for slow, some, did in reported:
        want = (
            f"s on average over the {slow}"
            if some != slow
            else "s on average"
            if int(slow) > 1
            else "s"
        )
        assert did.endswith(want) or re.search(": (held by|the executor's|its|until) ", did), (
            slow,
            some,
            did,
        )


# A slow request reads pages of a mapped file that a slow disk delivers.
FAULTS, PAGE_SECONDS = 12, 0.015


def faulted(jdk, folder, out, **kwargs):
    """Runs the program; returns what it printed, and for how long the disk took to deliver the
    pages of its slow requests, in ns.
    """
    (folder / "disk").mkdir()
    with slow_disk(folder / "disk", FAULTS + 1, PAGE_SECONDS) as disk:
        if not disk:
            pytest.skip("a file system of the test's own is not permitted")
        options = f"requests=RequestFaults.serve(..),format=r,file={out}"
        done = jdk.java("RequestFaults", disk.path, jvm=[jdk.agent(options), "-Xmx64m"], **kwargs)
        assert done.returncode == 0, done.stderr
        assert len(disk.reads) == FAULTS + 1, disk.reads
        return [int(n) for n in done.stdout.split()[:3]], sum(
            r.end - r.start for r in disk.reads[1:]
        )


@pytest.mark.usefixtures("on_time")  # that nothing else makes a request slow
@pytest.mark.jdks(8, 17, 21, 25)
def test_page_faults_take_as_long_as_the_disk(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    (faults, lacked, delay), disk = faulted(jdk, tmp_path, out)
    assert faults == FAULTS and disk >= FAULTS * PAGE_SECONDS * 1e9, (faults, disk)
    (row,) = json.loads(requests("--json", out))["requests"]
    assert row["unknown_share"] <= 0.01, row
    fault = row["causes"]["fault"] * row["count"]
    low, high = max(disk, lacked - delay), lacked
    assert 0.97 * low <= fault <= 1.03 * high + row["count"], (fault, disk, lacked, delay)
    (group,) = json.loads(requests("slow", "--json", "--over", "40ms", out))["groups"]
    first = first_of(group["causes"], "fault", group["slow"]["count"])
    assert first["cause"] == "fault", group["causes"]
    text = " ".join(requests("slow", "--over", "40ms", out).split())
    assert "waited for pages of memory that were not there (page faults)" in text, text
    assert " CPU: " not in text, text


@pytest.mark.jdks(17)
def test_a_system_that_does_not_count_delays_is_a_note(jdk, tmp_path):
    out, lib = tmp_path / "out.jfr", lab.BUILD / "tests" / "agents" / "libnoschedstat.so"
    faulted(jdk, tmp_path, out, env=dict(os.environ, LD_PRELOAD=str(lib)))
    note = "CPU: includes page faults, because the system does not let threads read how long they"
    shown = json.loads(requests("--json", out))
    assert shown["requests"][0]["causes"]["fault"] == 0, shown
    assert f"CPU: {shown['cpu_note']}".startswith(note), shown
    assert note in requests(out) and note in requests("slow", "--over", "40ms", out)


@pytest.mark.jdks(17, 25)
def test_a_thread_that_delays_a_safepoint_is_named(jdk, tmp_path):
    out = tmp_path / "stop.jfr"
    options = [
        "-XX:-UseCountedLoopSafepoints",
        "-XX:LoopStripMiningIter=0",
    ]  # as in the loops of JDK 8
    done = jdk.java(
        "RequestStops",
        jvm=[jdk.agent(f"requests=RequestStops.order,events=y,format=r,file={out}"), *options],
    )
    assert done.returncode == 0, done.stderr
    (group,) = json.loads(requests("slow", "--json", "--over", "40ms", out))["groups"]
    assert group["slow"]["count"] >= SLOW, group
    first = first_of(group["causes"], "safepoint", group["slow"]["count"])
    assert (first["cause"], first["thread"]) == ("safepoint", "auditor"), group["causes"]
    assert first["frames"][0].startswith("RequestStops.count") and first["waiting_frames"][
        0
    ].startswith("RequestStops.order"), first
    text = requests("slow", "--over", "40ms", out)
    assert (
        "stopped by the VM in RequestStops.order: the VM waited for thread auditor in RequestStops.count, "
        in text
    ), text
    assert "which was stopped" not in text, text
    check_time(first, group, int(done.stdout), out)


# where a request's own thread waits, and where another thread waits for which the server has to
# wait
SERVED = {
    "Tomcat10": (17, "sync:lock", "sync:cpu", "async:queue", "async:socket"),
    "Jetty9": (11, "sync:park", "sync:sleep", "async:lock", "async:cpu"),
    "Netty4": (25, "sync:sleep", "async:lock", "async:park", "async:socket"),
    "Httpd": (25, "sync:lock", "sync:park", "sync:queue", "sync:sleep"),  # on virtual threads
}


@pytest.mark.usefixtures("on_time")  # that nothing else makes a request slow
@pytest.mark.parametrize("server", SERVED)
def test_the_first_cause_on_each_server(server, tmp_path):
    version, *paths = SERVED[server]
    out = tmp_path / "out.jfr"
    truth = truth_of(served(lab.Jdk(version), server, out, "causes", paths, "-Xmx512m"))
    table = {r["name"]: r for r in json.loads(requests("--json", out))["requests"]}
    assert set(truth) == set(paths)
    for path, (cause_ns, client_ns, _) in truth.items():
        assert (
            table[f"GET /{path}"]["count"] == 120 and table[f"GET /{path}"]["unknown_share"] <= 0.01
        ), table[f"GET /{path}"]
        check_slow(out, path, cause_ns, client_ns)


def without(jdk, out, n, *words):
    done = jdk.java(
        "RequestWhatIf", n, *words, jvm=[jdk.agent(f"requests=auto,format=r,file={out}")]
    )
    assert done.returncode == 0, done.stderr
    (group,) = json.loads(
        requests("slow", "--json", "--slowest", "100%", "--name", "GET /order", out)
    )["groups"]
    return group, {c["cause"]: c for c in sorted(group["causes"], key=lambda c: c["slow_ns"])}


def test_what_p99_would_be_without_a_cause(tmp_path):
    """What remains when each request's own part of the cause is subtracted."""
    out = tmp_path / "out.jfr"
    group, causes = without(lab.Jdk(17), out, 100)
    shown = [
        json.loads(requests("show", "--json", n, out)) for n in range(101, 201)
    ]  # 100 others came first
    assert {s["name"] for s in shown} == {"GET /order"}
    assert group["count"] == len(shown)
    for cause in ("park", "sleep"):
        c = causes[cause]
        left = sorted(
            s["latency_ns"]
            - sum(p["ns"] for p in s["parts"] if (p["cause"], p["object"]) == (cause, c["object"]))
            for s in shown
        )
        assert c["p99_without_ns"] == left[98], (c, left)
        assert (
            group["p99_ns"] == sorted(s["latency_ns"] for s in shown)[98]
        )  # every request was kept, so nothing is rounded
        assert (
            left[90]
            <= c["p99_without_low_ns"]
            <= c["p99_without_ns"]
            <= c["p99_without_high_ns"]
            == left[99]
        ), (c, left)
    assert "without the first of these, p99 would be" in requests("slow", out)


@pytest.mark.measured
@pytest.mark.jdks(8, 17, 25)
def test_a_run_without_the_cause_has_that_p99(jdk, tmp_path):
    group, causes = without(jdk, tmp_path / "with.jfr", 400)
    assert group["p99_ns"] >= 300_000_000, group
    again, _ = without(jdk, tmp_path / "without.jfr", 400, "without")
    assert abs(causes["park"]["p99_without_ns"] - again["p99_ns"]) < 0.2 * again["p99_ns"], (
        causes["park"],
        again["p99_ns"],
    )


def test_named_requests_that_were_not_called_are_the_reason(tmp_path):
    out, none = tmp_path / "x.jfr", "holds no requests: no method that --requests names was called"
    process = lab.Jdk(17).start_java("Busy", 600, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().strip() in ("ready", b"ready")
        words = ("--requests=Busy.main(..)", "-t", "300ms")
        done = lab.jvmscope("attach", *words, "-o", out, process.pid)
        assert none in done.stderr, done.stderr
    finally:
        process.kill()
        process.wait()
    for words in (("requests",), ("requests", "slow"), ("report", "--slowest", "1%")):
        done = lab.jvmscope(*words, out)
        assert done.returncode == 1 and done.stdout == "" and none in done.stderr, done


def test_recordings_without_requests_say_so(tmp_path):
    empty = tmp_path / "no.jfr"
    empty.write_bytes(b"nothing")
    done = lab.jvmscope("requests", empty)
    assert (
        done.returncode == 1
        and len(done.stderr.splitlines()) == 1
        and "not a flight recording" in done.stderr
    ), done.stderr
    # Both a recording without --requests and one without any request say, once, how to record
    # requests.
    none = "holds no requests: no server that is known received one in this time; --requests='pkg.Class.method(..)' names others"
    for option, why in (
        ("--cpu", "holds no requests: record with --requests"),
        ("--requests", none),
    ):
        out = tmp_path / "none.jfr"
        ran = lab.jvmscope(
            "run",
            option,
            "-o",
            out,
            "--",
            *lab.Jdk(17).command("java", "-cp", lab.compiled("Busy"), "Busy", 1),
        )
        assert (
            ran.returncode == 0
            and ran.stderr.count(none) == (why == none)
            and "jvmscope requests" not in ran.stderr
        ), ran.stderr
        for words in (("requests",), ("requests", "slow"), ("report", "--slowest", "1%")):
            done = lab.jvmscope(*words, out)
            assert (done.returncode, done.stdout, done.stderr) == (
                1,
                "",
                f"jvmscope: {out}: {why}\n",
            ), done
    process = lab.Jdk(17).start_java("Busy", 600, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().strip() in ("ready", b"ready")
        done = lab.jvmscope("slow", "-t", "1s", "-o", tmp_path / "slow.jfr", process.pid)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 1 and done.stderr.count(none) == 1, done.stderr


JARS = [
    f"/usr/share/java/{name}.jar"
    for name in (
        "h2",
        "HikariCP",
        "commons-dbcp2",
        "commons-pool2",
        "commons-logging",
        "slf4j-api",
        "slf4j-nop",
    )
]


@pytest.mark.jdks(17, 25)
@pytest.mark.skipif(
    not all(map(os.path.exists, JARS)), reason="the pools' jars are not there (tools/setup check)"
)
def test_waits_for_a_pooled_connection(jdk, tmp_path):
    """The thread that has the pool's only connection is named, whether the pool waits in
    java.util.concurrent or in Object.wait.
    """
    out = tmp_path / "out.jfr"
    path = ":".join(map(str, [lab.compiled("RequestPools", jars=JARS), *JARS]))
    done = jdk.run(
        "java",
        jdk.agent(f"requests=auto,format=r,file={out}"),
        "-cp",
        path,
        "RequestPools",
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    unknown = {
        r["name"]: r["unknown_share"] for r in json.loads(requests("--json", out))["requests"]
    }
    assert {"GET /hikari", "GET /dbcp"} <= set(unknown) and max(unknown.values()) <= 0.03, unknown
    for pool, waited_ns in (line.split() for line in done.stdout.splitlines()):
        (group,) = json.loads(
            requests("slow", "--json", "--over", "40ms", "--name", f"GET /{pool}", out)
        )["groups"]
        first = first_of(group["causes"], "pool")
        assert first["cause"] == "pool" and first["thread"] == "reporter", group["causes"]
        assert any(f.startswith("RequestPools.report") for f in first["frames"]), first
        assert (
            " in RequestPools.order: held by thread reporter in RequestPools.report, which slept"
            in first["sentence"]
        ), first
        check_time(first, group, int(waited_ns), out)


@pytest.mark.jdks(8, 17, 25)
def test_one_command_says_why_requests_of_a_running_server_are_slow(jdk, tmp_path):
    out = tmp_path / "now.jfr"
    server = jdk.start_java("RequestCauses", "on", stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == "ready\n"
        done = lab.jvmscope("slow", "-t", "5s", "--over", "40ms", "-o", out, server.pid)
    finally:
        server.kill()
        server.wait()
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    assert (
        "GET /lock" in printed
        and "held by thread compactor in RequestCauses$Store.compact, which slept" in printed
    ), (done.stdout, done.stderr)
    assert f"wrote {out}" in done.stderr and out.exists()
    lock = next(
        r for r in json.loads(requests("--json", out))["requests"] if r["name"] == "GET /lock"
    )
    assert lock["count"] >= 10 and lock["max_ns"] >= 40_000_000, lock


def test_slow_names_all_that_selects_nothing_once(tmp_path):
    assert "slow writes only .jfr" in lab.output("slow", "--help")
    server = lab.Jdk(17).start_java("RequestCauses", "on", stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == "ready\n"
        page = lab.jvmscope("slow", "-t", "1s", "-o", tmp_path / "x.html", server.pid)
        none = lab.jvmscope(
            *("slow", "-t", "2s", "-o", tmp_path / "x.jfr"),
            *("--name", "nosuch", "--name", "neither", server.pid),
        )
    finally:
        server.kill()
        server.wait()
    assert page.returncode == 2 and not (tmp_path / "x.html").exists()
    assert "the recording must be a .jfr" in page.stderr and "jvmscope convert" in page.stderr
    assert none.returncode == 1 and not none.stdout, none
    lines = none.stderr.splitlines()
    assert len(set(lines)) == len(lines), lines
    [names] = [line for line in lines if "has" in line and "name" in line and "nosuch" in line]
    assert "neither" in names, lines
    # The losses are those of the recording itself; the readers' own report of them is not added.
    assert sum("in progress when the recording began" in line for line in lines) <= 1, lines


def test_what_belongs_to_a_request_is_chosen_from_the_rest(tmp_path):
    """Only samples, waits and calls of the threads that worked for the requests of a name, or for
    its slow ones.
    """
    jdk, out = lab.Jdk(17), tmp_path / "out.jfr"
    options = f"requests=auto,trace=RequestCauses.compute:RequestCauses.pause,format=r,file={out}"
    done = jdk.java("RequestCauses", jvm=[jdk.agent(options), "-Xmx512m"], timeout=240)
    assert done.returncode == 0, done.stderr

    def ask(*words):
        done = lab.jvmscope(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def methods(*words):
        return {
            m["method"]: m["total"]
            for m in json.loads(ask("report", "--json", *words, out))["samples"]["methods"]
        }

    everything, of_cpu, slow = (
        methods(),
        methods("--request", "GET /cpu"),
        methods("--request", "GET /cpu", "--slowest", "50%"),
    )
    assert (
        0
        < slow["RequestCauses.spin"]
        <= of_cpu["RequestCauses.spin"]
        <= everything["RequestCauses.spin"]
    )
    assert (
        sum(of_cpu.values()) < sum(everything.values()) and "RequestCauses.fill" not in of_cpu
    ), of_cpu
    assert (
        "RequestCauses.spin"
        in ask("convert", "--request", "GET /cpu", "-o", tmp_path / "x.collapsed", out)
        + (tmp_path / "x.collapsed").read_text()
    )
    calls = json.loads(ask("trace", "--json", "--request", "GET /sleep", out))["calls"]
    assert len(calls) == 120 and all(
        c["method"].startswith("RequestCauses.pause") for c in calls
    ), calls[:3]
    assert len(json.loads(ask("trace", "--json", out))["calls"]) == 240
    sleeps = json.loads(ask("threads", "summary", "--json", "--request", "GET /sleep", out))[
        "threads"
    ]
    assert 110e6 < sum(t["waited_ns"] for t in sleeps) < 400e6, sleeps
    for words in (
        ["report", "--request", "nobody"],
        ["trace", "--request", "nobody"],
        ["threads", "summary", "--request", "nobody"],
    ):
        done = lab.jvmscope(*words, out)
        assert (
            done.returncode == 1
            and done.stderr.count("\n") == 1
            and "no request has this name" in done.stderr
        ), done.stderr
    # The option that leaves none is named; all of them where only together they leave none.
    for words, why in (
        (("--name", "GET /cpu,nobody"), "no request has this name: nobody"),
        (("--name", "nobody", "--from", "1ms"), "no request has this name: nobody"),
        (("--thread", "nobody"), "no request began on a thread of this name: nobody"),
        (("--from", "1h"), "--from 3600 s is not before the end of "),
        (("--from", "3s", "--to", "1s"), "--from 3.00 s is not before --to 1.00 s"),
        (("--name", "GET /cpu", "--to", "1ns"), "no request matches: --name --to together"),
    ):
        for verb in (["requests"], ["requests", "slow"]):
            done = lab.jvmscope(*verb, *words, out)
            assert (
                done.returncode == 1
                and done.stderr.startswith(f"jvmscope: {out}: {why}")
                and done.stderr.count("\n") == 1
            ), (words, done)
    done = lab.jvmscope("convert", "--request", "x", "-o", tmp_path / "x.jfr", out)
    assert done.returncode == 2 and "--request" in done.stderr, done.stderr


@pytest.mark.jdks(8, 25)
def test_a_wait_for_a_loader_s_lock_names_no_class_as_loaded(jdk, tmp_path):
    """The lock is a java.lang.Object, which is not the class that is being loaded."""
    out = tmp_path / "r.jfr"
    options = f"format=r,threads=y,requests=LoadLocked.serve(..),file={out}"
    done = jdk.java("LoadLocked", jvm=["-Xmx64m", jdk.agent(options)])
    assert done.returncode == 0, done.stderr
    [group] = json.loads(requests("slow", "--json", "--over", "90ms", out))["groups"]
    cause = first_of(group["causes"], "class-load", 1)
    assert (cause["cause"], cause["object"]) == ("class-load", None), group["causes"]
    assert "loading classes" in requests("slow", "--over", "90ms", out)
