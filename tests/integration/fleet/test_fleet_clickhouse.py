# SPDX-License-Identifier: Apache-2.0
"""What a store in ClickHouse must survive beyond the tests that run on both stores (test_fleet.py):
servers that are down, and its addresses.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import clickhouse
import lab
from fleet_lab import NOW, children_of, collector, fleet, stacks, total


@pytest.fixture
def own(tmp_path):
    """Two shards that a test may kill."""
    servers = clickhouse.servers(tmp_path, 2)
    yield servers
    for s in servers:
        s.kill()


def test_a_shard_that_is_away_loses_and_doubles_nothing(tmp_path, own):
    """Senders are asked to try again, queries get no partial answer, and what is sent again counts
    once.
    """
    store = clickhouse.new_store(own)
    uploads = {f"u{i}": i % 5 + 1 for i in range(60)}
    random.seed(3)

    def send(c, key):
        n = uploads[key]
        status, _, headers = c.request(
            "POST",
            "/v1/upload",
            stacks(**{f"main_f{n}": n, "main_all": 1}),
            service="s",
            host=f"h{key}",
            id=key,
            **{"from": NOW - 3600 + n * 61},
        )
        assert status == 200 or status == 503 and int(headers["Retry-After"]) > 0, status
        return status

    with collector(tmp_path, store=store) as c, concurrent.futures.ThreadPoolExecutor(4) as pool:
        # A collector that starts removes what is old, and would say that it cannot; the uploads'
        # table is the last one.
        lab.wait_for(
            lambda: all(
                int(
                    s.ask("SELECT count() FROM system.mutations WHERE table = 'upload' AND is_done")
                )
                for s in own
            ),
            120,
            "the tidying at the start",
        )
        answers = {}
        for keys, victim in ((list(uploads)[:30], own[1]), (list(uploads)[30:], own[0])):
            done = [pool.submit(send, c, key) for key in keys]
            time.sleep(random.random() / 4)
            victim.kill()
            answers |= dict(zip(keys, [f.result() for f in done]))
            late = {key: send(c, key) for key in keys}
            assert 503 in late.values() and set(late.values()) <= {200, 503}
            asked = lab.jvmscope("fleet", "top", "--store", store)
            assert (
                asked.returncode == 1 and not asked.stdout and len(asked.stderr.splitlines()) == 1
            ), asked
            victim.start()
        # Who was answered with 200 may send again as well: the answer may have been lost.
        for key in uploads:
            assert send(c, key) == 200
        assert total(c) == sum(uploads.values()) + len(uploads)
        own[1].kill()
        own[1].start()
        assert total(c) == sum(uploads.values()) + len(uploads)
        per_shard = [
            int(s.ask(f"SELECT count() FROM {store.split('/')[3].split('?')[0]}.sample_10s"))
            for s in own
        ]
        assert all(per_shard), "both shards have some"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may mount a small file system")
@pytest.mark.parametrize("end", ["goes on", "kill"])
def test_a_server_whose_disk_is_full_loses_and_doubles_nothing(tmp_path, end):
    """Uploads that were accepted are in the store, also after the server was killed with its disk
    full; others are asked to try again, and in the end each counts once.
    """
    small = tmp_path / "small"
    small.mkdir()
    uploads = {f"u{i}": 300 + 40 * (i % 11) for i in range(90)}
    taken = {}
    retries = set()

    def send(c, keys):
        for key in keys:
            body = "".join(f"Main.main;Of{key}.f{i} 1\n" for i in range(uploads[key]))
            status, text, headers = c.request(
                "POST",
                "/v1/upload",
                body,
                service="s",
                host=key,
                id=key,
                **{"from": NOW - 3600 + int(key[1:]) * 17},
            )
            assert status == 200 or status == 503 and len(text.splitlines()) == 1, (status, text)
            if status == 200:
                taken[key] = uploads[key]
            elif text.startswith("the store: the disk of a server is full: "):
                retries.add(headers["Retry-After"])

    with contextlib.ExitStack() as running:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", small], check=True)
        running.callback(subprocess.run, ["umount", "-l", small], check=True)
        (small / "clickhouse-0").mkdir()
        for log in (
            "log",
            "errors",
        ):  # elsewhere: a server that cannot write its log answers nothing else
            (small / "clickhouse-0" / log).symlink_to(tmp_path / log)
        [server] = clickhouse.servers(small, 1)
        running.callback(lambda: server.kill())
        c = running.enter_context(collector(tmp_path, store=clickhouse.new_store([server])))
        send(c, uploads)
        assert 0 < len(taken) < len(uploads) and retries == {"60"}
        # Not one byte is free, and then some are.
        with open(small / "filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
        send(c, [key for key in uploads if key not in taken][:5])
        (small / "filler").unlink()
        send(c, [key for key in uploads if key not in taken])
        assert len(taken) < len(uploads)
        if end == "kill":
            server.kill()
        subprocess.run(["mount", "-o", "remount,size=256m", small], check=True)
        if end == "kill":
            server.start()
        assert total(c) == sum(taken.values())
        send(c, uploads)
        assert taken == uploads
        counts = dict.fromkeys(uploads, 0)
        for m in fleet(c, "top", "--service", "*", "--limit", "100000")["methods"]:
            if m["method"].startswith("Of"):
                counts[m["method"][2:].split(".")[0]] += m["total"]
        assert counts == uploads


def test_uploads_that_wait_are_inserted_together(tmp_path, own):
    """One INSERT per table for all that arrived while others were being inserted, and an upload
    that is among them twice counts once.
    """
    store = clickhouse.new_store(own)
    ids = [f"u{i}" for i in range(10)] + ["u9"]

    def inserts():
        return sum(
            int(s.ask("SELECT value FROM system.events WHERE event = 'InsertQuery'") or 0)
            for s in own
        )

    def bodies(c):
        targets = []
        for f in pathlib.Path(f"/proc/{c.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                targets.append(os.readlink(f))
        return sum("(deleted)" in t for t in targets)

    with collector(tmp_path, store=store) as c, concurrent.futures.ThreadPoolExecutor(
        len(ids)
    ) as pool:
        c.send(stacks(main_work=1), service="s", host="first", **{"from": NOW})
        lab.wait_for(
            lambda: all(
                int(
                    s.ask("SELECT count() FROM system.mutations WHERE table = 'upload' AND is_done")
                )
                for s in own
            ),
            120,
            "the tidying at the start",
        )
        c.send(stacks(main_work=1), service="s", host="second", **{"from": NOW})
        one = inserts()
        c.send(stacks(main_work=1), service="s", host="third", **{"from": NOW})
        alone = inserts() - one
        assert alone >= 5, "series, samples of three lengths, upload"
        for s in own:
            s.process.send_signal(signal.SIGSTOP)
        done = [
            pool.submit(c.send, stacks(main_work=1), service="s", host=key, id=key, **{"from": NOW})
            for key in ids
        ]
        lab.wait_for(
            lambda: bodies(c) == len(ids) and not children_of(c.process.pid),
            60,
            "uploads that are read and wait",
        )
        for s in own:
            s.process.send_signal(signal.SIGCONT)
        answers = [f.result() for f in done]
        together = inserts() - one - alone
        assert [
            sum(a["new"] for key, a in zip(ids, answers) if key == wanted) for wanted in ids
        ] == [1] * len(ids)
        assert total(c) == 3 + len(set(ids))
        assert together <= len(ids) * alone / 2, (together, alone)


def test_what_is_old_is_removed(tmp_path, shards):
    store = clickhouse.new_store(shards)
    now = int(time.time())
    days = {0: 1, 3: 2, 40: 4, 380: 8}
    with collector(tmp_path, store=store) as c:
        for ago, n in days.items():
            c.send(stacks(main_work=n), service="s", **{"from": now - 86400 * ago})
        assert total(c) == 15
    with collector(tmp_path, "--keep", "1h,10d,50d", store=store) as c:

        def rows(table):
            database = store.split("/")[3].split("?")[0]
            return sum(int(s.ask(f"SELECT count() FROM {database}.{table}")) for s in shards)

        lab.wait_for(
            lambda: (rows("sample_10s"), rows("sample_5m"), rows("sample_1h")) == (1, 2, 3),
            120,
            "the end of old partitions",
        )
        assert total(c) == 7
        assert total(c, "--from", now - 86400 * 4) == 3


def test_addresses_and_other_databases(tmp_path, shards):
    one = shards[0]
    port = one.http
    one.ask("CREATE DATABASE other")
    one.ask("CREATE TABLE other.upload (x UInt8) ENGINE = Memory")
    one.ask("CREATE DATABASE newer")
    one.ask("CREATE TABLE newer.schema_version_99 (x UInt8) ENGINE = Memory")
    [closed] = clickhouse.free_ports(1)
    for address, words in (
        (f"127.0.0.1:{port}", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port}/", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port}/a b", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port}/a'b", "clickhouse://HOST:PORT"),
        (f"user:word@127.0.0.1:{port}/db", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port},127.0.0.1:{port}/db", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port}/db?nosuch=1", "clickhouse://HOST:PORT"),
        (f"127.0.0.1:{port}/other", "another program"),
        (f"127.0.0.1:{port}/newer", "newer version"),
        (f"127.0.0.1:{port}/db?cluster=nosuch", "nosuch"),
        (f"127.0.0.1:{closed}/db", "127.0.0.1"),
    ):
        done = lab.jvmscope(
            "collect", "--store", f"clickhouse://{address}", "--listen", "127.0.0.1:0", timeout=60
        )
        assert done.returncode == (2 if "HOST:PORT" in words else 1), (address, done)
        assert words in done.stderr and len(done.stderr.splitlines()) == 1, (address, done)
    done = lab.jvmscope("fleet", "top", "--store", f"clickhouse://127.0.0.1:{port}/missing")
    assert done.returncode == 1 and "no store" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "missing" not in one.ask("SHOW DATABASES").split()


def test_names_with_quotes_and_one_server_alone(tmp_path, shards):
    """Whatever a name contains is treated as text, in statements as well."""
    store = clickhouse.address(shards[:1], "quotes")
    names = ["it's", 'a"b', "back\\slash'", "x') OR 1=1 --", "per%cent", "ünïcode"]
    with collector(tmp_path, store=store) as c:
        for i, name in enumerate(names):
            c.send(
                f"A.{i};{name} {1 << i}\n".encode(),
                service=name,
                version=name,
                labels={"k": name},
                **{"from": NOW},
            )
        assert {s["service"]: s["cpu_samples"] for s in fleet(c, "top")["services"]} == {
            name: 1 << i for i, name in enumerate(names)
        }
        for i, name in enumerate(names):
            answer = fleet(c, "top", "--service", name, "--label", f"k={name}")
            assert answer["cpu_samples"] == 1 << i and {m["method"] for m in answer["methods"]} == {
                f"A.{i}",
                name,
            }


def test_tables_of_an_older_version_are_upgraded(tmp_path, shards):
    """Version 1 had names of requests alone. A reader only reports what is to be done; a collector
    does it, and nothing is lost.
    """
    store = clickhouse.new_store(shards)
    database = store.split("/")[3].split("?")[0]
    with collector(tmp_path, store=store) as c:
        c.send(stacks(main_work=5), service="s", **{"from": NOW})
    for server in shards:
        server.ask(f"DROP TABLE {database}.schema_version_2")
        server.ask(f"CREATE TABLE {database}.schema_version_1 (unused UInt8) ENGINE = Memory")
        for table, engine in (
            ("request", "ReplacingMergeTree ORDER BY hash"),
            ("all_request", f"Distributed({clickhouse.CLUSTER}, {database}, request, hash)"),
        ):
            server.ask(f"DROP TABLE {database}.{table}")
            server.ask(
                f"CREATE TABLE {database}.{table} (hash UInt64, name String) ENGINE = {engine}"
            )
    shards[0].ask(f"INSERT INTO {database}.request VALUES (77, 'GET /')")
    asked = lab.jvmscope("fleet", "top", "--store", store)
    assert (
        asked.returncode == 1
        and "`jvmscope collect` upgrades it" in asked.stderr
        and len(asked.stderr.splitlines()) == 1
    ), asked
    with collector(tmp_path, store=store) as c:
        assert total(c) == 5
        assert [s.ask(f"SELECT kind, name FROM {database}.request").split() for s in shards] == [
            ["0", "GET", "/"],
            [],
        ]
        c.send(stacks(main_work=2), service="s", **{"from": NOW})
        assert total(c) == 7
    with collector(tmp_path, store=store) as c:  # nothing is left to do
        assert total(c) == 7
