# SPDX-License-Identifier: Apache-2.0
"""Classes still come from the VM's shared archive while samples and waits are recorded."""
import os
import re
import subprocess

import pytest

import lab

# Captures that change no class of the program at its start.
LIGHT = ["cpu=samples,threads=y", "cpu=wall", "requests=auto", "always=y,cpu=samples,threads=y"]


def loaded(jdk, tmp_path, *flags, options=None):
    """Returns how many classes a short program loads from the archive, and how many from
    elsewhere.
    """
    log = tmp_path / "classes.txt"
    agent = [jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")] if options else []
    done = jdk.java("Busy", "0.1", jvm=[f"-Xlog:class+load:file={log}", *flags, *agent])
    assert done.returncode == 0, done.stderr
    lines = re.findall(r" (\S+) source: (.*)$", log.read_text(), re.M)
    shared = {name for name, source in lines if source.startswith("shared objects file")}
    return shared, {name for name, _ in lines} - shared


@pytest.mark.jdks(17, 25)
def test_samples_and_waits_leave_the_shared_archive_in_use(jdk, tmp_path):
    plain, _ = loaded(jdk, tmp_path)
    assert len(plain) > 300  # the default archive exists
    for options in LIGHT:
        shared, other = loaded(jdk, tmp_path, options=options)
        assert plain <= shared, (options, sorted(plain - shared)[:5])
        assert len(other) < 60, (options, sorted(other)[:20])
        # Classes in which the agent looks something up when it first needs it. Initializing these
        # takes up to 20 ms.
        assert not {"java.net.SocketImpl", "java.util.concurrent.FutureTask"} & (
            shared | other
        ), options
        # Initializing VirtualThread takes the VM 20 to 40 ms, so this is left to the program.
        assert not any(name.startswith("java.lang.VirtualThread$$Lambda") for name in other), (
            options,
            sorted(other),
        )


@pytest.mark.jdks(21, 25)
@pytest.mark.parametrize("options", ("always=y", "requests=auto", "cpu=samples,threads=y"))
def test_a_class_that_is_not_linked_is_changed_when_it_is(jdk, tmp_path, options):
    """VirtualThread is loaded at each start. Changing it costs a program that uses none 5 ms."""
    log = tmp_path / "classes.txt"
    agent = jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")
    for program, changed in ((("Busy", "0.1"), False), (("Virtual", "2", "1"), True)):
        done = jdk.java(*program, jvm=[f"-Xlog:class+load:file={log}", agent], release=21)
        assert done.returncode == 0, done.stderr
        sources = re.findall(r" java\.lang\.VirtualThread source: (.*)$", log.read_text(), re.M)
        assert sources[0].startswith("shared objects file")
        assert ("__VM_RedefineClasses__" in sources) == changed, (program, sources)


@pytest.mark.jdks(17, 21, 25)
@pytest.mark.parametrize("options", ("always=y", "requests=auto"))
def test_nothing_is_changed_for_requests_before_a_class_has_them(jdk, tmp_path, options):
    """Changing Thread and defining the probe delay a program by 3 to 6 ms. With a class that hands
    over tasks, the next program has both.
    """
    log = tmp_path / "classes.txt"
    agent = jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")
    trace = f"-Xlog:class+load,redefine+class+load:file={log}"
    pool = ("RequestsTruth", "1", "executor", "silent")
    for program, changed in ((("Busy", "0.1"), False), (pool, True)):
        done = jdk.java(*program, jvm=[trace, agent])
        assert done.returncode == 0, done.stderr
        text = log.read_text()
        assert ("redefined name=java.lang.Thread," in text) == changed, program
        assert ("java.lang.JvmscopeRequests source:" in text) == changed, program


@pytest.mark.jdks(17, 25)
def test_an_archive_of_the_program_stays_in_use(jdk, tmp_path):
    """Uses -XX:SharedArchiveFile; with -Xshare:on, a VM that cannot use its archive exits."""
    archive, jar = tmp_path / "app.jsa", tmp_path / "app.jar"
    assert jdk.run("jar", "cf", jar, "-C", lab.compiled("Busy"), ".").returncode == 0
    command = ["java", "-cp", jar]
    assert (
        jdk.run(*command, f"-XX:ArchiveClassesAtExit={archive}", "Busy", "0.1").returncode == 0
        and archive.exists()
    )
    log = tmp_path / "classes.txt"
    for options in (None, "cpu=samples,threads=y"):
        agent = [jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")] if options else []
        done = jdk.run(
            *command,
            f"-Xlog:class+load:file={log}",
            "-Xshare:on",
            f"-XX:SharedArchiveFile={archive}",
            *agent,
            "Busy",
            "0.1",
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r" Busy source: shared objects file \(top\)", log.read_text()), options


@pytest.mark.jdks(25, 27)
def test_an_aot_cache_stays_in_use(jdk, tmp_path):
    """With -XX:AOTMode=on a VM that cannot use its cache exits. Here it uses the cache, which
    provides classes, linked in advance, and modules.
    """
    command, plain = aot_program(jdk, tmp_path), None
    for options in (
        None,
        "cpu=samples,threads=y",
        "requests=auto",
        "always=y,cpu=samples,threads=y",
        "cpu=times",
    ):
        classes, log = tmp_path / "classes", tmp_path / "log"
        agent = (
            [
                jdk.agent(
                    f"{options},file={tmp_path}/{'x.txt' if options == 'cpu=times' else 'x.jfr,format=r'}"
                )
            ]
            if options
            else []
        )
        done = jdk.run(
            *command,
            "-XX:AOTMode=on",
            f"-Xlog:class+load:file={classes}",
            f"-Xlog:aot*:file={log}",
            *agent,
            "Busy",
            "0.1",
        )
        assert done.returncode == 0 and "full module graph: enabled" in log.read_text(), (
            options,
            done.stderr,
        )
        shared = set(re.findall(r" (\S+) source: shared objects file", classes.read_text()))
        plain = plain or shared
        assert "Busy" in shared and plain <= shared and len(plain) > 300, (
            options,
            sorted(plain - shared)[:5],
        )


def aot_program(jdk, folder):
    """Returns the command line that runs Busy with an AOT cache; options, class and arguments are
    appended to it.
    """
    cache, jar = folder / "app.aot", folder / "app.jar"
    assert jdk.run("jar", "cf", jar, "-C", lab.compiled("Busy"), ".").returncode == 0
    made = jdk.run("java", f"-XX:AOTCacheOutput={cache}", "-cp", jar, "Busy", "0.1")
    assert made.returncode == 0 and cache.exists(), made.stderr
    return ["java", f"-XX:AOTCache={cache}", "-cp", jar]


@pytest.mark.jdks(8, 17, 25)
def test_status_says_what_came_from_the_archive(jdk, jvmscope, tmp_path):
    """The number agrees with the VM's own counters, and the message names what disabled the
    archive.
    """
    for flags, says in (
        (["-Xshare:off"], "not in use: the VM was started with -Xshare:off"),
        (
            [],
            "in use: "
            if jdk.version > 8
            else "not in use: the VM found no archive of classes (CDS) that fits it",
        ),
    ):
        with jdk.start_java(
            "Busy",
            600,
            jvm=[*flags, jdk.agent(f"format=r,cpu=samples,file={tmp_path}/x.jfr")],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout.readline() == "ready\n"
            line = re.search(r"^archive +(.*)$", jvmscope("status", process.pid).stdout, re.M)[1]
            assert line.startswith(says), line
            if line.startswith("in use"):
                shared, all_classes = map(int, re.search(r"(\d+) of (\d+) classes", line).groups())
                counted = {
                    k: int(v)
                    for k, v in re.findall(
                        r"java\.cls\.(\w+)=(\d+)",
                        jdk.run("jcmd", process.pid, "PerfCounter.print").stdout,
                    )
                }
                assert (
                    shared <= counted["sharedLoadedClasses"]
                    and 300
                    < shared
                    <= all_classes
                    <= counted["sharedLoadedClasses"] + counted["loadedClasses"]
                )
            process.kill()


@pytest.mark.measured
@pytest.mark.parametrize("options", LIGHT)
@pytest.mark.parametrize("cache", ["archive", "AOT cache"])
@pytest.mark.jdks(17, 25)
def test_start_up_takes_at_most_ten_milliseconds_more(jdk, tmp_path, cache, options):
    """The median of the differences of neighbouring runs, with the VM's archive and with an AOT
    cache of the program.
    """
    if cache == "AOT cache" and jdk.version < 25:
        pytest.skip("AOT caches came with JDK 24")
    command = (
        aot_program(jdk, tmp_path)
        if cache == "AOT cache"
        else ["java", "-cp", lab.compiled("Busy")]
    )
    agent = jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")
    # A busy machine lengthens CPU time less than other times.
    more = sorted(
        lab.run_times(jdk, *command, agent, "Busy", "0")[1]
        - lab.run_times(jdk, *command, "Busy", "0")[1]
        for _ in range(21)
    )
    print(f"{jdk.version} {cache} {options}: {more[10] * 1000:.1f} ms")
    assert more[10] <= 0.010, more


@pytest.mark.jdks(17, 21, 25, 27)
def test_a_vm_that_makes_an_archive_keeps_it(jdk, jvmscope, tmp_path):
    """A changed class of the JDK would cost the VM its archive and its exit status. Captures that
    change classes are refused with the flag's name, by attach and by an agent that is loaded at the
    start, and the archive can be used as without them.
    """
    flag = "AOTCacheOutput" if jdk.version >= 25 else "ArchiveClassesAtExit"
    use = (
        [f"-XX:AOTCache={tmp_path}/archive", "-XX:AOTMode=on"]
        if jdk.version >= 25
        else [f"-XX:SharedArchiveFile={tmp_path}/archive", "-Xshare:on"]
    )
    jdk.run("jar", "cf", tmp_path / "b.jar", "-C", lab.compiled("Busy"), ".")
    archive, why = tmp_path / "archive", "changes classes, and this VM archives its classes"

    def made(*agent, attach=()):
        archive.unlink(missing_ok=True)
        java = jdk.start(
            "java",
            f"-XX:{flag}={archive}",
            *agent,
            "-cp",
            tmp_path / "b.jar",
            "Busy",
            "5" if attach else "0.1",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert java.stdout.readline() == "ready\n"
        if attach:  # `check` predicts it, and nothing else prevents a recording
            checked = jvmscope("check", java.pid)
            assert checked.returncode == 0 and re.search(
                rf"record +yes: .*change classes are refused.*-XX:{flag}\)", checked.stdout
            ), checked
        reported = [jvmscope("attach", *words, java.pid).stderr for words in attach]
        _, errors = java.communicate(timeout=120)
        assert java.returncode == 0, errors
        used = jdk.run("java", *use, "-cp", tmp_path / "b.jar", "Busy", "0.1")
        assert used.returncode == 0, used.stderr
        return reported or errors

    out = tmp_path / "x.jfr"
    options = (["--threads"], ["--requests"], ["--cpu=times"], ["--exceptions"], ["--cpu"])
    *refused, cpu = made(attach=[[*words, "-t", "300ms", "-o", out] for words in options])
    assert all(f"{why} for later starts (-XX:{flag})" in text for text in refused), refused
    assert why not in cpu and out.stat().st_size
    if jdk.version >= 25:  # earlier VMs exit if an agent is loaded at their start
        assert why in made(jdk.agent(f"always=y,file={tmp_path}/a.ring"))
        assert why not in made(jdk.agent(f"cpu=samples,format=r,file={tmp_path}/y.jfr"))


@pytest.mark.jdks(17, 21)
@pytest.mark.parametrize("by", ["argument", "variable"])
def test_run_says_that_a_vm_that_makes_an_archive_takes_no_agent(jdk, tmp_path, by):
    """Such a VM exits because of the agent. The message used to be that there was no VM."""
    flag = f"-XX:ArchiveClassesAtExit={tmp_path}/archive"
    java = ["java", *([flag] if by == "argument" else []), "-cp", lab.compiled("Busy"), "Busy", "0"]
    given = {"JAVA_TOOL_OPTIONS": flag} if by == "variable" else {}
    done = lab.jvmscope(
        "run",
        "--cpu",
        "-o",
        tmp_path / "x.jfr",
        "--",
        *jdk.command(*java),
        env={**os.environ, **given},
    )
    assert done.returncode and "archive classes (-XX:ArchiveClassesAtExit)" in done.stderr, done
    assert "jvmscope attach records them" in done.stderr and "dumping" in done.stdout + done.stderr
