# SPDX-License-Identifier: Apache-2.0
"""JVMPI agents on today's VMs: tests/agents/jvmpi_agent.c calls every function and requests most
events under JvmpiWork.
"""
import re
import subprocess

import pytest

import lab

LAYER = lab.BUILD / "libjvmpi.so"
AGENTS = lab.BUILD / "tests" / "agents"
EXAMPLES = lab.BUILD / "examples"

# What each scenario of JvmpiWork must print, the events it enables, and from which JDK it is
# possible.
SCENARIOS = {
    "methods": (
        "1+2+3+33+34+42",
        8,
        dict(
            leaf_entries=50000,
            leaf_exits=50000,
            thrower_entries=5000,
            thrower_exits=5000,
            receiver=100,
            leaf_disabled=0,
            leaf_enabled=1000,
        ),
    ),
    # native methods, the program's and the JDK's; Thread; Object's constructor
    "natives": (
        "1+3+33+42",
        8,
        dict(
            native_many=1,
            native_wrong=0,
            native_thrown=1,
            native_object=1,
            native_results=0,
            native_of_jdk=1,
            thread_method=1,
            object_constructor=1,
            object_method=1,
        ),
    ),
    # section 1.5 of the specification: events in their own thread, several at once, requested ones
    # within the call ...
    "rules": (
        "1+4+5+33+34+42+60+61",
        8,
        dict(
            rule_here=111,
            rule_ended=1,
            rule_concurrent=1,
            rule_requests=111111,
            rule_creates=111,
            rule_collects=1111,
            rule_disables=1,
            rule_suspends=1,
            rule_suspended_dumps=11111,
        ),
    ),
    "objects": (
        "4+5+33+42+60+61",
        8,
        dict(
            reported_young=6,
            reported_in_dump=0,
            reported_old=3001,
            markers=20000,
            markers_behind_arrays=9000,
            int_arrays=10,
            markers_freed=32001,
            frees_while_disabled=0,
            frees_after_enable=1,
            gc_pairs=0,
            gcs=1,
            used_objects=1,
        ),
    ),
    "ids": (
        "33+42+46",
        8,
        dict(
            id_stable=1,
            id_null=0,
            id_back=1,
            id_unknown=1,
            request_alloc=0,
            request_bad=-1,
            request_class=0,
            request_array_class=0,
            primitive_classes_by_name=9,
            request_class_of_object=-1,
            request_thread_of_object=7,
            null_arguments=1,
            request_thread=0,
            request_entry=1,
            requested=211,
            enable_dump=111,
            enable_move=0,
            enable_none=111,
            enable_negative=1,
            versions=1,
            class_known=2000101,
            class_of_leaf=1,
        ),
    ),
    "threads": (
        "33+34+42",
        8,
        dict(
            status_blocked=2,
            monitor_dump=11,
            monitor_traces=1,
            parties_waiting=3,
            parties_owned=1000003,
            parties_notified=1002001,
            parties_entering=1004001,
            parties_all_entering=1005000,
            status_parked=3,
            status_spinning=1,
            suspend=1410,
            status_suspended=1,
            suspended_runs=0,
            resumed_runs=1,
            suspended_one_runs=0,
            resume_list=0,
            resumed_list_runs=1,
            has_run=1,
            has_run_parked=0,
            thread_object=1,
            trace=1,
            trace_depth=1,
            own_trace=None,
            storage=1,
            system_thread=11,
            ending=110000,
            cpu=1,
        ),
    ),
    "monitors": (
        "33+42+51+52+53+54+55+57+58",
        8,
        dict(
            enter=1,
            not_entered=0,
            entered=1,
            wait_timeout=70,
            wait_object=1,
            waited=1,
            sleeps=70,
            slept=1,
            interrupted=1,
            raw_dump=11,
            raw_dump_waiting=101,
            raw=4,
            raw_silent=0,
        ),
    ),
    "exits": (
        "33+42+54+55+56",
        8,
        dict(
            exit_block=1,
            exit_nested=1,
            exit_method=1,
            exit_thrown=1,
            exit_static=1,
            exit_wait=1,
            exit_uncontended=0,
        ),
    ),
    # 21 instructions at rising offsets; two branches taken, the switches' keys
    "instructions": ("9+33+42", 8, dict(steps=21021, reported="i i t12 l3 ")),
    "classes": ("1+3+35+42+43+5+33", 8, dict(unloaded=10, patched="was patched!")),
    "dumps": (
        "33+42",
        8,
        dict(
            heap_0=0,
            heap_3=-1,
            instance=0x21,
            instance_length=None,
            own_first=5,
            ints=0x23,
            ints_length=22,
            ints_last=4,
            array=0x22,
            array_length=45,
            dump_bad=-1,
        )
        | {"class": 0x20},
    ),
    "left": ("4+33+42", 8, dict(left_0=0, left_1=0, left_2=0)),
    "raw": ("42", 8, dict(raw_rules=1111111)),
    "references": ("38+39+40+41", 8, dict(references=1111)),
    "signals": ("44+45", 8, dict(signals=11)),
    "compiled": ("7+8+42", 8, dict(leaf_compiled=1, unloaded_code=1)),
    "storm": ("1+3+5+33+34+42+43+54+55+60+61", 8, dict(storm=1)),
    "virtual": ("1+3+33+34+42", 21, dict(virtual_leaf=0, virtual_nesting=1)),
}


def run(
    jdk, *arguments, agent="-Xrunjvmpitest", layer=f"-agentpath:{LAYER}", jvm=(), env=(), **kwargs
):
    kwargs.setdefault("timeout", 120)
    return jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}:{EXAMPLES}",
        *env,
        "java",
        "-Xmx128m",
        layer,
        *([agent] if agent else []),
        *jvm,
        "-cp",
        lab.compiled("JvmpiWork"),
        "JvmpiWork",
        *arguments,
        **kwargs,
    )


def problems(jdk, name, **kwargs):
    """Runs a scenario. Returns what is missing from its output."""
    events, _, expected = SCENARIOS[name]
    done = run(jdk, name, agent=f"-Xrunjvmpitest:{events}+47", **kwargs)
    found = (
        []
        if done.returncode == 0
        else [f"exit status {done.returncode}: {done.stderr[-300:]} {done.stdout[-300:]}"]
    )
    work = dict(re.findall(r"^work (\w+) (.*)$", done.stdout, re.M))
    for key, value in expected.items():
        if key not in work or (value is not None and work[key] != str(value)):
            found.append(f"{key} is {work.get(key)}, not {value}")
    faults = re.search(r"^jvmpi faults (\d+) (.*)$", done.stdout, re.M)
    if not faults:
        found.append("no JVM_SHUT_DOWN")
    elif faults[1] != "0":
        found.append(f"the agent found {faults[1]} faults: {faults[2]}")
    counts = {
        int(a): int(b) for a, b in re.findall(r"^jvmpi event (\d+) (\d+) ", done.stdout, re.M)
    }
    found += [
        f"no event {e}"
        for e in map(int, events.split("+"))
        if not counts.get(e) and name != "storm"
    ]
    if faults and "jvmpi frees_outside_gc 0" not in done.stdout:
        found.append("OBJECT_FREE outside of GC_START and GC_FINISH")
    order = re.search(r"^jvmpi init_order (\d+)$", done.stdout, re.M)
    if order and order[1] not in ("0", "2", "24", "14", "124", "4"):
        found.append(f"identities at start come in the order {order[1]}")
    return found


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(jdk, name):
    if jdk.version >= SCENARIOS[name][1]:
        assert not problems(jdk, name)


@pytest.mark.jdks(11, 17, 21)
def test_ends_of_classes_are_reported_with_a_concurrent_collector(jdk):
    """Ends of classes are reported with and without GC_START and GC_FINISH, whose count of objects
    requires a walk through the heap. ZGC of JDK 11 unloads no classes.
    """
    for collector in ["ShenandoahGC"] + ["ZGC"] * (jdk.version > 11):
        done = run(
            jdk,
            "classes",
            agent="-Xrunjvmpitest:35+42+43+4+5+60+61+47",
            jvm=["-XX:+UnlockExperimentalVMOptions", f"-XX:+Use{collector}"],
        )
        assert done.returncode == 0 and "work unloaded 10\n" in done.stdout, done
        assert "jvmpi faults 0" in done.stdout, done


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("events", ["60+61", "4+60+61", "4+5+60+61"])
@pytest.mark.parametrize("collector", ["SerialGC", "ParallelGC"])
def test_there_is_a_pair_of_events_for_each_collection(jdk, collector, events):
    """Hundreds of pauses follow one another quickly, with and without ends of objects, which the VM
    reports late or early.
    """
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}:{EXAMPLES}",
        "java",
        *("-Xmx64m", "-Xmn2m", f"-XX:+Use{collector}", f"-agentpath:{LAYER}"),
        f"-Xrunjvmpitest:{events}+47",
        *("-cp", lab.compiled("ManyCollections"), "ManyCollections", 500000),
        timeout=120,
    )
    assert done.returncode == 0, done
    n = int(re.search(r"^collections (\d+)$", done.stdout, re.M)[1])
    counts = dict(re.findall(r"^jvmpi event (\d+) (\d+) ", done.stdout, re.M))
    # The first ones may have come before the agent wanted events; a collection may be the last
    # thing that happens; and the ends that are reported late for the last one have a pair.
    assert n > 200 and counts["60"] == counts["61"], (n, counts)
    assert n - 3 <= int(counts["60"]) <= n + 3, (n, counts)


# For each function and event, the scenario that must notice when the function or event claims
# success and does nothing.
MUTANTS = {
    "EnableEvent": "classes",
    "DisableEvent": "methods",
    "RequestEvent": "ids",
    "GetCallTrace": "threads",
    "ProfilerExit": None,
    "RawMonitorCreate": "raw",
    "RawMonitorEnter": "raw",
    "RawMonitorExit": "raw",
    "RawMonitorWait": "raw",
    "RawMonitorNotifyAll": "raw",
    "RawMonitorDestroy": "raw",
    "GetCurrentThreadCpuTime": "threads",
    "SuspendThread": "threads",
    "ResumeThread": "threads",
    "GetThreadStatus": "threads",
    "ThreadHasRun": "threads",
    "CreateSystemThread": "threads",
    "SetThreadLocalStorage": "threads",
    "GetThreadLocalStorage": "threads",
    "DisableGC": "objects",
    "EnableGC": "objects",
    "RunGC": "objects",
    "GetThreadObject": "threads",
    "GetMethodClass": "ids",
    "jobjectID2jobject": "ids",
    "jobject2jobjectID": "ids",
    "SuspendThreadList": "threads",
    "ResumeThreadList": "threads",
    1: "methods",
    2: "methods",
    3: "methods",
    4: "objects",
    5: "objects",
    7: "compiled",
    8: "compiled",
    9: "instructions",
    33: "threads",
    34: "threads",
    35: "classes",
    37: "dumps",
    38: "references",
    39: "references",
    40: "references",
    41: "references",
    42: "classes",
    43: "classes",
    44: "signals",
    45: "signals",
    46: "ids",
    47: "ids",
    50: "dumps",
    51: "monitors",
    52: "monitors",
    53: "monitors",
    54: "monitors",
    55: "monitors",
    56: "exits",
    57: "monitors",
    58: "monitors",
    59: "threads",
    60: "objects",
    61: "objects",
}


def notices(jdk, mutant):
    """Returns what the test of a function or event reports when that claims success and does
    nothing.
    """
    how = dict(layer=f"-agentpath:{AGENTS / 'libjvmpimutant.so'}", env=[f"JVMPI_MUTANT={mutant}"])
    if mutant == "ProfilerExit":
        done = run(jdk, "exit", agent="-Xrunjvmpitest:33+47", **how)
        return [f"exit status {done.returncode}"] if done.returncode != 7 else []
    try:
        return problems(jdk, MUTANTS[mutant], **how)
    except subprocess.TimeoutExpired:
        return ["it does not end"]


@pytest.mark.jdks(17)
@pytest.mark.parametrize("mutant", ["GetThreadObject", "RawMonitorWait", 34, 41])
def test_a_stub_is_noticed(jdk, mutant):
    assert notices(jdk, mutant)


@pytest.mark.slow
def test_every_stub_is_noticed(jdk):
    """The matrix: prints which check notices that a function or event does nothing (pytest -s shows
    it).
    """
    assert not problems(
        jdk, "ids", layer=f"-agentpath:{AGENTS / 'libjvmpimutant.so'}"
    )  # unharmed, the mutant layer passes
    matrix = {mutant: notices(jdk, mutant) for mutant in MUTANTS}
    for mutant, found in matrix.items():
        print(f"{mutant!s:24} {'NOT NOTICED' if not found else found[0][:100]}")
    assert all(matrix.values()), [m for m, found in matrix.items() if not found]


def test_heap_dumps_of_known_objects(jdk):
    """Levels 1 and 2, parsed to the last byte and compared with the program's objects field by
    field.
    """
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}",
        "java",
        "-Xmx128m",
        f"-agentpath:{LAYER}",
        "-Xrunjvmpidump",
        "-cp",
        lab.compiled("JvmpiDump"),
        "JvmpiDump",
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout.endswith("\ndone 0\n"), done
    assert "WRONG" not in done.stdout and "fault" not in done.stdout, done.stdout
    roots = {int(a): int(b) for a, b in re.findall(r"^roots (\d+) (\d+)$", done.stdout, re.M)}
    assert all(roots[type] > 0 for type in (1, 2, 3, 5, 6, 7)), roots


STRESS = ("block", "jni", "toggle", "sample", "exit", "slow", "after")


def stress(jdk, how, rounds):
    """64 threads under an agent that behaves badly; the program's own result must be right."""
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}",
        "java",
        "-Xmx256m",
        f"-agentpath:{LAYER}",
        f"-Xrunjvmpistress:{how}",
        "-cp",
        lab.compiled("JvmpiStress"),
        "JvmpiStress",
        str(rounds),
        timeout=280,
    )
    if how == "exit":
        assert done.returncode == 9 and "right" not in done.stdout, done
    else:
        assert (
            done.returncode == 0 and "right 64 " in done.stdout and "Exception" not in done.stderr
        ), done
        assert "stress events 1" in done.stdout, done.stdout
    if how == "jni":
        assert "stress calls 1" in done.stdout, done.stdout
    if how == "sample":
        assert "stress samples 1" in done.stdout, done.stdout
    if (
        how == "after"
    ):  # calls do not come back after JVM_SHUT_DOWN, and the exit handler is not held up
        assert "stress held_up 1" in done.stdout, done.stdout


@pytest.mark.jdks(8, 27)
@pytest.mark.parametrize("how", STRESS)
def test_stress(jdk, how):
    stress(jdk, how, 100)


@pytest.mark.slow
@pytest.mark.parametrize("how", STRESS)
def test_stress_for_long(jdk, how):
    for _ in range(5):
        stress(jdk, how, 1000)


def test_no_event_enabled(jdk):
    done = run(jdk, "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_profiler_exit(jdk):
    for scenario in ("exit", "exit late"):  # the other one exits in the handler of JVM_SHUT_DOWN
        done = run(jdk, scenario, agent="-Xrunjvmpitest:33+47")
        assert done.returncode == 7, (scenario, done)
        assert "jvmpi event 47 1 0" in done.stdout, done  # JVM_SHUT_DOWN was sent


@pytest.mark.jdks(8, 17, 27)
def test_loading_by_ourselves(jdk):
    agent = AGENTS / "libjvmpitest.so"
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib={agent},opts=42+47")
    assert done.returncode == 0 and "hello\n" in done.stdout and "jvmpi event 42 " in done.stdout
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib={agent},opts=fail")
    assert (
        done.returncode == 1
        and "JVM_OnLoad returned -1" in done.stderr
        and "hello" not in done.stdout
    )
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=lib=/no/such.so")
    assert done.returncode == 1 and re.search(r"^jvmpi: /no/such.so: ", done.stderr, re.M)
    done = run(jdk, "hello", agent=None, layer=f"-agentpath:{LAYER}=nonsense")
    assert done.returncode == 1 and "jvmpi: unknown option nonsense" in done.stderr
    done = run(jdk, "hello", agent="-Xrunjvmpitest:fail")
    assert done.returncode == 1 and "hello" not in done.stdout


@pytest.mark.jdks(8, 17, 21, slow=(11, 25, 27))
@pytest.mark.parametrize("by", ["lib=", "-Xrun"])
def test_the_first_objects_are_reported(jdk, by):
    """The main thread's allocation buffer exists before the events do. They are enabled in
    JVM_OnLoad.
    """
    agent = f"-agentpath:{LAYER}=lib={AGENTS / 'libjvmpitest.so'},opts=4+42+47"
    for collector in ("Serial", "Parallel", "G1")[: 1 if jdk.version == 8 else None]:
        done = run(
            jdk,
            "first",
            agent=None if by == "lib=" else "-Xrunjvmpitest:4+42+47",
            layer=agent if by == "lib=" else f"-agentpath:{LAYER}",
            jvm=[f"-XX:+Use{collector}GC"],
        )
        assert done.returncode == 0 and "work first 1000\n" in done.stdout, (collector, done)


@pytest.mark.jdks(8, 17, 27)
def test_second_agent_is_refused(jdk):
    done = run(jdk, "hello", agent="-Xrunjvmpitest", jvm=["-Xruncalls"])
    assert done.returncode == 1 and "hello" not in done.stdout
    assert [line for line in done.stderr.splitlines() if line.startswith("jvmpi: ")] == [
        f"jvmpi: {EXAMPLES / 'libcalls.so'}: JVMPI knows one agent for each VM, and that is {AGENTS / 'libjvmpitest.so'}"
    ], done
    done = run(jdk, "hello", agent=None, jvm=[f"-agentpath:{LAYER}"])  # the layer twice
    assert done.returncode == 1 and done.stderr.count("jvmpi: ") == 1, done
    done = run(jdk, "hello", agent="-Xrunnosuchagent")  # the VM's own message and status
    assert (
        done.returncode == 1
        and "hello" not in done.stdout
        and "nosuchagent" in done.stdout + done.stderr
    ), done


def test_header_is_c89_and_cpp(tmp_path):
    java_home = subprocess.run(
        [lab.ROOT / "tools" / "java-home"], capture_output=True, text=True, check=True
    ).stdout.strip()
    source = tmp_path / "header.c"
    source.write_text(
        '#include "jvmpi.h"\n#include <stddef.h>\n'
        + "".join(
            f"typedef char check_{i}[({c}) ? 1 : -1];\n"
            for i, c in enumerate(
                (
                    "sizeof(JVMPI_Interface) == 240",
                    "sizeof(JVMPI_Event) == 88",
                    "offsetof(JVMPI_Event, u) == 16",
                    "offsetof(JVMPI_Interface, GetMethodClass) == 200",
                    "offsetof(JVMPI_Interface, ResumeThreadList) == 232",
                    "sizeof(JVMPI_CallFrame) == 16",
                    "sizeof(JVMPI_CallTrace) == 24",
                    "sizeof(JVMPI_Method) == 32",
                    "sizeof(JVMPI_Field) == 16",
                    "sizeof(JVMPI_Lineno) == 8",
                )
            )
        )
    )
    include = [
        "-I",
        lab.ROOT / "include",
        "-isystem",
        f"{java_home}/include",
        "-isystem",
        f"{java_home}/include/linux",
    ]
    for compiler in (["gcc", "-std=c89", "-pedantic"], ["g++", "-x", "c++", "-std=c++98"]):
        subprocess.run(
            [
                *compiler,
                "-Wall",
                "-Wextra",
                "-Werror",
                *include,
                "-c",
                source,
                "-o",
                tmp_path / "o",
            ],
            check=True,
        )


def example(jdk, name, options=""):
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={EXAMPLES}:{AGENTS}",
        "java",
        "-Xmx64m",
        f"-agentpath:{LAYER}",
        f"-Xrun{name}{options}",
        "-cp",
        lab.compiled("JvmpiWork"),
        "JvmpiWork",
        "contend" if name == "locks" else "hello",
        timeout=120,
    )
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
    assert re.search(
        r"^monitor \S+ of class java\.lang\.Class\b.* [1-9]\d* contended enters", locks, re.M
    ), locks
