# SPDX-License-Identifier: Apache-2.0
"""Heap dumps: known contents, other tools as readers, and agreement with jmap."""
import collections
import re
import signal
import subprocess

import pytest

import hproftext
import lab

VISUALVM = "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar"


@pytest.fixture(scope="session")
def visualvm_histogram(tmp_path_factory):
    """Counts by class, as VisualVM's heap library reads a dump."""
    out = tmp_path_factory.mktemp("visualvm")
    jdk = lab.Jdk(17)
    source = lab.ROOT / "tests" / "tools" / "VisualVmHistogram.java"
    built = jdk.run("javac", "-cp", VISUALVM, "-d", out, source)
    assert built.returncode == 0, built.stderr

    def histogram(dump):
        done = jdk.run("java", "-cp", f"{VISUALVM}:{out}", "VisualVmHistogram", dump)
        assert done.returncode == 0, done.stderr
        assert int(re.search(r"^ROOTS (\d+)", done.stdout, re.M)[1]) > 0
        return {m[2]: int(m[1]) for m in re.finditer(r"^(\d+) (.+)$", done.stdout, re.M)}

    return histogram


class Paused:
    """HeapGraph at its READY point, with the agent."""

    def __init__(self, jdk, options, program="HeapGraph", jvm=()):
        self.process = jdk.start_java(
            program,
            jvm=[jdk.agent(options), "-Xmx256m", *jvm],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == "READY\n"

    def dump(self):
        self.process.send_signal(signal.SIGQUIT)
        for line in self.process.stderr:
            if line.startswith("Dumping ") and line.endswith(" done.\n"):
                return

    def end(self):
        self.process.stdin.close()
        out, err = self.process.stdout.read(), self.process.stderr.read()
        assert self.process.wait() == 0, err
        assert "DONE held by a local\n" in out


def jmap(jdk, pid):
    done = jdk.run("jmap", "-histo:live", pid)
    counts = {}
    for m in re.finditer(r"^ *\d+: +(\d+) +(\d+) +(\S+)", done.stdout, re.M):
        counts[m[3]] = (int(m[1]), int(m[2]))
    assert counts, done.stderr
    return counts


def source_form(name):
    """Converts jmap's name of a class to that of the language: [[I becomes int[][]."""
    dims = len(name) - len(name.lstrip("["))
    element = name[dims:]
    if dims:
        primitives = dict(zip("ZCFDBSIJ", "boolean char float double byte short int long".split()))
        element = primitives.get(element) or element[1:-1]
    return element + "[]" * dims


def test_text_has_the_known_heap(jdk, tmp_path):
    run = Paused(jdk, f"heap=dump,doe=n,file={tmp_path}/a.txt")
    run.dump()
    histogram = jmap(jdk, run.process.pid)
    run.dump()
    run.end()
    text = hproftext.Text(tmp_path / "a.txt")
    assert len(text.heaps) == 2
    heap = text.heaps[0]
    counts = collections.Counter(name for name, *_ in heap.instances.values())
    assert counts["HeapGraph$Node"] == 1000
    assert counts["HeapGraph$Leaf"] == 500
    assert "HeapGraph$Garbage" not in counts
    sizes = {name: size for name, size, _ in heap.instances.values()}
    for name in ("HeapGraph$Node", "HeapGraph$Leaf", "java.lang.String", "java.util.ArrayList"):
        assert (
            sizes[name] * histogram[name][0] == histogram[name][1]
        ), "the size is what the VM reports"
    arrays = collections.Counter()
    for name, size, _, _ in heap.arrays.values():
        arrays[name] += size
    known = {source_form(k): v for k, v in histogram.items()}
    for name in ("HeapGraph$Leaf[]", "int[][]"):
        assert arrays[name] == known[name][1]
    assert heap.objects == len(heap.instances) + len(heap.arrays) + len(heap.classes)
    assert heap.bytes == sum(s for _, s, _ in heap.instances.values()) + sum(
        a[1] for a in heap.arrays.values()
    )
    for kind in ("thread", "Java stack", "system class", "JNI global ref"):
        assert heap.roots[kind] > 0, kind
    # Threads of the dump are those of THREAD START, and the program's list holds main.
    main = next(n for n, name in text.threads.items() if name == "main")
    assert f"{0x50000000 + main - 200000:x}" in heap.instances


@pytest.mark.jdks(daily=1)
def test_readers_of_others_agree_with_jmap(jdk, tmp_path, visualvm_histogram):
    run = Paused(jdk, f"heap=dump,format=b,doe=n,file={tmp_path}/b.hprof")
    run.dump()
    histogram = jmap(jdk, run.process.pid)
    run.end()
    counts = visualvm_histogram(tmp_path / "b.hprof")
    assert counts["HeapGraph$Node"] == 1000
    # What the arrival of jmap itself loads is different; the program's classes are not. int[] also
    # stands for holes that the VM fills.
    ours = {name: n for name, n in counts.items() if n}
    differ = {}
    for name, (n, _) in histogram.items():
        plain = source_form(name)
        if "$$" in plain:
            continue  # lambdas: no two readers write their names alike
        if plain.startswith("HeapGraph") or plain in ("int[][]",):
            assert ours.get(plain) == n, plain
        elif (
            plain in ours
            and plain not in ("java.lang.Class", "int[]")
            and abs(ours[plain] - n) > 20 + n * 0.1
        ):
            differ[plain] = (ours[plain], n)
    assert not differ
    parsed = lab.Jdk(8).run("jhat", "-parseonly", "true", tmp_path / "b.hprof")
    assert parsed.returncode == 0 and "Snapshot read, resolving" in parsed.stdout + parsed.stderr
    assert "WARNING" not in parsed.stdout + parsed.stderr


@pytest.mark.jdks(8, 25)
def test_readers_of_others_open_heap_all(jdk, tmp_path, visualvm_histogram):
    """format=b with traces of objects, sites and two dumps' worth of records."""
    run = Paused(jdk, f"heap=all,format=b,doe=n,file={tmp_path}/b.hprof")
    run.dump()
    histogram = jmap(jdk, run.process.pid)
    run.end()
    counts = visualvm_histogram(tmp_path / "b.hprof")
    for name in ("HeapGraph$Node", "HeapGraph$Leaf", "HeapGraph"):
        assert counts.get(name, 0) == histogram.get(name, (0, 0))[0], name
    parsed = lab.Jdk(8).run("jhat", "-parseonly", "true", tmp_path / "b.hprof")
    assert parsed.returncode == 0 and "Snapshot read, resolving" in parsed.stdout + parsed.stderr
    assert "WARNING" not in parsed.stdout + parsed.stderr


@pytest.mark.jdks(8, 17, 27)
def test_dump_at_exit_and_recording(jdk, tmp_path, visualvm_histogram):
    for options, dump in (
        (f"heap=dump,format=b,file={tmp_path}/c.hprof", "c.hprof"),
        (f"heap=dump,format=r,file={tmp_path}/d.jfr", "d.hprof"),
    ):
        run = Paused(jdk, options)
        run.end()
        assert visualvm_histogram(tmp_path / dump)["HeapGraph$Leaf"] == 500
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".hwcache"} == {
        "c.hprof",
        "d.jfr",
        "d.hprof",
    }


def test_exhausted_memory_is_dumped_once(jdk, tmp_path, visualvm_histogram):
    done = jdk.java(
        "Exhausts",
        jvm=[jdk.agent(f"onoom=dump,format=b,file={tmp_path}/oom.hprof"), "-Xmx48m"],
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "caught 3\n"), done.stderr
    counts = visualvm_histogram(tmp_path / "oom.hprof")
    assert counts["Exhausts$Filler"] > 100
