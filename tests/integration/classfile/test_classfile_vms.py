# SPDX-License-Identifier: Apache-2.0
"""Each VM's verifier over what the agent makes of classes, one kind of probe at a time: a sample of
the JDK's classes in make check, every class of the JDK's own modules and of the jars of tools/jars
in make check-all. Each test prints how many methods the classes have, how many of them were changed
and how many were left alone, by reason (-s shows it).
"""
import functools
import re
import subprocess

import lab
import pytest

FLAGS = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
    "-Xmx1g",
]
# locks= names a class that does not exist: no holds are recorded, but the probes are inserted.
PROBES = {
    "times": "cpu=times",
    "elapsed": "cpu=times,clock=elapsed",
    "alloc": "alloc=exact",
    "cover": "cover=y,include=*",
    "trace": "trace=*,limit=1",
    "exceptions": "exceptions=counts",
    "locks": "cpu=times,locks=no.such.Class",
}
# Reasons for which a method that has code and runs it may be left unchanged.
LEFT = (
    "malformed",
    "too_long",
    "too_long_for_jit",
    "constant_pool_full",
    "table_full",
    "unclear",
    "out_of_memory",
)


def source(name):
    """Returns LinkAll's arguments for a source of classes, and the option that restricts the agent
    to them.
    """
    if name == "jdk":
        return (1,), ""
    if name == "sample":
        return (40,), ""
    return (1, *lab.jars()), ",exclude=java.*:javax.*:jdk.*:sun.*:com.sun.*"


def link(version, args, jvm=()):
    """Returns what LinkAll prints, and the agent's counts at that moment."""
    modules = ["--add-modules=ALL-SYSTEM"] if version > 8 and len(args) == 1 else []
    with lab.Jdk(version).start_java(
        "LinkAll",
        *args,
        jvm=[*FLAGS, *modules, *jvm],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        printed = []
        while not printed or not re.match("linked=", printed[-1]):
            line = process.stdout.readline()
            assert line, "".join(printed)
            printed.append(line)
        status = lab.read_json("status", "--json", process.pid) if jvm else {}
        process.kill()  # removing the probes from thousands of classes takes JDK 8 minutes
    return printed[-1], {
        k.removeprefix("instrument."): n for k, n in status.items() if k.startswith("instrument.")
    }


@functools.cache
def plain(version, name):
    printed, _ = link(version, source(name)[0])
    assert " refused=0 " in printed
    return printed


def check(jdk, name, probe, tmp_path):
    args, chosen = source(name)
    options = PROBES[probe] + chosen
    printed, counts = link(
        jdk.version, args, [jdk.agent(f"{options},format=r,file={tmp_path / 'out.jfr'}")]
    )
    left = {why: counts.get(f"left.{why}", 0) for why in LEFT}
    print(
        f"JDK {jdk.version}, {name}, {probe}: {printed.strip()}; methods {counts['methods']}, left {sum(left.values())}: {left}"
    )
    assert printed == plain(jdk.version, name)
    assert counts["methods"] > int(re.search(r"linked=(\d+)", printed)[1]) / 10, counts
    assert counts["refused_classes"] == 0, counts
    assert sum(left.values()) <= int(re.search(r"methods=(\d+)", printed)[1]) / 1000, counts


@pytest.mark.jdks(daily=1)
def test_each_vm_verifies_a_sample(jdk, tmp_path):
    check(jdk, "sample", "locks", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("probe", PROBES)
def test_each_vm_verifies_every_class(jdk, probe, tmp_path):
    check(jdk, "jdk", probe, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("probe", PROBES)
def test_each_vm_verifies_every_class_of_the_jars(jdk, probe, tmp_path):
    check(jdk, "jars", probe, tmp_path)
