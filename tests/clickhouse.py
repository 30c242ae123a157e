# SPDX-License-Identifier: Apache-2.0
"""Starts ClickHouse servers on free ports of 127.0.0.1, without root: a single one, or several that
are the shards of a cluster.
"""
import itertools
import os
import pathlib
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import lab

SERVER = "/usr/sbin/clickhouse-server"
CLUSTER = "fleet"

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>16777216</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size><max_concurrent_queries>100</max_concurrent_queries>
<compression><case><min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio><method>zstd</method></case></compression>
<remote_servers><{cluster}>{shards}</{cluster}></remote_servers>
</yandex>
"""
USERS = """<yandex>
<profiles><default><max_memory_usage>1000000000</max_memory_usage><connect_timeout_with_failover_ms>1000</connect_timeout_with_failover_ms></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas>
</yandex>
"""


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class ClickHouse:
    """One server. Every user may create `databases` on it."""

    def __init__(self, folder, ports, shards):
        self.folder = pathlib.Path(folder)
        self.http, self.tcp, inter = ports
        for name in ("data", "tmp", "files"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        described = "".join(
            f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"
            for port in shards
        )
        (self.folder / "config.xml").write_text(
            CONFIG.format(
                folder=self.folder,
                http=self.http,
                tcp=self.tcp,
                inter=inter,
                cluster=CLUSTER,
                shards=described,
            )
        )
        (self.folder / "users.xml").write_text(USERS)
        self.start()

    def start(self):
        with open(self.folder / "out", "a") as out:
            self.process = subprocess.Popen(
                [SERVER, "--config-file", self.folder / "config.xml"],
                cwd=self.folder,
                stdout=out,
                stderr=out,
                env={**os.environ, "TZ": "UTC"},
            )

        def answers():
            try:
                return self.ask("SELECT 1")
            except OSError:
                assert self.process.poll() is None, (self.folder / "out").read_text()[-2000:]

        lab.wait_for(answers, 120, f"an answer of the server of {self.folder}")

    def ask(self, sql, data=b""):
        url = f"http://127.0.0.1:{self.http}/?" + urllib.parse.urlencode({"query": sql})
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, method="POST"), timeout=60
            ) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            raise AssertionError(e.read().decode()) from e

    def kill(self):
        self.process.kill()
        self.process.wait()


def servers(folder, n):
    ports = free_ports(3 * n)
    sets = [ports[3 * i : 3 * i + 3] for i in range(n)]
    return [ClickHouse(folder / f"clickhouse-{i}", sets[i], [s[1] for s in sets]) for i in range(n)]


class CurrentClickHouse:
    """A current ClickHouse on which every user may create databases (tools/setup check installs
    it).
    """

    LIBRARY = pathlib.Path(
        "/var/cache/jvmscope/chdb/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
    )

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, lab.ROOT / "tests/current_clickhouse.py", self.LIBRARY, folder],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.http = int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.communicate()


numbers = itertools.count()


def new_store(hosts):
    """The address of a store that exists on all servers."""
    return address(hosts, new_database(), cluster=True)


def new_database():
    return f"d{os.getpid()}_{next(numbers)}"


def address(hosts, database, cluster=False):
    """The store's address for `collect` and `fleet`."""
    return f"clickhouse://{','.join(f'127.0.0.1:{h.http}' for h in hosts)}/{database}" + (
        f"?cluster={CLUSTER}" if cluster else ""
    )
