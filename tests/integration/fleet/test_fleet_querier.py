# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's querier as Grafana queries it, in JSON and in protobuf, with messages that protoc
makes from the published field numbers.
"""
import importlib
import json
import subprocess
import sys

import pytest

import clickhouse
import lab
from fleet_lab import NOW, collector, stacks

PROTO = lab.ROOT / "tests" / "data" / "querier.proto"
SPAN = {"start": (NOW - 3600) * 1000, "end": (NOW + 3600) * 1000}
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
TIME = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("querier")
    subprocess.run(
        ["protoc", f"-I{PROTO.parent}", f"--python_out={folder}", PROTO.name],
        cwd=PROTO.parent,
        check=True,
    )
    sys.path.insert(0, str(folder))
    yield importlib.import_module("querier_pb2")
    sys.path.remove(str(folder))


def asked(c, method, status=200, headers=None, **question):
    got, text, answer = c.request(
        "POST",
        f"/querier.v1.QuerierService/{method}",
        json.dumps(question),
        {"Content-Type": "application/json", **(headers or {})},
    )
    assert got == status, (got, text)
    assert answer["Content-Type"] == "application/json"
    return json.loads(text)


def flame_of(graph):
    """Returns name to (total, self) for a graph whose levels are runs of (offset, total, self,
    name).
    """
    found = {}
    for level in graph["levels"]:
        values = [int(v) for v in level["values"]]
        for i in range(0, len(values), 4):
            name = graph["names"][values[i + 3]]
            before = found.get(name, (0, 0))
            found[name] = (before[0] + values[i + 1], before[1] + values[i + 2])
    return found


@pytest.mark.parametrize("kind", ["sqlite", "clickhouse"])
def test_grafana_gets_the_totals_that_were_sent(tmp_path, messages, kind, request):
    store = (
        f"sqlite:{tmp_path / 'fleet.db'}"
        if kind == "sqlite"
        else clickhouse.new_store(request.getfixturevalue("shards"))
    )
    with collector(tmp_path, store=store) as c:
        for service, host, n in (("shop", "web1", 5), ("shop", "web2", 7), ("pay", "web1", 11)):
            for minute in range(3):
                c.send(
                    stacks(main_work=n, main_rest=2),
                    service=service,
                    version="1.8",
                    host=host,
                    labels={"region": "eu"},
                    **{"from": NOW - 600 + 60 * minute},
                )
        ids = [t["ID"] for t in asked(c, "ProfileTypes", **SPAN)["profileTypes"]]
        assert SAMPLES in ids and TIME in ids
        assert asked(c, "LabelNames", **SPAN)["names"] == [
            "hostname",
            "region",
            "service_name",
            "version",
        ]
        assert asked(c, "LabelValues", name="service_name", **SPAN)["names"] == ["pay", "shop"]
        assert asked(c, "LabelValues", name="hostname", matchers=['{service_name="pay"}'], **SPAN)[
            "names"
        ] == ["web1"]
        sets = asked(c, "Series", labelNames=["service_name"], matchers=[], **SPAN)["labelsSet"]
        assert sorted(s["labels"][0]["value"] for s in sets) == ["pay", "shop"]
        for selector, n in (
            ("{}", 3 * (5 + 7 + 11 + 6)),
            ('{service_name="shop"}', 3 * 16),
            ('{service_name=~"s.*",hostname!="web1"}', 27),
            ('{service_name!~"shop|x"}', 39),
            ('{service_name=~"sho"}', 0),
            ('{region="eu",version="1.8",hostname="web1"}', 3 * 20),
        ):
            graph = asked(
                c, "SelectMergeStacktraces", profileTypeID=SAMPLES, labelSelector=selector, **SPAN
            )["flamegraph"]
            found = flame_of(graph)
            assert int(graph["total"]) == n == found["total"][0], selector
            assert (
                not n
                or found["Main.main"][0] == n
                and found["Main.work"][1] + found["Main.rest"][1] == n
            )
            series = asked(
                c, "SelectSeries", profileTypeID=SAMPLES, labelSelector=selector, step=60, **SPAN
            ).get("series", [])
            assert sum(p["value"] for s in series for p in s["points"]) == n
        by_host = asked(
            c,
            "SelectSeries",
            profileTypeID=SAMPLES,
            labelSelector="{}",
            groupBy=["hostname"],
            step=60,
            **SPAN,
        )["series"]
        assert {s["labels"][0]["value"]: [p["value"] for p in s["points"]] for s in by_host} == {
            "web1": [20] * 3,
            "web2": [9] * 3,
        }
        # A line of several series has one point for each time, in order.
        [line] = asked(
            c, "SelectSeries", profileTypeID=SAMPLES, labelSelector="{}", step=60, **SPAN
        )["series"]
        times = [int(p["timestamp"]) for p in line["points"]]
        assert times == sorted(set(times)) and [p["value"] for p in line["points"]] == [29] * 3
        # The same in protobuf.
        question = messages.SelectMergeStacktracesRequest(
            profile_typeID=SAMPLES, label_selector='{service_name="shop"}', **SPAN
        )
        status, body, answer = c.ask_bytes(
            "/querier.v1.QuerierService/SelectMergeStacktraces", question.SerializeToString()
        )
        assert status == 200 and answer["Content-Type"] == "application/proto"
        decoded = messages.SelectMergeStacktracesResponse.FromString(body).flamegraph
        assert (
            decoded.total == 48
            and sum(decoded.levels[0].values[1::4]) == 48
            and "Main.work" in decoded.names
        )
        question = messages.LabelValuesRequest(name="service_name", **SPAN)
        status, body, _ = c.ask_bytes(
            "/querier.v1.QuerierService/LabelValues", question.SerializeToString()
        )
        assert list(messages.LabelValuesResponse.FromString(body).names) == ["pay", "shop"]
        question = messages.SelectSeriesRequest(
            profile_typeID=SAMPLES, label_selector="{}", step=60, group_by=["hostname"], **SPAN
        )
        status, body, _ = c.ask_bytes(
            "/querier.v1.QuerierService/SelectSeries", question.SerializeToString()
        )
        assert (
            sum(
                p.value
                for s in messages.SelectSeriesResponse.FromString(body).series
                for p in s.points
            )
            == 87
        )
        status, body, _ = c.ask_bytes(
            "/querier.v1.QuerierService/Series",
            messages.SeriesRequest(label_names=["hostname"], **SPAN).SerializeToString(),
        )
        assert sorted(
            s.labels[0].value for s in messages.SeriesResponse.FromString(body).labels_set
        ) == ["web1", "web2"]
        status, body, _ = c.ask_bytes(
            "/querier.v1.QuerierService/ProfileTypes",
            messages.ProfileTypesRequest(**SPAN).SerializeToString(),
        )
        assert SAMPLES in [
            t.ID for t in messages.ProfileTypesResponse.FromString(body).profile_types
        ]


def test_wrong_questions_and_other_tenants(tmp_path):
    with collector(tmp_path, "--token", "red=secret1", "--token", "blue=secret2") as c:
        red, blue = ({"Authorization": f"Bearer secret{i}"} for i in (1, 2))
        c.send(stacks(main_work=3), headers=red, service="mine", **{"from": NOW})
        assert asked(c, "LabelValues", headers=red, name="service_name", **SPAN)["names"] == [
            "mine"
        ]
        assert not asked(c, "LabelValues", headers=blue, name="service_name", **SPAN).get("names")
        everything = asked(
            c,
            "SelectMergeStacktraces",
            headers=blue,
            profileTypeID=SAMPLES,
            labelSelector='{service_name=~".*"}',
            **SPAN,
        )
        assert int(everything["flamegraph"].get("total", 0)) == 0
        assert (
            c.request(
                "POST",
                "/querier.v1.QuerierService/LabelNames",
                "{}",
                {"Content-Type": "application/json"},
            )[0]
            == 401
        )
        for method, status, question in (
            ("SelectSeries", 400, {"profileTypeID": "nosuch", "labelSelector": "{}"}),
            ("SelectSeries", 400, {"profileTypeID": SAMPLES, "labelSelector": "{a="}),
            ("SelectSeries", 400, {"profileTypeID": SAMPLES, "labelSelector": '{a=~"("}'}),
            ("LabelValues", 400, {}),
            ("Nosuch", 404, {}),
        ):
            answer = asked(c, method, status, headers=red, **question)
            assert answer["code"] and answer["message"], (method, answer)
