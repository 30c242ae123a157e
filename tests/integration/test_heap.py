# SPDX-License-Identifier: Apache-2.0
"""`jvmscope heap`: dumps of running VMs against jmap, known retained sizes, planted leaks, other people's answers."""
import json
import pathlib
import re
import subprocess

import pytest

import lab

PRIMITIVES = {"Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long"}


class Program:
    """A program of tests/java at its READY point."""

    def __init__(self, jdk, name, *args, jvm=("-Xmx256m",)):
        self.process = jdk.start_java(name, *args, jvm=jvm, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout.readline() == "READY\n", self.process.stderr.read()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        err = self.process.stderr.read()
        assert self.process.wait(60) == 0, err


def take(program, path, *options):
    done = lab.jvmscope("heap", "dump", *options, "-o", path, program.pid)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stderr
    return path


def heap(verb, *args):
    done = lab.jvmscope("heap", verb, "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def binary_name(name):
    """[Ljava.lang.String; as java.lang.String[]."""
    dimensions = len(name) - len(name.lstrip("["))
    name = name[dimensions:]
    if dimensions:
        name = PRIMITIVES[name] if len(name) == 1 else name[1:-1]
    return name.replace("+0x", "/0x") + "[]" * dimensions


def jmap(jdk, pid):
    done = jdk.run("jmap", "-histo:live", pid)
    rows = {binary_name(m[3]): (int(m[1]), int(m[2])) for m in re.finditer(r"^ *\d+: +(\d+) +(\d+) +(\S+)", done.stdout, re.M)}
    assert rows, done.stderr
    return rows


def without_garbage(rows):
    """What comes and goes between two requests: the attach listener's own, zip streams and what finalizers keep until they ran."""
    passing = re.compile(r"java\.lang\.ref\.|java\.io\.File|java\.util\.zip\.|(byte|char|int)\[\]$|.*Lambda|java\.lang\.(String|Object)$|"
                         r"jdk\.internal\.ref\.|jdk\.internal\.vm\.Filler")
    return {name: row for name, row in rows.items() if not passing.match(name)}


def test_histogram_is_the_vms(jdk, tmp_path):
    """Counts and sizes of every class as jmap has them. Class objects differ: jmap counts those that are not loaded yet."""
    with Program(jdk, "HeapGraph") as p:
        dump = take(p, tmp_path / "graph.hprof")
        vm = without_garbage(jmap(jdk, p.pid))
    ours = without_garbage({c["class"]: (c["objects"], c["shallow"]) for c in heap("histogram", dump)["classes"]})
    assert ours["HeapGraph$Node"][0] == 1000 and ours["HeapGraph$Leaf"][0] == 500 and "HeapGraph$Garbage" not in ours
    assert vm.pop("java.lang.Class")[0] >= ours.pop("java.lang.Class")[0]
    if jdk.version <= 11:
        # An inner class of the older layout that ends in a hole: 8 bytes more in the VM, on a single object.
        name = "sun.misc.Launcher$AppClassLoader" if jdk.version == 8 else "jdk.internal.loader.ClassLoaders$AppClassLoader"
        assert vm.pop(name)[1] - ours.pop(name)[1] in (0, 8)
    differ = {n: (vm.get(n), ours.get(n)) for n in set(vm) | set(ours) if vm.get(n) != ours.get(n)}
    assert len(vm) > 120 and not differ


def test_dump_leaves_nothing_behind(tmp_path):
    """A VM of our own file system writes beside the output; one of another root into its /tmp, from where it is fetched."""
    for jdk in (lab.Jdk(17), None):
        before = set(pathlib.Path("/tmp").glob("jvmscope-heap-*"))
        if jdk is None:
            command = ["java", "-Xmx64m", "-cp", str(lab.compiled("HeapGraph")), "HeapGraph"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "READY\n"
            garbage = take(process, tmp_path / "all.hprof", "--all")
            assert heap("objects", garbage, "HeapGraph$Garbage")["count"] == 5000
            path = take(process, tmp_path / "host.hprof")
            assert path.stat().st_size < garbage.stat().st_size
            process.stdin.close()
            assert process.wait(30) == 0
        else:
            with Program(jdk, "HeapGraph") as p:
                path = take(p, tmp_path / "other.hprof")
        assert heap("summary", path)["objects"] > 1500
        assert set(pathlib.Path("/tmp").glob("jvmscope-heap-*")) == before
    assert not [f for f in tmp_path.iterdir() if f.suffix not in (".hprof", ".heapidx")]


def test_dump_says_why_not(tmp_path):
    done = lab.jvmscope("heap", "dump", "-o", tmp_path / "no.hprof", "1")
    assert done.returncode == 1 and re.fullmatch(r"jvmscope: 1: [^\n]+\n", done.stderr)
    assert not list(tmp_path.iterdir())


def sizes(dump):
    return {c["class"]: c["shallow"] // c["objects"] for c in heap("histogram", dump)["classes"]}


def objects_of(dump, name):
    return heap("objects", dump, name)["objects"]


def test_retained_sizes_are_what_was_built(jdk, tmp_path):
    with Program(jdk, "HeapHeld") as p:
        dump = take(p, tmp_path / "held.hprof")
    size = sizes(dump)
    trees = sorted((o["retained"] for o in objects_of(dump, "HeapHeld$Tree")), reverse=True)
    assert trees == sorted(((2 ** d - 1) * size["HeapHeld$Tree"] for d in range(1, 13) for _ in range(2 ** (12 - d))), reverse=True)
    header = 12 if jdk.version == 27 else 16

    def array(n, width):
        start = header if width < 8 else (header + 7) // 8 * 8
        return (start + n * width + 7) // 8 * 8
    halves = objects_of(dump, "HeapHeld$Half")
    assert [h["retained"] for h in halves] == [size["HeapHeld$Half"]] * 2
    [diamond] = objects_of(dump, "HeapHeld$Diamond")
    assert diamond["retained"] == size["HeapHeld$Diamond"] + 2 * size["HeapHeld$Half"] + array(100000, 1)
    ring = size["HeapHeld$Ring"] + array(1000, 8)
    assert sorted(o["retained"] for o in objects_of(dump, "HeapHeld$Ring")) == [ring * k for k in range(1, 11)]
    [alone] = objects_of(dump, "HeapHeld$Alone")
    assert alone["retained"] == size["HeapHeld$Alone"] + array(54321, 1)
    lists = [o for o in heap("dominators", dump, "--children", alone["object"])["dominators"]]
    assert [o["class"] for o in lists] == ["byte[]"]
    # A set retains what none of its members does alone.
    assert heap("retained", dump, "HeapHeld$Half")["retained"] == 2 * size["HeapHeld$Half"] + array(100000, 1)


LEAKS = {
    # way: (class of the holder, what stands in the path, what accumulates, at least how many)
    "cache": ("HeapLeaks$Cache", "static SESSIONS java.util.HashMap", "HeapLeaks$Session", 20000),
    "listeners": ("HeapLeaks", "static BUS HeapLeaks$Bus -> listeners java.util.ArrayList size 40000", "HeapLeaks$Listener", 40000),
    "queue": ("HeapLeaks", "static QUEUE java.util.concurrent.LinkedBlockingQueue", "HeapLeaks$Request", 9990),
    "threadlocal": ('"worker-7"', 'thread java.lang.Thread "worker-7"', "byte[]", 49990),
    "loaders": ("HeapLeaks", "static LOADERS java.util.ArrayList size 200", "HeapLeaks$Plugin", 200),
    "local": ("size 20000", 'local variable of thread "main" in HeapLeaks.main (HeapLeaks.java:', "HeapLeaks$Session", 20000),
}


@pytest.mark.jdks(8, 17, 27)
@pytest.mark.parametrize("way", LEAKS)
def test_leaks_are_named(jdk, tmp_path, way):
    with Program(jdk, "HeapLeaks", way) as p:
        dump = take(p, tmp_path / "leak.hprof")
    holder, path, class_name, count = LEAKS[way]
    answer = heap("leaks", dump)
    assert len(answer["suspects"]) == 1, answer["notes"]
    [suspect] = answer["suspects"]
    assert holder in (suspect["value"] or ""), suspect
    assert path in suspect["path"], suspect
    assert suspect["accumulates"] == class_name and suspect["count"] >= count, suspect
    reachable = heap("summary", dump)["reachableBytes"]
    assert suspect["percent"] == pytest.approx(100 * suspect["retained"] / reachable) and suspect["percent"] > 80
    text = lab.jvmscope("heap", "leaks", dump).stdout
    for word in (holder, path, class_name, f"{suspect['percent']:.1f} % of the heap", str(suspect["count"])):
        assert word in text
    out = tmp_path / "leaks.json"
    assert lab.jvmscope("heap", "leaks", "-o", out, dump).returncode == 0
    assert json.loads(out.read_text()) == answer


@pytest.mark.jdks(8, 17, 27)
def test_clean_heap_has_no_suspects(jdk, tmp_path):
    with Program(jdk, "HeapLeaks", "clean") as p:
        dump = take(p, tmp_path / "clean.hprof")
    answer = heap("leaks", dump)
    assert answer["suspects"] == [] and answer["notes"] == ["No suspects: nothing holds a tenth of the heap and 2 MiB or more."]
    assert heap("summary", dump)["reachableBytes"] > 20000 * 1000
