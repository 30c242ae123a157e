# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles against an encoder and a decoder that protoc makes from the published field
numbers; --push against a server.
"""
import collections
import email
import gzip
import http.server
import importlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

import fleet_lab
import lab

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def otlp(tmp_path_factory):
    """The module that protoc makes from tests/data/otlp.proto."""
    folder = tmp_path_factory.mktemp("otlp")
    subprocess.run(
        ["protoc", f"--python_out={folder}", f"-I{lab.ROOT / 'tests' / 'data'}", "otlp.proto"],
        check=True,
    )
    sys.path.insert(0, str(folder))
    yield importlib.import_module("otlp_pb2")
    sys.path.remove(str(folder))


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("model", ["global-dynamic", "initial-exec"])
def test_a_published_trace_is_that_of_its_samples(otlp, jdk, model, tmp_path):
    """OTEP 4947: a tracer's thread-local variable, in a library that the program loads while it is
    recorded.
    """
    out, to = tmp_path / "t.jfr", tmp_path / "t.otlp"
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu",
        "--interval",
        "1ms",
        "--requests",
        "TracerContext.inSpan(..)",
        "-o",
        out,
        "java",
        f"-Djava.library.path={lab.BUILD / 'tests' / 'agents'}",
        "-cp",
        lab.compiled("TracerContext"),
        "TracerContext",
        f"tracer-{model}",
        "200",
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    lab.jvmscope("convert", "-o", to, out, check=True)
    found = collections.defaultdict(collections.Counter)
    for kind, _, rows in profiles_of(decoded(otlp, to)):
        for stack, value, _, labels, link in rows if kind[0] == "samples" else ():
            methods = [m for m in ("inSpan", "outside", "astray") if f"TracerContext.{m}" in stack]
            found[(labels.get("thread.name"), *methods)][
                link.trace_id[:1] + link.span_id[:1]
            ] += value
    for thread, number in (("one", 1), ("two", 2)):
        # The first and the last sample of a part may belong to the neighbouring part, because a
        # frame is just being entered or left.
        for method, expected in (("inSpan", bytes([number, 16 + number])), ("outside", b"")):
            counts = found[(thread, method)]
            assert counts[expected] > 20 and sum(counts.values()) - counts[expected] <= 1, (
                thread,
                method,
                counts,
            )
    for nobody in (("astray", "astray"), ("without", "outside")):
        assert set(found[nobody]) == {b""}, (nobody, found[nobody])
    requests = [lab.read_json("requests", "show", "--json", str(n), out) for n in (1, 2)]
    assert {(r["trace_id"], r["span_id"]) for r in requests} == {
        ("01" * 16, "11" * 8),
        ("02" * 16, "12" * 8),
    }


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A server whose requests carry a traceparent, with CPU samples and allocation sites."""
    out = tmp_path_factory.mktemp("recording") / "r.jfr"
    jdk = lab.Jdk(17)
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu",
        "--interval",
        "1ms",
        "--alloc=exact",
        "--live",
        "--requests",
        "-o",
        out,
        "java",
        "-cp",
        lab.compiled("TracedRequests"),
        "TracedRequests",
        "40",
        TRACEPARENT,
    )
    assert done.returncode == 0, done.stderr
    return out


def report(path, *args):
    done = lab.jvmscope("report", "--json", "-n", "100000", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def figures(path):
    """What a report shows for each metric: all methods with their own and their total weight."""
    return {
        metric: (
            table["total"],
            table["unattributed"],
            {m["method"]: (m["self"], m["total"]) for m in table["methods"]},
        )
        for metric, table in report(path).items()
        if isinstance(table, dict) and "methods" in table
    }


def decoded(otlp, path):
    data = otlp.ProfilesData()
    data.ParseFromString(path.read_bytes())
    return data


def profiles_of(data):
    """Each profile with its type, and its samples as (stack, value, time, labels, link)."""
    d = data.dictionary
    strings = d.string_table
    frame = [
        ";".join(
            strings[d.function_table[line.function_index].name_strindex]
            for line in reversed(l.lines)
        )
        for l in d.location_table
    ]
    stack = [";".join(frame[i] for i in reversed(s.location_indices)) for s in d.stack_table]
    label = [(strings[a.key_strindex], a.value.string_value) for a in d.attribute_table]
    for resource in data.resource_profiles:
        for scope in resource.scope_profiles:
            for p in scope.profiles:
                rows = []
                for s in p.samples:
                    assert s.values or s.timestamps_unix_nano
                    assert not (s.values and s.timestamps_unix_nano) or len(s.values) == len(
                        s.timestamps_unix_nano
                    )
                    values = list(s.values) or [1] * len(s.timestamps_unix_nano)
                    times = list(s.timestamps_unix_nano) or [0] * len(values)
                    labels = dict(label[i] for i in s.attribute_indices)
                    rows += [
                        (stack[s.stack_index], v, t, labels, d.link_table[s.link_index])
                        for v, t in zip(values, times)
                    ]
                kind = (
                    strings[p.sample_type.type_strindex],
                    strings[p.sample_type.unit_strindex],
                    strings[p.period_type.type_strindex],
                )
                yield kind, p, rows


def test_ours_is_decoded_with_equal_totals(otlp, recording, tmp_path):
    out = tmp_path / "r.otlp"
    assert (
        lab.jvmscope(
            "convert", "-o", out, "--label", "service.name=shop,version=1.8", recording
        ).returncode
        == 0
    )
    data = decoded(otlp, out)
    reported = figures(recording)
    found = {kind: (p, rows) for kind, p, rows in profiles_of(data)}
    samples, rows = found["samples", "count", "cpu"]
    assert sum(v for _, v, *_ in rows) == reported["samples"][0] > 50
    assert (samples.period, len(samples.profile_id)) == (1000000, 16)
    assert all(
        samples.time_unix_nano <= t <= samples.time_unix_nano + samples.duration_nano + 10**9
        for _, _, t, *_ in rows
    )
    own = collections.Counter()
    for stack, value, *_ in rows:
        own[stack.split(";")[-1]] += value
    assert {m: n for m, (n, _) in reported["samples"][2].items() if n} == {
        m: n for m, n in own.items() if m in reported["samples"][2]
    }
    assert sum(v for _, v, *_ in found["alloc_space", "bytes", ""][1]) == reported["allocations"][0]
    sites = report(recording)["allocations"]["sites"]
    assert sum(v for _, v, *_ in found["alloc_objects", "count", ""][1]) == sum(
        s["objects"] for s in sites
    )
    assert sum(v for _, v, *_ in found["inuse_space", "bytes", ""][1]) == sum(
        s.get("live_bytes", 0) for s in sites
    )
    resource = {a.key: a.value.string_value for a in data.resource_profiles[0].resource.attributes}
    assert (resource["service.name"], resource["version"]) == ("shop", "1.8")
    for table in ("mapping", "location", "function", "link", "attribute", "stack"):
        first = getattr(data.dictionary, f"{table}_table")[0]
        assert not first.ByteSize(), f"element 0 of {table}_table is not the zero value"
    assert data.dictionary.string_table[0] == ""


def test_samples_know_their_thread_their_request_and_their_trace(otlp, recording, tmp_path):
    out = tmp_path / "r.otlp"
    assert lab.jvmscope("convert", "-o", out, recording).returncode == 0
    rows = next(rows for kind, _, rows in profiles_of(decoded(otlp, out)) if kind[0] == "samples")
    traced = [r for r in rows if r[4].trace_id]
    worked = [r for r in rows if "TracedRequests.work" in r[0]]
    assert len(traced) > 20 and worked
    assert {r[4].trace_id.hex() for r in traced} == {TRACEPARENT.split("-")[1]}
    assert all(r[3]["request"] == "GET /work" and "thread.name" in r[3] for r in traced)
    # All of the handler's work is within its requests.
    assert all(r[4].trace_id for r in worked)


def test_requests_are_those_of_the_recording(recording, tmp_path):
    """A collector, and report, find as many samples of a request in our OTLP as in the recording;
    its times are in the recording alone.
    """
    out = tmp_path / "r.otlp"
    lab.jvmscope("convert", "-o", out, "--label", "service.name=otlp", recording, check=True)
    with fleet_lab.collector(tmp_path) as c:
        c.send(recording.read_bytes(), service="jfr")
        status, text, _ = c.request(
            "POST",
            "/v1development/profiles",
            out.read_bytes(),
            {"Content-Type": "application/x-protobuf"},
        )
        assert status == 200, text
        found = [
            fleet_lab.total(c, "--service", service, "--request", "GET /work")
            for service in ("jfr", "otlp")
        ]
        assert found[0] == found[1] > 20
        assert fleet_lab.total(c, "--service", "jfr") == fleet_lab.total(c, "--service", "otlp")
    pprof, plain = tmp_path / "r.pb.gz", tmp_path / "plain.otlp"
    lab.jvmscope("convert", "-o", pprof, "--metric", "samples", recording, check=True)
    both = [
        report(path, "--request", "GET *", "--metric", "samples")["samples"]
        for path in (recording, out)
    ]
    assert both[0]["total"] == both[1]["total"] > 20, [b["total"] for b in both]
    assert {m["method"]: m["self"] for m in both[0]["methods"]} == {
        m["method"]: m["self"] for m in both[1]["methods"]
    }
    assert both[0]["total"] < report(out, "--metric", "samples")["samples"]["total"]
    # The thread's own label is sent as well, and a name that does not exist is refused.
    lab.jvmscope(
        "convert", "-o", plain, "--request", "GET /work", "--metric", "samples", out, check=True
    )
    assert report(plain)["samples"]["total"] == both[0]["total"]
    collapsed = tmp_path / "r.collapsed"
    lab.jvmscope("convert", "-o", collapsed, "--metric", "samples", recording, check=True)
    for path, option, why in (
        (out, ("--request", "GET /work,nosuch"), f"no request has this name: nosuch"),
        (pprof, ("--request", "GET /work"), "holds no requests: no sample has the label request"),
        (out, ("--slowest", "1%"), "--slowest needs a recording: it holds no times of requests"),
        (
            collapsed,
            ("--request", "GET /work"),
            "--request and --slowest need a recording: a .jfr with requests",
        ),
    ):
        done = lab.jvmscope("report", *option, path)
        assert (done.returncode, done.stdout, done.stderr) == (
            1,
            "",
            f"jvmscope: {path}: {why}\n",
        ), done


def test_what_was_written_is_read(recording, tmp_path):
    out = tmp_path / "r.otlp"
    assert lab.jvmscope("convert", "-o", out, recording).returncode == 0
    reported, again = figures(recording), figures(out)
    # Holders of locks and exact times have their own tables; all metrics have the same here.
    assert reported == again
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(out.read_bytes()))
    assert figures(packed) == reported
    done = lab.jvmscope("diff", "--json", recording, out)
    assert done.returncode == 0 and not re.search(r'"change":(?!0[,}])', done.stdout)
    part = tmp_path / "part.otlp"
    assert (
        lab.jvmscope(
            "convert",
            "-f",
            "otlp",
            "-o",
            part,
            "--metric",
            "samples",
            "--thread",
            "main",
            recording,
        ).returncode
        == 0
    )
    assert figures(part) == {
        k: v for k, v in figures_of(recording, "--thread", "main").items() if k == "samples"
    }


def figures_of(path, *args):
    return {
        metric: (
            table["total"],
            table["unattributed"],
            {m["method"]: (m["self"], m["total"]) for m in table["methods"]},
        )
        for metric, table in report(path, *args).items()
        if isinstance(table, dict) and "methods" in table
    }


def build(otlp, release, samples=None, by_index=False):
    """A message of another encoder: a stack with two frames, one of them inlined, threads, and
    values with and without times.
    """
    strings = [
        "",
        "cpu",
        "nanoseconds",
        "samples",
        "count",
        "a.A.main",
        "b.B.run",
        "b.B.in",
        "B.java",
        "thread.name",
        "profile.frame.type",
        "alloc_space",
        "bytes",
        "worker",
        "work",
    ]
    n = strings.index
    d = otlp.ProfilesDictionary(string_table=strings)
    d.mapping_table.add()
    d.link_table.add()
    d.attribute_table.add()
    d.function_table.add()
    d.location_table.add()
    d.stack_table.add()
    a = d.attribute_table.add(key_strindex=n("thread.name"))
    if by_index:
        a.value.string_value_strindex = n("worker")
    else:
        a.value.string_value = "worker"
    d.attribute_table.add(key_strindex=n("profile.frame.type")).value.string_value = "jvm"
    for name in ("a.A.main", "b.B.run", "b.B.in"):
        d.function_table.add(name_strindex=n(name), filename_strindex=n("B.java"))
    d.location_table.add(lines=[otlp.Line(function_index=1, line=7)], attribute_indices=[2])
    d.location_table.add(
        lines=[otlp.Line(function_index=3, line=9), otlp.Line(function_index=2, line=8)],
        attribute_indices=[2],
    )
    d.stack_table.add(location_indices=[2, 1])
    d.stack_table.add(location_indices=[1])
    kind = otlp.OldSample if release == "1.9" else otlp.Sample
    start = 1700000000 * 10**9
    wanted = samples or [
        dict(
            stack_index=1,
            attribute_indices=[1],
            timestamps_unix_nano=[start + 1, start + 2, start + 3],
        ),
        dict(stack_index=2, values=[4]),
        dict(
            stack_index=1,
            attribute_indices=[1],
            values=[2, 3],
            timestamps_unix_nano=[start + 4, start + 5],
        ),
    ]
    data = otlp.ProfilesData(dictionary=d)
    scope = data.resource_profiles.add().scope_profiles.add()
    for name, unit, factor in (("samples", "count", 1), ("alloc_space", "bytes", 1000)):
        p = scope.profiles.add(
            sample_type=otlp.ValueType(type_strindex=n(name), unit_strindex=n(unit)),
            time_unix_nano=start,
            duration_nano=10**9,
        )
        if unit == "count":
            p.period_type.type_strindex, p.period_type.unit_strindex, p.period = (
                n("cpu"),
                n("nanoseconds"),
                10**7,
            )
        for s in wanted:
            one = kind(**{**s, "values": [v * factor for v in s.get("values", [])]})
            p.samples.add().ParseFromString(one.SerializeToString())
    return data


@pytest.mark.parametrize(
    "release, by_index", [("1.9", False), ("1.10", True), ("1.11", False), ("1.11", True)]
)
def test_another_encoders_is_read_with_equal_totals(otlp, tmp_path, release, by_index):
    path = tmp_path / "other.otlp"
    path.write_bytes(build(otlp, release, by_index=by_index).SerializeToString())
    reported = figures(path)
    methods = {"b.B.in": (8, 8), "b.B.run": (0, 8), "a.A.main": (4, 12)}
    assert reported["samples"] == (12, 0, methods)
    # Events without values count one byte each; those with values count as many as the values say.
    assert reported["allocations"] == (
        3 + 9000,
        0,
        {"b.B.in": (5003, 5003), "b.B.run": (0, 5003), "a.A.main": (4000, 9003)},
    )
    assert figures_of(path, "--thread", "worker")["samples"][0] == 8
    assert report(path)["samples"]["interval_ns"] == 10**7


def test_what_is_no_message_is_refused_with_a_reason(otlp, tmp_path):
    good = build(otlp, "1.11")
    path = tmp_path / "x.otlp"

    def printed(change=None, data=None):
        message = otlp.ProfilesData()
        message.CopyFrom(good)
        if change:
            change(message)
        path.write_bytes(message.SerializeToString() if data is None else data)
        done = lab.jvmscope("report", path)
        assert (
            done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
        ), done.stderr
        return done.stderr

    def profile(m):
        return m.resource_profiles[0].scope_profiles[0].profiles[0]

    assert "stack 99 is not in its table of 3" in printed(
        lambda m: setattr(profile(m).samples[0], "stack_index", 99)
    )
    assert "stack -1 is not" in printed(lambda m: setattr(profile(m).samples[0], "stack_index", -1))
    assert "attribute 77 is not" in printed(
        lambda m: profile(m).samples[0].attribute_indices.append(77)
    )
    assert "link 5 is not" in printed(lambda m: setattr(profile(m).samples[0], "link_index", 5))
    assert "string 1000 is not" in printed(
        lambda m: setattr(profile(m).sample_type, "type_strindex", 1000)
    )
    assert "location 9 is not" in printed(
        lambda m: m.dictionary.stack_table[1].location_indices.append(9)
    )
    assert "function 9 is not" in printed(
        lambda m: setattr(m.dictionary.location_table[1].lines[0], "function_index", 9)
    )
    assert "more values than times" in printed(lambda m: profile(m).samples[2].values.append(3))
    assert "neither values nor times" in printed(lambda m: profile(m).samples.add(stack_index=1))
    assert "an id of a trace" in printed(lambda m: m.dictionary.link_table.add(trace_id=b"short"))
    assert "damaged" in printed(data=good.SerializeToString()[:-7])
    old = otlp.ProfilesData()
    old.CopyFrom(good)
    profile(old).samples.add().ParseFromString(
        otlp.OldSample(
            stack_index=1, values=[3], attribute_indices=[1], link_index=1
        ).SerializeToString()
    )
    assert "two releases" in printed(data=old.SerializeToString())


class Backend(http.server.ThreadingHTTPServer):
    """Answers with the given statuses one after the other, then with 200; keeps what it
    received.
    """

    def __init__(self, *statuses, retry_after=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses, self.retry_after, self.got = list(statuses), retry_after, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def __exit__(self, *args):
        self.shutdown()
        super().__exit__(*args)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body, time.monotonic()))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        if status != 200 and self.server.retry_after is not None:
            self.send_header("Retry-After", str(self.server.retry_after))
        answer = b"" if status == 200 else b"not today\n"
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


def push(url, path, *args, **env):
    return lab.jvmscope("convert", "--push", url, *args, path, env={**os.environ, **env})


def printed(done):
    """Standard error without the notes about data for which OTLP has no place: a recording may or
    may not have a long compilation.
    """
    return "".join(
        line
        for line in done.stderr.splitlines(keepends=True)
        if ": note: the output lacks " not in line
    )


def test_push_speaks_otlp(otlp, recording, tmp_path):
    with Backend() as server:
        done = push(
            server.url("/v1development/profiles"),
            recording,
            "--label",
            "region=eu",
            OTEL_SERVICE_NAME="shop",
            OTEL_RESOURCE_ATTRIBUTES="service.name=no,service.version=1.8%2C1",
            OTEL_EXPORTER_OTLP_HEADERS="X-Scope-OrgID=one",
            JVMSCOPE_TOKEN="secret",
        )
        assert done.returncode == 0 and printed(done).startswith(
            f"jvmscope: pushed {recording} to "
        ), done.stderr
        ((path, headers, body, _),) = server.got
    assert (path, headers["Content-Type"], headers["Authorization"], headers["X-Scope-OrgID"]) == (
        "/v1development/profiles",
        "application/x-protobuf",
        "Bearer secret",
        "one",
    )
    data = otlp.ProfilesData()
    data.ParseFromString(body)
    assert {a.key: a.value.string_value for a in data.resource_profiles[0].resource.attributes} == {
        "service.name": "shop",
        "service.version": "1.8,1",
        "region": "eu",
    }
    rows = next(rows for kind, _, rows in profiles_of(data) if kind[0] == "samples")
    assert sum(v for _, v, *_ in rows) == figures(recording)["samples"][0]
    # The same recording has the same id, so that a backend can tell that it has it already.
    with Backend() as server:
        for _ in range(2):
            assert push(server.url("").replace("http", "otlp+http"), recording).returncode == 0
        assert [g[0] for g in server.got] == ["/v1development/profiles"] * 2
        assert server.got[0][2] == server.got[1][2]


def parts_of(headers, body):
    message = email.message_from_bytes(
        b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body
    )
    return {
        p.get_param("name", header="Content-Disposition"): p.get_payload(decode=True)
        for p in message.get_payload()
    }


def test_push_speaks_pyroscope(recording, tmp_path):
    with Backend() as server:
        assert (
            push(
                server.url("/ingest"),
                recording,
                "--label",
                "region=eu,zone=a b",
                OTEL_SERVICE_NAME="shop",
            ).returncode
            == 0
        )
        assert (
            push(server.url("/ingest?format=pprof"), recording, OTEL_SERVICE_NAME="shop").returncode
            == 0
        )
        got = server.got
    path, headers, body, _ = got[0]
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
    assert (query["name"], query["format"], query["sampleRate"]) == (
        ["shop{region=eu,zone=a b}"],
        ["jfr"],
        ["1000"],
    )
    assert int(query["from"][0]) < int(query["until"][0])
    parts = parts_of(headers, body)
    sent = tmp_path / "sent.jfr"
    sent.write_bytes(gzip.decompress(parts["jfr"]))
    assert figures(sent) == figures(recording) and "labels" in parts
    reported = {}
    for path, headers, body, _ in got[1:]:
        one = tmp_path / "one.pb.gz"
        one.write_bytes(parts_of(headers, body)["profile"])
        reported.update(figures(one))
    assert reported == figures(recording)


def test_push_is_tried_again_when_the_server_is_busy(recording):
    with Backend(503, 429, retry_after=1) as server:
        done = push(server.url("/v1development/profiles"), recording)
        assert done.returncode == 0, done.stderr
        times = [g[3] for g in server.got]
    assert len(times) == 3 and all(b - a >= 0.99 for a, b in zip(times, times[1:]))


def test_what_cannot_be_pushed_is_kept_and_reported(recording, tmp_path):
    before = recording.read_bytes()
    with Backend(*[401] * 3) as server:
        url = server.url("/v1development/profiles")
        done = push(url, recording)
        assert (done.returncode, printed(done)) == (
            1,
            f"jvmscope: {url}: cannot push {recording}, which is kept: HTTP 401 Unauthorized: not today\n",
        )
        assert len(server.got) == 1  # it does not help to ask again
        jdk = lab.Jdk(17)
        out = tmp_path / "attach.jfr"
        busy = jdk.start_java("Busy", 600, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert busy.stdout.readline() == "ready\n"
            done = lab.jvmscope("attach", "--cpu", "-t", "1s", "--push", url, "-o", out, busy.pid)
            assert (
                done.returncode == 1
                and f"{url}: cannot push {out}, which is kept: HTTP 401" in done.stderr
            )
            assert (
                figures(out)["samples"][0] > 0
            )  # the number in a second depends on how busy the machine is, so it is not checked
            server.statuses.clear()
            done = lab.jvmscope("attach", "--cpu", "-t", "1s", "--push", url, "-o", out, busy.pid)
            assert done.returncode == 0 and f"pushed {out} to {url}" in done.stderr, done.stderr
        finally:
            jdk.kill_started()
    assert recording.read_bytes() == before


def test_push_as_jfr_refuses_what_a_jfr_does_not_follow(recording):
    """As convert -o x.jfr does. Previously, the whole recording was sent without a message."""
    with Backend() as server:
        for words in (["--metric", "samples"], ["--request", "x"], ["--slowest", "1%"]):
            done = push(server.url("/ingest"), recording, *words)
            assert (
                done.returncode == 2
                and f"/ingest: {words[0]} cannot select a part for this format: it follows "
                in done.stderr
            ), done.stderr
        assert not server.got
        assert (
            push(server.url("/ingest?format=pprof"), recording, "--metric", "samples").returncode
            == 0
        )
        assert push(server.url("/ingest"), recording, "--from", "0s").returncode == 0


@pytest.mark.parametrize(
    "url, printed",
    [
        ("ftp://host/v1development/profiles", "not a URL of http or https"),
        ("http://host/", "its path names no known protocol"),
        ("http://me:secret@host/ingest", "do not belong on a command line"),
        ("http:///ingest", "names no host"),
        ("x", "not a URL"),
    ],
)
def test_a_bad_push_url_is_refused_before_anything_is_recorded(tmp_path, url, printed):
    out = tmp_path / "x.jfr"
    for command in (
        ["run", "--cpu", "--push", url, "-o", out, "--", "false"],
        ["convert", "--push", url, "/no/such/file"],
    ):
        done = lab.jvmscope(*command)
        assert done.returncode == 2 and printed in done.stderr and done.stderr.count("\n") == 1, (
            command,
            done.stderr,
        )
    assert not out.exists()
    for words, why in (
        (["--always"], "has no end"),
        (["-o", tmp_path / "x.html"], "must be a .jfr"),
    ):
        done = lab.jvmscope("run", "--cpu", *words, "--push", "http://h/ingest", "--", "false")
        assert done.returncode == 2 and why in done.stderr
