# SPDX-License-Identifier: Apache-2.0
"""What a store in ClickHouse must survive beyond the tests that run on both stores (test_fleet.py):
servers that are down, and its addresses.
"""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import clickhouse
import lab
from fleet_lab import NOW, Collector, children_of, collector, fleet, pprof, stacks, total


@pytest.fixture
def own(tmp_path):
    """Two shards that a test may kill."""
    servers = clickhouse.servers(tmp_path, 2)
    yield servers
    for s in servers:
        s.kill()


def test_a_shard_that_is_away_neither_loses_nor_duplicates(tmp_path, own):
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
            int(s.ask(f"SELECT count() FROM {store.split('/')[3].split('?')[0]}.block_10s"))
            for s in own
        ]
        assert all(per_shard), "both shards have some"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may mount a small file system")
@pytest.mark.parametrize("end", ["goes on", "kill"])
def test_a_server_whose_disk_is_full_neither_loses_nor_duplicates(tmp_path, end):
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
        assert alone >= 4, "series, samples of two lengths, upload"
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
        tables = ("block_new", "block_10s", "block_5m", "program_5m", "block_1h", "program_1h")

        def rows(table):
            database = store.split("/")[3].split("?")[0]
            return sum(int(s.ask(f"SELECT count() FROM {database}.{table}")) for s in shards)

        lab.wait_for(
            lambda: [rows(table) for table in tables] == [0, 1, 2, 2, 3, 3],
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


class Rows:
    """The rows of a store's tables, on all of its servers."""

    def __init__(self, servers, store):
        self.servers, self.store = servers, store
        self.database = store.split("/")[3].split("?")[0]

    def ask(self, sql):
        """The answers of all servers; `DB.` stands for the database."""
        sql = sql.replace("DB.", f"{self.database}.")
        return [clickhouse.ClickHouse.ask(server, sql).strip() for server in self.servers]

    def count(self, table):
        return sum(map(int, self.ask(f"SELECT count() FROM DB.{table}")))

    def merge(self, folder):
        """A collector merges what is new when it starts."""
        with collector(folder, store=self.store):
            lab.wait_for(lambda: not self.count("block_new"), 120, "merging")


def sorted_lists(answer):
    """An answer in which rows of equal rank have one order."""
    if isinstance(answer, dict):
        return {key: sorted_lists(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return sorted(map(sorted_lists, answer), key=json.dumps)
    return answer


def answers(store):
    """What a store says about all uploads, and about parts of them in steps of all lengths."""
    start = NOW - 4 * 3600
    parts = (
        [],
        ["--host", "h1"],
        ["--version", "1.1", "--label", "zone=a", "--from", start + 3600],
        ["--from", start + 130, "--to", start + 9000],
        ["--from", start + 3600 + 10, "--to", start + 3600 + 890],
    )
    return [
        sorted_lists(fleet(store, *verb, *map(str, part)))
        for part in parts
        for verb in (
            ["top"],
            ["top", "--service", "*", "--limit", "1000"],
            ["flame"],
            ["flame", "--metric", "allocations"],
            ["services"],
            ["query", "--method", "Main.*"],
        )
    ] + [
        sorted_lists(fleet(store, *verb))
        for verb in (["diff", "--base", "version=1.0"], ["findings"])
    ]


@pytest.mark.parametrize("kind", ["shards", "current_clickhouse"])
def test_merging_changes_no_answer(tmp_path, request, kind):
    """What is new, what was merged, what is late and what comes again add up to what SQLite says."""
    servers = request.getfixturevalue(kind)
    servers = servers if kind == "shards" else [servers]
    store = clickhouse.address(servers, clickhouse.new_database(), cluster=kind == "shards")
    random.seed(27)
    uploads = [
        (
            stacks(**{f"main_f{i % 5}": i % 7 + 1, f"main_g{i % 3}_deep": 2, "main": 1}),
            pprof("alloc_space", "bytes", **{f"main_new{i % 3}": 4096 * (i % 11 + 1)}),
            {
                "service": f"s{i % 2}",
                "version": f"1.{i % 4 // 2}",
                "host": f"h{i % 3}",
                "labels": {"zone": "ab"[i % 5 == 0]},
                "from": NOW - 4 * 3600 + i * 97,
            },
        )
        for i in range(100)
    ]
    random.shuffle(uploads)

    def send(to, some):
        for i, (cpu, alloc, origin) in some:
            for part, body in (("cpu", cpu), ("alloc", alloc)):
                to.send(body, id=f"{part}{i}", **origin)

    rows = Rows(servers, store)
    with collector(tmp_path) as sqlite:
        numbered = list(enumerate(uploads))
        for some in (numbered[:60], numbered[60:]):
            send(sqlite, some)
            expected = answers(sqlite)
            with collector(tmp_path, store=store) as c:
                send(c, some)
                assert answers(c) == expected
            rows.ask("DROP TABLE IF EXISTS DB.again")
            rows.ask("CREATE TABLE DB.again AS DB.block_new")
            rows.ask("INSERT INTO DB.again SELECT * FROM DB.block_new")
            rows.merge(tmp_path)
            assert answers(store) == expected
        # Each bucket has one row, and an upload that comes once more changes none.
        hours = {(s, v, h, str(z), t // 3600) for s, v, h, z, t in (u[2].values() for u in uploads)}
        programs = {(s, v, z, t) for s, v, h, z, t in hours}
        assert rows.count("block_1h FINAL") == 2 * len(hours)
        # A program has a row on each server that has series of it.
        n = rows.count("program_1h FINAL")
        assert 2 * len(programs) <= n <= 2 * (len(programs) if len(servers) == 1 else len(hours))
        assert rows.count("again") > 50
        rows.ask("INSERT INTO DB.block_new SELECT * FROM DB.again")
        assert answers(store) == expected
        rows.merge(tmp_path)
        assert answers(store) == expected


def test_kills_while_two_collectors_merge_lose_and_double_nothing(tmp_path, shards):
    store = clickhouse.new_store(shards)
    rows = Rows(shards, store)
    uploads = {f"u{i}": i % 13 + 1 for i in range(160)}
    random.seed(3)
    sent = 0

    def send(c, key):
        n = uploads[key]
        c.send(
            stacks(**{f"main_f{n}": n, "main_all": 1}),
            service=f"s{n % 3}",
            host=f"h{n % 2}",
            id=key,
            **{"from": NOW - 3600 * (int(key[1:]) % 20 + 1)},
        )
        return n + 1

    keys = iter(uploads)
    with collector(tmp_path, store=store) as c:
        for some in range(8):
            sent += sum(send(c, key) for key in itertools.islice(keys, 20))
            others = [Collector(tmp_path, store=store) for _ in range(2)]
            time.sleep(random.random() / 2)
            for other in others:
                other.kill()
            assert total(store) == sent
    assert sent == sum(uploads.values()) + len(uploads)
    rows.merge(tmp_path)
    assert total(store) == total(store, "--host", "h*") == sent
    methods = fleet(store, "top", "--service", "*")["methods"]
    assert {m["method"]: m["self"] for m in methods if m["method"].startswith("Main.f")} == {
        f"Main.f{n}": n * sum(v == n for v in uploads.values()) for n in range(1, 14)
    }


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def samples_of(data):
    """Stack, samples and weight of each entry of a block that has no requests."""
    assert data[0] == 9, "hashes and weights"
    n, at = varint(data, 1)
    hashes = [int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little") for i in range(n)]
    at += 8 * n
    numbers = []
    for _ in range(2 * n):
        number, at = varint(data, at)
        numbers.append(number)
    return zip(hashes, numbers, numbers[n:])


SAMPLE = (
    "(type String, unit String, series UInt64, start UInt32, upload UInt64, stack UInt64, request UInt64,"
    " trace FixedString(16), samples UInt64, weight UInt64)"
)


def make_old(rows, version, trace):
    """Turns a store into one that a program of that version would have made. Steps of 10 s and of 5 min
    are no longer kept of what is older than 30 days.
    """
    for table, step in (("10s", 10), ("5m", 300), ("1h", 3600)):
        by = "toYYYYMM" if table == "1h" else "toYYYYMMDD"
        rows.ask(
            f"CREATE TABLE DB.sample_{table} {SAMPLE} ENGINE = ReplacingMergeTree PARTITION BY {by}(toDateTime(start, 'UTC'))"
            " ORDER BY (type, unit, series, start, upload, stack, request, trace)"
        )
        rows.ask(
            f"CREATE TABLE DB.all_sample_{table} {SAMPLE} ENGINE = Distributed({clickhouse.CLUSTER}, {rows.database}, sample_{table}, series)"
        )
        for server, answer in zip(
            rows.servers,
            rows.ask("SELECT type, unit, series, start, upload, hex(data) FROM DB.block_10s"),
        ):
            sums = {}
            for line in filter(None, answer.split("\n")):
                kind, unit, series, start, upload, data = line.split("\t")
                if int(start) < NOW - 30 * 86400 and step < 3600:
                    continue
                for stack, count, weight in samples_of(bytes.fromhex(data)):
                    key = (kind, unit, int(series), int(start) // step * step, int(upload), stack)
                    before = sums.get(key, (0, 0))
                    sums[key] = (before[0] + count, before[1] + weight)
            values = ",".join(
                f"('{k[0]}','{k[1]}',{k[2]},{k[3]},{k[4]},{k[5]},0,unhex('{trace if step == 10 else '00' * 16}'),{v[0]},{v[1]})"
                for k, v in sums.items()
            )
            if values:
                server.ask(f"INSERT INTO {rows.database}.sample_{table} VALUES {values}")
    for table in "block_10s", "block_new", "block_5m", "block_1h", "program_5m", "program_1h":
        rows.ask(f"DROP TABLE DB.{table}")
        rows.ask(f"DROP TABLE DB.all_{table}")
    rows.ask("DROP TABLE DB.schema_version_3")
    rows.ask(f"CREATE TABLE DB.schema_version_{version} (unused UInt8) ENGINE = Memory")
    if version == 1:  # it had names of requests alone
        for table, engine in (
            ("request", "ReplacingMergeTree ORDER BY hash"),
            ("all_request", f"Distributed({clickhouse.CLUSTER}, {rows.database}, request, hash)"),
        ):
            rows.ask(f"DROP TABLE DB.{table}")
            rows.ask(f"CREATE TABLE DB.{table} (hash UInt64, name String) ENGINE = {engine}")
        rows.servers[0].ask(f"INSERT INTO {rows.database}.request VALUES (77, 'GET /')")


@pytest.mark.parametrize("version", [1, 2])
def test_tables_of_an_older_version_are_upgraded(tmp_path, shards, version):
    """A reader only reports what is to be done; a collector does it, also after it was killed while it
    did, and nothing is lost.
    """
    store = clickhouse.new_store(shards)
    rows = Rows(shards, store)
    trace = "0123456789ABCDEF" * 2
    times = [NOW - 40 * 86400, *(NOW - 3600 * 5 + 400 * i for i in range(40))]

    def send(c, i):
        c.send(
            stacks(**{f"main_f{i % 7}": i + 1, "main_all": 1}),
            service=f"s{i % 3}",
            version=f"1.{i % 2}",
            host=f"h{i % 4}",
            id=str(i),
            **{"from": times[i]},
        )

    with collector(tmp_path, store=store) as c:
        for i in range(len(times)):
            send(c, i)
        assert total(c) == sum(range(len(times) + 1)) + len(times)
    expected = answers(store)
    make_old(rows, version, trace)
    asked = lab.jvmscope("fleet", "top", "--store", store)
    assert (
        asked.returncode == 1
        and "`jvmscope collect` upgrades it" in asked.stderr
        and len(asked.stderr.splitlines()) == 1
    ), asked
    command = [lab.BUILD / "jvmscope", "collect", "--store", store, "--listen", "127.0.0.1:0"]
    for i in range(4):
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(0.1 * 2**i)
        killed.kill()
        killed.wait()
    with collector(tmp_path, store=store) as c:
        assert answers(c) == expected
        if version == 1:
            assert rows.ask("SELECT kind, name FROM DB.request") == ["0\tGET /", ""]
        # All rows of the finest step kept their traces, and an upload that was known still is.
        assert rows.ask(
            "SELECT count() FROM DB.block_10s WHERE traces[1] != unhex('%s')" % trace
        ) == ["0", "0"]
        assert rows.count("block_10s FINAL") == len(times) - 1
        send(c, 3)
        assert answers(c) == expected
        c.send(stacks(main_work=2), service="s", **{"from": NOW})
        assert total(c) == sum(range(len(times) + 1)) + len(times) + 2
    tables = {
        t
        for answer in rows.ask(
            "SELECT name FROM system.tables WHERE database = '%s'" % rows.database
        )
        for t in answer.split()
    }
    assert not [t for t in tables if "sample" in t]
    with collector(tmp_path, store=store) as c:  # nothing is left to do
        assert total(c) == sum(range(len(times) + 1)) + len(times) + 2
