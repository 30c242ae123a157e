# SPDX-License-Identifier: Apache-2.0
"""The end of the VM: with every capture and collector it ends promptly, with the same output and
status as without the agent. Live figures and dumps are taken after a collection at the end, or a
message says that they are not.

HotSpot stops the threads of concurrent collectors before it posts VMDeath: a collection that was
requested there never ended.
"""
import re
import signal
import subprocess

import pytest

import hproftext
import lab

KEPT, SECONDS = 10000, 120

# A line that the program executes often.
SOURCE = (lab.ROOT / "tests/java/Endings.java").read_text().splitlines()
ADDS = 1 + next(i for i, line in enumerate(SOURCE) if "return sum += n" in line)

# Options of the agent, and the verb that shows something of its recording (None: HPROF's text).
CAPTURES = {
    "heap=sites": "heap=sites,cutoff=0",
    "heap=dump": "heap=dump",
    "heap=all": "heap=all,cutoff=0",
    "live=exact": "heap=sites,live=exact,cutoff=0",
    "alloc=exact": "alloc=exact,format=r",
    "alloc=sampled": "alloc=sampled,heap=sites,format=r",
    "cpu=samples": "cpu=samples",
    "cpu=wall": "cpu=wall,format=r",
    "cpu=times": "cpu=times",
    "cpu=old": "cpu=old",
    "monitor=y": "monitor=y,park=y",
    "threads=y": "threads=y,locks=*,format=r",
    "trace": "trace=Endings.called,format=r",
    "exceptions": "exceptions=stacks,format=r",
    "events": "events=y,format=r",
    "cover": "cover=y,format=r",
    "onoom": "onoom=dump,format=r",
    "jfr": "jfr=default,format=r",
    "deadlock": "deadlock=y,format=r",
    "requests": "requests=Endings.called(..),format=r",
    "log": f"log=Endings:{ADDS} {{n}},watch=Endings.sum,allow-control=y,format=r",
}

# These change every class that they may. At start-up they do; after attach, where each class causes
# a pause, they change only the program's.
CHANGES_CLASSES = ("live=exact", "alloc=exact", "cpu=times", "exceptions=", "cover=")


# All of them in three runs, in groups that can be combined.
TOGETHER = {
    "sampled": "cpu=samples,alloc=sampled,heap=dump,onoom=dump,threads=y,locks=*,deadlock=y,events=y,jfr=default,requests=Endings.called(..),"
    f"trace=Endings.called,log=Endings:{ADDS} {{n}},watch=Endings.sum,allow-control=y,format=r",
    "exact": "cpu=times,alloc=exact,live=exact,monitor=y,exceptions=stacks,cover=y,trace=Endings.called,format=r",
    "text": "cpu=old,heap=all,monitor=y,park=y,cutoff=0",
}

MODIFY = {
    "budget",
    "if",
    "native",
    "timer",
    "walker",
    "contanalysis",
    "on",
}  # these options only choose how something is recorded


def test_the_matrix_has_every_capture():
    """Each option that a capture implements, according to the captures' rows, is in CAPTURES."""
    rows = "".join(path.read_text() for path in (lab.ROOT / "src/agent/capture").rglob("*.c"))
    implemented = {
        bit.lower()
        for row in re.findall(r"\.options =([^,;]+)[,;]", rows)
        for bit in re.findall(r"OPTION_BIT\(OPT_(\w+)\)", row)
    }
    given = {word.split("=")[0] for options in CAPTURES.values() for word in options.split(",")}
    assert len(implemented) > 15 and implemented - MODIFY <= given, implemented - MODIFY - given


def has(version, capture):
    return version >= 11 or capture not in ("alloc=sampled", "cpu=wall")


def start(jdk, collector, *mode, agent=None):
    flags = lab.COLLECTORS[jdk.version][collector]
    jvm = ["-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", *flags] + (
        [jdk.agent(agent)] if agent else []
    )
    return jdk.start_java(
        "Endings",
        *mode,
        jvm=jvm,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process, data=None):
    """Returns output and status of a VM that ends; it is killed, and the test fails, when it does
    not end.
    """
    try:
        if data is None:
            process.wait(
                SECONDS
            )  # its input stays open: an end of file would end the program as well
        out, err = process.communicate(data, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"the VM did not end within {SECONDS} s; it printed: {out}{err}")
    return process.returncode, out, err


def program_errors(err):
    """Returns what the program and its VM printed on standard error, without the agent's lines and
    the VM's notes about agents.
    """
    ours = re.compile(
        r"^(hprof: |Dumping .*( done\.|\.\.\.)$| [a-z ]+ \.\.\.$| (\(.*\) )?([A-Za-z ]+ \.\.\. )*done\.$|WARNING: |OpenJDK .* Sharing is only supported|\[\d)"
    )
    return [line for line in err.splitlines() if not ours.match(line)]


def attach(process, words, out):
    """Starts `jvmscope attach` and returns it once it records; it waits for the end of the
    recording, or of the VM.
    """
    command = [
        lab.BUILD / "jvmscope",
        "attach",
        "-t",
        "1000s",
        "--agent",
        words,
        "-o",
        out,
        str(process.pid),
    ]
    attached = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def records():
        assert attached.poll() is None, attached.stderr.read()
        return re.search(r"^state +recording$", lab.jvmscope("status", process.pid).stdout, re.M)

    lab.wait_for(records, SECONDS, "the start of the recording")
    return attached


def end(jdk, collector, how, agent=None, words=None, out=None):
    """A run of the program that ends on its own, is killed, or whose recording is stopped first.
    Returns status, output, errors, and the status of the command that attached.
    """
    process = start(jdk, collector, "wait", agent=agent)
    attached = None
    try:
        first = process.stdout.readline()
        if words:
            attached = attach(process, words, out)
        process.stdin.write("work\n")
        process.stdin.flush()
        first += process.stdout.readline()
        if how == "stopped" and (agent or words):
            done = lab.jvmscope("stop", process.pid)
            assert done.returncode == 0, done.stderr
        if how == "killed":
            process.send_signal(signal.SIGTERM)
        status, rest, err = ended(process, None if how == "killed" else "end\n")
        if attached:
            printed = attached.communicate(timeout=SECONDS)[1]
            assert attached.returncode == 0, printed
    finally:
        process.kill()
        if attached:
            attached.kill()
    return status, first + rest, program_errors(err)


def differing(jdk, collector, how, sets, folder):
    """Runs each of the sets of options to the end, from the start and attached. Returns the output
    and status of a run without the agent, and the runs that differ from it or left no output.
    """
    if collector not in lab.COLLECTORS[jdk.version]:
        pytest.skip(f"JDK {jdk.version} has no {collector}")
    plain = end(jdk, collector, how)
    assert plain[1].split() == ["ready", "worked", "hook"] and plain[0] == (
        143 if how == "killed" else 7
    )
    wrong = {}
    for name, options in sets.items():
        file = folder / ("s.jfr" if "format=r" in options else "s.txt")
        found = end(jdk, collector, how, agent=f"{options},file={file}")
        if found != plain or not file.exists():
            wrong[name, "from the start"] = found
        if "format=r" in options or "heap=dump" not in options:
            words = (
                options.replace(",format=r", "")
                .replace(",cutoff=0", "")
                .replace("=stacks", "=counts")
                .replace("locks=*", "locks=Endings")
            )
            words += ",include=Endings" if any(c in options for c in CHANGES_CLASSES) else ""
            found = end(jdk, collector, how, words=words, out=folder / "a.jfr")
            if found != plain or not (folder / "a.jfr").exists():
                wrong[name, "attached"] = found
        for left in folder.iterdir():
            left.unlink()
    return plain, wrong


every_end = pytest.mark.parametrize("how", ["on its own", "killed", "stopped"])
every_collector = pytest.mark.parametrize(
    "collector", sorted({c for row in lab.COLLECTORS.values() for c in row})
)


@pytest.mark.slow
@every_end
@every_collector
def test_every_capture_with_every_collector(jdk, collector, how, tmp_path):
    """Each kind of run to its end, with the agent from the start and attached: output and exit
    status are those of a run without it.
    """
    sets = {name: options for name, options in CAPTURES.items() if has(jdk.version, name)}
    plain, wrong = differing(jdk, collector, how, sets, tmp_path)
    assert not wrong, f"without us: {plain}"


@pytest.mark.slow
@every_end
@every_collector
def test_all_captures_together_with_every_collector(jdk, collector, how, tmp_path):
    """While all captures record together, a program ends as it does without the agent, whichever
    the collector.
    """
    sets = {
        name: options
        if has(jdk.version, "alloc=sampled")
        else options.replace("alloc=sampled,", "")
        for name, options in TOGETHER.items()
    }
    plain, wrong = differing(jdk, collector, how, sets, tmp_path)
    assert not wrong, f"without us: {plain}"


@pytest.mark.jdks(11, 17)
@pytest.mark.parametrize("collector", ["ZGC", "Shenandoah"])
def test_the_vms_recorder_prints_nothing(jdk, collector, tmp_path):
    """The recorder of JDK 11 complained on standard output that it cannot sample old objects with
    these collectors.
    """
    found = end(jdk, collector, "on its own", words="jfr=default", out=tmp_path / "a.jfr")
    assert found == (7, "ready\nworked\nhook\n", []) and (tmp_path / "a.jfr").exists()


def live(path, name):
    rows = [r for r in hproftext.Text(path).sites[0] if r.name == name]
    return sum(r.live_objects for r in rows), sum(r.alloc_objects for r in rows)


# The collectors whose own threads stop before VMDeath, in the versions in which they stop in
# different ways; and one that stops the world.
ENDS = [
    (8, "CMS"),
    (17, "Shenandoah"),
    (21, "ZGC"),
    (21, "generational ZGC"),
    (25, "ZGC"),
    (25, "Shenandoah"),
    (27, "G1"),
]


@pytest.mark.parametrize(
    "version,collector", ENDS, ids=[f"{c}-jdk{v}".replace(" ", "-") for v, c in ENDS]
)
def test_live_objects_at_the_end(version, collector, tmp_path):
    """heap=all dumps the heap and counts what is live after a collection before the VM's end, and
    both agree to the last object.
    """
    jdk = lab.Jdk(version)
    status, out, err = ended(
        start(jdk, collector, "exit", agent=f"heap=all,cutoff=0,file={tmp_path}/s.txt")
    )
    assert (status, out) == (7, "worked\nhook\n"), err
    assert live(tmp_path / "s.txt", "Endings$Kept") == (KEPT, KEPT)
    assert live(tmp_path / "s.txt", "Endings$Only") == (1, 1)
    assert (
        live(tmp_path / "s.txt", "Endings$Dropped") == (1, 10 * KEPT)
        or live(tmp_path / "s.txt", "Endings$Dropped")[0] == 0
    )
    names = [name for name, _, _ in hproftext.Text(tmp_path / "s.txt").heaps[0].instances.values()]
    assert names.count("Endings$Kept") == KEPT and names.count("Endings$Dropped") <= 1
    assert "collect" not in err, err


@pytest.mark.parametrize("version,collector", [(25, "Shenandoah"), (21, "ZGC")])
def test_each_live_object_is_counted_at_the_end(version, collector, tmp_path):
    """Exact figures of live objects are those of the program, also with Shenandoah on JDK 25, where
    they were once ten times too large.
    """
    status, out, err = ended(
        start(
            lab.Jdk(version),
            collector,
            "exit",
            agent=f"heap=sites,live=exact,cutoff=0,file={tmp_path}/s.txt",
        )
    )
    assert (status, out) == (7, "worked\nhook\n"), err
    assert live(tmp_path / "s.txt", "Endings$Kept") == (KEPT, KEPT) and live(
        tmp_path / "s.txt", "Endings$Only"
    ) == (1, 1)
    alive, made = live(tmp_path / "s.txt", "Endings$Dropped")
    assert alive <= 1 and made == 10 * KEPT


@pytest.mark.parametrize(
    "version,collector,mode,status", [(21, "ZGC", "halt", 8), (17, "Epsilon", "exit", 7)]
)
def test_without_a_collection_it_is_reported(version, collector, mode, status, tmp_path):
    """Runtime.halt runs no hooks, and Epsilon never collects. The figures then state what they
    count.
    """
    jdk = lab.Jdk(version)
    found, out, err = ended(
        start(jdk, collector, mode, agent=f"heap=all,cutoff=0,file={tmp_path}/s.txt")
    )
    assert (found, out.split()[0]) == (status, "worked"), err
    assert live(tmp_path / "s.txt", "Endings$Kept") == (KEPT, KEPT)
    assert " (allocated exact; objects followed " in err, err
    assert re.search(r"^hprof: .*heap=sites: .*last collection", err, re.M), err
    assert re.search(r"^hprof: .*heap dump: the VM did not collect before it", err, re.M), err


@pytest.mark.jdks(8, 17, 25)
def test_no_collection_is_forced_for_what_says_nothing_of_live_objects(jdk, tmp_path):
    """A collection of a large heap at the end of a program takes minutes."""
    captures = (
        "cpu=samples,threads=y,requests=auto,exceptions=stacks,events=y,cover=y,trace=Endings.*"
    )
    sampled = ",alloc=sampled" if jdk.version >= 11 else ""
    for options, forced in (
        (f"format=r,{captures}{sampled}", False),
        ("format=r,always=y,maxsize=4m", False),
        ("heap=sites", True),
    ):
        done = jdk.java(
            "Endings", "return", jvm=["-verbose:gc", jdk.agent(f"{options},file={tmp_path}/x")]
        )
        assert done.returncode == 0, done.stderr
        assert ("Force" in done.stdout) == forced, (options, done.stdout)
