# SPDX-License-Identifier: Apache-2.0
"""JVMPI agents on today's VMs: tests/agents/jvmpi_agent.c asks for every function and most events under JvmpiWork."""
import re
import subprocess

import pytest

import lab

LAYER = lab.BUILD / "libjvmpi.so"
AGENTS = lab.BUILD / "tests" / "agents"
EXAMPLES = lab.BUILD / "examples"

# What each scenario of JvmpiWork must print, the events it enables, and from which JDK it is possible.
SCENARIOS = {
    "methods": ("1+2+3+33+34+42", 8, dict(
        leaf_entries=50000, leaf_exits=50000, thrower_entries=5000, thrower_exits=5000, receiver=100, leaf_disabled=0,
        leaf_enabled=1000)),
    # the JDK tells of every allocation since 11 alone
    "objects": ("4+5+33+42+60+61", 8, dict(
        markers=20000, int_arrays=10, markers_freed=20000, frees_while_disabled=0, frees_after_enable=1, gc_pairs=0, gcs=1,
        used_objects=1)),
    "ids": ("33+42+46", 8, dict(
        id_stable=1, id_null=0, id_back=1, id_unknown=1, request_alloc=0, request_bad=-1, request_class=0,
        request_array_class=0, request_class_of_object=-1, request_thread=0, request_entry=1, requested=121, enable_dump=111,
        enable_move=0, enable_none=111, enable_negative=1, versions=1, class_known=2000101, class_of_leaf=1)),
    "threads": ("33+34+42", 8, dict(
        status_blocked=2, monitor_dump=11, monitor_traces=1, status_parked=3, status_spinning=1, suspend=1410,
        status_suspended=1, suspended_runs=0, resumed_runs=1, has_run=1, has_run_parked=0, thread_object=1, trace=1,
        trace_depth=1, own_trace=None, storage=1, system_thread=11, cpu=1)),
    "monitors": ("33+42+51+52+53+54+55+57+58", 8, dict(
        enter=1, not_entered=0, entered=1, wait_timeout=70, wait_object=1, waited=1, sleeps=70, slept=1, interrupted=1,
        raw_dump=11, raw_dump_waiting=101, raw=4, raw_silent=0)),
    "exits": ("33+42+54+55+56", 8, dict(
        exit_block=1, exit_nested=1, exit_method=1, exit_thrown=1, exit_static=1, exit_wait=1, exit_uncontended=0)),
    # 21 instructions at rising offsets; two branches taken, the switches' keys
    "instructions": ("9+33+42", 8, dict(steps=21021, told="i i t12 l3 ")),
    "classes": ("35+42+43+5+33", 8, dict(unloaded=10, patched="was patched!")),
    "dumps": ("33+42", 8, dict(
        heap_0=0, heap_3=-1, instance=0x21, instance_length=None, own_first=5, ints=0x23, ints_length=22, ints_last=4, array=0x22,
        array_length=45, dump_bad=-1) | {"class": 0x20}),
    "storm": ("1+3+5+33+34+42+43+54+55+60+61", 8, dict(storm=1)),
    "virtual": ("1+3+33+34+42", 21, dict(virtual_leaf=0, virtual_nesting=1)),
}


def run(jdk, *arguments, agent="-Xrunjvmpitest", layer=f"-agentpath:{LAYER}", jvm=(), **kwargs):
    return jdk.run("env", f"LD_LIBRARY_PATH={AGENTS}:{EXAMPLES}", "java", "-Xmx128m", layer, *([agent] if agent else []), *jvm, "-cp",
                   lab.compiled("JvmpiWork"), "JvmpiWork", *arguments, timeout=120, **kwargs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(jdk, name):
    events, since, expected = SCENARIOS[name]
    if jdk.version < since:
        return
    done = run(jdk, name, agent=f"-Xrunjvmpitest:{events}+47")
    assert done.returncode == 0, done
    work = dict(re.findall(r"^work (\w+) (.*)$", done.stdout, re.M))
    for key, value in expected.items():
        assert key in work, (key, done.stdout, done.stderr)
        assert value is None or work[key] == str(value), (key, work[key])
    assert "jvmpi faults 0" in done.stdout, done.stdout
    counts = {int(a): int(b) for a, b in re.findall(r"^jvmpi event (\d+) (\d+) ", done.stdout, re.M)}
    for event in map(int, events.split("+")):
        # CLASS_UNLOAD and FREE need something to end; the rest was provoked
        assert counts.get(event, 0) > 0 or name in ("storm",), event
    assert "jvmpi frees_outside_gc 0" in done.stdout
    order = re.search(r"^jvmpi init_order (\d+)$", done.stdout, re.M)[1]
    assert order in ("0", "2", "24", "14", "124", "4"), order


def test_heap_dumps_of_known_objects(jdk):
    """Levels 1 and 2, parsed to the last byte and compared with the program's objects field by field."""
    done = jdk.run("env", f"LD_LIBRARY_PATH={AGENTS}", "java", "-Xmx128m", f"-agentpath:{LAYER}", "-Xrunjvmpidump", "-cp",
                   lab.compiled("JvmpiDump"), "JvmpiDump", timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("\ndone 0\n"), done
    assert "WRONG" not in done.stdout and "fault" not in done.stdout, done.stdout
    roots = {int(a): int(b) for a, b in re.findall(r"^roots (\d+) (\d+)$", done.stdout, re.M)}
    assert all(roots[type] > 0 for type in (1, 2, 3, 5, 6, 7)), roots


def test_no_event_enabled(jdk):
    done = run(jdk, "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_profiler_exit(jdk):
    done = run(jdk, "exit", agent="-Xrunjvmpitest:33+47")
    assert done.returncode == 7
    assert "jvmpi event 47 1 0" in done.stdout  # JVM_SHUT_DOWN was sent


@pytest.mark.jdks(8, 17, 27)
def test_loading_by_ourselves(jdk):
    agent = AGENTS / "libjvmpitest.so"
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib={agent},opts=42+47")
    assert done.returncode == 0 and "hello\n" in done.stdout and "jvmpi event 42 " in done.stdout
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib={agent},opts=fail")
    assert done.returncode == 1 and "JVM_OnLoad answered -1" in done.stderr and "hello" not in done.stdout
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib=/no/such.so")
    assert done.returncode == 1 and re.search(r"^jvmpi: /no/such.so: ", done.stderr, re.M)
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=nonsense")
    assert done.returncode == 1 and "jvmpi: unknown option nonsense" in done.stderr
    done = run(jdk, "hello", agent="-Xrunjvmpitest:fail")
    assert done.returncode == 1 and "hello" not in done.stdout


@pytest.mark.jdks(8, 17, 27)
def test_second_agent_is_refused(jdk):
    done = run(jdk, "hello", agent="-Xrunjvmpitest", jvm=["-Xruncalls"])
    assert done.returncode == 1 and "hello" not in done.stdout
    assert [line for line in done.stderr.splitlines() if line.startswith("jvmpi: ")] == [
        f"jvmpi: {EXAMPLES / 'libcalls.so'}: JVMPI knows one agent for each VM, and that is {AGENTS / 'libjvmpitest.so'}"], done
    done = run(jdk, "hello", agent=None, jvm=[f"-agentpath:{LAYER}"])  # the layer twice
    assert done.returncode == 1 and done.stderr.count("jvmpi: ") == 1, done
    done = run(jdk, "hello", agent="-Xrunnosuchagent")  # the VM's own message and status
    assert done.returncode == 1 and "hello" not in done.stdout and "nosuchagent" in done.stdout + done.stderr, done


def test_header_is_c89_and_cpp(tmp_path):
    java_home = subprocess.run([lab.ROOT / "tools" / "java-home"], capture_output=True, text=True, check=True).stdout.strip()
    source = tmp_path / "header.c"
    source.write_text('#include "jvmpi.h"\n#include <stddef.h>\n'
                      + "".join(f"typedef char check_{i}[({c}) ? 1 : -1];\n" for i, c in enumerate((
                          "sizeof(JVMPI_Interface) == 240", "sizeof(JVMPI_Event) == 88", "offsetof(JVMPI_Event, u) == 16",
                          "offsetof(JVMPI_Interface, GetMethodClass) == 200", "offsetof(JVMPI_Interface, ResumeThreadList) == 232",
                          "sizeof(JVMPI_CallFrame) == 16", "sizeof(JVMPI_CallTrace) == 24", "sizeof(JVMPI_Method) == 32",
                          "sizeof(JVMPI_Field) == 16", "sizeof(JVMPI_Lineno) == 8"))))
    include = ["-I", lab.ROOT / "include", "-isystem", f"{java_home}/include", "-isystem", f"{java_home}/include/linux"]
    for compiler in (["gcc", "-std=c89", "-pedantic"], ["g++", "-x", "c++", "-std=c++98"]):
        subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", *include, "-c", source, "-o", tmp_path / "o"], check=True)


def example(jdk, name, options=""):
    done = jdk.run("env", f"LD_LIBRARY_PATH={EXAMPLES}:{AGENTS}", "java", "-Xmx64m", f"-agentpath:{LAYER}",
                   f"-Xrun{name}{options}", "-cp", lab.compiled("JvmpiWork"), "JvmpiWork", "contend" if name == "locks" else "hello",
                   timeout=120)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.jdks(8, 17, 27)
def test_examples(jdk):
    calls = example(jdk, "calls")
    assert re.search(r"^thread main called [1-9]\d* methods$", calls, re.M), calls
    heap = example(jdk, "heapwalk")
    assert re.search(r"^heap: [1-9]\d+ objects, [1-9]\d* of them arrays$", heap, re.M), heap
    assert re.search(r"^the last thread is a java.lang.Thread", heap, re.M), heap
    locks = example(jdk, "locks")
    assert re.search(r"^monitor \S+ of class java\.lang\.Class\b.* [1-9]\d* contended enters", locks, re.M), locks
