# SPDX-License-Identifier: Apache-2.0
"""What JVMPI agents designed for JDK 1.2 take for granted, under programs that make it difficult.

The contract agent (tests/agents/jvmpi_contract.h) enables every event, looks up each id and writes
down each breach. The classic profiler (jvmpi_classic.h) behaves as the profilers of that time do,
and ends the VM when it cannot continue.
"""
import re

import pytest

import lab
import workloads

LAYER = lab.BUILD / "libjvmpi.so"
AGENTS = lab.BUILD / "tests" / "agents"
RIGHT = "right 25580 0\n"


def program(name, tmp_path):
    """Arguments of `java` for a program, and what it prints (None: not checked)."""
    if name == "javac":
        # as a class: JDK 8 loads the compiler by a loader of its own
        sources = tmp_path / "sources"
        workloads.javac_sources(sources, 2)
        return [
            "-cp",
            f"{lab.compiled('Ready')}:{lab.compiled('Compiles')}",
            "Ready",
            "Compiles",
            sources,
        ], None
    if name == "h2":
        return ["-cp", f"{lab.compiled('SqlRows')}:{workloads.H2_JAR}", "SqlRows", 300], None
    if name == "hello":
        return ["-cp", lab.compiled("JvmpiWork"), "JvmpiWork", "hello"], "hello\n"
    if name == "escapes":
        return ["-cp", lab.compiled("JvmpiEscapes"), "JvmpiEscapes", 3000], "done\n"
    return ["-cp", lab.compiled("JvmpiContract"), "JvmpiContract", *name], RIGHT


def run(jdk, name, tmp_path, agent, layer=LAYER, env=(), heap="256m", timeout=250, by_layer=False):
    if name == "h2" and jdk.version < 11:
        pytest.skip("Debian's H2 is compiled for JDK 11")
    arguments, expected = program(name, tmp_path)
    library, options = agent.split(":", 1)
    agents = (
        [f"-agentpath:{layer}=lib={AGENTS}/lib{library}.so,opts={options}"]
        if by_layer
        else [f"-agentpath:{layer}", f"-Xrun{agent}"]
    )
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}",
        *env,
        "java",
        f"-Xmx{heap}",
        *agents,
        *arguments,
        timeout=timeout,
        input="",
    )
    return done, expected


def breaches(jdk, name, tmp_path, options="", **kwargs):
    """The contract agent's list, and how often each event came; what is wrong with the run itself
    is in the list as well.
    """
    out = tmp_path / "breaches"
    out.unlink(missing_ok=True)
    done, expected = run(jdk, name, tmp_path, f"jvmpicontract:out={out}{options}", **kwargs)
    text = out.read_text(errors="replace") if out.exists() else ""
    found = re.findall(r"^breach \d+ .*$", text, re.M)
    if done.returncode != 0:
        found.append(f"exit status {done.returncode}: {done.stdout[-300:]} {done.stderr[-300:]}")
    if expected is not None and (done.stdout != expected or "Exception" in done.stderr):
        found.append(f"the program's output: {done.stdout[-500:]} {done.stderr[-500:]}")
    if not text.endswith("\nend\n"):
        found.append("no JVM_SHUT_DOWN")
    return found, {int(a): int(b) for a, b in re.findall(r"^event (\d+) (\d+)$", text, re.M)}


def check(jdk, name, tmp_path, options=""):
    found, events = breaches(jdk, name, tmp_path, options)
    assert not found, "\n".join(found)
    # without any events, nothing is proved
    wanted = {4, 33, 38, 39, 40, 41, 42, 46, 47, 48} | (
        set() if "methods=0" in options else {1, 2, 3}
    )
    if isinstance(name, tuple):
        wanted |= {5, 7, 34, 43, 51, 52, 54, 55, 57, 58, 60, 61}
    assert wanted <= set(events), (sorted(wanted - set(events)), events)


@pytest.mark.jdks(daily=1)
def test_no_breach_with_threads_loaders_and_lambdas(jdk, tmp_path):
    check(
        jdk, (200, 60, 3), tmp_path
    )  # three threads continue while the VM ends and the last dumps are made


@pytest.mark.jdks(8, 27)
def test_no_breach_by_an_agent_that_the_layer_loads(jdk, tmp_path):
    # its events are enabled before the VM's first threads run
    found, events = breaches(jdk, (40, 2), tmp_path, by_layer=True)
    assert not found, found
    assert {33, 34, 35, 57, 58} <= set(events), events


@pytest.mark.jdks(11, 17, 25, slow=(8,))
def test_no_warning_by_xcheck_jni(jdk, tmp_path):
    """-Xcheck:jni prints on the program's standard output; JDK 8 has two warnings about itself."""
    arguments, _ = program((8, 2), tmp_path)
    alone = jdk.run("env", f"LD_LIBRARY_PATH={AGENTS}", "java", "-Xcheck:jni", *arguments)
    out = tmp_path / "breaches"
    done, _ = run(
        jdk, (8, 2), tmp_path, f"jvmpicontract:out={out}", env=["JAVA_TOOL_OPTIONS=-Xcheck:jni"]
    )
    assert done.stdout == alone.stdout and done.stdout.endswith(RIGHT), done
    assert "breach" not in out.read_text() and "\nevent 38 " in out.read_text()


@pytest.mark.parametrize("name", ["hello", "javac", "h2"])
@pytest.mark.slow
def test_no_breach(jdk, name, tmp_path):
    # a dump of a large heap takes seconds, in which the program waits
    check(
        jdk, name, tmp_path, "" if name == "hello" else ",methods=0,dumps=15000,sample=500,every=64"
    )


@pytest.mark.slow
def test_no_breach_with_thousands_of_threads(jdk, tmp_path):
    check(jdk, (4000, 500), tmp_path, ",methods=0")


@pytest.mark.slow
def test_no_breach_with_instructions(jdk, tmp_path):
    found, events = breaches(jdk, "hello", tmp_path, ",instructions=1,dumps=0,sample=0")
    assert not found and events[9] > 0, found


OPTIONS = (
    "heap=sites",
    "heap=dump",
    "heap=all,depth=16",
    "cpu=samples",
    "cpu=times",
    "monitor=y",
    "heap=all,cpu=samples,monitor=y",
    "heap=all,cpu=times,monitor=y",
)


def classic(jdk, name, options, tmp_path):
    done, expected = run(jdk, name, tmp_path, f"jvmpiclassic:{options}")
    assert done.returncode == 0, done
    assert expected is None or done.stdout == expected, done
    numbers = dict(
        (k, int(v)) for k, v in re.findall(r"(\w+) (\d+)", done.stderr.split("classic end: ")[1])
    )
    if "heap=" in options:
        assert numbers["living"] > 1000, numbers
    if "heap=dump" in options or "heap=all" in options:
        assert numbers["records"] > 1000, numbers
    if "cpu=times" in options:
        assert numbers["cpu"] > 0, numbers


@pytest.mark.parametrize("options", OPTIONS[-2:])
def test_a_profiler_of_1_2(jdk, options, tmp_path):
    classic(jdk, (100, 60), options, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["hello", "h2", (2000, 200)])
def test_a_profiler_of_1_2_with_each_option(jdk, name, options, tmp_path):
    classic(jdk, name, options, tmp_path)


# Defects that the layer may have (JVMPI_MUTANT names them, src/jvmpi/interface.c), and the program
# in which each shows.
MUTANTS = {
    "class-of-class": "hello",  # java.lang.Class is of java.lang.Class
    "unannounced-thread": (40, 2),  # every eighth THREAD_START is left out
    "thread-twice": "hello",  # THREAD_START again, after the thread object's handler has requested it
    "sticky-object": "hello",  # a class that is not linked is a root of the sort STICKY_CLASS
    "unannounced-class": (40, 2),  # every eighth CLASS_LOAD is left out
    "unlinked-class": "hello",  # a class that is not linked is dumped as a class
    "unreported-object": "hello",  # objects that a walk finds are not reported
    "reported-twice": "hello",  # objects that a walk finds are reported twice
    "free-outside": (40, 60),  # OBJECT_FREE after GC_FINISH
    "class-before-objects": (40, 60),  # CLASS_UNLOAD before what belongs to the class has ended
    "obsolete-method": "hello",  # the ids of methods of instrumented classes change
    "no-arena": "hello",  # no ARENA_NEW
    "short-instance": "hello",  # instances without the fields of their super classes
    "no-trace": (40, 2),  # every eighth GetCallTrace finds nothing
    "other-env": "hello",  # an event with another thread's env_id
    "other-class": "hello",  # every eighth object is one of java.lang.Object
    "class-before-its-object": "hello",  # CLASS_LOAD before the OBJECT_ALLOC of the class's object
    "free-twice": (40, 60),  # OBJECT_FREE twice
    "end-twice": (40, 2),  # THREAD_END twice
    "deep-frame": "hello",  # a root in a frame that is missing from its thread's trace
    "short-dump": "hello",  # a dump whose last byte is missing
    "early-done": "hello",  # JVM_INIT_DONE before everything else
    "after-the-end": "hello",  # an event after JVM_SHUT_DOWN
    "unsettled": (1000, 2),  # a dump names objects that other threads are still reporting
    "unfrozen-threads": (1000, 2),  # threads start and end during a dump
    "class-size": (40, 2),  # JDK 8: the size of a class object is that of another structure
    "waiting-owner": (200, 2),  # a monitor's owner waits for it as well
    "hidden-threads": (200, 2),  # a monitor dump has threads whose start was not sent
    "uncounted-contention": (
        200,
        2,
    ),  # MONITOR_CONTENDED_EXIT goes on when no thread contends any more
    "forgetful-dump": (40, 60),  # requests know nothing of what ended after the dump
    "unlinked-objects": "hello",  # there are objects of a class that is never linked
    # functions that claim success and do nothing
    "RequestEvent": "hello",
    "GetThreadObject": (40, 2),
    "GetMethodClass": "hello",
    "SetThreadLocalStorage": (40, 2),
    # events that are not sent
    1: (40, 2),
    3: (40, 2),
    4: "hello",
    33: (40, 2),
    38: "hello",
    40: "hello",
    42: (40, 2),
    48: "hello",
    54: (40, 2),
    55: (40, 2),
    57: (40, 2),
    58: (40, 2),
    60: (40, 60),
    61: (40, 60),
}
# Defects that cannot be noticed here: on JDK 11 each thread's object has been reported before its
# start, so no handler requests it.
UNREACHED = {("thread-twice", 11)} | {("class-size", version) for version in (11, 17, 25)}
# Defects that show with other options than the usual ones.
OFTEN = ",methods=0,sample=2,dumps=0"  # a monitor dump each 2 ms
MUTANT_OPTIONS = {
    61: ",brackets=0",  # without GC_FINISH an agent that holds a lock until then holds it for ever
    "unsettled": OFTEN,
    "unfrozen-threads": OFTEN,
    "waiting-owner": OFTEN,
    "hidden-threads": ",only=33,sample=5,dumps=0",  # no other event has threads
    # with an agent to which no objects are reported
    "forgetful-dump": ",only=33+34+42,sample=0,dumps=20,collect=1",
}
QUICK = (
    "class-of-class",
    "unannounced-thread",
    "unreported-object",
    "class-before-its-object",
    4,
    # some 50,000 objects are requested repeatedly: this ends in time only if not all requests walk
    # the heap
)


def notices(jdk, mutant, tmp_path):
    options = MUTANT_OPTIONS.get(mutant, "")
    found, _ = breaches(
        jdk,
        MUTANTS[mutant],
        tmp_path,
        options,
        layer=AGENTS / "libjvmpimutant.so",
        env=[f"JVMPI_MUTANT={mutant}"],
    )
    return found


@pytest.mark.jdks(17)
@pytest.mark.parametrize("mutant", QUICK)
def test_a_mutant_is_noticed(jdk, mutant, tmp_path):
    assert notices(jdk, mutant, tmp_path)


@pytest.mark.jdks(8, 11)
def test_no_request_holds_up_a_collection(jdk, tmp_path):
    """An agent to which no class was reported requests each class repeatedly, while another thread
    makes the VM collect. Before JDK 16 the VM reports within the pause what has ended. It hung if a
    thread that it had stopped held a lock that this needs.
    """
    assert notices(jdk, 42, tmp_path)


@pytest.mark.jdks(8)
def test_sizes_of_class_objects(jdk, tmp_path):
    # without a collection, the objects that the redefinition of classes leaves behind would be
    # requested too
    found, _ = breaches(jdk, (200, 2), tmp_path)
    assert not found, found
    assert notices(jdk, "class-size", tmp_path)


@pytest.mark.jdks(17)
def test_dumps_have_threads_whose_end_is_not_reported(jdk, tmp_path):
    """Since JDK 26 the VM reports no ends while it waits to end itself. The Thread objects of such
    threads are collected.
    """
    found, _ = breaches(
        jdk, (40, 60), tmp_path, layer=AGENTS / "libjvmpimutant.so", env=["JVMPI_MUTANT=lost-ends"]
    )
    assert not found, found


@pytest.mark.jdks(8, 25)
def test_threads_that_attach_themselves_are_complete(jdk, tmp_path):
    """Now and then the VM reports a thread as alive that is still making its own Thread object,
    without a name. Here it always does.
    """
    found, events = breaches(
        jdk, (40, 2), tmp_path, layer=AGENTS / "libjvmpimutant.so", env=["JVMPI_MUTANT=alive-early"]
    )
    assert not found, found
    assert {1, 3, 4, 33, 34} <= set(events), events


@pytest.mark.jdks(8, 17)
def test_unloaded_code_comes_before_its_class(jdk, tmp_path):
    """A handler of COMPILED_METHOD_UNLOAD still knows the method, however long it takes: the
    CLASS_UNLOAD comes afterwards.
    """
    options = "JAVA_TOOL_OPTIONS=-Xcomp -XX:CompileCommand=quiet -XX:CompileCommand=compileonly,JvmpiContract$Dropped::call"
    found, events = breaches(
        jdk, (8, 60), tmp_path, ",methods=0,sample=0,dumps=0,unload=400", env=[options]
    )
    assert not found, found
    assert events[7] > 0 and events[8] > 0 and events[43] > 0, events


@pytest.mark.jdks(8, 27)
def test_events_are_enabled_in_a_handler_while_another_thread_enables_some(jdk):
    """The handler's thread holds what the VM waits for in the other one: see
    tests/agents/jvmpi_switch.c.
    """
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}",
        "java",
        "-Xmx256m",
        f"-agentpath:{LAYER}",
        "-Xrunjvmpiswitch",
        "-cp",
        lab.compiled("JvmpiSwitch"),
        "JvmpiSwitch",
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (
        0,
        "entered 1 answers 0 0 0 exits 1 of held 1 objects 1\n",
    ), done


@pytest.mark.jdks(21)
def test_a_dump_has_the_vm_make_objects_that_compiled_code_had_done_without(jdk, tmp_path):
    """The VM reports these objects on the thread that walks the heap, for a dump or for the counts
    of GC_FINISH. The dump holds a lock for which their events would wait. During other walks, a
    thread that the VM has suspended until the objects are made may hold it. The VM hung.
    """
    found, _ = breaches(jdk, "escapes", tmp_path, ",methods=0,sample=0,dumps=500")
    assert not found, found
    dumps = re.search(r"dumps (\d+) ", (tmp_path / "breaches").read_text())
    assert (
        int(dumps[1]) > 2
    ), dumps  # besides those at the start and at the end some while work() was compiled


@pytest.mark.jdks(8, 25)
def test_a_class_costs_no_walk_through_the_heap(jdk):
    # JDK 8 answers a wrong size for a class's object; a walk for each of the 300 would take some 5
    # s
    done = jdk.run(
        "env",
        f"LD_LIBRARY_PATH={AGENTS}",
        "java",
        "-Xmx256m",
        f"-agentpath:{LAYER}",
        "-Xrunjvmpibench:4+42",
        "-cp",
        lab.compiled("JvmpiCost"),
        "JvmpiCost",
        "classes",
    )
    assert done.returncode == 0, done
    assert int(re.fullmatch(r"cpu_ms (\d+)\n", done.stdout)[1]) < 2000, done


@pytest.mark.slow
@pytest.mark.jdks(8, 11, 17, 25)
def test_every_mutant_is_noticed(jdk, tmp_path):
    """The matrix: prints which breach reveals each mutant (pytest -s)."""
    found, _ = breaches(
        jdk, (40, 60), tmp_path, layer=AGENTS / "libjvmpimutant.so", env=["JVMPI_MUTANT="]
    )
    assert not found, found  # unharmed, the mutant layer passes
    matrix = {
        mutant: notices(jdk, mutant, tmp_path)
        for mutant in MUTANTS
        if (mutant, jdk.version) not in UNREACHED
    }
    for mutant, found in matrix.items():
        print(f"{mutant!s:24} {found[0][:110] if found else 'NOT NOTICED'}")
    assert all(matrix.values()), [m for m, found in matrix.items() if not found]
