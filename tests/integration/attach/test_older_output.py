# SPDX-License-Identifier: Apache-2.0
"""A recording that cannot begin leaves the older file of its name as it was, and one that begins
takes its place.
"""
import os
import subprocess

import lab
import pytest

REFUSED = {
    "condition": ("--trace", "Ticks.tick", "--if", "arg9 == 1"),
    "flight recorder": ("--jfr=/nosuch/settings.jfc",),
}


@pytest.fixture
def ticking(jdk):
    process = jdk.start_java("Ticks", stdout=subprocess.PIPE)
    assert process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.jdks(8, 17, 25)
def test_a_refused_recording_leaves_the_older_one(jdk, ticking, what, tmp_path):
    out = tmp_path / "old.jfr"
    begin = ("attach", "--cpu", "-t", "200ms", "-o", out, ticking.pid)
    assert lab.jvmscope(*begin).returncode == 0
    older = out.read_bytes()
    done = lab.jvmscope("attach", *REFUSED[what], "-t", "200ms", "-o", out, ticking.pid)
    assert done.returncode == 1 and "cannot record" in done.stderr, done.stderr
    assert out.read_bytes() == older
    assert [p.name for p in tmp_path.iterdir()] == ["old.jfr"]
    done = lab.jvmscope(*begin)
    assert done.returncode == 0 and "in place of an older file" in done.stderr, done.stderr
    assert out.read_bytes() != older and out.stat().st_nlink == 1
    assert [p.name for p in tmp_path.iterdir()] == ["old.jfr"]


@pytest.mark.jdks(8, 17, 25)
def test_a_vm_that_does_not_start_leaves_the_older_recording(jdk, tmp_path):
    out = tmp_path / "old.jfr"
    assert (
        jdk.java("Busy", "0", jvm=[jdk.agent(f"cpu=samples,format=r,file={out}")]).returncode == 0
    )
    older = out.read_bytes()
    agent = jdk.agent(f"cpu=samples,format=r,file={out}")
    done = jdk.java("Busy", "0", jvm=[agent, "-Xmx1"])
    assert done.returncode == 1 and out.read_bytes() == older, done
    assert [p.name for p in tmp_path.iterdir()] == ["old.jfr"]


@pytest.mark.jdks(17)
def test_a_ring_is_replaced_by_the_ring_that_begins(jdk, tmp_path):
    """A link is replaced, not what it leads to. While the new ring begins and after that, another VM
    that wants the name is refused.
    """
    ring, link = tmp_path / "old.ring", tmp_path / "link.ring"
    options = "always=y,keep=1m,maxsize=16m"
    for _ in range(2):
        done = jdk.java("Busy", "0", jvm=[jdk.agent(f"{options},file={ring}")])
        assert done.returncode == 0, done.stderr
    older = ring.read_bytes()
    os.symlink(ring, link)
    process = jdk.start_java("Ticks", jvm=[jdk.agent(f"{options},file={link}")], stdout=-1)
    try:
        assert process.stdout.readline()
        lab.wait_for(lambda: not link.is_symlink(), 60, "the new ring")
        assert ring.read_bytes() == older
        done = jdk.java("Busy", "0", jvm=[jdk.agent(f"{options},file={link}")])
        assert "another VM records to this file" in done.stdout + done.stderr, done
    finally:
        process.kill()
        process.communicate()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.ring", "old.ring"]
