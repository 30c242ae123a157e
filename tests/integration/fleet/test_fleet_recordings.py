# SPDX-License-Identifier: Apache-2.0
"""Slow requests of the fleet refer to the recordings that contain them, if a collector kept these.
"""
import gzip
import json
import os

import pytest

import clickhouse
import lab
from fleet_lab import NOW, collector, fleet, stacks

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "shop.jfr"
    done = lab.Jdk(17).run(
        lab.BUILD / "jvmscope",
        "run",
        "--requests",
        "-o",
        path,
        "java",
        "-cp",
        lab.compiled("TracedRequests"),
        "TracedRequests",
        "40",
        f"00-{TRACE}-00f067aa0ba902b7-01",
    )
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("kind", ["sqlite", "clickhouse"])
def test_a_slow_request_leads_to_its_recording(recording, tmp_path, kind, request):
    store = None if kind == "sqlite" else clickhouse.new_store(request.getfixturevalue("shards"))
    folder = tmp_path / "kept"
    tokens = [{"Authorization": f"Bearer {t}"} for t in ("t1", "t2")]
    with collector(
        tmp_path, "--token", "one=t1,two=t2", "--recordings", str(folder), store=store
    ) as c:
        for body in (recording.read_bytes(), gzip.compress(recording.read_bytes())):
            c.send(body, headers=tokens[0], service="shop", version="1.8", host=f"web{len(body)}")
        c.send(
            recording.read_bytes(),
            headers=tokens[0],
            service="shop",
            version="1.8",
            host=f"web{recording.stat().st_size}",
        )  # again
        c.send(stacks(a_b=3), headers=tokens[0], service="other", **{"from": NOW})
        answer = fleet(c, "requests", "--tenant", "one")
        [row] = answer["requests"]
        assert (row["request"], row["count"]) == ("GET /work", 80)
        # The slowest of each upload.
        assert {s["host"] for s in answer["slowest"]} == {
            f"web{len(b)}" for b in (recording.read_bytes(), gzip.compress(recording.read_bytes()))
        }
        assert len(answer["slowest"]) == 2 == len(list(folder.iterdir()))
        for s in answer["slowest"]:
            assert (s["service"], s["version"], s["request"], s["trace"], s["duration_ns"]) == (
                "shop",
                "1.8",
                "GET /work",
                TRACE,
                row["max_ns"],
            )
            got = tmp_path / "got.jfr"
            status, data = get(c, s["recording"], tokens[0])
            assert status == 200 and data == recording.read_bytes()
            got.write_bytes(data)
            shown = lab.jvmscope("requests", "show", s["id"], got, check=True).stdout
            assert "GET /work" in shown
            assert (
                get(c, s["recording"], tokens[1])[0] == 404 and get(c, s["recording"], {})[0] == 401
            )
        for nobody in ("", "0" * 32, "../fleet.db", f"{s['recording']}.jfr"):
            assert get(c, nobody, tokens[0])[0] == 404
        assert fleet(c, "requests", "--tenant", "two")["slowest"] == []
        assert fleet(c, "requests", "--tenant", "one", "--request", "GET /other")["slowest"] == []
        assert len(fleet(c, "requests", "--tenant", "one", "--limit", "1")["slowest"]) == 1
        table = lab.jvmscope(
            "fleet", "requests", "--store", c.store, "--tenant", "one", check=True
        ).stdout
        assert f"shop GET /work ({s['id']}): /v1/recordings/{s['recording']}" in table, table


def get(c, recording, headers):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    connection.request("GET", f"/v1/recordings/{recording}", headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data


def test_the_oldest_recordings_make_room(recording, tmp_path):
    size = recording.stat().st_size
    folder = tmp_path / "kept"
    with collector(
        tmp_path, "--recordings", str(folder), "--recordings-size", str(3 * size + 10)
    ) as c:
        ids = []
        for i in range(6):
            ids.append(c.send(recording.read_bytes(), service="shop", host=f"h{i}")["upload"])
            assert sum(f.stat().st_size for f in folder.iterdir()) <= 3 * size + 10
        found = [get(c, i, {})[0] for i in ids]
        assert found[0] == 404 and found[-1] == 200 and found == sorted(found, reverse=True)
        # There is no link to a recording that was removed.
        slowest = json.loads(c.request("GET", "/v1/fleet/requests")[1])["slowest"]
        assert {s["host"]: s["recording"] for s in slowest} == {
            f"h{i}": upload if found[i] == 200 else None for i, upload in enumerate(ids)
        }
        shown = lab.jvmscope(
            "fleet", "requests", "--collector", f"http://127.0.0.1:{c.port}", check=True
        ).stdout
        assert shown.count("its recording has been removed") == found.count(404) and shown.count(
            "/v1/recordings/"
        ) == found.count(200)
        assert folder.stat().st_mode & 0o77 == 0 and all(
            f.stat().st_mode & 0o77 == 0 for f in folder.iterdir()
        )
    # After a start, the existing files count, and none is kept that is larger than the limit for
    # all of them.
    with collector(tmp_path, "--recordings", str(folder), "--recordings-size", str(size + 10)) as c:
        assert [f.name for f in folder.iterdir()] == [f"default-{ids[-1]}.jfr"]
    without = tmp_path / "without"
    without.mkdir()
    with collector(without) as c:
        upload = c.send(recording.read_bytes(), service="shop")["upload"]
        assert get(c, upload, {})[0] == 404 and fleet(c, "requests")["slowest"] == []
    c = lab.jvmscope(
        "collect", "--store", f"sqlite:{tmp_path / 'x.db'}", "--recordings", os.devnull + "/x"
    )
    assert c.returncode == 1 and "cannot keep recordings there" in c.stderr


@pytest.mark.parametrize(
    "clock, kind",
    [
        ("cpu", "clickhouse"),
        ("elapsed", "sqlite"),
        *(
            pytest.param(*c, marks=pytest.mark.slow)
            for c in (("cpu", "sqlite"), ("elapsed", "clickhouse"))
        ),
    ],
)
def test_times_of_too_few_readings_are_marked_as_report_marks_them(tmp_path, kind, clock, request):
    """Sent as the recording, and as a format that keeps the number of readings in a note. Times of
    which every call was timed have no mark.
    """
    out, jdk = tmp_path / "t.jfr", lab.Jdk(17)
    # A second of CPU time, so that on any machine some methods have many readings and others have
    # few.
    assert (
        jdk.java(
            "TimesShares", "1", jvm=[jdk.agent(f"cpu=times,clock={clock},format=r,file={out}")]
        ).returncode
        == 0
    )
    lab.jvmscope("convert", "--metric", "times", "-o", tmp_path / "t.pb.gz", out, check=True)
    report = lab.read_json("report", "--json", tmp_path / "t.pb.gz")["times"]["methods"]
    few = {m["method"] for m in report if m.get("few_readings")}
    assert bool(few) == (clock == "cpu")
    store = None if kind == "sqlite" else clickhouse.new_store(request.getfixturevalue("shards"))
    with collector(tmp_path, store=store) as c:
        for service, path in (("recording", out), ("pprof", tmp_path / "t.pb.gz")):
            assert c.send(path.read_bytes(), service=service)["new"]
            answer = fleet(c, "top", "--metric", "times", "--service", service)
            rows = answer["methods"]
            assert {m["method"] for m in rows if m.get("few_readings")} == few, service
            unknown = [m.get("few_readings", False) or not m["self"] for m in rows]
            assert unknown == sorted(unknown), rows
            table = lab.jvmscope(
                "fleet",
                "top",
                "--metric",
                "times",
                "--service",
                service,
                "--limit",
                "100000",
                "--store",
                c.store,
                check=True,
            ).stdout
            assert table.count(" ~") == len(few), table
            # Every query marks the same methods, and lists those with an unknown total last.
            whole = answer["times_ns"]
            least = (
                10 * (answer["times_ns_read"] // answer["times_readings"]) if clock == "cpu" else 0
            )
            assert clock == "cpu" or "times_readings" not in answer
            asked = fleet(c, "query", "--metric", "times", "--service", service, "--method", "*")
            for key in ("services", "callers"):
                for m in asked[key]:
                    assert (
                        m.get("few_readings", False),
                        m.get("few_readings_of_total", False),
                    ) == (0 < m["self"] < least, m["total"] < least), m
                late = [m.get("few_readings_of_total", False) for m in asked[key]]
                assert late == sorted(late)
            assert {m["method"] for m in asked["services"] if m.get("few_readings")} == few
            table = lab.jvmscope(
                "fleet",
                "query",
                "--metric",
                "times",
                "--service",
                service,
                "--method",
                "*",
                "--limit",
                "100000",
                "--store",
                c.store,
                check=True,
            ).stdout
            marks = sum(
                m.get("few_readings", False) + m.get("few_readings_of_total", False)
                for key in ("services", "callers")
                for m in asked[key]
            )
            assert table.count(" ~") == marks
            nodes = [fleet(c, "flame", "--metric", "times", "--service", service)["root"]]
            for n in nodes:
                nodes += n["children"]
                assert n.get("few_readings", False) == (0 < n["self"] < least), n
            assert nodes[0]["total"] == whole
            stacks = tmp_path / f"{service}.collapsed"
            stacks.write_text(
                lab.jvmscope(
                    "fleet",
                    "flame",
                    "--metric",
                    "times",
                    "--service",
                    service,
                    "--store",
                    c.store,
                    check=True,
                ).stdout
            )
            if clock == "cpu":
                again = lab.read_json("report", "--json", stacks)["times"]["methods"]
                assert {m["method"] for m in again if m.get("few_readings")} == few
        # The two services have the same profile. A method with too few readings on both sides is
        # reported as such.
        answer = fleet(
            c, "diff", "--metric", "times", "--service", "pprof", "--base", "service=recording"
        )
        assert answer["verdict"] == "no change"
        for m in answer["methods"]:
            assert (m["self"]["verdict"] == "too few readings") == (m["self"]["new"] < least), m
        table = lab.jvmscope(
            "fleet",
            "diff",
            "--metric",
            "times",
            "--service",
            "pprof",
            "--base",
            "service=recording",
            "--store",
            c.store,
            check=True,
        ).stdout
        unknown = sum(m["total"]["verdict"] == "too few readings" for m in answer["methods"])
        assert (
            f"{unknown} method" in table and "fewer than 10 readings of the clock" in table
        ) == (unknown > 0), table


@pytest.mark.parametrize("kind", ["sqlite", "clickhouse"])
def test_bytes_of_few_samples_and_unsure_live_bytes_are_marked(tmp_path, kind, request):
    """Sampled allocations, sent as the recording and as formats that keep a note; live bytes, sent
    as the recording and as OTLP. Counts have no mark.
    """
    jdk, out, live = lab.Jdk(17), tmp_path / "a.jfr", tmp_path / "live.jfr"
    done = jdk.java(
        "Amounts",
        "objects",
        2_000_000,
        jvm=("-Xmx64m", jdk.agent(f"format=r,alloc=sampled,file={out}")),
    )
    assert done.returncode == 0, done.stderr
    assert (
        jdk.java(
            "LiveSeldom", jvm=("-Xmx256m", jdk.agent(f"heap=sites,format=r,file={live}"))
        ).returncode
        == 0
    )
    few = {
        m["method"]
        for m in lab.read_json("report", "--json", out)["allocations"]["methods"]
        if m.get("few_readings")
    }
    sites = lab.read_json("report", "--json", live)["allocations"]["sites"]
    unsure, sure = (
        {
            s["trace"][0].rpartition(":")[0] or s["trace"][0]
            for s in sites
            if s["trace"]
            and s["live_objects"]
            and (s["live_bytes"] < 2 * s.get("live_bytes_error", 0)) == is_unsure
        }
        for is_unsure in (True, False)
    )
    assert few and unsure - sure and sure
    lab.jvmscope("convert", "-o", tmp_path / "a.pb.gz", out, check=True)
    for source in (out, live):
        lab.jvmscope("convert", "-o", source.with_suffix(".otlp"), source, check=True)
    store = None if kind == "sqlite" else clickhouse.new_store(request.getfixturevalue("shards"))
    with collector(tmp_path, store=store) as c:
        for path in (out, tmp_path / "a.pb.gz", tmp_path / "a.otlp", live, tmp_path / "live.otlp"):
            assert c.send(
                path.read_bytes(),
                service=path.name,
                **({"from": NOW} if path.suffix == ".gz" else {}),
            )["new"], path
            metric, marked = (
                ("live", unsure - sure) if path.stem == "live" else ("allocations", few)
            )
            answer = fleet(c, "top", "--metric", metric, "--service", path.name)
            assert {m["method"] for m in answer["methods"] if m.get("few_readings")} == marked, path
            assert "allocations_readings" in answer or metric == "live"
            table = lab.jvmscope(
                "fleet",
                "top",
                "--metric",
                metric,
                "--service",
                path.name,
                "--limit",
                "100000",
                "--store",
                c.store,
                check=True,
            ).stdout
            assert table.count("~") == len(marked), table
        assert not any(
            m.get("few_readings")
            for m in fleet(c, "top", "--metric", "allocations", "--service", "live.jfr")["methods"]
        )
        answer = fleet(
            c, "diff", "--metric", "allocations", "--service", "a.otlp", "--base", "service=a.jfr"
        )
        assert {
            m["method"]
            for m in answer["methods"]
            if m["self"]["verdict"] == "too few readings" and m["self"]["new"]
        } <= few
        stacks = tmp_path / "again.collapsed"
        stacks.write_text(
            lab.jvmscope(
                "fleet",
                "flame",
                "--metric",
                "allocations",
                "--service",
                "a.jfr",
                "--store",
                c.store,
                check=True,
            ).stdout
        )
        again = lab.read_json("report", "--json", stacks)["allocations"]["methods"]
        assert {m["method"] for m in again if m.get("few_readings")} == few


@pytest.mark.jdks(8)
def test_what_the_profiler_allocates_is_not_unattributed(jdk, tmp_path):
    """`fleet top` divides the bytes as `report` does."""
    out = tmp_path / "a.jfr"
    done = jdk.java(
        "Amounts",
        "objects",
        1000,
        jvm=(jdk.agent(f"format=r,alloc=exact,threads=y,cpu=samples,file={out}"),),
    )
    assert done.returncode == 0, done.stderr
    shown = lab.read_json("report", "--json", out)["allocations"]
    assert shown["profiler"] > 0
    with collector(tmp_path) as c:
        assert c.send(out.read_bytes(), service="a")["new"]
        answer = fleet(c, "top", "--metric", "allocations", "--service", "a")
    assert (answer["allocations_bytes"], answer["unattributed"], answer["profiler"]) == (
        shown["total"],
        shown["unattributed"],
        shown["profiler"],
    )
    methods = sum(m["self"] for m in answer["methods"])
    assert methods + answer["unattributed"] + answer["profiler"] == shown["total"]
