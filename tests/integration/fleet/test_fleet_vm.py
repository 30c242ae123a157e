# SPDX-License-Identifier: Apache-2.0
"""What the VMs of a fleet themselves did, and why their requests were slow, is equal to what
each recording contains.
"""
import json
import re
import time

import pytest

import clickhouse
import lab
import prometheus
from fleet_lab import collector, fleet


@pytest.fixture(params=["sqlite", "clickhouse"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'fleet.db'}"
    return clickhouse.new_store(request.getfixturevalue("shards"))


def send_in_parts(c, recording, parts, **query):
    """As `host` does: the recordings that are sent overlap, each states which times of it count,
    and some are sent again.
    """
    whole = lab.read_json("vm", "--json", recording)
    body = recording.read_bytes()
    begin = int.from_bytes(body[32:40], "big")  # of a chunk's head: its start in ns
    cuts = [begin + whole["duration_ns"] * k // parts for k in range(1, parts)]
    for k, (after, until) in enumerate(zip([None, *cuts], [*cuts, None])):
        window = {name: ns for name, ns in (("after_ns", after), ("until_ns", until)) if ns}
        for again in range(2):
            assert c.send(body, id=f"{query}{k}", **window, **query)["new"] == (again == 0)
    return whole


def head_in_manual(verb):
    """The head of the verb's table in the manual page's example, which tools/fleet-example
    makes.
    """
    lines = (lab.ROOT / "doc/examples/fleet.txt").read_text().splitlines()
    return lines[
        lines.index(next(line for line in lines if line.startswith(f"$ jvmscope fleet {verb} ")))
        + 1
    ]


# With the collectors whose logs contain each pause.
@pytest.mark.parametrize(
    "version, collector_name", [(8, "Parallel"), (17, "Serial"), (21, "G1"), (27, "G1")]
)
def test_figures_of_the_vm_are_those_of_its_log(version, collector_name, tmp_path, store):
    jdk, out, log = lab.Jdk(version), tmp_path / "vm.jfr", tmp_path / "vm.log"
    logging = [f"-Xlog:gc=info:file={log}"] if version >= 9 else [f"-Xloggc:{log}", "-XX:+PrintGC"]
    done = jdk.java(
        "VmActivity",
        "2",
        jvm=[
            jdk.agent(f"events=y,cpu=samples,format=r,file={out}"),
            *lab.COLLECTORS[version][collector_name],
            *logging,
        ],
    )
    assert done.returncode == 0, done.stderr
    logged = (
        len(re.findall(r"\] GC\(\d+\) Pause .*ms$", log.read_text(), re.M))
        if version >= 9
        else len(re.findall(r"secs\]$", log.read_text(), re.M))
    )
    with collector(tmp_path, store=store) as c:
        vm = send_in_parts(c, out, 3, service="one", version="1")
        send_in_parts(c, out, 1, service="two", version="2", host="a")
        send_in_parts(c, out, 5, service="two", version="2", host="b")
        one, two = fleet(c, "vm")["services"]
        assert (one["service"], two["service"], two["version"]) == ("one", "two", "2")
        pauses, each = vm["collections"], vm["safepoints"]
        for row, times in ((one, 1), (two, 2)):
            assert logged - 2 <= row["pauses"]["count"] / times == pauses["pauses"] <= logged > 5
            assert (
                row["pauses"]["total_ns"] == times * pauses["pause_ns"]
                and row["pauses"]["most_ns"] == pauses["longest_pause_ns"]
            )
            assert row["collections"]["count"] == times * pauses["count"]
            assert row["heap"]["most_bytes"] == max(
                g["after_bytes"] for g in pauses["list"] if "after_bytes" in g
            )
            assert row["safepoints"]["count"] == times * each["each_known"]
            assert row["cpu"]["total_ns"] == times * one["cpu"]["total_ns"] > 0.1e9
            for figure, key, unit in (("rss", "rss_bytes", "_bytes"), ("threads", "threads", "")):
                assert row[figure][f"most{unit}"] == vm["process"][key]["most"]
                assert row[figure][f"mean{unit}"] == pytest.approx(
                    vm["process"][key]["mean"], abs=1
                )
        # A quantile is that of the pauses, less than 1 % off.
        exact = sorted(g["pause_ns"] for g in pauses["list"] if g["pause_ns"])[-1]
        assert one["pauses"]["p99_ns"] <= exact * 1.01
        status, text, _ = c.request("GET", "/v1/fleet/vm", service="two")
        assert status == 200 and json.loads(text)["services"] == [two]
        assert fleet(c, "vm", "--host", "a")["services"][0]["pauses"]["count"] == pauses["pauses"]
        assert fleet(c, "vm", "--to", "2020-01-01")["nothing"].startswith("the time to 2020-01-01")
        assert fleet(c, "requests")["nothing"] == "there are no requests"
        lines = lab.jvmscope("fleet", "vm", "--store", c.store).stdout.splitlines()
        assert (
            lines[0] == head_in_manual("vm")
            and lines[1].split()[0] == str(pauses["pauses"])
            and lines[2].endswith("two 2")
        )
        done = lab.jvmscope("fleet", "vm", "--store", c.store, "--request", "x")
        assert (
            done.returncode == 2
            and "do not belong to requests" in done.stderr
            and len(done.stderr.splitlines()) == 1
        )


@pytest.mark.jdks(17, 25)
def test_causes_of_requests_are_those_of_the_recording(jdk, tmp_path, store):
    """Each slow request of the program met one known cause. Where all the time went is what
    `requests` shows for the recording.
    """
    out = tmp_path / "causes.jfr"
    done = jdk.java(
        "RequestCauses",
        jvm=[jdk.agent(f"requests=auto,format=r,file={out}"), "-Xmx512m"],
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    known = {r["name"]: r for r in lab.read_json("requests", "--json", out)["requests"]}
    with collector(tmp_path, store=store) as c:
        send_in_parts(c, out, 3, service="shop", version="1.8")
        rows = {r["request"]: r for r in fleet(c, "requests")["requests"]}
        assert set(rows) == set(known) and len(rows) == 12
        for name, row in rows.items():
            causes = {x["cause"]: x["ns"] for x in row["causes"]}
            means = {
                cause: ns for cause, ns in known[name]["causes"].items() if ns or cause in causes
            }
            assert {
                cause: pytest.approx(ns / row["count"], abs=1) for cause, ns in causes.items()
            } == means, name
            assert (
                abs(sum(causes.values()) - row["count"] * row["mean_ns"]) <= row["count"]
            )  # the mean is rounded
            assert sum(x["share"] for x in row["causes"]) == pytest.approx(1)
            assert [x["ns"] for x in row["causes"]] == sorted(causes.values(), reverse=True)
            assert all(sum(w["ns"] for w in x["where"]) <= x["ns"] for x in row["causes"])
            # The parts of the slow and of the typical ones add up as well.
            for group in ("slow", "typical"):
                parts = sum(x[f"{group}_ns"] for x in row["causes"])
                assert abs(parts - row[group]["mean_ns"]) <= len(row["causes"]), (name, group, row)
            most = max(row["causes"], key=lambda x: x["slow_ns"] - x["typical_ns"])
            why = {"cause": most["cause"], "more_ns": most["slow_ns"] - most["typical_ns"]}
            assert row["why_slow"] == (
                why if row["slow"]["mean_ns"] >= 2 * row["typical"]["mean_ns"] > 0 else None
            ), row
        [wait] = [x for x in rows["GET /lock"]["causes"] if x["cause"] == "lock"]
        assert (wait["where"][0]["object"], wait["where"][0]["method"]) == (
            "RequestCauses$Store",
            "RequestCauses$Store.read",
        )
        # The same as stacks. The samples are the requests.
        flame = fleet(c, "flame", "--metric", "latency", "--request", "GET /lock")
        assert (
            flame["latency_ns"] == sum(x["ns"] for x in rows["GET /lock"]["causes"])
            and flame["latency_samples"] == 120
        )
        assert {n["name"]: n["total"] for n in flame["root"]["children"]} == {
            f"[{x['cause']}]": x["ns"] for x in rows["GET /lock"]["causes"]
        }
        # What made the slow requests slow, each counted once, as `requests slow` shows it for the
        # recording.
        reported = {
            f["text"]: f for f in fleet(c, "findings")["reported"] if f["kind"] == "slow requests"
        }
        expected = 0
        for group in lab.read_json("requests", "slow", "--json", out)["groups"]:
            slow, typical = group["slow"], group["typical"]
            row = rows[group["name"]]
            for key, known_group in (("slow", slow), ("typical", typical)):
                assert row[key] == {
                    "count": known_group["count"],
                    "mean_ns": pytest.approx(known_group["mean_ns"], abs=1),
                }, (key, row, group)
                sums = {}
                for cause in group["causes"]:
                    sums[cause["cause"]] = sums.get(cause["cause"], 0) + cause[f"{key}_ns"]
                for x in row["causes"]:
                    assert x[f"{key}_ns"] == pytest.approx(
                        sums.get(x["cause"], 0), abs=len(group["causes"]) + 1
                    ), (key, x, group)
            clear = typical["count"] >= 10 and slow["mean_ns"] >= 2 * typical["mean_ns"]
            for cause in group["causes"][:3]:
                words = f"{group['name']}: {cause['sentence'].split(': ')[0]}"
                found = [
                    f
                    for text, f in reported.items()
                    if text.split(": ", 2)[:2] == words.split(": ", 1)
                ]
                # A cause that may be chance is no finding.
                if not clear or cause["share"] < 0.1 or cause["uncertain"]:
                    continue
                [one] = found
                assert (one["count"], one["instances"], one["service"], one["version"]) == (
                    slow["count"],
                    1,
                    "shop",
                    "1.8",
                ), one
                assert one["weight_ns"] == pytest.approx(
                    (cause["slow_ns"] - cause["typical_ns"]) * slow["count"], abs=10
                ), (one, cause)
                expected += 1
        assert len(reported) == expected >= 8
        [held] = [
            f
            for text, f in reported.items()
            if text.startswith("GET /lock: lock of class RequestCauses$Store in ")
        ]
        assert (
            held["text"].endswith(": held in RequestCauses$Store.compact")
            and held["weight_ns"] > 2 * 60e6
        ), held
        of_lock = fleet(c, "findings", "--request", "GET /lock")["reported"]
        assert [f["text"] for f in of_lock] == [
            text for text in reported if text.startswith("GET /lock: ")
        ] and of_lock
        refused = lab.jvmscope("fleet", "findings", "--request", "nosuch", "--store", c.store)
        assert refused.returncode == 1 and "nosuch matches nothing" in refused.stderr, refused
        # One of several names is misspelt.
        for verb in ("findings", "requests", "top", "flame"):
            for names in ("GET /lock,nosuch", "nosuch,GET /lock"):
                refused = lab.jvmscope("fleet", verb, "--request", names, "--store", c.store)
                assert (
                    refused.returncode == 1 and "request nosuch matches nothing" in refused.stderr
                ), (verb, refused)
        # A metric that the store lacks is not hidden by what is reported without regard to it.
        assert fleet(c, "findings", "--metric", "live")["nothing"].startswith("metric live matches")
        of_cpu = lab.jvmscope("fleet", "findings", "--metric", "cpu", "--store", c.store).stdout
        what = "What recordings report of requests, whatever --metric says:\n"
        assert what in of_cpu and of_cpu.count("slow requests: shop 1.8, ") == expected
        shown = lab.jvmscope("fleet", "findings", "--store", c.store).stdout
        assert what not in shown
        assert (
            "held in RequestCauses$Store.compact" in shown
            and "slow requests: shop 1.8, GET /lock" in shown
        )
        lines = lab.jvmscope("fleet", "requests", "--store", c.store).stdout.splitlines()
        # A column is as wide as the longest name of a cause in it.
        assert lines[0].split() == head_in_manual("requests").split() and any(
            line.endswith("GET /gc") and line.count(" garbage collection ") == 2 for line in lines
        )
        at = [lines[0].index("why slow"), lines[0].index("service, ")]
        assert all(line[i - 1] == " " != line[i] for line in lines[1:11] for i in at), lines
        status, text, _ = c.request("GET", "/v1/fleet/requests")
        assert status == 200 and {r["request"]: r for r in json.loads(text)["requests"]} == rows


# Gauges of /metrics: the figure of `fleet vm`, its key, the divisor, and whether it describes the
# newest minute.
GAUGES = {
    "heap_used_bytes": ("heap", "mean_bytes", 1, True),
    "resident_bytes": ("rss", "mean_bytes", 1, True),
    "threads": ("threads", "mean", 1, True),
    "cpu_cores": ("cpu", "total_ns", 60e9, False),
    "collections": ("collections", "count", 1, False),
    "pauses": ("pauses", "count", 1, False),
    "pause_seconds": ("pauses", "total_ns", 1e9, False),
    "longest_pause_seconds": ("pauses", "most_ns", 1e9, False),
    "safepoint_seconds": ("safepoints", "total_ns", 1e9, False),
}


def test_metrics_have_gauges_of_each_vm(tmp_path, store):
    """The gauges equal the figures of `fleet vm` for the newest minute, or for the newest one that
    is over.
    """
    jdk, out = lab.Jdk(17), tmp_path / "vm.jfr"
    done = jdk.java("VmActivity", "2", jvm=[jdk.agent(f"events=y,cpu=samples,format=r,file={out}")])
    assert done.returncode == 0, done.stderr
    odd = 'sh"op\\'
    origins = [
        dict(service=odd, version="1.8", instance="a:1"),
        dict(service=odd, version="1.8", instance="b:1"),
        dict(service="other", version="", instance=""),
    ]
    with collector(tmp_path, store=store) as c:
        for origin in origins:
            c.send(out.read_bytes(), id=f"{origin}", **origin)
            # The same three minutes earlier, by a clock that is ahead.
            c.send(out.read_bytes(), id=f"{origin} earlier", sent=int(time.time()) + 180, **origin)
        c.send(
            out.read_bytes(), id="old", service="gone", version="1", sent=int(time.time()) + 3600
        )
        now = int(time.time()) // 60 * 60
        status, text, headers = c.request("GET", "/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        values, types = prometheus.parse(text)
        of = {
            m: fleet(c, "vm", "--service", "other", "--from", str(m), "--to", str(m + 60))
            for m in range(now - 900, now + 60, 60)
        }
        there = [m for m, answer in of.items() if answer["services"]]
        for name, (figure, key, unit, newest) in GAUGES.items():
            name = f"jvmscope_vm_{name}"
            assert types[name] == "gauge" and set(values[name]) == {
                tuple(sorted(o.items())) for o in origins
            }, name
            minutes = [m for m in there if figure in of[m]["services"][0]] if newest else there[:-1]
            expected = of[minutes[-1]]["services"][0].get(figure, {}).get(key, 0) / unit
            assert list(values[name].values()) == pytest.approx(
                [expected] * len(origins), abs=1 if newest else 1e-9
            ), (name, values[name], expected)
        assert values["jvmscope_vm_cpu_cores"][tuple(sorted(origins[0].items()))] > 0
        assert (
            values["jvmscope_vm_not_shown"] == {(): 0}
            and values["jvmscope_vm_read"] == {(): 1}
            and values["jvmscope_uploads_total"] == {(): 7}
        )
        # Uploads without figures of a VM have no gauges, and at most a thousand VMs are shown.
        for k in range(1010 if store.startswith("sqlite") else 0):
            c.send(out.read_bytes(), id=f"{k}", service="many", instance=f"i{k}")
        values, types = prometheus.parse(c.request("GET", "/metrics")[1])
        shown = len(values["jvmscope_vm_threads"])
        assert shown == (1000 if store.startswith("sqlite") else 3)
        assert values["jvmscope_vm_not_shown"] == {(): 13 if store.startswith("sqlite") else 0}


def test_requests_without_details_are_counted(tmp_path, store):
    """All requests are counted, but the details of only some are kept. Causes come from these, and
    the answer gives their number.
    """
    jdk, out, n = lab.Jdk(17), tmp_path / "many.jfr", 600000
    done = jdk.java(
        "RequestsMany",
        "fast",
        n,
        jvm=[jdk.agent(f"format=r,requests=RequestsMany.quick:RequestsMany.slow,file={out}")],
    )
    assert done.returncode == 0, done.stderr
    known = {r["name"]: r for r in lab.read_json("requests", "--json", out)["requests"]}
    assert known["RequestsMany.quick"]["kept"] < known["RequestsMany.quick"]["count"] == n
    with collector(tmp_path, store=store) as c:
        c.send(out.read_bytes(), service="shop")
        rows = {r["request"]: r for r in fleet(c, "requests")["requests"]}
        assert {
            name: (r["count"], r["with_causes"], r["without_causes"]) for name, r in rows.items()
        } == {
            name: (r["count"], r["causes_of"], r["count"] - r["causes_of"])
            for name, r in known.items()
        }
        table = lab.jvmscope("fleet", "requests", "--store", c.store, check=True).stdout
        kept, count = (sum(r[key] for r in known.values()) for key in ("causes_of", "count"))
        assert f"\nThe causes are estimated from the details of {kept:,} requests; those of {count - kept:,} others were not kept, or were kept only because the request was slow\n" in table.replace(
            str(kept), f"{kept:,}"
        ).replace(
            str(count - kept), f"{count - kept:,}"
        ), table
        # The causes add up to the time of all requests, and so does the metric.
        for name, r in rows.items():
            taken = sum(cause["ns"] for cause in r["causes"])
            assert taken == pytest.approx(known[name]["total_ns"], rel=1e-3), (name, r["causes"])
        top = fleet(c, "top", "--metric", "latency")["services"][0]["latency_ns"]
        assert top == pytest.approx(sum(r["total_ns"] for r in known.values()), rel=1e-3)
