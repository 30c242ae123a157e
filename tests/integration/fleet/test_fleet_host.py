# SPDX-License-Identifier: Apache-2.0
"""`jvmscope host`: what the VMs of a machine recorded reaches the collector exactly once, whatever
is killed meanwhile.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import tempfile
import time
import zipfile

import pytest

import lab
from fleet_lab import NOW, collector, fleet, stacks, total


def left_in(spool):
    """Returns the contents of a spool without its locks."""
    return [p.name for p in spool.iterdir() if p.name not in ("lock", "running")]


def busy_jar(folder):
    """Busy in a jar with a name of its own, so that a host records the VMs of its test only."""
    jar = folder / f"{folder.name}-{os.getpid()}.jar"
    with zipfile.ZipFile(jar, "w") as z:
        z.writestr("META-INF/MANIFEST.MF", "Main-Class: Busy\n")
        for path in lab.compiled("Busy").glob("*.class"):
            z.write(path, path.name)
    return jar


def end(vm):
    """Ends a VM as a service is ended. A program that ended on its own after some seconds would, on
    a busy machine, end before the test is ready for it.
    """
    vm.terminate()
    assert vm.wait(timeout=120) == 128 + signal.SIGTERM


class Host:
    """`jvmscope host` for the VMs of one program."""

    def __init__(self, folder, port, match, *options):
        self.arguments = [
            lab.BUILD / "jvmscope",
            "host",
            "--match",
            match,
            "--to",
            f"http://127.0.0.1:{port}",
            "--every",
            "1s",
            "--spool",
            folder / "spool",
            *options,
        ]
        self.folder = folder
        self.start()

    def start(self):
        self.errors = open(self.folder / "host.err", "a")
        self.process = subprocess.Popen(self.arguments, stderr=self.errors)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=120) == 0
        self.errors.close()

    def waiting(self):
        return sorted(p.name for p in (self.folder / "spool").glob("*.query"))


@pytest.mark.jdks(8, 25)
def test_a_machine_sends_what_its_vms_recorded_each_sample_once(jdk, tmp_path):
    """Meanwhile the host is killed and the collector is unreachable: the sum is that of the whole
    ring, and names come from the environment.
    """
    environment = {
        **os.environ,
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.8,region=eu%2C1,service.name=other",
        "OTEL_SERVICE_NAME": "shop",
    }
    jar = busy_jar(tmp_path)
    vm = jdk.start("java", "-jar", jar, "600", env=environment, stdout=subprocess.PIPE)
    assert vm.stdout.readline().strip() == "ready"
    with collector(tmp_path) as c:
        port = c.port
        host = Host(tmp_path, port, jar.name, "--label", "rack=r1")
        try:
            assert lab.wait_for(lambda: total(c), 120, "a profile that is sent")
            host.kill()
            host.start()
            sent = total(c)
            assert lab.wait_for(lambda: total(c) > sent, 120, "another profile")
            c.stop()
            assert lab.wait_for(host.waiting, 120, "profiles that wait while the collector is away")
            [ring] = [
                p
                for p in os.scandir("/var/tmp")
                if p.name.startswith(f"jvmscope-{vm.pid}-") and p.name.endswith(".ring")
            ]
            kept = f"{ring.path}.kept"
            os.link(ring.path, kept)
            try:
                end(vm)
                lab.wait_for(
                    lambda: not os.path.exists(ring.path),
                    120,
                    "the ring of the VM that has ended is taken",
                )
                done = lab.jvmscope("dump", "-o", tmp_path / "whole.jfr", kept)
                assert done.returncode == 0, done.stderr
            finally:
                os.unlink(kept)
            assert host.waiting()
            lab.wait_for(
                lambda: not list((tmp_path / "spool").glob("*.taken")),
                120,
                "the VM that has ended is forgotten",
            )
            host.kill()
            host.arguments[host.arguments.index("--to") + 1] = "http://127.0.0.1:1"
            host.start()
            lab.wait_for(
                lambda: "profiles are kept"
                in (tmp_path / "host.err").read_text().split("sends to")[-1],
                120,
                "the host says that profiles are kept",
            )
            host.kill()
            with collector(tmp_path) as again:
                host.arguments[host.arguments.index("--to") + 1] = f"http://127.0.0.1:{again.port}"
                host.start()
                lab.wait_for(lambda: not host.waiting(), 120, "what waited is sent")
                host.stop()
                whole = json.loads(lab.jvmscope("report", "--json", tmp_path / "whole.jfr").stdout)[
                    "samples"
                ]["total"]
                assert total(again) == whole > 20
                [row] = fleet(again, "services")["services"]
                assert (row["service"], row["version"]) == ("shop", "1.8")
                assert total(again, "--label", "rack=r1") == whole
                # The figures of the VM are those of the whole ring, however it was cut.
                [row], vm = fleet(again, "vm")["services"], lab.read_json(
                    "vm", "--json", tmp_path / "whole.jfr"
                )
                assert (
                    row.get("safepoints", {"count": 0})["count"] == vm["safepoints"]["each_known"]
                )
                assert row.get("pauses", {"count": 0})["count"] == vm["collections"]["pauses"]
                assert (
                    row["rss"]["most_bytes"] == vm["process"]["rss_bytes"]["most"]
                    and row["threads"]["most"] == vm["process"]["threads"]["most"]
                )
                status, text, _ = again.request("GET", "/v1/fleet/top", label="region=eu,1")
                assert json.loads(text)["services"][0]["cpu_samples"] == whole
        finally:
            if host.process.poll() is None:
                host.kill()
    assert not left_in(tmp_path / "spool")


def test_what_waits_is_bounded_and_the_words_of_host(tmp_path):
    for status, arguments, words in (
        (2, ("host",), "--to"),
        (2, ("host", "--to", "ftp://x"), "http://"),
        (2, ("host", "--to", "http://127.0.0.1:1", "--label", "x"), "KEY=VALUE"),
        (1, ("host", "--to", "http://127.0.0.1:1", "--token", "@/nonexistent"), "/nonexistent"),
        (1, ("host", "--to", "http://127.0.0.1:1", "--spool", "/dev/null"), "spool"),
    ):
        done = lab.jvmscope(*arguments)
        assert (
            done.returncode == status
            and words in done.stderr
            and len(done.stderr.splitlines()) == 1
        ), (arguments, done.stderr)
    # What waits from an earlier run is sent in order, although some of it will never be accepted. A
    # body without its query was not complete.
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    for i in range(5):
        (spool / f"{i + 1:012}.jfr").write_text(stacks(a=1 << i) if i != 2 else "damaged")
        (spool / f"{i + 1:012}.query").write_text(f"id={i}&service=s&from={NOW}")
    (spool / "000000000009.jfr").write_text("half")
    with collector(tmp_path) as c:
        host = Host(tmp_path, c.port, "NoSuchProgram")
        lab.wait_for(
            lambda: "sends to" in (tmp_path / "host.err").read_text(), 120, "the start of the host"
        )
        other = subprocess.run(host.arguments, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (
            other.returncode == 1
            and "another `jvmscope host` uses this spool" in other.stderr
            and len(other.stderr.splitlines()) == 1
        ), other.stderr
        lab.wait_for(lambda: not host.waiting(), 120, "what waited is sent")
        host.stop()
        assert total(c) == 1 + 2 + 8 + 16
    assert not left_in(spool)
    assert "refuses a profile" in (tmp_path / "host.err").read_text()


@pytest.mark.jdks(17)
def test_vms_that_the_host_may_not_inspect_are_named_once(jdk, tmp_path):
    """A host without the rights recorded nothing, without a word."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give up rights")
    jar = busy_jar(tmp_path)
    program = jdk.start("java", "-Xmx32m", "-jar", jar, 600, stdout=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    host = Host(tmp_path, 1, jar.name)
    host.kill()
    host.arguments = ["setpriv", "--bounding-set=-sys_ptrace", *host.arguments]
    host.start()
    printed = tmp_path / "host.err"
    reported = f"jvmscope: {program.pid}: left out: root needs CAP_SYS_PTRACE for that"
    lab.wait_for(lambda: reported in printed.read_text(), 60, "the words of the host")
    program.kill()
    program.communicate()
    # The next rounds have nothing new to say; a second program shows that there were some.
    other = jdk.start("java", "-Xmx32m", "-jar", jar, 600, stdout=subprocess.PIPE)
    lab.wait_for(
        lambda: f": {other.pid}: left out: " in printed.read_text(), 60, "a second program"
    )
    host.stop()
    assert printed.read_text().count(reported) == 1


@pytest.mark.jdks(17)
def test_a_vm_that_ends_while_the_host_is_away(jdk, tmp_path):
    """The next start takes what the ring holds, however often the host was killed before, and
    whatever it was doing then.
    """
    jar = busy_jar(tmp_path)
    vm = jdk.start("java", "-jar", jar, "600", stdout=subprocess.PIPE)
    assert vm.stdout.readline().strip() == "ready"
    with collector(tmp_path) as c:
        host = Host(tmp_path, c.port, jar.name)
        try:
            before = lab.wait_for(lambda: total(c), 120, "a profile that is sent")
            host.kill()
            random.seed(9)
            for _ in range(8):
                host.start()
                time.sleep(random.random() / 3)
                host.kill()
            [ring] = [
                p.path
                for p in os.scandir("/var/tmp")
                if p.name.startswith(f"jvmscope-{vm.pid}-") and p.name.endswith(".ring")
            ]
            end(vm)
            assert lab.jvmscope("dump", "-o", tmp_path / "whole.jfr", ring).returncode == 0
            host.start()
            lab.wait_for(lambda: not left_in(tmp_path / "spool"), 120, "the rest is taken")
            host.stop()
        finally:
            if host.process.poll() is None:
                host.kill()
        whole = lab.read_json("report", "--json", tmp_path / "whole.jfr")["samples"]["total"]
        assert total(c) == whole > before
        assert not os.path.exists(ring)


@pytest.mark.jdks(8, 17)
@pytest.mark.parametrize("place", ["own", "named", "memory"])
def test_a_vm_that_is_always_recording_already_is_sent(jdk, tmp_path, place):
    """It keeps its options and its ring, whose place the host did not choose."""
    jar = busy_jar(tmp_path)
    ring = tmp_path / "mine.ring"
    always = {"own": "always=y", "named": f"always=y,file={ring}", "memory": "always=memory"}[place]
    vm = jdk.start(
        "java", jdk.agent(always + ",cpu=samples"), "-jar", jar, "600", stdout=subprocess.PIPE
    )
    assert vm.stdout.readline().strip() == "ready"
    with collector(tmp_path) as c:
        host = Host(tmp_path, c.port, jar.name)
        try:
            lab.wait_for(lambda: total(c), 120, "a profile that is sent")
            host.kill()
            host.start()
            sent = total(c)
            lab.wait_for(lambda: total(c) > sent, 120, "another profile")
            file = lab.read_json("status", "--json", vm.pid)["file"]
            end(vm)
            lab.wait_for(lambda: not left_in(tmp_path / "spool"), 120, "the rest is taken")
            host.stop()
        finally:
            if host.process.poll() is None:
                host.kill()
        assert "left out" not in (tmp_path / "host.err").read_text()
        if place == "memory":
            return
        assert lab.jvmscope("dump", "-o", tmp_path / "whole.jfr", file).returncode == 0
        os.unlink(file)
        whole = lab.read_json("report", "--json", tmp_path / "whole.jfr")["samples"]["total"]
        assert total(c) == whole


@pytest.mark.jdks(17)
def test_a_vm_is_sent_once_its_other_recording_has_ended(jdk, tmp_path):
    """The reason is given once, and is not what the command noted about something else."""
    jar = busy_jar(tmp_path)
    vm = jdk.start("java", "-jar", jar, "600", stdout=subprocess.PIPE)
    assert vm.stdout.readline().strip() == "ready"
    leftover = pathlib.Path(tempfile.gettempdir()) / f".jvmscope-{os.getpid():016x}.jfr"
    leftover.write_bytes(b"FLR\0")
    try:
        with collector(tmp_path) as c:
            begun = lab.jvmscope("attach", "-o", tmp_path / "other.jfr", vm.pid)
            assert begun.returncode == 0, begun.stderr
            host = Host(tmp_path, c.port, jar.name)
            try:
                reported = lab.wait_for(
                    lambda: re.findall("left out.*", (tmp_path / "host.err").read_text()),
                    120,
                    "the VM is left out",
                )
                assert lab.jvmscope("stop", vm.pid).returncode == 0
                lab.wait_for(lambda: total(c), 120, "a profile that is sent")
                host.stop()
            finally:
                if host.process.poll() is None:
                    host.kill()
            end(vm)
            assert reported == [
                f"left out for now: {vm.pid}: cannot record: already recording to {tmp_path}/other.jfr; "
                f"end that recording with: jvmscope stop {vm.pid}"
            ]
    finally:
        leftover.unlink()


@pytest.mark.jdks(17)
def test_the_ring_of_a_vm_that_has_ended_is_kept_for_the_host(jdk, tmp_path):
    """While the host is down, VMs end and others start, whose agents remove all but the two newest
    rings of those that have ended.
    """
    jar = busy_jar(tmp_path)
    vm = jdk.start("java", "-jar", jar, "600", stdout=subprocess.PIPE)
    assert vm.stdout.readline().strip() == "ready"
    with collector(tmp_path) as c:
        host = Host(tmp_path, c.port, jar.name)
        try:
            lab.wait_for(lambda: total(c), 120, "a profile that is sent")
            host.kill()
            [ring] = [
                p.path
                for p in os.scandir("/var/tmp")
                if p.name.startswith(f"jvmscope-{vm.pid}-") and p.name.endswith(".ring")
            ]
            os.link(ring, tmp_path / "all.ring")
            end(vm)
            for _ in range(3):
                done = jdk.java("Busy", "0.1", jvm=[jdk.agent("always=y")])
                assert done.returncode == 0, done.stderr
            assert not os.path.exists(ring)
            assert (
                lab.jvmscope("dump", "-o", tmp_path / "whole.jfr", tmp_path / "all.ring").returncode
                == 0
            )
            host.start()
            lab.wait_for(lambda: not left_in(tmp_path / "spool"), 120, "the rest is taken")
            host.stop()
        finally:
            if host.process.poll() is None:
                host.kill()
        assert (
            total(c)
            == lab.read_json("report", "--json", tmp_path / "whole.jfr")["samples"]["total"]
        )


@pytest.mark.jdks(17)
def test_names_of_a_pod_and_the_cost_of_the_host(jdk, tmp_path, container):
    """Each sample has the names that Kubernetes' downward API sets, and the container's id. For a
    profile, the host uses less CPU time than a hundredth of the minute after which it takes one.
    """
    names = {
        "POD_NAME": "shop-7d4",
        "POD_NAMESPACE": "prod",
        "NODE_NAME": "node-3",
        "CONTAINER_NAME": "web",
        "AWS_REGION": "eu-1",
    }
    jar = busy_jar(tmp_path)
    group, digits = container
    vm = jdk.start(
        "sh",
        "-c",
        f"echo $$ >{group}/cgroup.procs; exec java -Xmx32m -jar {jar} 600",
        env={**os.environ, **names},
        stdout=subprocess.PIPE,
    )
    assert vm.stdout.readline().strip() == "ready"
    with collector(tmp_path) as c:
        host = Host(tmp_path, c.port, jar.name, "--label", "rack=r1")

        def uploads():
            return int(
                re.search(r"^jvmscope_uploads_total (\d+)", c.request("GET", "/metrics")[1], re.M)[
                    1
                ]
            )

        def cpu_seconds():
            """CPU time of the host, and of its children that have ended."""
            fields = (
                pathlib.Path(f"/proc/{host.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            )
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

        try:
            lab.wait_for(lambda: total(c) and uploads() >= 2, 120, "profiles that are sent")
            before, sent = cpu_seconds(), uploads()
            lab.wait_for(lambda: uploads() >= sent + 8, 120, "more profiles")
            cost, taken = cpu_seconds() - before, uploads() - sent
        finally:
            host.stop()
        assert cost / taken < 0.6, (cost, taken)
        db = sqlite3.connect(c.store.removeprefix("sqlite:"))
        with contextlib.closing(db):
            assert db.execute("SELECT host, instance, service FROM series").fetchall() == [
                ("node-3", "shop-7d4", jar.stem)
            ]
            assert dict(db.execute("SELECT key, value FROM label")) == {
                "k8s.pod.name": "shop-7d4",
                "k8s.namespace.name": "prod",
                "k8s.container.name": "web",
                "cloud.region": "eu-1",
                "container.id": digits[:12],
                "rack": "r1",
            }
        everything = total(c)
        assert (
            total(
                c,
                "--label",
                f"container.id={digits[:12]}",
                "--label",
                "k8s.namespace.name=prod",
                "--host",
                "node-3",
            )
            == everything
            > 0
        )
    print(f"host: {cost / taken * 1000:.1f} ms of processor time a profile")
