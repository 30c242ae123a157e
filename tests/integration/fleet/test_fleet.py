# SPDX-License-Identifier: Apache-2.0
"""The collector and the queries of its store: totals are exactly what was sent, whatever
happens.
"""
import base64
import concurrent.futures
import contextlib
import gzip
import http.client
import itertools
import json
import os
import random
import re
import socket
import subprocess
import time

import pytest

import clickhouse
import hprofdump
import lab
from fleet_lab import (
    NOW,
    Collector,
    children_of,
    collector,
    field,
    fleet,
    form,
    peak_mb,
    pprof,
    stacks,
    total,
)


@pytest.fixture(params=["sqlite", "clickhouse", "current"])
def store(request, tmp_path):
    """A new store of each kind; the one in Debian's ClickHouse is spread over two servers."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'fleet.db'}"
    if request.param == "current":
        return clickhouse.address(
            [request.getfixturevalue("current_clickhouse")], clickhouse.new_database()
        )
    return clickhouse.new_store(request.getfixturevalue("shards"))


def test_totals_are_what_was_sent(tmp_path, store):
    with collector(tmp_path, store=store) as c:
        for host in range(3):
            for minute in range(4):
                body = stacks(main_work=5 + host, main_rest=2, main_work_deep=minute)
                version = "1.7" if host < 2 else "1.8"
                taken = c.send(
                    body,
                    service="shop",
                    version=version,
                    host=f"web{host}",
                    **{"from": NOW - 3600 + 60 * minute},
                )
                assert taken["new"] and taken["samples"] == 7 + host + minute
        c.send(
            stacks(main_pay=11),
            service="pay",
            host="web1",
            labels={"zone": "a", "tier": "gold"},
            **{"from": NOW - 3600},
        )
        top = fleet(c, "top")["services"]
        assert {(s["service"], s["version"]): s["cpu_samples"] for s in top} == {
            ("shop", "1.7"): 2 * 4 * 7 + 4 + 2 * 6,
            ("shop", "1.8"): 4 * 9 + 6,
            ("pay", ""): 11,
        }
        methods = {
            m["method"]: (m["self"], m["total"])
            for m in fleet(c, "top", "--service", "shop")["methods"]
        }
        assert methods == {
            "Main.main": (0, 114),
            "Main.work": (4 * (5 + 6 + 7), 4 * 18 + 3 * 6),
            "Main.rest": (24, 24),
            "Main.deep": (18, 18),
        }
        assert total(c, "--host", "web1") == 4 * 8 + 6 + 11
        assert total(c, "--label", "zone=a") == total(c, "--label", "zone=a,tier=gold") == 11
        assert total(c, "--label", "zone=b") == total(c, "--service", "nosuch") == 0
        # By time: each minute separately, arbitrary ranges, and all minutes together.
        by_minute = [
            total(c, "--from", NOW - 3600 + 60 * m, "--to", NOW - 3600 + 60 * (m + 1))
            for m in range(4)
        ]
        assert by_minute == [24 + 11, 27, 30, 33]
        assert total(c, "--from", NOW - 3600 + 10) == 27 + 30 + 33
        assert total(c, "--from", NOW - 3600, "--to", NOW - 3600 + 130) == 24 + 11 + 27 + 30
        # A name is a whole one, with = or without; only a pattern selects several.
        for wanted, found in (
            ("shop", True),
            ("=shop", True),
            ("sh*", True),
            ("sho", False),
            ("=sho", False),
            ("=sh*", False),
        ):
            chosen = fleet(c, "services", "--service", wanted)["services"]
            assert {s["service"] for s in chosen} == ({"shop"} if found else set()), wanted
        flame = fleet(c, "flame", "--service", "shop")
        assert flame["root"]["total"] == flame["cpu_samples"] == 114
        assert {n["name"]: n["total"] for n in flame["root"]["children"]} == {"Main.main": 114}
        # The collector answers the same as the store.
        for verb in ("top", "services", "flame"):
            status, text, _ = c.request("GET", f"/v1/fleet/{verb}", service="shop")
            assert status == 200 and json.loads(text) == fleet(c, verb, "--service", "shop")
        for arguments in (
            ["top"],
            ["top", "--service", "shop", "--from", NOW - 3600, "--label", "zone=a"],
            ["diff", "--base", "version=1.7"],
            ["flame"],
        ):
            ask = [
                lab.jvmscope("fleet", *arguments, "--json", *where)
                for where in (["--store", c.store], ["--collector", f"http://127.0.0.1:{c.port}/"])
            ]
            assert ask[0].returncode == ("zone=a" in arguments)  # nothing of shop has this label
            assert (ask[0].returncode, ask[0].stdout, ask[0].stderr) == (
                ask[1].returncode,
                ask[1].stdout,
                ask[1].stderr,
            )
    assert total(c.store) == 114 + 11
    lines = lab.jvmscope("fleet", "flame", "--store", c.store, "--service", "pay").stdout
    assert lines == "Main.main;Main.pay 11\n"


def test_samples_without_a_time_are_in_no_sum_of_times(tmp_path, store):
    """Collapsed stacks alone do not say how much time a sample stands for; for /ingest, the rate
    does.
    """
    with collector(tmp_path, store=store) as c:
        c.send(stacks(main_work=300, main_rest=7), service="plain", **{"from": NOW})
        c.send(stacks(main_work=40), service="mixed", **{"from": NOW})
        for service, rate in (("rated", 100), ("mixed", 50)):
            status, text, _ = c.request(
                "POST",
                "/ingest",
                stacks(main_work=80),
                name=service,
                format="folded",
                sampleRate=rate,
                **{"from": NOW, "until": NOW + 10},
            )
            assert status == 200, text
        rows = {s["service"]: s for s in fleet(c, "top", "--price", "1")["services"]}
        seen = {
            name: (
                s["cpu_samples"],
                s["cpu_ns"],
                s.get("cpu_samples_without_time", 0),
                s.get("cost", 0) > 0,
            )
            for name, s in rows.items()
        }
        assert seen == {
            "plain": (307, 0, 307, False),
            "mixed": (120, 80 * 20_000_000, 40, True),
            "rated": (80, 80 * 10_000_000, 0, True),
        }
        assert "cost" not in rows["plain"]  # nobody knows it
        methods = {
            m["method"]: m.get("cost")
            for m in fleet(c, "top", "--service", "rated", "--price", "3600")["methods"]
        }
        assert methods == {"Main.main": 0.8, "Main.work": 0.8}
        for verb in ("top", "flame"):
            answer = fleet(c, verb, "--service", "mixed")
            assert (
                answer["cpu_samples"],
                answer["cpu_ns"],
                answer["cpu_samples_without_time"],
            ) == (120, 80 * 20_000_000, 40)
        table = lab.jvmscope("fleet", "top", "--store", c.store, check=True).stdout
        assert "307     unknown  plain" in table and "80      800 ms  rated" in table, table
        assert (
            "347 samples do not state the time that they represent and are missing from the cpu column\n"
            in table
        )
        table = lab.jvmscope(
            "fleet", "top", "--store", c.store, "--price", "3600", check=True
        ).stdout
        assert (
            "307     unknown     unknown  plain" in table
            and "80      800 ms        0.80  rated" in table
        ), table
        assert "are missing from the cpu column and the costs\n" in table
        table = lab.jvmscope(
            "fleet", "top", "--store", c.store, "--price", "0.04", "--service", "*", check=True
        ).stdout
        assert "   <0.01  Main.work" in table and "   unknown  Main.rest" in table, table


@pytest.mark.jdks(8, 17, 25)
def test_a_recording_counts_as_report_counts_it(jdk, tmp_path):
    """A recording uploaded as it is, gzipped, compressed by zstd, and as pprof; the same bytes sent
    again count once.
    """
    recording = tmp_path / "busy.jfr"
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu",
        "--alloc",
        "-o",
        recording,
        "java",
        "-cp",
        lab.compiled("Busy"),
        "Busy",
        "1.5",
    )
    assert done.returncode == 0, done.stderr
    report = lab.read_json("report", "--json", recording)
    lab.jvmscope("convert", "-o", tmp_path / "busy.pb.gz", recording, check=True)
    subprocess.run(["zstd", "-q", recording, "-o", tmp_path / "busy.zst"], check=True)
    with collector(tmp_path) as c:
        bodies = {
            "plain": recording.read_bytes(),
            "gzip": gzip.compress(recording.read_bytes()),
            "zstd": (tmp_path / "busy.zst").read_bytes(),
            "pprof": (tmp_path / "busy.pb.gz").read_bytes(),
        }
        for service, body in bodies.items():
            assert c.send(body, service=service)["new"]
            assert not c.send(body, service=service)["new"]
        samples = report["samples"]
        expected = {m["method"]: (m["self"], m["total"]) for m in samples["methods"]}
        for service in bodies:
            [row] = fleet(c, "services", "--service", service)["services"]
            assert row["to"] > time.time() - 7200
            answer = fleet(c, "top", "--service", service)
            assert (
                answer["cpu_samples"] == samples["total"]
                and answer["cpu_ns"] == samples["total"] * samples["interval_ns"]
            )
            assert {m["method"]: (m["self"], m["total"]) for m in answer["methods"]} == expected


@pytest.mark.jdks(17)
def test_uploads_as_other_agents_make_them(jdk, tmp_path):
    """Pyroscope's /ingest and Push, and OTLP: the same totals as in the recording, under the labels
    that were sent with them.
    """
    recording = tmp_path / "busy.jfr"
    done = jdk.run(
        lab.BUILD / "jvmscope",
        "run",
        "--cpu",
        "-o",
        recording,
        "java",
        "-cp",
        lab.compiled("Busy"),
        "Busy",
        "1.5",
    )
    assert done.returncode == 0, done.stderr
    n = lab.read_json("report", "--json", recording)["samples"]["total"]
    jfr = recording.read_bytes()
    for name in ("busy.pb.gz", "busy.otlp"):
        assert lab.jvmscope("convert", "-o", tmp_path / name, recording).returncode == 0
    pprof, otlp = (tmp_path / "busy.pb.gz").read_bytes(), (tmp_path / "busy.otlp").read_bytes()
    with collector(tmp_path) as c:

        def ingest(status, body, headers, **query):
            got = c.request("POST", "/ingest", body, headers, **query)
            assert got[0] == status, got[:2]
            return got[1]

        for service, data, kind in (
            ("plain", jfr, "jfr"),
            ("zipped", gzip.compress(jfr), "jfr"),
            ("pprof", pprof, "profile"),
        ):
            for _ in range(2):
                ingest(
                    200,
                    *form(**{kind: data, "labels": b""}),
                    name=f"{service}{{version=2,host=web1,region=eu}}",
                    format="jfr" if kind == "jfr" else "pprof",
                    **{"from": NOW, "until": NOW + 10},
                )
        ingest(
            200,
            pprof,
            {"Content-Type": "application/octet-stream"},
            name="raw{version=2,host=web1,region=eu}",
            format="pprof",
            **{"from": NOW, "until": NOW + 10},
        )
        series = field(
            1,
            field(1, field(1, b"service_name") + field(2, b"pushed"))
            + field(1, field(1, b"region") + field(2, b"eu"))
            + field(1, field(1, b"version") + field(2, b"2"))
            + field(2, field(1, pprof)),
        )
        status, text, _ = c.request(
            "POST", "/push.v1.PusherService/Push", series, {"Content-Type": "application/proto"}
        )
        assert status == 200, text
        as_json = {
            "series": [
                {
                    "labels": [
                        {"name": "service_name", "value": "json"},
                        {"name": "region", "value": "eu"},
                        {"name": "version", "value": "2"},
                    ],
                    "samples": [{"rawProfile": base64.b64encode(pprof).decode()}],
                }
            ]
        }
        for _ in range(2):
            status, text, _ = c.request(
                "POST",
                "/push.v1.PusherService/Push",
                json.dumps(as_json),
                {"Content-Type": "application/json"},
            )
            assert (status, json.loads(text)) == (200, {})
        for body, headers in ((otlp, {}), (gzip.compress(otlp), {"Content-Encoding": "gzip"})):
            status, text, answer = c.request(
                "POST",
                "/v1development/profiles",
                body,
                {"Content-Type": "application/x-protobuf", **headers},
            )
            assert status == 200 and answer["Content-Type"] == "application/x-protobuf"
        top = {
            (s["service"], s["version"]): (s["cpu_samples"], s["cpu_ns"])
            for s in fleet(c, "top")["services"]
        }
        expected = {
            (name, "2"): (n, n * 10**7)
            for name in ("plain", "zipped", "pprof", "raw", "pushed", "json")
        }
        others = {key: value for key, value in top.items() if key not in expected}
        assert top.items() >= expected.items()
        # The two bodies of OTLP differ in their bytes, so they are two uploads of the service that
        # the message names.
        [(_, otlp_sums)] = others.items()
        assert otlp_sums == (2 * n, 2 * n * 10**7)
        assert total(c, "--label", "region=eu") == 6 * n and total(c, "--host", "web1") == 4 * n
        # Damaged bodies in each protocol.
        before = total(c)
        assert "form" in ingest(400, *form(other=b"x"), name="s", format="jfr")
        assert ingest(
            400, form(jfr=jfr)[0], {"Content-Type": "multipart/form-data"}, name="s", format="jfr"
        )
        assert ingest(400, *form(jfr=jfr[:3000]), name="s", format="jfr")
        assert ingest(400, *form(jfr=jfr), format="jfr")
        status, text, _ = c.request(
            "POST",
            "/push.v1.PusherService/Push",
            b"\xff" * 99,
            {"Content-Type": "application/proto"},
        )
        assert (
            status == 400
            and json.loads(text)["code"] == "invalid_argument"
            and json.loads(text)["message"]
        )
        assert (
            c.request(
                "POST",
                "/v1development/profiles",
                otlp[:-7],
                {"Content-Type": "application/x-protobuf"},
            )[0]
            == 400
        )
        assert (
            c.request(
                "POST", "/v1development/profiles", "{}", {"Content-Type": "application/json"}
            )[0]
            == 415
        )
        assert total(c) == before


def test_services_say_when_they_sent_and_answers_are_as_long_as_asked(tmp_path, store):
    """Times are those of the first and the last profile, although hours are read from roll-ups. A
    limit counts the rows that are shown.
    """
    with collector(tmp_path, store=store) as c:
        for service, first, last in (
            ("early", NOW - 7200 + 1230, NOW - 3600 + 40),
            ("late", NOW - 3600 + 70, NOW - 3600 + 70),
        ):
            for at in (first, (first + last) // 20 * 10, last):
                c.send(
                    stacks(main_often=90, main_seldom=at % 7 + 1),
                    service=service,
                    id=f"{service}{at}",
                    **{"from": at},
                )
        rows = fleet(c, "services")["services"]
        assert {s["service"]: (s["from"], s["to"]) for s in rows} == {
            "early": (NOW - 7200 + 1230, NOW - 3600 + 50),
            "late": (NOW - 3600 + 70, NOW - 3600 + 80),
        }
        [row] = fleet(c, "services", "--from", NOW - 3600, "--to", NOW - 3600 + 60)["services"]
        assert (row["service"], row["from"], row["to"]) == (
            "early",
            NOW - 3600 + 40,
            NOW - 3600 + 50,
        )
        assert [s["service"] for s in fleet(c, "services", "--limit", "1")["services"]] == ["early"]
        assert [
            m["method"] for m in fleet(c, "top", "--method", "Main.*d*m", "--limit", "1")["methods"]
        ] == ["Main.seldom"]


def test_an_upload_that_is_sent_again_counts_once(tmp_path, store):
    """The same upload by many senders at once, recognized by its id or by its contents."""
    with collector(tmp_path, store=store) as c, concurrent.futures.ThreadPoolExecutor(8) as pool:
        same = list(
            pool.map(
                lambda _: c.send(stacks(a_b=7), service="s", **{"from": NOW})["new"], range(16)
            )
        )
        by_id = list(
            pool.map(
                lambda i: c.send(stacks(a_b=i + 1), service="s", id="one", **{"from": NOW})["new"],
                range(16),
            )
        )
        assert sum(same) == sum(by_id) == 1
        samples = total(c)
        assert 7 + 1 <= samples <= 7 + 16
        # The same contents with another time or sender are another upload.
        assert c.send(stacks(a_b=7), service="s", **{"from": NOW - 3600})["new"]
        samples += 7
        assert c.send(stacks(a_b=7), service="s", host="other", **{"from": NOW})["new"]
        assert total(c) == samples + 7


def test_a_form_that_is_sent_again_counts_once(tmp_path):
    """A client makes a new boundary each time it sends a form, so the upload is named by the
    contents of the parts and not by the boundary.
    """
    boundaries = itertools.count()
    with collector(tmp_path) as c:

        def ingest(parts, packed=None, **query):
            body, headers = form(f"b{next(boundaries)}", **parts)
            if packed:
                body, headers = packed(body), {**headers, "Content-Encoding": "gzip"}
            status, text, _ = c.request(
                "POST",
                "/ingest",
                body,
                headers,
                **{
                    "name": "s{region=eu}",
                    "from": NOW,
                    "until": NOW + 10,
                    "format": "folded",
                    **query,
                },
            )
            assert status == 200, text
            return json.loads(text)["new"]

        one = stacks(a_b=7).encode()
        forms = (
            {"profile": one},
            {"jfr": one},
            {"profile": gzip.compress(one, mtime=0)},
            {"profile": one, "labels": b""},
            {"sample_type_config": b"{}", "profile": one},
            {"profile": stacks(a_b=8).encode()},
            {"labels": b"", "profile": one},
        )
        queries = (
            {"name": "s"},
            {"name": "s{region=us}"},
            {"from": NOW - 60},
            {"until": NOW + 20},
            {"format": "pprof"},
        )
        for send in (*((parts, {}) for parts in forms), *((forms[0], query) for query in queries)):
            assert [ingest(send[0], **send[1]) for _ in range(3)] == [True, False, False], send
        # Packed as a whole, with another time in the header each time, it is the same form.
        assert not any(ingest(forms[0], lambda body: gzip.compress(body, mtime=t)) for t in (1, 2))
        assert total(c) == 7 * (len(forms) - 1) + 8 + 7 * len(queries)
        assert (
            f"jvmscope_uploads_repeated_total {2 * (len(forms) + len(queries)) + 2}\n"
            in c.request("GET", "/metrics")[1]
        )
        # If bytes move from one part to another, it is another form.
        assert ingest({"profile": one, "x": b"ab", "y": b"c"}) and ingest(
            {"profile": one, "x": b"a", "y": b"bc"}
        )


def test_a_kill_at_any_moment_neither_loses_nor_duplicates(tmp_path, store):
    """Senders must behave like this: an upload that was not answered is sent again, with its id."""
    uploads = {f"upload-{i}": i % 13 + 1 for i in range(240)}
    open_ones = dict(uploads)
    random.seed(27)
    rounds = 0
    while open_ones:
        c = Collector(tmp_path, store=store)
        rounds += 1

        def send(item):
            key, n = item
            body = stacks(**{f"main_f{n}": n, "main_all": 1})
            try:
                c.send(body, service=f"s{n % 3}", id=key, **{"from": NOW - 3600 + n * 61})
                return key
            except (OSError, http.client.HTTPException):
                return None

        limit = random.randrange(5, 60) if rounds <= 6 else len(open_ones)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(send, item) for item in open_ones.items()]
            for n, future in enumerate(concurrent.futures.as_completed(futures)):
                if n == limit:
                    c.process.kill()
                key = future.result()
                open_ones.pop(key, None)
        # A sender whose answer was lost cannot know whether its upload was accepted.
        for key in random.sample(sorted(uploads), 20):
            open_ones.setdefault(key, uploads[key])
        if rounds > 6:
            open_ones = {}
            for item in uploads.items():
                assert send(item) == item[0]
            c.stop()
        else:
            c.kill()
    assert total(store) == sum(uploads.values()) + len(uploads)
    methods = fleet(store, "top", "--service", "*")["methods"]
    assert {m["method"]: m["self"] for m in methods if m["method"].startswith("Main.f")} == {
        f"Main.f{n}": n * sum(v == n for v in uploads.values()) for n in range(1, 14)
    }


def test_two_collectors_on_one_store(tmp_path, store):
    with collector(tmp_path, store=store) as one, collector(
        tmp_path, store=store
    ) as two, concurrent.futures.ThreadPoolExecutor(8) as pool:

        def send(i):
            return (one, two)[i // 60].send(
                stacks(**{f"m_f{i % 60 % 7}": 3}), service="s", id=str(i % 60), **{"from": NOW}
            )["new"]

        new = sum(pool.map(send, [i + k for i in range(60) for k in (0, 60)]))
        # Two collectors get the same upload at the same time, and ClickHouse tells both that it is
        # new. It counts once all the same.
        assert new == 60 or store.startswith("clickhouse") and 60 <= new <= 120
        assert total(one) == total(two) == 180


def heap_dump():
    d = hprofdump.small()
    d.end_heap()
    return d.data()


def test_services_without_samples_are_listed(tmp_path, store):
    """`top` named them, and `services` did not list them."""
    jdk = lab.Jdk(17)
    for name, options in (("bare", "exceptions=counts"), ("figures", "events=y")):
        done = jdk.java(
            "Busy", 1, jvm=[jdk.agent(f"format=r,{options},file={tmp_path}/{name}.jfr")]
        )
        assert done.returncode == 0, done.stderr
    with collector(tmp_path, store=store) as c:

        def names(*options):
            return [s["service"] for s in fleet(c, "services", *options)["services"]]

        for name in ("bare", "figures"):
            taken = c.send((tmp_path / f"{name}.jfr").read_bytes(), service=name, version="1")
            assert taken["samples"] == 0
        assert names() == ["bare", "figures"]
        c.send(stacks(a_b=5), service="shop", **{"from": NOW})
        assert names() == ["bare", "figures", "shop"]
        assert names("--version", "1") == ["bare", "figures"]
        assert names("--service", "b*") == ["bare"]
        # Nothing is known of when a recording was made that holds nothing.
        assert names("--from", str(NOW - 3600)) == ["figures", "shop"]
        assert names("--to", str(NOW - 99 * 3600)) == []
        nothing = fleet(c, "top", "--service", "nosuch")["nothing"]
        assert nothing == "service nosuch matches nothing; there are bare, figures, shop"
        printed = lab.output("fleet", "services", "--store", c.store)
        assert re.search(r"(?m)^ +1 +1  -  +-  +bare 1$", printed), printed
        assert re.search(r"(?m)^ +1 +1  20.*  20.*  figures 1$", printed), printed
        # A request that no service has leaves nothing either.
        assert names("--request", "nosuch") == []


def test_parameters_that_are_given_twice_are_refused(tmp_path):
    """A parameter that is given twice is refused, whichever of the values would count."""
    body = stacks(a_b=5)
    for query in (
        "service=s1&service=s2",
        "service=s&host=a&host=a",
        "service=s&label=a=1&label=a=2",
    ):
        with collector(tmp_path) as c:
            status, text, _ = c.request("POST", f"/v1/upload?{query}&from={NOW}", body)
            assert status == 400 and "given more than once" in text, (query, text)
            assert (
                c.request("POST", f"/v1/upload?service=s&label=a=1&label=b=1&from={NOW}", body)[0]
                == 200
            )
            status, text, _ = c.request("POST", f"/ingest?name=a%7Bx=1,x=2%7D&from={NOW}", body)
            assert status == 400 and "x: given more than once" in text, text
            for path in (
                "/ingest?name=a&name=b",
                "/v1/fleet/top?metric=cpu&metric=wall",
                "/metrics?a=1&a=1",
            ):
                method = "POST" if "ingest" in path else "GET"
                status, text, _ = c.request(method, path, body if method == "POST" else None)
                assert status == 400 and "given more than once" in text, (path, text)
            many = "&".join(f"p{i}=" for i in range(400))
            assert c.request("GET", f"/v1/fleet/top?{many}")[:2] == (
                400,
                "more than 256 parameters\n",
            )
            assert c.request("GET", "/v1/fleet/top?label=a=1&label=b=1")[0] == 200
    for labels, why in (
        ("a=1,a=2", "this key is given twice"),
        (",a=1,,b=3,a=1", "this key is given twice"),
        ("a=", "takes KEY=VALUE"),
        ("=b", "takes KEY=VALUE"),
        ("a", "takes KEY=VALUE"),
        ("a=" + "x" * 256, "at most 255 bytes"),
        (",".join(f"k{i}=1" for i in range(33)), "at most 32 labels"),
    ):
        done = lab.jvmscope("host", "--to", "http://127.0.0.1:1", "--label", labels)
        assert done.returncode == 2 and why in done.stderr, (labels, done.stderr)


def test_what_is_damaged_is_refused_and_leaves_nothing(tmp_path, store):
    good = gzip.compress(stacks(a_b=5).encode() * 100)
    with collector(tmp_path, store=store) as c:
        for body in (
            b"",
            os.urandom(5000),
            b"FLR\0" + bytes(200),
            good[:-9],
            good[: len(good) // 2],
            good + b"rest",
            good + os.urandom(5000),
            b"\x28\xb5\x2f\xfd" + os.urandom(99),
            heap_dump(),
        ):
            text, _ = c.send(body, status=400, service="s", **{"from": NOW})
            assert len(text.splitlines()) == 1 and text.strip(), body[:20]
        assert "service" in c.send(good, status=400)[0]
        assert "nosuch" in c.send(good, status=400, service="s", nosuch="1")[0]
        assert "label" in c.send(good, status=400, service="s", label="novalue")[0]
        assert "older" in c.send(stacks(a=1), status=400, service="s", **{"from": 1000000000})[0]
        assert (
            c.request("GET", "/v1/fleet/nosuch")[0] == c.request("POST", "/nosuch", b"x")[0] == 404
        )
        assert (
            c.request("GET", "/v1/fleet/top", nosuch="1")[0]
            == c.request("GET", "/v1/fleet/top", **{"from": "x"})[0]
            == 400
        )
        assert total(c) == 0
        assert c.send(good, service="s", **{"from": NOW})["samples"] == 500


def test_names_that_would_be_cut_or_confused_are_refused(tmp_path):
    """A NUL would cut off the rest of a name, and names that are not UTF-8 look the same in every
    answer.
    """

    def raw(c, path, query, body, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
        connection.request("POST", f"{path}?{query}", body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def labels(*pairs):
        return b"".join(field(1, field(1, key) + field(2, value)) for key, value in pairs)

    body = stacks(a_b=7)
    with collector(tmp_path) as c:
        for bad in (
            "%00",
            "nul%00tail",
            "%00tail",
            "a%0ab",
            "q%ff",
            "%fe",
            "%c0%80",
            "%ed%a0%80",
            "%ed%a0%bd%ed%b8%80",
            "%f4%90%80%80",
            "%e2%82",
        ):
            for query in (
                f"service={bad}",
                f"service=s&version={bad}",
                f"service=s&host={bad}",
                f"service=s&instance={bad}",
                f"service=s&label=k={bad}",
                f"service=s&label={bad}k=v",
            ):
                status, text = raw(c, "/v1/upload", query, body)
                assert (status, len(text.splitlines())) == (400, 1) and (
                    "NUL" in text or "control" in text or "UTF-8" in text
                ), (query, text)
            for name in (bad, f"s{{k={bad}}}", f"s{{{bad}=v}}"):
                status, text = raw(
                    c,
                    "/ingest",
                    f"name={name.replace('=', '%3d')}&format=folded&from={NOW}&until={NOW + 1}",
                    body,
                )
                assert status == 400 and ("NUL" in text or "control" in text or "UTF-8" in text), (
                    name,
                    text,
                )
        assert raw(c, "/v1/upload%00x", "service=s", body)[0] == 400
        assert raw(c, "/v1/upload", "%00x=1&service=s", body)[0] == 400
        sample = field(2, field(1, pprof("cpu", "nanoseconds", main_work=10**7)))
        for pairs in (
            ((b"service_name", b"a\0b"),),
            ((b"service_name", b"s"), (b"k", b"v\0")),
            ((b"service_name", b"s"), (b"k\0", b"v")),
        ):
            status, text = raw(
                c,
                "/push.v1.PusherService/Push",
                "",
                field(1, labels(*pairs) + sample),
                {"Content-Type": "application/proto"},
            )
            assert status == 400 and "control" in text, (pairs, text)
        # A connection is not refused because of what an earlier request on it contained.
        connection = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
        for query, status in (
            ("service=a%00", 400),
            (f"service=%c3%a4%f0%9f%98%80&from={NOW}", 200),
        ):
            connection.request("POST", f"/v1/upload?{query}", body)
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (status, True)
        connection.close()
        assert [s["service"] for s in fleet(c, "services")["services"]] == ["ä😀"] and total(c) == 7


def test_clocks_that_are_wrong(tmp_path, store):
    """The offset of a sender's clock is subtracted, and nothing is stored in the future; nothing is
    lost.
    """
    with collector(tmp_path, store=store) as c:
        now = int(time.time())
        c.send(stacks(a=1), service="late", sent=now - 86400, **{"from": now - 86400})
        c.send(stacks(a=2), service="early", sent=now + 86400, **{"from": now + 86400})
        c.send(stacks(a=4), service="future", **{"from": now + 10 * 86400})
        assert total(c) == 7
        assert total(c, "--from", now - 300, "--to", now + 300) == 7
        assert "jvmscope_uploads_shifted_total 3" in c.request("GET", "/metrics")[1]


def test_who_may_send_and_ask(tmp_path):
    store = f"sqlite:{tmp_path / 'x.db'}"
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:4040"):
        done = lab.jvmscope("collect", "--store", store, "--listen", address)
        assert (
            done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "--token" in done.stderr
        )
        assert not (tmp_path / "x.db").exists()
    tokens = tmp_path / "tokens"
    tokens.write_text("red=secret1\nblue=secret2\n")
    with collector(tmp_path, "--token", f"@{tokens}", "--token", "green=secret3") as c:

        def bearer(token):
            return {"Authorization": f"Bearer {token}"}

        basic = {"Authorization": "Basic " + base64.b64encode(b"anybody:secret3").decode()}
        for headers in (
            {},
            bearer("secret"),
            bearer("secret11"),
            bearer(""),
            {"Authorization": "Basic !!"},
            {"Authorization": "secret1"},
        ):
            status, text, _ = c.request("POST", "/v1/upload", stacks(a=1), headers, service="s")
            assert status == 401 and "token" in text, headers
            assert c.request("GET", "/v1/fleet/top", headers=headers)[0] == 401
            assert c.request("GET", "/metrics", headers=headers)[0] == 401
        c.send(stacks(a=1), headers=bearer("secret1"), service="s", **{"from": NOW})
        c.send(stacks(a=2), headers=bearer("secret2"), service="s", **{"from": NOW})
        c.send(stacks(a=4), headers=basic, service="s", **{"from": NOW})
        for headers, n in ((bearer("secret1"), 1), (bearer("secret2"), 2), (basic, 4)):
            for query in ({}, {"tenant": "blue"}, {"tenant": "*"}):
                status, text, _ = c.request("GET", "/v1/fleet/top", headers=headers, **query)
                assert [s["cpu_samples"] for s in json.loads(text)["services"]] == [n]
        assert total(c) == 7 and total(c, "--tenant", "blue") == 2
        url = f"http://127.0.0.1:{c.port}"
        done = lab.jvmscope("fleet", "top", "--json", "--collector", url, "--token", "secret2")
        assert [s["cpu_samples"] for s in json.loads(done.stdout)["services"]] == [2]
        for options, printed in (
            ((), "a token is needed (--token TOKEN, or @FILE)"),
            (("--token", "secret"), "this token is not known there (--token TOKEN, or @FILE)"),
        ):
            done = lab.jvmscope("fleet", "top", "--collector", url, *options)
            assert (done.returncode, done.stderr) == (1, f"jvmscope: {url}: {printed}\n"), done
    # A token without its tenant, or a tenant's name without its token, is not accepted as the
    # other.
    tokens.write_text("red=secret1\nsecret3\n")
    (tmp_path / "none").write_text("\n")
    for given in ("secret3", "red=secret1,secret3", f"@{tokens}", f"@{tmp_path / 'none'}", ","):
        done = lab.jvmscope(
            "collect", "--store", store, "--listen", "127.0.0.1:0", "--token", given, timeout=60
        )
        assert (
            done.returncode == 2
            and len(done.stderr.splitlines()) == 1
            and "TENANT=TOKEN" in done.stderr
            and "secret" not in done.stderr
        ), done
        assert not (tmp_path / "x.db").exists()
    assert os.stat(tmp_path / "fleet.db").st_mode & 0o077 == 0


def test_pages_of_other_sites_are_refused(tmp_path):
    with collector(tmp_path) as c:
        for headers in (
            {"Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Host": "evil.example"},
            {"Origin": "null"},
        ):
            assert c.request("POST", "/v1/upload", stacks(a=1), headers, service="s")[0] == 403
            assert c.request("GET", "/v1/fleet/top", headers=headers)[0] == 403
        assert c.request("GET", "/v1/fleet/top", headers={"Host": f"localhost:{c.port}"})[0] == 200
        assert total(c) == 0


def test_limits_are_reported_and_memory_is_bounded(tmp_path):
    with collector(tmp_path, "--max-upload", "4M") as c:
        for body, words, query in (
            (bytes(5 << 20), "too large", {}),
            (bytes(15 << 20), "too large", {}),
            (gzip.compress(bytes(300 << 20)), "unpacks to more than", {}),
            (gzip.compress(gzip.compress(bytes(300 << 20))), "unpacks to more than", {}),
            (";".join(f"F.f{i}" for i in range(5000)) + " 1\n", "5000 frames", {}),
            (
                gzip.compress((";".join(f"F.f{i}" for i in range(1000000)) + " 1\n").encode()),
                "refused: ",
                {},
            ),
            (
                gzip.compress("".join(f"F.f{i} 1\n" for i in range(201000)).encode()),
                "different stacks",
                {},
            ),
            ("A." + "x" * 10000 + " 1\n", "a name has", {}),
            (stacks(a=1), "labels", {"labels": {f"k{i}": "v" for i in range(40)}}),
            (stacks(a=1), "longer than", {"labels": {"k": "v" * 2000}}),
            (stacks(a=1), "longer than", {"host": "v" * 2000}),
        ):
            text, _ = c.send(body, status=413, service="s", **{"from": NOW}, **query)
            assert words in text and len(text.splitlines()) == 1
        assert total(c) == 0
        # A body sent in chunks without a length, beyond the limit.
        with socket.create_connection(("127.0.0.1", c.port)) as s:
            s.sendall(
                b"POST /v1/upload?service=s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            with contextlib.suppress(OSError):
                for _ in range(40):
                    s.sendall(b"40000\r\n" + bytes(0x40000) + b"\r\n")
                s.sendall(b"0\r\n\r\n")
            with contextlib.suppress(OSError):
                assert s.recv(100).startswith((b"HTTP/1.1 413", b""))
        assert c.send(stacks(a=3), service="s", **{"from": NOW})["samples"] == 3
        assert peak_mb(c.process.pid) < 512


def test_uploads_are_read_two_at_a_time_and_large_ones_alone(tmp_path):
    """The memory for reading is divided in two. An upload that does not fit into half of it is read
    with all of it, and counts the same.
    """

    def of(megabytes):
        line = f"Main.main;Main.{'x' * 3900} 1\n".encode()
        n = (megabytes << 20) // len(line)
        return gzip.compress(line * n, 1), n

    medium, large = of(24), of(80)
    with collector(tmp_path) as c, concurrent.futures.ThreadPoolExecutor(8) as pool:

        def send_all(bodies, name):
            done = [
                pool.submit(c.send, body, service="s", id=f"{name} {i}", **{"from": NOW - 60 * i})
                for i, (body, _) in enumerate(bodies)
            ]
            most_at_once, before = 0, set()
            while not all(f.done() for f in done):
                now = set(children_of(c.process.pid))
                most_at_once = max(
                    most_at_once, len(now & before)
                )  # seen twice: it was there all the time in between
                before = now
            assert [f.result()["samples"] for f in done] == [n for _, n in bodies]
            return most_at_once

        assert send_all([medium] * 8, "medium") == 2
        assert send_all([large, medium, medium], "large") <= 2
        assert total(c) == 10 * medium[1] + large[1]
        assert peak_mb(c.process.pid) < 512


def test_label_values_without_end_are_refused(tmp_path):
    """Known series continue, also after a restart and from another sender; each tenant has its
    own.
    """

    def send(c, token, status=200, **query):
        return c.send(
            stacks(a=1),
            status=status,
            headers={"Authorization": f"Bearer {token}"},
            **{"from": NOW},
            **query,
        )

    options = ("--max-series", "20", "--token", "red=secret1", "--token", "blue=secret2")
    with collector(tmp_path, *options) as c:
        for i in range(20):
            send(c, "secret1", service="s", labels={"user": f"u{i}"})
        for i in range(20, 60):
            assert (
                "--max-series"
                in send(c, "secret1", status=413, service="s", labels={"user": f"u{i}"})[0]
            )
        assert send(c, "secret1", service="s", labels={"user": "u3"}, id="again")["new"]
        assert send(c, "secret2", service="s", labels={"user": "u30"})["new"]
    with collector(tmp_path, *options) as c:
        send(c, "secret1", status=413, service="s", labels={"user": "u20"})
        assert send(c, "secret1", service="s", labels={"user": "u19"}, id="once more")["new"]
        assert total(c, "--tenant", "red") == 22 and total(c, "--tenant", "blue") == 1


def test_uploads_that_arrive_too_fast_are_asked_to_wait(tmp_path):
    with collector(tmp_path, "--rate", "1") as c:
        answers = [
            c.request("POST", "/v1/upload", stacks(a=1), service="s", id=str(i), **{"from": NOW})
            for i in range(40)
        ]
        limited = [a for a in answers if a[0] == 429]
        assert limited and all(int(a[2]["Retry-After"]) >= 1 for a in limited)
        assert total(c) == len(answers) - len(limited) > 0


def test_clients_that_do_not_finish_keep_nobody_out(tmp_path):
    with collector(tmp_path) as c:
        slow = [socket.create_connection(("127.0.0.1", c.port)) for _ in range(400)]
        for s in slow:
            with contextlib.suppress(OSError):
                s.sendall(
                    b"POST /v1/upload?service=s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n1"
                )
        for i in range(20):
            c.send(stacks(a=1), service="s", id=str(i), **{"from": NOW})
        assert total(c) == 20
        for s in slow:
            s.close()


USUAL = {f"f{i}": 1 + i % 7 for i in range(50)}  # the cost of methods, in shares
SLOWER = {**USUAL, "f6": 14}


def draw_stacks(n, weights):
    """Collapsed stacks of n samples that are distributed over methods at random."""
    counts = {}
    for f in random.choices(list(weights), list(weights.values()), k=n):
        counts[f] = counts.get(f, 0) + 1
    return "".join(f"Main.main;App.{f} {v}\n" for f, v in counts.items())


def test_a_difference_is_seen_and_chance_is_not(tmp_path, store):
    """Two versions drawn from the same shares do not differ. One method that has become twice as
    expensive is found.
    """
    random.seed(5)

    with collector(tmp_path, store=store) as c:
        for version, weights in (("1", USUAL), ("2", USUAL), ("3", SLOWER)):
            for host in range(3):
                for bucket in range(20):
                    c.send(
                        draw_stacks(600, weights),
                        service="shop",
                        version=version,
                        host=f"h{host}",
                        labels={"region": "us" if version == "3" else "eu"},
                        **{"from": NOW - 3600 + 10 * bucket},
                    )
        same = fleet(c, "diff", "--service", "shop", "--version", "2", "--base", "version=1")
        assert (
            same["verdict"] == "no change"
            and same["new"]["samples"] == same["base"]["samples"] == 36000
        )
        other = fleet(c, "diff", "--service", "shop", "--version", "3", "--base", "version=1")
        assert other["verdict"] == "changed"
        assert [other[side]["selection"] for side in ("base", "new")] == ["version 1", "version 3"]
        [first] = [m for m in other["methods"] if m["self"]["verdict"] == "more"]
        assert (
            first["method"] == "App.f6"
            and first["self"]["low"]
            <= 14 / (sum(USUAL.values()) + 7) - 7 / sum(USUAL.values())
            <= first["self"]["high"]
        )
        assert (
            fleet(c, "diff", "--service", "shop", "--version", "2", "--base", "version=9")[
                "verdict"
            ]
            == "no data"
        )
        # A label of the base replaces that of the selection, or is added to the others.
        of_label = fleet(
            c, "diff", "--service", "shop", "--label", "region=us", "--base", "region=eu"
        )
        assert of_label["base"]["samples"] == 2 * 36000 and of_label["new"]["samples"] == 36000
        assert (
            fleet(c, "diff", "--service", "shop", "--label", "region=us", "--base", "zone=a")[
                "base"
            ]["samples"]
            == 0
        )
        text = lab.jvmscope(
            "fleet",
            "diff",
            "--store",
            c.store,
            "--service",
            "shop",
            "--version",
            "2",
            "--base",
            "version=1",
        ).stdout
        assert (
            text.splitlines()[0]
            == "cpu: base version 1, 36000 samples; new version 2, 36000 samples: no change"
        )
        # What both sides have in common is not named; what one of them leaves open is.
        for arguments, base, new in (
            (("--label", "region=us", "--base", "region=eu"), "label region=eu", "label region=us"),
            (("--base", "zone=a"), "label zone=a", "any label zone"),
            (
                ("--host", "h1", "--base", "version=1,host=h2"),
                "version 1, host h2",
                "any version, host h1",
            ),
            (
                ("--version", "1", "--from", "2001-09-09T01:46:41Z", "--base")
                + ("from=2001-09-09T01:46:40Z,to=2001-09-09T02:00:00Z",),
                "from 2001-09-09T01:46:40Z to 2001-09-09T02:00:00Z",
                "from 2001-09-09T01:46:41Z",
            ),
            (("--from", "1000000000", "--base", "from=0"), "any time", "from 2001-09-09T01:46:40Z"),
        ):
            answer = fleet(c, "diff", "--service", "shop", *arguments)
            assert (answer["base"]["selection"], answer["new"]["selection"]) == (base, new)


def test_many_instances_are_compared_in_long_steps(tmp_path):
    """A side is divided into a hundred clusters or more if possible, but not into many more,
    because each of them is processed.
    """
    with collector(tmp_path) as c, concurrent.futures.ThreadPoolExecutor(8) as pool:

        def send(at):
            version, instance, second = at
            c.send(
                stacks(main_a=5, main_b=5),
                service="s",
                version=version,
                instance=instance,
                **{"from": NOW - 7200 + second},
            )

        list(
            pool.map(
                send,
                [
                    (version, f"i{i}", second)
                    for version, n in (("many", 100), ("few", 3))
                    for i in range(n)
                    for second in (0, 20, 600)
                ],
            )
        )
        answer = fleet(c, "diff", "--version", "many", "--base", "version=few")
        assert (answer["new"]["samples"], answer["new"]["clusters"]) == (3000, 100)
        assert (answer["base"]["samples"], answer["base"]["clusters"]) == (90, 9)
        # All instances, in steps of 5 minutes.
        answer = fleet(c, "diff", "--version", "many", "--instance", "i1?", "--base", "instance=i*")
        assert (answer["new"]["clusters"], answer["base"]["clusters"]) == (30, 100)


def test_names_that_choose_nothing_are_reported(tmp_path, store):
    """Each filter that leaves nothing is named, with what exists instead. An unknown metric is
    refused.
    """
    with collector(tmp_path, store=store) as c:
        assert fleet(c, "services")["nothing"] == "there are no profiles"
        for version, host in (("1.7", "web1"), ("1.8", "web2")):
            c.send(
                stacks(main_work=5),
                service="shop",
                version=version,
                host=host,
                labels={"zone": "a"},
                **{"from": NOW - 3600},
            )
        c.send(stacks(main_pay=3), service="pay", **{"from": NOW - 3600})
        for filters, printed in (
            (("--service", "nosuch"), "service nosuch matches nothing; there are pay, shop"),
            (("--service", "n*"), "service n* matches nothing; there are pay, shop"),
            (("--service", "shop,pya"), "service pya matches nothing; there are pay, shop"),
            (
                ("--service", "pay", "--service", "shpo"),
                "service shpo matches nothing; there are pay, shop",
            ),
            (
                ("--service", "shop", "--host", "web2,web3"),
                "host web3 matches nothing of service shop; there are web1, web2",
            ),
            (("--version", "9"), "version 9 matches nothing; there are (none), 1.7, 1.8"),
            (
                ("--service", "shop", "--version", "1.8", "--host", "web1"),
                "host web1 matches nothing of service shop, version 1.8; there is web2",
            ),
            (("--label", "zone=z"), "label zone=z matches nothing; there is zone=a"),
            (
                ("--service", "pay", "--label", "zone=a"),
                "label zone=a matches nothing of service pay",
            ),
            (("--tenant", "nosuch"), "tenant nosuch matches nothing; there is default"),
            (
                ("--service", "shop", "--from", "2030-01-01T00:00Z"),
                "the time from 2030-01-01T00:00:00Z matches nothing of service shop; there are profiles from ",
            ),
            (
                ("--to", "1970-01-02T00:00Z"),
                "the time to 1970-01-02T00:00:00Z matches nothing; there are profiles from ",
            ),
        ):
            for verb in (
                ("services",),
                ("top",),
                ("top", "--method", "*"),
                ("flame",),
                ("query", "--method", "*"),
                ("findings",),
                ("diff", "--base", "request=x"),
            ):
                assert fleet(c, *verb, *filters)["nothing"].startswith(printed), (verb, filters)
        for verb in (
            ("top",),
            ("top", "--service", "*"),
            ("flame",),
            ("query", "--method", "*"),
            ("findings",),
        ):
            assert (
                fleet(c, *verb, "--metric", "locks")["nothing"]
                == "metric locks matches nothing"
                + (" of service *" if "--service" in verb else "")
                + "; there is cpu"
            )
            assert (
                fleet(c, *verb, "--metric", "samples")
                == fleet(c, *verb, "--metric", "cpu")
                == fleet(c, *verb)
            )
            assert fleet(c, *verb, "--request", "GET /x")["nothing"].startswith(
                "request GET /x matches nothing"
            )
            if verb[0] != "findings":
                assert "nothing" not in fleet(c, *verb)
        for verb in (("top",), ("query",)):
            assert (
                fleet(c, *verb, "--service", "pay", "--method", "No.such")["nothing"]
                == "method No.such matches nothing of service pay"
            )
            # One of several is misspelt; it used to be left out without a word.
            method = min(m["method"] for m in fleet(c, "top", "--service", "pay")["methods"])
            for several in (f"{method},No.such", f"No.such,{method}"):
                assert (
                    fleet(c, *verb, "--service", "pay", "--method", several)["nothing"]
                    == "method No.such matches nothing of service pay"
                )
            assert "nothing" not in fleet(c, *verb, "--method", f"{method},*")
            assert "nothing" not in fleet(c, *verb, "--method", method)
            done = lab.jvmscope(
                "fleet", *verb, "--method", method, "--price", "0", "--store", c.store
            )
            assert done.returncode == 2 and "--price: out of range: 0, not above 0" in done.stderr
        assert (
            fleet(c, "requests", "--service", "pay")["nothing"]
            == "there are no requests of service pay"
        )
        assert (
            fleet(c, "diff", "--version", "1.8", "--base", "version=1.6")["nothing"]
            == "base: version 1.6 matches nothing; there are (none), 1.7, 1.8"
        )
        assert "  pay (no version)\n" in lab.output(
            "fleet", "services", "--store", c.store
        ), "an empty version reads like none at all"
        for filters, versions in (
            (("--service", "shop,pay"), {"1.7", "1.8", ""}),
            (("--service", "sh*, pay"), {"1.7", "1.8", ""}),
            (("--service", "shop", "--service", "pay"), {"1.7", "1.8", ""}),
            (("--host", "web1", "--host", "web2"), {"1.7", "1.8"}),
            (("--version", "1.8,1.7"), {"1.7", "1.8"}),
            (("--version", "1.8"), {"1.8"}),
        ):
            found = fleet(c, "services", *filters)["services"]
            assert {s["version"] for s in found} == versions, (filters, found)
        two = [m["method"] for m in fleet(c, "top", "--method", "*")["methods"]][:2]
        for words in (("--method", ",".join(two)), ("--method", two[0], "--method", two[1])):
            found = {m["method"] for m in fleet(c, "top", *words)["methods"]}
            assert len(two) == 2 and found == set(two), (words, found)
        for verb in ("top", "query"):
            words = ("fleet", verb, "--method", "*", "--price", "1", "--store", c.store)
            done = lab.jvmscope(*words, "--metric", "locks")
            assert (done.returncode, done.stdout) == (2, ""), done
            assert "--price has no effect with this --metric" in done.stderr
            for metric in ("cpu", "samples"):
                assert lab.jvmscope(*words, "--metric", metric).returncode == 0
        known = "cpu, wall, allocations, locks, times, live, latency, latency_slow, latency_typical"
        shown = lab.output("fleet", "top", "--help")
        assert all(
            re.search(rf"--metric NAME.*\b{metric}\b", shown) for metric in known.split(", ")
        )
        for where in (("--store", c.store), ("--collector", f"http://127.0.0.1:{c.port}")):
            done = lab.jvmscope("fleet", "top", "--metric", "nosuch", *where)
            assert done.returncode == (2 if where[0] == "--store" else 1) and not done.stdout
            assert f"metric: unknown: nosuch; known are {known}\n" in done.stderr
            done = lab.jvmscope("fleet", "top", "--service", "nosuch", *where)
            assert (done.returncode, done.stdout) == (
                1,
                "",
            ) and "service nosuch matches nothing; there are pay, shop" in done.stderr
        status, text, _ = c.request("GET", "/v1/fleet/top", metric="nosuch")
        assert status == 400 and known in text
        status, text, _ = c.request("GET", "/v1/fleet/top", service="nosuch")
        assert status == 200 and json.loads(text) == fleet(c, "top", "--service", "nosuch")


def test_without_a_metric_the_answer_is_about_what_was_sent(tmp_path, store):
    with collector(tmp_path, store=store) as c:
        delays = pprof("delay", "nanoseconds", main_wait=1036687357)
        c.send(delays, service="waits", **{"from": NOW})
        c.send(stacks(main_work=5), service="works", **{"from": NOW})
        top = fleet(c, "top", "--service", "waits")
        assert (top["metric"], top["locks_ns"]) == ("locks", 1036687357), top
        assert top == fleet(c, "top", "--service", "waits", "--metric", "locks")
        for verb in (("flame",), ("query", "--method", "Main.wait")):
            assert fleet(c, *verb, "--service", "waits")["metric"] == "locks"
        # CPU samples come first, and a metric that is named is not replaced.
        assert fleet(c, "top")["metric"] == "cpu" and total(c) == 5
        for named in ("cpu", "samples"):
            answer = fleet(c, "top", "--service", "waits", "--metric", named)
            assert answer["nothing"].startswith("metric cpu matches nothing"), answer
        assert "nothing" in fleet(c, "top", "--service", "waits", "--method", "No.such")
        table = lab.jvmscope("fleet", "top", "--store", c.store, "--service", "waits", check=True)
        assert "method (locks, of 1.04 s)" in table.stdout


def test_tables_have_units(tmp_path, store):
    """Allocated bytes and times are printed as report prints them, one method is not "1 methods",
    and no interval exceeds what is possible.
    """
    with collector(tmp_path, store=store) as c:
        c.send(
            pprof("alloc_space", "bytes", main_big=446693376, main_small=4096),
            service="s",
            **{"from": NOW},
        )
        c.send(
            pprof("delay", "nanoseconds", main_wait=1036687357, main_brief=2500),
            service="s",
            **{"from": NOW},
        )
        c.send(stacks(main_work=1234567), service="s", **{"from": NOW})

        def table(verb, *options):
            return lab.jvmscope("fleet", verb, "--store", c.store, *options, check=True).stdout

        assert table("top", "--service", "s", "--metric", "allocations").splitlines() == [
            "             self              total  method (allocations, of 426 MiB)",
            "  426 MiB 100.0 %    426 MiB 100.0 %  Main.big",
            " 4.00 KiB   0.0 %   4.00 KiB   0.0 %  Main.small",
            "      0 B   0.0 %    426 MiB 100.0 %  Main.main",
        ]
        assert table("top", "--service", "s", "--metric", "locks", "-n", "2").splitlines() == [
            "             self              total  method (locks, of 1.04 s)",
            "   1.04 s 100.0 %     1.04 s 100.0 %  Main.wait",
            "  2.50 us   0.0 %    2.50 us   0.0 %  Main.brief",
            " ... and 1 more method (--limit)",
        ]
        assert "  1234567 100.0 %    1234567 100.0 %  Main.work\n" in table(
            "top", "--service", "s", "--metric", "samples"
        )
        lines = table("query", "--method", "Main.big", "--metric", "allocations").splitlines()
        assert lines[0] == "allocations, 426 MiB in all that is chosen"
        assert (
            "  426 MiB 100.0 %    426 MiB 100.0 %  s (no version): Main.big" in lines
            and "  426 MiB 100.0 %    426 MiB 100.0 %  Main.main > Main.big" in lines
        )


def test_the_words_of_the_command(tmp_path):
    good = tmp_path / "fleet.db"
    with collector(tmp_path) as c:
        c.send(stacks(a=1), service="s\u001b[31m<b>", **{"from": NOW}, status=400)
        c.send(stacks(a=1), service="<b>s</b>", **{"from": NOW})
    assert "<b>s</b>" in lab.jvmscope("fleet", "top", "--store", f"sqlite:{good}").stdout
    other = tmp_path / "other.db"
    import sqlite3

    sqlite3.connect(other).executescript("CREATE TABLE t(x)")
    newer = tmp_path / "newer.db"
    sqlite3.connect(newer).executescript("PRAGMA user_version = 99")
    noise = tmp_path / "noise.db"
    noise.write_bytes(os.urandom(5000))
    for status, arguments, words in (
        (2, ("fleet", "top"), "--store"),
        (1, ("fleet", "top", "--store", "sqlite:/nonexistent/x.db"), "No such file"),
        (2, ("fleet", "top", "--store", "nosuch:x"), "sqlite:FILE"),
        (1, ("fleet", "top", "--store", f"sqlite:{other}"), "another program"),
        (1, ("fleet", "top", "--store", f"sqlite:{newer}"), "newer version"),
        (1, ("fleet", "top", "--store", f"sqlite:{noise}"), "not a database"),
        (2, ("fleet", "top", "--store", f"sqlite:{good}", "--from", "yesterday"), "not a time"),
        (2, ("fleet", "top", "--store", f"sqlite:{good}", "--label", "x"), "KEY=VALUE"),
        (2, ("fleet", "top", "--store", f"sqlite:{good}", "--token", "x"), "has no effect"),
        (
            2,
            ("fleet", "top", "--store", f"sqlite:{good}", "--from", "5m", "--to", "10m"),
            "--from: it is after the end of the time",
        ),
        (2, ("fleet", "diff", "--store", f"sqlite:{good}"), "--base"),
        (
            2,
            ("fleet", "diff", "--store", f"sqlite:{good}")
            + ("--base", "version=1", "--base", "host=a,version=2"),
            "--base: given twice: version=1 and version=2",
        ),
        (2, ("collect",), "--store"),
        (2, ("collect", "--store", f"sqlite:{good}", "--listen", "nohost"), "ADDRESS:PORT"),
        (2, ("collect", "--store", f"sqlite:{good}", "--keep", "1d,1h,2h"), "--keep"),
        (2, ("collect", "--store", f"sqlite:{good}", "--token", "a b=c"), "--token"),
        (1, ("collect", "--store", "sqlite:/nonexistent/x.db"), "No such file"),
    ):
        done = lab.jvmscope(*arguments)
        assert (
            done.returncode == status
            and words in done.stderr
            and len(done.stderr.splitlines()) == 1
        ), (arguments, done.stderr)
        assert not done.stdout
    # It prints all stacks, and offers no limit that it does not keep.
    limited = lab.jvmscope("fleet", "flame", "-n", "1", "--store", f"sqlite:{good}")
    assert limited.returncode == 2 and "-n: no such option" in limited.stderr, limited


def test_what_got_slower_is_found_by_itself(tmp_path, store):
    """A new version is compared with the one before it; a service in which nothing changed is not
    named.
    """
    random.seed(9)

    with collector(tmp_path, store=store) as c:
        for service, weights in (("same", USUAL), ("worse", SLOWER)):
            for host in range(3):
                for k, (version, w) in enumerate((("1", USUAL), ("2", weights))):
                    for bucket in range(15):
                        c.send(
                            draw_stacks(600, w),
                            service=service,
                            version=version,
                            host=f"h{host}",
                            **{"from": NOW - 7200 + 600 * k + 10 * bucket},
                        )
        answer = fleet(c, "findings", "--from", NOW - 86400)
        assert {
            (p["service"], p["version"], p["base"], p["since"], p["verdict"])
            for p in answer["compared"]
        } == {
            ("same", "2", "1", NOW - 6600, "no regression"),
            ("worse", "2", "1", NOW - 6600, "slower"),
        }
        [first] = answer["findings"]
        assert (first["kind"], first["service"], first["version"], first["method"]) == (
            "regression",
            "worse",
            "2",
            "App.f6",
        )
        assert (
            first["self"]["low"]
            <= 14 / (sum(USUAL.values()) + 7) - 7 / sum(USUAL.values())
            <= first["self"]["high"]
        )
        assert 0 < first["extra_samples"] < 9000 and answer["false_alarm"] == 0.01
        # A version that came before the range is not new.
        assert fleet(c, "findings", "--from", NOW - 6500) == {
            **answer,
            "findings": [],
            "compared": [],
        }
        assert fleet(c, "findings", "--service", "same")["findings"] == []
        status, text, _ = c.request("GET", "/v1/fleet/findings", **{"from": NOW - 86400})
        assert status == 200 and json.loads(text) == answer
        shown = lab.jvmscope("fleet", "findings", "--store", c.store).stdout
        assert "worse 2 (after 1) App.f6" in shown and "same" not in shown
        assert (
            "nothing was compared: no version of a service began after another one in this period"
            in lab.jvmscope("fleet", "findings", "--store", c.store, "--version", "1").stdout
        )
        assert (
            "nothing got slower: 1 new version compared"
            in lab.jvmscope("fleet", "findings", "--store", c.store, "--service", "same").stdout
        )


def test_who_calls_a_method_in_the_fleet(tmp_path, store):
    with collector(tmp_path, store=store) as c:
        c.send(
            "A.main;B.call;Lib.sort;Lib.less 3\nA.main;Lib.sort 4\nA.main;Lib.sort;Lib.sort 5\nA.main;B.call 7\n".encode(),
            service="shop",
            version="1",
            **{"from": NOW},
        )
        c.send(
            "C.main;Lib.sort 10\nLib.sort;Lib.less 1\n".encode(),
            service="pay",
            version="2",
            host="h",
            **{"from": NOW},
        )
        answer = fleet(c, "query", "--method", "Lib.sort")
        assert answer["cpu_samples"] == 30
        assert {
            (s["service"], s["version"]): (s["self"], s["total"], round(s["share"], 4))
            for s in answer["services"]
        } == {("shop", "1"): (9, 12, round(12 / 19, 4)), ("pay", "2"): (10, 11, 1)}
        assert {(r["caller"], r["method"]): (r["self"], r["total"]) for r in answer["callers"]} == {
            ("B.call", "Lib.sort"): (0, 3),
            ("A.main", "Lib.sort"): (4, 4),
            ("Lib.sort", "Lib.sort"): (5, 5),
            ("C.main", "Lib.sort"): (10, 10),
            ("", "Lib.sort"): (0, 1),
        }
        both = fleet(c, "query", "--method", "Lib.*", "--service", "shop")
        assert {r["method"]: r["total"] for r in both["services"]} == {
            "Lib.sort": 12,
            "Lib.less": 3,
        }
        priced = fleet(c, "query", "--method", "Lib.less", "--price", "36")
        assert len(priced["services"]) == 2 and not any(
            "cost" in r for r in priced["services"]
        )  # no sample has a time
        nothing = fleet(c, "query", "--method", "No.such")
        assert nothing["services"] == nothing["callers"] == []
        status, text, _ = c.request("GET", "/v1/fleet/query?method=Lib.sort")
        assert status == 200 and json.loads(text) == answer
        assert c.request("GET", "/v1/fleet/query")[0] == 400
        shown = lab.jvmscope("fleet", "query", "--store", c.store, "--method", "Lib.sort").stdout
        assert "shop 1: Lib.sort" in shown and "A.main > Lib.sort" in shown
        c.request(
            "POST",
            "/ingest",
            b"A.main;Own.part 50\n",
            name="rated",
            format="folded",
            sampleRate=100,
            **{"from": NOW, "until": NOW + 10},
        )
        priced = fleet(c, "query", "--method", "Own.part", "--price", "3600")
        assert [(r["cpu_ns"], r["cost"]) for r in priced["services"] + priced["callers"]] == [
            (500_000_000, 0.5)
        ] * 2
    assert lab.jvmscope("fleet", "query", "--store", store).returncode == 2
