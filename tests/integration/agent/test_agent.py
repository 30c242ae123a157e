# SPDX-License-Identifier: Apache-2.0
"""Tests the agent as a library: how it is loaded, what it refuses, and what it needs."""
import os
import re
import statistics
import subprocess
import time

import pytest

import lab

LIBRARY = lab.BUILD / "libhprof.so"


# Native methods of the classes that instrumented code calls. The VM finds them by name.
PROBES = re.compile(r"Java_java_lang_Jvmscope\w+")


def test_the_command_needs_no_library_that_a_distribution_may_lack():
    """The libraries that ours needs are linked into it, so no message about a missing one is
    needed.
    """
    needed = subprocess.run(
        ["objdump", "-p", lab.BUILD / "jvmscope"], capture_output=True, text=True, check=True
    ).stdout
    libraries = {
        name for name in re.findall(r"NEEDED +(\S+)", needed) if not name.startswith("ld-linux-")
    }
    assert libraries <= {
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "libasan.so.8",
        "libubsan.so.1",
    }, libraries


def test_a_library_that_is_loaded_when_needed_is_named_with_its_package(tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"):
        (tmp_path / name).write_bytes(b"")
    done = subprocess.run(
        [
            lab.BUILD / "jvmscope",
            "run",
            "--push",
            "http://127.0.0.1:1/ingest",
            "--",
            "touch",
            tmp_path / "ran",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (
        2,
        "jvmscope: run: cannot push: libcurl.so.4 is not installed (Debian: libcurl4)\n",
    ), done
    assert not (tmp_path / "ran").exists()


def test_library_needs_an_old_libc_and_shows_three_names():
    symbols = subprocess.run(
        ["objdump", "-T", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert versions and max(versions) <= (2, 17)
    exported = {
        line.split()[-1]
        for line in symbols.splitlines()
        if " .text" in line and "*UND*" not in line
    }
    assert {name for name in exported if not PROBES.fullmatch(name)} == {
        "Agent_OnLoad",
        "Agent_OnAttach",
        "Agent_OnUnload",
    }
    needed = subprocess.run(
        ["objdump", "-p", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"NEEDED +(\S+)", needed)) <= {
        "libc.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "libm.so.6",
        "librt.so.1",
    }
    segments = subprocess.run(
        ["readelf", "-lW", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"GNU_STACK .* RW +0x", segments)


def undefined(library):
    """Returns the symbols of other libraries without which a library cannot be loaded."""
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return {
        name.split("@")[0]
        for kind, name in re.findall(r"^ +(\w) (\S+)$", symbols, re.M)
        if kind == "U"
    }


@pytest.mark.parametrize("name", ["libhprof.so", "libjvmpi.so"])
def test_the_agents_run_on_musl(name, tmp_path):
    """musl's loader accepts the agents, and their code runs on a separate thread, as far as that is
    possible in a VM without JVM TI.
    """
    libc = lab.musl_libc()
    defined = subprocess.run(
        ["nm", "-D", "--defined-only", libc], capture_output=True, text=True, check=True
    ).stdout
    assert (
        undefined(lab.BUILD / name) - {line.split()[-1] for line in defined.splitlines()} == set()
    )
    answers = {}
    include = [f"-I{folder}" for folder in lab.jni_headers()]
    for library, (compiler, prefix) in lab.c_libraries(tmp_path).items():
        host = tmp_path / library
        subprocess.run(
            [
                *compiler,
                *include,
                lab.ROOT / "tests" / "native" / "fake_vm.c",
                "-o",
                host,
                "-ldl",
                "-lpthread",
            ],
            check=True,
        )
        for options in ("nonsense=1", "cpu=samples", "help"):
            done = subprocess.run(
                [*prefix, host, lab.BUILD / name, options],
                capture_output=True,
                text=True,
                timeout=60,
            )
            text = re.sub(
                "Operation not supported|Not supported", "ENOTSUP", done.stdout + done.stderr
            )
            answers.setdefault(options, []).append((done.returncode, text))
    for options, (glibc, musl) in answers.items():
        assert glibc == musl, options
    if name == "libhprof.so":
        assert answers["nonsense=1"][0] == (
            1,
            "hprof: nonsense: no such option; -agentpath:libhprof.so=help lists them\n",
        )
        assert answers["cpu=samples"][0] == (1, "hprof: the VM has no usable JVM TI: ENOTSUP\n")
    else:
        assert answers["cpu=samples"][0] == (0, "answer -1\njvmpi: the VM has no JVM TI\n")


def test_traces_of_tracers_are_found_with_each_c_library(tmp_path):
    """glibc and musl keep thread-local variables in different places; the library is loaded after
    the start.
    """
    include = [*(f"-I{folder}" for folder in lab.jni_headers()), f"-I{lab.ROOT / 'src'}"]
    sources = [
        lab.ROOT / "tests/native/trace_host.c",
        *(
            lab.ROOT / "src" / f
            for f in (
                "agent/sampler/trace_context.c",
                "agent/vm/libraries.c",
                "base/backed.c",
                "hotspot/memory.c",
            )
        ),
    ]
    for library, (compiler, prefix) in lab.c_libraries(tmp_path).items():
        host, tracer = tmp_path / library, tmp_path / f"{library}.so"
        subprocess.run(
            [*compiler, *include, "-D_GNU_SOURCE", *sources, "-o", host, "-ldl", "-lpthread"],
            check=True,
        )
        subprocess.run(
            [
                *compiler,
                *include,
                "-shared",
                "-fPIC",
                lab.ROOT / "tests/agents/tracer_jni.c",
                "-o",
                tracer,
            ],
            check=True,
        )
        done = subprocess.run([*prefix, host, tracer], capture_output=True, text=True, timeout=60)
        assert (
            done.stdout == "known 1: 0 before, then 1: 01 11\nknown 1: 0 before, then 1: 02 12\n"
        ), (library, done)


def test_static_library_shows_three_names():
    symbols = subprocess.run(
        ["nm", "-g", "--defined-only", lab.BUILD / "libhprof.a"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(re.findall(r" [TDBRVW] (\S+)", symbols.stdout))
    assert {name for name in names if not PROBES.fullmatch(name)} == {
        "Agent_OnLoad_hprof",
        "Agent_OnAttach_hprof",
        "Agent_OnUnload_hprof",
    }


def test_program_is_left_alone(jdk, tmp_path):
    done = jdk.java("Exits", "3", jvm=[jdk.agent(f"verbose=n,file={tmp_path}/out.txt")])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert (tmp_path / "out.txt").read_text().startswith("JAVA PROFILE 1.0.1, created ")


@pytest.mark.parametrize(
    "options",
    [
        "format=r,cpu=samples,threads=y,events=y,exceptions=stacks,trace=Amounts.*,deadlock=y,onoom=dump,requests=Amounts.hold,jfr=default",
        "format=r,cpu=times,cover=y,alloc=exact,live=exact",
        "always=y,maxsize=16m",
        "heap=all,monitor=y,cpu=samples,verbose=n",
    ],
)
@pytest.mark.jdks(8, 11, 25)
def test_checks_of_jni_find_nothing(jdk, tmp_path, options):
    """-Xcheck:jni prints on the program's standard output; JDK 8 has two warnings about itself."""

    def run(*jvm):
        return re.sub(
            r"in \d+",
            "in N",
            jdk.java("Amounts", "500", "20", jvm=("-Xcheck:jni", "-Xmx128m", *jvm)).stdout,
        )

    assert run(jdk.agent(f"{options},file={tmp_path}/out")) == run()


@pytest.mark.jdks(8, 11, 25)
def test_checks_of_jni_find_nothing_when_many_threads_are_asked(jdk, tmp_path):
    """Up to JDK 11 more than 32 references that were not announced print a warning."""
    process = jdk.start_java(
        "ManyBlocked",
        40,
        jvm=["-Xcheck:jni"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        # JDK 8 has a warning about itself before that.
        assert "ready\n" in iter(process.stdout.readline, "")
        for options in (
            ["--monitors", "-o", tmp_path / "o.hprof.txt"],
            ["--monitors", "-o", tmp_path / "o.jfr"],
            # Changes classes, and the VM asks the agent for each while all are referred to.
            ["--threads", "--trace", "ManyBlocked.main", "-o", tmp_path / "o.jfr"],
        ):
            done = lab.jvmscope("attach", "-t", "1s", *options, process.pid)
            assert done.returncode == 0, done.stderr
        for what in (["threads"], ["stack", "main"], ["deadlocks"]):
            done = lab.jvmscope("inspect", process.pid, *what)
            assert done.returncode == 0, done.stderr
        rest, _ = process.communicate("\n", timeout=60)
        assert rest == "over\n"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "options, status, message",
    [
        (
            "cpu=fast",
            1,
            "hprof: cpu=fast: not a value of this option; allowed: samples|times|old|wall",
        ),
        ("colour=red", 1, "hprof: colour: no such option"),
        ("depth", 1, "hprof: depth: needs a value"),
        ("interval=never", 1, "hprof: interval=never: not a value of this option; allowed: <time>"),
        ("format=b,monitor=y", 1, "hprof: "),
        ("cpu=samples,park=y", 1, "hprof: park=y requires monitor=y"),
        ("file=/no/such/folder/x", 9, "hprof: /no/such/folder/x: No such file or directory"),
    ],
)
@pytest.mark.jdks(8, 27)
def test_refusals(jdk, options, status, message):
    done = jdk.java("Exits", "3", jvm=[jdk.agent(options)])
    assert done.returncode == status
    assert done.stdout == ""
    assert done.stderr.startswith(message)


@pytest.mark.jdks(8, 27)
def test_loading_twice_is_refused(jdk, tmp_path):
    agent = jdk.agent(f"file={tmp_path}/out.txt")
    done = jdk.java("Exits", "3", jvm=[agent, agent])
    assert done.returncode == 9
    assert "loaded already" in done.stderr


@pytest.mark.jdks(8, 17, 27)
def test_help(jdk):
    done = jdk.java("Exits", "3", jvm=[jdk.agent("help")])
    assert done.returncode == 0
    for option in ("heap=dump|sites|all", "cpu=samples|times|old", "cutoff=<value>", "force=y|n"):
        assert option in done.stdout


@pytest.mark.parametrize("options", ["depth=0", "cutoff=2", "gc_okay=y", "msa=y", "thread=y,"])
@pytest.mark.jdks(17)
def test_accepted_silently(jdk, options, tmp_path):
    done = jdk.java("Exits", "3", jvm=[jdk.agent(f"verbose=n,file={tmp_path}/out.txt,{options}")])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


@pytest.mark.jdks(17)
def test_force_n_leaves_an_old_file_alone(jdk, tmp_path):
    (tmp_path / "out.txt").write_text("old")
    done = jdk.java("Exits", "0", jvm=[jdk.agent(f"file={tmp_path}/out.txt,force=n")])
    assert done.returncode == 0
    assert (tmp_path / "out.txt").read_text() == "old"
    others = [f.name for f in tmp_path.iterdir() if re.fullmatch(r"out\.\d+\.txt", f.name)]
    assert len(others) == 1


@pytest.mark.parametrize("way", ["-Xrunhprof:", "-agentlib:hprof=", "JAVA_TOOL_OPTIONS"])
@pytest.mark.jdks(11, 17, 27)
def test_by_its_short_name(jdk, way, tmp_path):
    """The VM finds the agent by its name on the library path. On JDK 8 the JDK's own agent comes
    first (test_short_name_on_jdk8).
    """
    out = tmp_path / "out.txt"
    environment = {"LD_LIBRARY_PATH": str(lab.BUILD)}
    arguments = []
    if way == "JAVA_TOOL_OPTIONS":
        environment[way] = f"-agentpath:{LIBRARY}=file={out}"
    else:
        arguments = [f"{way}file={out}"]
    setting = [f"{k}={v}" for k, v in environment.items()]
    done = jdk.run("env", *setting, "java", *arguments, "-cp", lab.compiled("Exits"), "Exits", "0")
    assert done.returncode == 0
    assert out.exists()


@pytest.mark.jdks(8)
def test_short_name_on_jdk8(jdk, tmp_path):
    """In a copy of JDK 8 without the JDK's own agent, the short name finds ours."""
    home = tmp_path / "jdk8"
    done = jdk.run(
        "sh",
        "-c",
        f"cp -rL $JAVA_HOME/jre {home} && rm {home}/lib/amd64/libhprof.so && "
        f"cp {LIBRARY} {home}/lib/amd64/ && "
        f"{home}/bin/java -agentlib:hprof=cpu=samples,file={tmp_path}/out.txt,verbose=n "
        f"-cp {lab.compiled('Exits')} Exits 0",
    )
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert "CPU SAMPLES BEGIN" in (tmp_path / "out.txt").read_text()


def test_launcher_with_the_agent_linked_in(jdk, tmp_path):
    """libhprof.a in a launcher: -agentlib:hprof finds Agent_OnLoad_hprof in the program (JVM TI,
    Statically Linked Agents).
    """
    out = tmp_path / "out.txt"
    done = jdk.run(
        lab.BUILD / "tests/native/launcher",
        f"-agentlib:hprof=cpu=samples,file={out},verbose=n",
        f"-Djava.class.path={lab.compiled('Hot')}",
        "Hot",
        "counted",
        "500",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ Hot.countedLoop$", out.read_text(), re.M)
    assert "jvmscope" in out.read_text().split("--------")[0]


@pytest.mark.measured
@pytest.mark.jdks(8, 17)
def test_a_program_that_exits_waits_for_no_thread_of_ours(jdk, tmp_path):
    """At System.exit the VM gives threads in native code some time to finish; ours used to check
    the clock only every 100 ms.
    """
    seconds = {False: [], True: []}
    for _ in range(7):
        for recorded, taken in seconds.items():
            agent = [jdk.agent(f"cpu=samples,format=r,file={tmp_path}/out.jfr")] if recorded else []
            start = time.monotonic()
            assert jdk.java("Exits", "0", jvm=agent).returncode == 0
            taken.append(time.monotonic() - start)
    assert statistics.median(seconds[True]) - statistics.median(seconds[False]) < 0.06, seconds
