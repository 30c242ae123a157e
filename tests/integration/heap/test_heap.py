# SPDX-License-Identifier: Apache-2.0
"""`jvmscope heap`: dumps of running VMs compared with jmap, known retained sizes, planted leaks,
and other tools' answers.
"""
import collections
import functools
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import urllib.parse
import urllib.request

import pytest

import lab
import workloads

PRIMITIVES = {
    "Z": "boolean",
    "C": "char",
    "F": "float",
    "D": "double",
    "B": "byte",
    "S": "short",
    "I": "int",
    "J": "long",
}


class Program:
    """A program of tests/java, or a command of workloads.held_command, stopped at its READY
    point.
    """

    def __init__(self, jdk, name, *args, jvm=("-Xmx256m",)):
        start = jdk.start if name == "java" else functools.partial(jdk.start_java, jvm=jvm)
        self.errors = tempfile.TemporaryFile("w+")
        self.process = start(
            name, *args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        # The VM may warn on standard output that it does not use its archive of classes.
        assert "READY\n" in iter(self.process.stdout.readline, ""), self.printed()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.printed()

    def printed(self):
        self.errors.seek(0)
        return self.errors.read()


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
    """Converts [Ljava.lang.String; to java.lang.String[]."""
    dimensions = len(name) - len(name.lstrip("["))
    name = name[dimensions:]
    if dimensions:
        name = PRIMITIVES[name] if len(name) == 1 else name[1:-1]
    return name.replace("+0x", "/0x") + "[]" * dimensions


def jmap(jdk, pid):
    done = jdk.run("jmap", "-histo:live", pid)
    rows = {
        binary_name(m[3]): (int(m[1]), int(m[2]))
        for m in re.finditer(r"^ *\d+: +(\d+) +(\d+) +(\S+)", done.stdout, re.M)
    }
    assert rows, done.stderr
    return rows


def settled_name(name):
    """Removes the numbers and addresses from the name of a class that the VM generated."""
    name = re.sub(r"[/+.](0x[0-9a-f]+|\d+)$", "", name)
    return re.sub(r"(?<=Lambda)\$\d+|(Generated\w*Accessor)\d+$", r"\1", name)


def settled(histogram):
    rows = {}
    for name, (objects, size) in histogram.items():
        name = settled_name(name)
        before = rows.get(name, (0, 0))
        rows[name] = (before[0] + objects, before[1] + size)
    return rows


def proxies_in_one_row(histogram):
    """jmap numbers the classes of proxies, and the histogram of a dump names their interfaces."""
    together, proxies = {}, [0, 0]
    for name, (objects, shallow) in histogram.items():
        if "$Proxy" in name:
            proxies = [proxies[0] + objects, proxies[1] + shallow]
        else:
            together[name] = (objects, shallow)
    return together | ({"$Proxy": tuple(proxies)} if proxies[0] else {})


def histogram_differences(dump, vm, before=None):
    """Returns how the histogram of a dump differs from the histogram of jmap for the same VM after
    it. If the one before the dump is given as well, a class of a program that continues (a server
    that closes a connection) may have any number between the two. Not compared are the number of
    class objects after JDK 8 (a dump has those of loaded classes only, jmap also those of
    primitives and of classes that are not linked), objects that come and go between two requests
    (the attach listener's own, what cleaners and finalizers keep until they have run) and G1's
    fillers (int[] in a dump). Lambdas of one class are one row here, and those of jmap are merged
    accordingly.
    """
    passing = re.compile(
        r"java\.lang\.ref\.|java\.io\.File|java\.util\.zip\.|(byte|char|int)\[\]$|java\.lang\.(String|Object)$|"
        r"jdk\.internal\.ref\.|jdk\.internal\.vm\.Filler|java\.lang\.invoke\.MethodHandleNatives\$CallSiteContext$"
    )
    answer = heap("histogram", dump)["classes"]
    ours = proxies_in_one_row({c["class"]: (c["objects"], c["shallow"]) for c in answer})
    vm, before = (proxies_in_one_row(settled(h)) for h in (vm, before or vm))
    classes_vm, classes = vm["java.lang.Class"], ours["java.lang.Class"]
    if classes_vm[0] != classes[0]:
        assert classes_vm[0] > classes[0]
        del vm["java.lang.Class"], ours["java.lang.Class"]

    def between(name):
        first, last, dumped = (h.get(name, (0, 0)) for h in (before, vm, ours))
        return all(min(a, b) <= n <= max(a, b) for a, b, n in zip(first, last, dumped))

    differ = {
        n: (before.get(n), vm.get(n), ours.get(n))
        for n in set(vm) | set(ours)
        if not passing.match(n) and not between(n)
    }
    for name in set(vm) & set(ours):
        if (
            passing.match(name)
            and not name.endswith("[]")
            and vm[name][1] * ours[name][0] != vm[name][0] * ours[name][1]
        ):
            differ[name] = (vm[name], ours[name])
    return len(set(vm) & set(ours)), differ


def test_histogram_is_the_vms(jdk, tmp_path):
    """Counts and sizes of every class agree with jmap, including classes that HotSpot lays out in a
    special way.
    """
    with Program(jdk, "HeapGraph") as p:
        dump = take(p, tmp_path / "graph.hprof")
        vm = jmap(jdk, p.pid)
    compared, differ = histogram_differences(dump, vm)
    assert compared > 250 and not differ
    ours = {c["class"]: c["objects"] for c in heap("histogram", dump)["classes"]}
    assert (
        ours["HeapGraph$Node"] == 1000
        and ours["HeapGraph$Leaf"] == 500
        and "HeapGraph$Garbage" not in ours
    )
    known = {
        "HeapGraph$Loader",
        "java.util.concurrent.ForkJoinPool",
        "java.util.concurrent.ForkJoinPool$WorkQueue",
    } | ({"java.lang.VirtualThread", "jdk.internal.vm.StackChunk"} if jdk.version >= 21 else set())
    assert known <= vm.keys() and known <= ours.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    (
        "-XX:-UseCompressedOops",
        "-XX:-UseCompactObjectHeaders",
        "-XX:+UseCompactObjectHeaders",
        "-XX:ObjectAlignmentInBytes=16",
        "-XX:-UseCompressedClassPointers",
        "-XX:+UseCompactObjectHeaders -XX:-UseCompressedOops",
    ),
)
def test_histogram_is_the_vms_of_other_layouts(jdk, tmp_path, options):
    if "Compact" in options and jdk.version < 25:
        pytest.skip("no compact headers before JDK 24")
    if "ClassPointers" in options and jdk.version > 25:
        pytest.skip("JDK 27 has no plain class pointers")
    with Program(jdk, "HeapGraph", jvm=("-Xmx256m", *options.split())) as p:
        # Without its archive the VM has objects of classes that only the second collection frees.
        jmap(jdk, p.pid)
        dump = take(p, tmp_path / "graph.hprof")
        vm = jmap(jdk, p.pid)
    compared, differ = histogram_differences(dump, vm)
    assert compared > 250 and not differ


@pytest.mark.parametrize(
    "options",
    [
        "-XX:-UseCompressedOops",
        "-XX:ObjectAlignmentInBytes=16",
        *(
            pytest.param(o, marks=pytest.mark.slow)
            for o in ("", "-Xmx40g", "-XX:+UseZGC", "-XX:+UseCompactObjectHeaders")
        ),
    ],
)
def test_sizes_do_not_depend_on_the_dumper(jdk, tmp_path, options):
    """Sizes are the VM's in dumps of the VM's dumper and of the agent. They are found although large
    arrays come before most objects, ZGC's dumper writes objects in the order of references, and the
    agent's ids of threads are not addresses.
    """
    if options.endswith("ZGC") and jdk.version < 17 or "Compact" in options and jdk.version < 25:
        pytest.skip(f"JDK {jdk.version} has no {options}")
    outputs = {
        "rewritten.hprof": "heap=dump,format=b",
        "sites.hprof": "heap=all,format=b",
        "recording.hprof": "heap=dump,format=r",
    }
    taken = {}
    for name, agent in outputs.items():
        output = tmp_path / name.replace("recording.hprof", "recording.jfr")
        with Program(
            jdk, "HeapSizes", jvm=("-Xmx1g", *options.split(), jdk.agent(f"{agent},file={output}"))
        ) as p:
            taken[name] = jmap(jdk, p.pid)
            if name == "recording.hprof":
                taken["vm.hprof"] = taken[name]
                take(p, tmp_path / "vm.hprof")
    for name, vm in taken.items():
        ours = {
            c["class"]: (c["objects"], c["shallow"])
            for c in heap("histogram", tmp_path / name)["classes"]
        }
        for row in ("HeapSizes$Node", "HeapSizes$Edge", "HeapSizes$Node[]", "long[][]"):
            assert ours[row] == vm[row], (name, row)
        for row in (
            "java.lang.String",
            "java.util.HashMap$Node",
            "java.lang.Thread",
            "java.util.ArrayList",
        ):
            assert ours[row][1] * vm[row][0] == vm[row][1] * ours[row][0], (name, row)


def test_dump_leaves_nothing_behind(tmp_path):
    """A VM in our own file system writes next to the output. A VM with another root writes into its
    /tmp, from which the file is fetched.
    """
    for jdk in (lab.Jdk(17), None):
        before = set(pathlib.Path("/tmp").glob("jvmscope-heap-*"))
        if jdk is None:
            command = ["java", "-Xmx64m", "-cp", str(lab.compiled("HeapGraph")), "HeapGraph"]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
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
    assert trees == sorted(
        ((2**d - 1) * size["HeapHeld$Tree"] for d in range(1, 13) for _ in range(2 ** (12 - d))),
        reverse=True,
    )
    header = 12 if jdk.version == 27 else 16

    def array(n, width):
        start = header if width < 8 else (header + 7) // 8 * 8
        return (start + n * width + 7) // 8 * 8

    halves = objects_of(dump, "HeapHeld$Half")
    assert [h["retained"] for h in halves] == [size["HeapHeld$Half"]] * 2
    [diamond] = objects_of(dump, "HeapHeld$Diamond")
    assert diamond["retained"] == size["HeapHeld$Diamond"] + 2 * size["HeapHeld$Half"] + array(
        100000, 1
    )
    ring = size["HeapHeld$Ring"] + array(1000, 8)
    assert sorted(o["retained"] for o in objects_of(dump, "HeapHeld$Ring")) == [
        ring * k for k in range(1, 11)
    ]
    [alone] = objects_of(dump, "HeapHeld$Alone")
    assert alone["retained"] == size["HeapHeld$Alone"] + array(54321, 1)
    lists = [o for o in heap("dominators", dump, "--children", alone["object"])["dominators"]]
    assert [o["class"] for o in lists] == ["byte[]"]
    # A set retains what none of its members does alone.
    assert heap("retained", dump, "HeapHeld$Half")["retained"] == 2 * size["HeapHeld$Half"] + array(
        100000, 1
    )


LEAKS = {
    # way: (class of the holder, a text in the path, what accumulates, its least number)
    "cache": ("HeapLeaks$Cache", "static SESSIONS java.util.HashMap", "HeapLeaks$Session", 20000),
    "listeners": (
        "HeapLeaks",
        "static BUS HeapLeaks$Bus -> listeners java.util.ArrayList size 40000",
        "HeapLeaks$Listener",
        40000,
    ),
    "queue": (
        "HeapLeaks",
        "static QUEUE java.util.concurrent.LinkedBlockingQueue",
        "HeapLeaks$Request",
        9990,
    ),
    "threadlocal": ('"worker-7"', 'thread java.lang.Thread "worker-7"', "byte[]", 49990),
    "loaders": (
        "HeapLeaks",
        "static LOADERS java.util.ArrayList size 200",
        "HeapLeaks$Plugin",
        200,
    ),
    "loadersalone": (
        "HeapLeaks",
        "static LOADERS java.util.ArrayList size 200",
        "HeapLeaks$Loader",
        200,
    ),
    "classes": (
        "HeapLeaks",
        "static LOADERS java.util.ArrayList size 200",
        "HeapLeaks$Plugin",
        200,
    ),
    "local": (
        "size 20000",
        'local variable of thread "main" in HeapLeaks.main (HeapLeaks.java:',
        "HeapLeaks$Session",
        20000,
    ),
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
    assert (
        suspect["percent"] == pytest.approx(100 * suspect["retained"] / reachable)
        and suspect["percent"] > 80
    )
    # References by which the VM itself keeps classes alive are not part of a path, because nobody
    # can change them.
    assert "ClassLoader" not in suspect["path"].split("static")[0], suspect["path"]
    loaders = way in ("loaders", "loadersalone", "classes")
    assert suspect["loaders"] == (200 if loaders else 1)
    if path.startswith("static"):  # so do `heap paths`, for one object and for many
        one = heap("paths", dump, suspect["accumulator"])
        assert (
            one["path"][0]["via"],
            one["path"][0]["class"],
            one["path"][0]["value"].split("$")[0],
        ) == ("class of the program", "java.lang.Class", "HeapLeaks"), one
        assert (
            one["length"] == len(one["path"])
            and one["path"][-1]["object"] == suspect["accumulator"]
        )
        for kinds, wrong in (
            ("foo", "foo"),
            ("soft,foo,weak", "foo"),
            ("soft,", "empty"),
            ("none,soft", "none"),
            ("soft,none", "none"),
        ):
            refused = lab.jvmscope(
                "heap", "paths", "--exclude", kinds, dump, one["path"][0]["object"]
            )
            assert (refused.returncode, refused.stdout, refused.stderr) == (
                2,
                "",
                f"jvmscope: --exclude: {wrong}: allowed: soft, weak, final, phantom; or none alone\n",
            )
        for kinds in ("soft, weak", "none", "soft,weak,final,phantom"):
            shown = heap("paths", "--exclude", kinds, dump, suspect["accumulator"])["path"]
            assert shown[-1]["object"] == suspect["accumulator"]
        if way != "classes":  # of which there are no instances
            refused = lab.jvmscope("heap", "paths", "--exclude", "none", dump, class_name)
            assert (refused.returncode, refused.stdout) == (2, "") and re.fullmatch(
                r"jvmscope: --exclude: has no effect on the paths of several objects; \d+ are chosen: "
                r"name one of them by its address\n",
                refused.stderr,
            ), refused
        first, *rest = (
            heap("paths", dump, class_name)["paths"]
            if way != "classes"
            else [{"depth": 0, "path": "class of the program: class HeapLeaks"}]
        )
        assert first["depth"] == 0 and first["path"].startswith(
            "class of the program: class HeapLeaks"
        ), first
        assert not [row for row in rest if row["depth"] == 0 and row["objects"] > count / 10], rest
    if way == "threadlocal":  # a chain of 50,000 links, of which every third is selected
        notes = heap("paths", dump, "--limit", 1000, "HeapLeaks$Link")["notes"]
        cut = [
            re.fullmatch(
                r"Paths longer than 4096 steps: (\d+) of (\d+); these objects are counted on the last 4096 steps of their path alone\.",
                n,
            )
            for n in notes
        ]
        [(longer, taken)] = [map(int, c.groups()) for c in cut if c]
        assert taken in (16666, 16667) and (taken - longer) * 3 == pytest.approx(
            4096, abs=12
        ), notes
        assert "Steps after the first 201 of a path are not shown." in notes
        assert not [
            n
            for n in heap("paths", dump, "--limit", 100, "byte[]")["notes"]
            if "Steps after the first" in n
        ]
    text = lab.output("heap", "leaks", dump)
    assert ("loaded by 200 class loaders, one each." in text) == loaders
    assert ("which keep class HeapLeaks$Plugin, loaded by" in text) == (way == "loadersalone")
    assert ("200 versions of class HeapLeaks$Plugin, " in text) == (way == "classes")
    for word in (
        holder,
        path,
        class_name,
        f"{suspect['percent']:.1f} % of the heap",
        str(suspect["count"]),
    ):
        assert word in text
    out = tmp_path / "leaks.json"
    assert lab.jvmscope("heap", "leaks", "-o", out, dump).returncode == 0
    assert json.loads(out.read_text()) == answer


@pytest.mark.jdks(8, 17, 27)
def test_clean_heap_has_no_suspects(jdk, tmp_path):
    with Program(jdk, "HeapLeaks", "clean") as p:
        dump = take(p, tmp_path / "clean.hprof")
    answer = heap("leaks", dump)
    assert answer["suspects"] == [] and answer["notes"] == [
        "No suspects: nothing holds a tenth of the heap and 2 MiB or more."
    ]
    assert heap("summary", dump)["reachableBytes"] > 20000 * 1000


@pytest.fixture(scope="module")
def waste(tmp_path_factory, request):
    jdk = lab.Jdk(request.param)
    with Program(jdk, "HeapWaste") as p:
        return take(p, tmp_path_factory.mktemp("waste") / "waste.hprof")


PROXIES = """
import java.lang.reflect.Proxy;
@Proxies.Kind(3)
public class Proxies {
    interface Greeter { String hi(String s); }
    interface Other { int n(); }
    interface Mark { }
    @java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy.RUNTIME) @interface Kind { int value(); }
    static Object make(Class<?>... of) { return Proxy.newProxyInstance(Proxies.class.getClassLoader(), of, (p, m, a) -> null); }
    static Object[] kept = {make(Greeter.class, Other.class), make(Greeter.class, Other.class), make(Runnable.class), make(Mark.class), Proxies.class.getAnnotation(Kind.class)};
    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        System.in.read();
    }
}
"""


@pytest.mark.jdks(8, 17, 25)
def test_proxies_are_named_by_the_interfaces_whose_methods_they_have(jdk, tmp_path):
    """In a survey, with a new index and with an existing one. A proxy whose interface has no method
    keeps its number.
    """
    (tmp_path / "Proxies.java").write_text(PROXIES)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Proxies.java").returncode == 0
    with Program(jdk, "java", "-Xmx64m", "-cp", tmp_path, "Proxies") as p:
        dump = take(p, tmp_path / "p.hprof")
    package = "com.sun.proxy." if jdk.version == 8 else "jdk.proxy."
    greeter, runnable = "$Proxy[Proxies$Greeter,Proxies$Other]", package + "$Proxy[Runnable]"
    for _ in range(2):
        rows = {
            row["class"]: row["objects"]
            for row in heap("histogram", dump)["classes"]
            if "$Proxy" in row["class"]
        }
        assert (
            rows.pop(greeter) == 2
            and rows.pop(runnable) == 1
            and rows.pop("$Proxy[Proxies$Kind]") == 1
            and sum(bool(re.fullmatch(r"\$Proxy\d+", name)) for name in rows) == 1
        ), rows
        assert {o["class"] for o in heap("objects", dump, greeter)["objects"]} == {greeter}
        assert runnable in lab.jvmscope("heap", "paths", dump, runnable).stdout


GENERATED = """
import java.lang.invoke.*;
public class Generated {
    static class Item { }
    static final Item[] few = {new Item(), new Item(), new Item()}, many = new Item[1000];
    static final Runnable[] lambdas = {() -> use(1), () -> use(2), () -> use(3)};
    static int sum;
    static void use(int n) { sum += n; }
    static void use(String s, long l) { sum += l; }
    static long use(Object o, double d) { return (long) d; }
    public static void main(String[] args) throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        lookup.findStatic(Generated.class, "use", MethodType.methodType(void.class, String.class, long.class)).invoke("", 1L);
        long l = (long) lookup.findStatic(Generated.class, "use", MethodType.methodType(long.class, Object.class, double.class)).invoke((Object) "", 1.0);
        for (Runnable lambda : lambdas) lambda.run();
        if (args.length > 0) for (int i = 0; i < many.length; i++) many[i] = new Item();
        System.out.println("READY");
        System.in.read();
    }
}
"""


@pytest.mark.jdks(8, 17, 25)
def test_classes_that_the_vm_generates_are_not_of_several_loaders(jdk, tmp_path):
    """JDK 8's LambdaForms of one name filled the table; the boot loader has all of them. And paths
    that begin at a class leave no branch without objects behind.
    """
    (tmp_path / "Generated.java").write_text(GENERATED)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Generated.java").returncode == 0
    for arguments, left in ((), []), (("many",), ["fewer than 10 objects are not shown: 1001."]):
        with Program(jdk, "java", "-Xmx64m", "-cp", tmp_path, "Generated", *arguments) as p:
            dump = take(p, tmp_path / "g.hprof")
        assert heap("classes", dump)["duplicates"] == []
        if jdk.version == 8:
            forms = ask(dump, "SELECT count(*) n FROM classes WHERE name LIKE '%LambdaForm$DMH'")
            assert forms[0][0] > 1, forms
        notes = heap("paths", dump, "Generated$Item").get("notes", [])
        assert [n.removeprefix("Branches of ") for n in notes if "Branches" in n] == left, notes


@pytest.mark.parametrize("name", ["x.html", "x.jfr", "x.collapsed", "-"])
def test_a_dump_is_not_written_under_the_name_of_another_format(jdk, tmp_path, name):
    """A browser showed the bytes of "x.html", and "-" was a file of that name."""
    with Program(jdk, "HeapGraph") as p:
        done = lab.jvmscope("heap", "dump", "-o", name, p.pid, cwd=tmp_path)
        assert done.returncode == 2 and not list(tmp_path.iterdir()), done
        assert "a heap dump is a file in HPROF's format" in done.stderr, done
        assert lab.jvmscope("heap", "dump", "-o", "x.bin", p.pid, cwd=tmp_path).returncode == 0


@pytest.mark.jdks(8, 17, 25)
def test_a_row_of_several_classes_says_so(jdk, tmp_path):
    """The lambdas of one class have one name in a dump, and one row: three objects, not of one
    class.
    """
    (tmp_path / "Generated.java").write_text(GENERATED)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Generated.java").returncode == 0
    with Program(jdk, "java", "-Xmx64m", "-cp", tmp_path, "Generated") as p:
        dump = take(p, tmp_path / "g.hprof")
    answer = heap("histogram", dump, "-n", 10**6)
    rows = {c["class"]: c for c in answer["classes"]}
    assert (rows["Generated$$Lambda"]["objects"], rows["Generated$$Lambda"]["ofName"]) == (3, 3)
    assert rows["Generated$Item"]["ofName"] == 1
    (note,) = [n for n in answer["notes"] if n.startswith("A row of several classes")]
    each = ask(dump, re.search('"(SELECT id, .*)"', note)[1])
    ids = {row[0] for row in each if row[1] == "Generated$$Lambda"}
    assert len(ids) == 3 and all(row[2] == 1 for row in each if row[0] in ids), each
    text = lab.output("heap", "histogram", dump, "-n", 10**6)
    assert re.search(r"objects +shallow.* classes +class\n", text), text
    assert re.search(r"(?m)^ +3 .* 3 +Generated\$\$Lambda$", text), text
    assert "A row of several classes" in text


@pytest.mark.jdks(8, 17)
def test_what_is_unreachable_is_counted_beside_the_sizes_that_include_it(jdk, tmp_path):
    """A class had a shallow size of 281,600 bytes and retained 7,728."""
    with Program(jdk, "HeapGraph") as p:
        whole = take(p, tmp_path / "all.hprof", "--all")
        live = take(p, tmp_path / "live.hprof")
    dead = heap("unreachable", whole)
    rows = heap("histogram", "--retained", whole)
    assert (rows["unreachable"], rows["unreachableBytes"]) == (dead["objects"], dead["bytes"])
    assert dead["objects"] >= 5000
    note = "include unreachable objects"
    for text in (
        lab.output("heap", "histogram", "--retained", whole),
        lab.output("heap", "diff", whole, live),
    ):
        assert text.count(note) == 1, text
    held = sum(c["shallow"] for c in rows["classes"]) - rows["unreachableBytes"]
    assert held == heap("summary", whole)["reachableBytes"]


@pytest.mark.parametrize("waste", [8, 25], indirect=True)
def test_a_class_without_instances_is_reported_in_a_sentence(waste, tmp_path):
    for verb in ("objects", "paths", "retained"):
        for name, says in (
            ("java.lang.Math", "java.lang.Math has no instances in this dump.\n"),
            ("java.lang.Mat*", "The classes of java.lang.Mat* have no instances in this dump.\n"),
        ):
            done = lab.jvmscope("heap", verb, waste, name)
            assert (done.returncode, done.stdout) == (0, says), (verb, done.stdout, done.stderr)
            answer = heap(verb, waste, name)
            assert answer["notes"] == [says[:-1]] and answer.get("objects", []) in (0, []), answer
        assert (
            lab.jvmscope(
                "heap", verb, "-o", tmp_path / "x.html", waste, "java.lang.Math"
            ).returncode
            == 0
        )
        page = (tmp_path / "x.html").read_text()
        assert (
            "java.lang.Math has no instances in this dump." in page
            and "<table" not in page
            and "<dt>" not in page
        )


every_layout = pytest.mark.parametrize(
    "waste", (8, 17, 27), indirect=True, ids=("jdk8", "jdk17", "jdk27")
)


@every_layout
def test_report_is_one_page_that_needs_nothing(waste, tmp_path):
    report = tmp_path / "report.html"
    done = lab.jvmscope("heap", "summary", "-o", report, waste)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    html = report.read_text()
    for title in (
        "GC roots",
        "Biggest objects",
        "Suspects",
        "Classes by what they retain",
        "What packages retain",
        "tree of dominators",
    ):
        assert f"<h2>{title}" in html or title in html, title
    assert (
        "No suspects" in html
        and "&lt;no package&gt;" in html
        and "java.lang.String" in html
        and html.count("<details>") == html.count("</details>") > 5
    )
    assert "class=chart" in html
    assert not re.search(r"<script|<link|src=|@import|url\(", html)
    for verb in ("histogram", "leaks", "threads", "dominators", "strings", "collections"):
        page = tmp_path / f"{verb}.html"
        assert lab.jvmscope("heap", verb, "-o", page, waste).returncode == 0
        assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_tables_say_how_many_rows_they_leave_out(waste):
    """In text and JSON, with and without --limit. A complete table says nothing."""
    for verb, table, *options in (
        ("histogram", "classes"),
        ("collections", "collections"),
        ("arrays", "arrays"),
        ("components", "packages"),
        ("dominators", "dominators", "--children", "root"),
        ("dominators", "dominators"),
        ("arrays", "worst"),
        ("threads", "threads"),
        ("threads", "stacks"),
        ("paths", "paths", "--class", "java.*"),
        ("objects", "objects", "--class", "java.lang.String"),
        ("strings", "strings", "--find", "java"),
        ("references", "referents"),
    ):
        whole, cut = heap(verb, "-n", 10**6, *options, waste), heap(
            verb, "-n", 2, *options, waste
        )
        left = len(whole[table]) - 2
        assert (
            len(cut[table]) == 2 and "left_out" not in whole and cut["left_out"][table] == left > 0
        ), (verb, cut.get("left_out"))
        more = f"... and {left} more {'row' if left == 1 else 'rows'} (--limit)\n"
        assert more in lab.output("heap", verb, "-n", 2, *options, waste), verb
        assert "(--limit)" not in lab.output("heap", verb, "-n", 10**6, *options, waste), verb
    for verb, table, most in (("dominators", "dominators", 1000), ("summary", "dominators", 100)):
        cut, whole = heap(verb, waste), heap(verb, "-n", 10**6, waste)
        assert len(cut[table]) == most and cut["left_out"][table] == len(whole[table]) - most, verb
    n = len(heap("histogram", waste)["classes"])
    assert f"... and {n - 40} more rows (--limit)\n" in lab.output("heap", "histogram", waste)


def row(rows, **known):
    found = [r for r in rows if all(r[k] == v for k, v in known.items())]
    assert len(found) == 1, (known, found)
    return found[0]


@every_layout
def test_waste_is_found(waste):
    strings = heap("strings", waste)
    fifty = row(strings["duplicates"], value='"a text that is there fifty times"')
    assert (fifty["count"], fifty["arrays"], fifty["length"]) == (51, 51, 32) or (
        fifty["count"],
        fifty["arrays"],
    ) == (50, 50)
    assert fifty["wasted"] >= (fifty["count"] - 1) * (24 + 48)
    found = heap("strings", waste, "--find", "there fifty")
    assert found["count"] == fifty["count"] == len(found["strings"])
    assert heap("strings", waste, "--find", "приве")["count"] == 1
    assert heap("strings", waste, "--find", "no such text anywhere")["count"] == 0

    keeper = row(heap("collections", waste)["collections"], **{"class": "HeapWaste$Keeper"})
    assert (keeper["objects"], keeper["empty"], keeper["elements"], keeper["largest"]) == (
        31,
        30,
        7,
        7,
    )
    assert (
        keeper["slots"] == 16
        and keeper["fill"] == pytest.approx(100 / 16)
        and keeper["collisions"] == pytest.approx(600 / 7)
    )

    arrays = heap("arrays", waste)
    assert row(arrays["worst"], **{"class": "long[]", "fault": "constant"})["wasted"] == 4999 * 8
    sparse = row(
        arrays["worst"],
        **{"class": "java.lang.Object[]", "fault": "sparse", "value": "[4000], 100 set"},
    )
    assert sparse["wasted"] == 3900 * 4
    assert row(arrays["worst"], **{"class": "int[]", "fault": "oversized", "wasted": 2900 * 4})

    references = heap("references", waste)
    soft = row(references["referents"], **{"kind": "soft", "class": "HeapWaste$OnlySoft"})
    assert (soft["count"], soft["only"]) == (1, 1) and soft["retained"] > 3000
    weak = row(references["referents"], **{"kind": "weak", "class": "HeapWaste$Shown"})
    assert (weak["count"], weak["only"], weak["retained"]) == (1, 0, 0)
    assert (
        row(references["referents"], **{"kind": "phantom", "class": "java.util.ArrayList"})["count"]
        == 1
    )


@every_layout
def test_quotation_marks_in_strings_are_escaped(waste):
    """As `trace` shows them; the line break was escaped and the quotation marks were not."""
    assert row(heap("strings", waste, "--find", 'a "b"')["strings"], length=10)["value"] == (
        r'"a \"b\" \\ c\n"'
    )
    assert lab.output("heap", "strings", waste, "--find", 'a "b"').count(r'"a \"b\" \\ c\n"') == 1


@every_layout
def test_values_are_shown_as_a_person_reads_them(waste):
    [shown] = objects_of(waste, "HeapWaste$Shown")
    answer = heap("objects", waste, shown["object"])
    dominator = re.search("0x[0-9a-f]+", answer["dominator"])
    assert answer.get("dominatorObject") == (dominator and dominator[0])
    fields = {f["field"]: f["value"] for f in answer["fields"]}
    assert fields == {
        "boxed": "4711",
        "real": "2.5",
        "tenth": "0.1",
        "sum": "0.30000000000000004",
        "third": "0.33333334",
        "pi": "3.141592653589793",
        "thousandth": "0.001",
        "letter": "'q'",
        "yes": "true",
        "counter": "99",
        "colour": '"GREEN"',
        "type": "HeapWaste$Clash",
        "url": '"http://example.org/index.html"',
        "thread": '"sleeper"',
        "text": '"built of parts"',
        "list": "size 1",
        "quoted": r'"a \"b\" \\ c\n"',
        "quoting": r'"say \"b\""',
        "apostrophe": r"'\''",
        "bytes": r'[3] "x\"y"',
        "wide": '"привет"',
        "date": "2001-09-09 01:46:40.000 UTC",
        "big": "123456789012345678901234567890",
        "uuid": "01234567-89ab-cdef-8123-456789abcdef",
    }


def ask(dump, sql, *options):
    answer = heap("query", *options, dump, sql)
    assert answer["seconds"] >= 0
    return answer["rows"]


@every_layout
def test_query(waste):
    histogram = {
        c["class"]: (c["objects"], c["shallow"]) for c in heap("histogram", waste)["classes"]
    }
    counted = ask(waste, "SELECT class, count(*), sum(shallow) FROM objects GROUP BY class")
    assert {c: (n, s) for c, n, s in counted} == histogram
    assert ask(
        waste, "SELECT count(*) FROM strings WHERE value = 'a text that is there fifty times'"
    )[0][0] in (50, 51)
    assert ask(waste, 'SELECT n FROM "HeapWaste$Clash" ORDER BY n') == [[n] for n in range(7)]
    # Subclasses stand in the table of their base with its fields.
    assert ask(
        waste,
        "SELECT size FROM \"java.util.HashMap\" WHERE class_name = 'HeapWaste$Keeper' AND size > 0",
    ) == [[7]]
    [[shown, retained]] = ask(waste, 'SELECT object, retained FROM "HeapWaste$Shown"')
    assert ask(waste, f"SELECT sum(shallow) FROM retained WHERE holder = {shown}") == [[retained]]
    assert ask(waste, f"SELECT class FROM objects WHERE id = {shown}") == [["HeapWaste$Shown"]]
    joined = ask(
        waste,
        "SELECT f.name, s.value FROM objects o JOIN fields f ON f.object = o.id JOIN strings s ON s.object = f.ref "
        "WHERE o.class = 'HeapWaste$Shown' AND f.name = 'wide'",
    )
    assert joined == [["wide", "привет"]]
    assert ["url"] in ask(waste, f"SELECT name FROM refs WHERE source = {shown}")
    assert ask(waste, "SELECT object FROM roots WHERE kind = 'system class'")
    children = ask(waste, f"SELECT id FROM objects WHERE dominator = {shown}")
    assert sorted(c for [c] in children) == sorted(
        d["object"] for d in heap("dominators", waste, "--children", shown)["dominators"]
    )
    limited = heap("query", "-n", "3", waste, "SELECT id FROM objects")
    assert len(limited["rows"]) == 3 and limited["truncated"] and limited["columns"] == ["id"]


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_query_only_reads(waste, tmp_path):
    for sql in (
        "DELETE FROM objects",
        f"ATTACH '{tmp_path}/x' AS y",
        "CREATE TABLE t(a)",
        "SELECT nope FROM objects",
        "SELECT",
        "",
        "SELECT 1; SELECT 2",
        "PRAGMA writable_schema = 1",
        "SELECT load_extension('x')",
        "SELECT * FROM retained",
        "SELECT * FROM \"no.such.Class\"",
    ):
        done = lab.jvmscope("heap", "query", waste, sql)
        assert (
            done.returncode == 2
            and done.stdout == ""
            and re.fullmatch(r"jvmscope: query: [^\n]+\n", done.stderr)
        ), (sql, done)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_query_finds_an_address_without_looking_at_all(waste):
    [[shown]] = ask(waste, 'SELECT object FROM "HeapWaste$Shown"')
    plans = {
        f"SELECT * FROM objects WHERE id = {shown}": "INDEX 1:",
        f"SELECT * FROM objects WHERE dominator = {shown}": "INDEX 2:",
        "SELECT * FROM objects WHERE class = 'x'": "INDEX 3:",
        f"SELECT * FROM fields WHERE object = {shown}": "INDEX 1:",
        f"SELECT * FROM refs WHERE target = {shown}": "INDEX 4:",
        f"SELECT * FROM fields WHERE ref = {shown}": "INDEX 4:",
    }
    for sql, index in plans.items():
        assert index in ask(waste, "EXPLAIN QUERY PLAN " + sql)[0][3]


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_query_by_target_finds_what_reading_all_finds(waste):
    """SQLite does not recognize +r.target as a column, so it scans everything: the first target is
    searched for, and with more of them a table is made.
    """
    of = "FROM objects o, {table} r WHERE o.class LIKE 'HeapWaste%' AND {column} = o.id"
    for table, column, source in (
        ("refs", "r.target", "r.source"),
        ("fields", "r.ref", "r.object"),
    ):
        found, all_of_them = (
            ask(
                waste,
                f"SELECT {column}, {source}, r.name "
                + of.format(table=table, column=c)
                + " ORDER BY 1, 2, 3",
                "-n",
                "100000",
            )
            for c in (column, "+" + column)
        )
        assert found == all_of_them and len(found) > (30 if table == "refs" else 5)
    first = ask(waste, "SELECT object FROM strings LIMIT 4")
    assert ask(waste, "SELECT object FROM strings WHERE rowid = 3") == [first[3]]
    [[one]] = ask(waste, "SELECT target FROM refs GROUP BY target ORDER BY count(*) DESC LIMIT 1")
    assert ask(waste, f"SELECT count(*) FROM refs WHERE target = {one}") == ask(
        waste, f"SELECT count(*) FROM refs WHERE +target = {one}"
    )


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_query_of_the_page_ends_in_time(waste):
    server = subprocess.Popen(
        [lab.BUILD / "jvmscope", "serve", "--query-limit", "200ms", waste],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = server.stdout.readline().strip()

        def query(sql):
            return urllib.request.urlopen(
                f"{url}0/heap/query?" + urllib.parse.urlencode({"sql": sql}), timeout=60
            )

        with query(
            "SELECT count(*) FROM objects a, objects b, objects c WHERE a.shallow + b.shallow + c.shallow = 1"
        ) as answer:
            assert "exceeded the time limit" in json.load(answer)["refused"]
        assert json.load(query("SELECT 1 + 1"))["rows"] == [[2]]
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize("waste", (17, 27), indirect=True, ids=("jdk17", "jdk27"))
def test_threads_and_what_their_frames_hold(waste):
    """What a thread's locals retain counts an object once that several of its frames hold."""
    answer = heap("threads", "-n", 10**6, waste)
    again = 0
    for thread in answer["threads"]:
        held = [f["object"] for f in answer["stacks"] if f["thread"] == thread["object"]]
        held = [o for o in held if o and o != thread["object"]]
        again += len(held) - len(set(held))
        retained = ask(
            waste,
            "SELECT coalesce(sum(retained), 0) FROM objects WHERE dominator IS NULL AND id IN "
            f"({', '.join(sorted(set(held)))})",
        )
        assert thread["localsRetained"] == retained[0][0], (thread, held)
    assert again
    main = row(answer["threads"], name="main")
    assert main["state"] == "RUNNABLE" and main["frames"] >= 3
    frames = [f for f in answer["stacks"] if f["thread"] == main["object"]]
    assert any(f["frame"].startswith("HeapWaste.main (HeapWaste.java:") for f in frames)
    assert any(f["class"] == "HeapWaste$OnlyWeak" for f in frames)


def test_classes_of_several_loaders_and_components(tmp_path):
    with Program(lab.Jdk(17), "HeapLeaks", "loaders") as p:
        dump = take(p, tmp_path / "loaders.hprof")
    classes = heap("classes", dump)
    twins = [d for d in classes["duplicates"] if d["class"] == "HeapLeaks$Plugin"]
    assert len(twins) == 200 and len({t["loader"] for t in twins}) == 200
    assert all(t["loaderClass"] == "HeapLeaks$Loader" for t in twins)
    loaders = heap("components", dump)["loaders"]
    assert sum(l["name"] == "HeapLeaks$Loader" for l in loaders) == 200
    # Only the plugin holds its loader: the loader's class and static array end with the plugin.
    plugins = objects_of(dump, "HeapLeaks$Plugin")
    assert len(plugins) == 200 and all(100000 < o["retained"] < 102000 for o in plugins)


def test_classes_without_instances_retain_what_their_static_fields_hold(tmp_path):
    """200 loaders load a class with a static array of 100,000 bytes and without an instance:
    neither the class nor its loader retains 0.
    """
    with Program(lab.Jdk(17), "HeapLeaks", "classes") as p:
        dump = take(p, tmp_path / "classes.hprof")
    found = heap("classes", dump)
    twins = [d for d in found["duplicates"] if d["class"] == "HeapLeaks$Plugin"]
    assert len(twins) == 200 and {t["objects"] for t in twins} == {0}
    assert all(100000 < t["retained"] < 102000 for t in twins), twins[:3]
    own = [l for l in found["loaders"] if l["name"] == "HeapLeaks$Loader"]
    assert len(own) == 200 and all(
        (l["objects"], l["classes"]) == (0, 1) and 100000 < l["retained"] < 102000 for l in own
    ), own[:3]


def test_diff_and_unreachable(tmp_path):
    with Program(lab.Jdk(17), "HeapGraph") as p:
        all_objects, live = take(p, tmp_path / "all.hprof", "--all"), take(
            p, tmp_path / "live.hprof"
        )
    garbage = {c["class"]: c["objects"] for c in heap("unreachable", all_objects)["classes"]}
    assert garbage["HeapGraph$Garbage"] == 5000 and "HeapGraph$Node" not in garbage
    gone = row(heap("diff", all_objects, live)["classes"], **{"class": "HeapGraph$Garbage"})
    assert (gone["objectsOld"], gone["objectsNew"], gone["objectsGrown"]) == (5000, 0, -5000)
    whole, cut = heap("diff", all_objects, live), heap("diff", "-n", 1, all_objects, live)
    assert {key: len(whole[key]) - 1 for key in ("classes", "retained")}.items() <= cut[
        "left_out"
    ].items()
    same = heap("diff", live, live)
    assert same["classes"] == same["program"] == []


def test_diff_ranks_the_program_s_classes_by_what_they_retain(tmp_path):
    """A leak of sessions is its first row; by size, the arrays that they hold would come first."""
    dumps = []
    for program in (("HeapGraph",), ("HeapLeaks", "cache")):
        with Program(lab.Jdk(17), *program) as p:
            dumps.append(take(p, tmp_path / f"{program[0]}.hprof"))
    grown = heap("diff", *dumps)
    assert (
        grown["classes"][0]["class"] == "byte[]"
        and grown["program"][0]["class"] == "HeapLeaks$Session"
    )
    assert (
        grown["program"][0]["objectsGrown"] == 20000
        and grown["program"][0]["retainedGrown"] > 20000000
    )
    assert not any(
        re.match(r"java\.|jdk\.|sun\.|(byte|int|char|long)\[", row["class"])
        for row in grown["program"]
    ), grown["program"]


VISUALVM = "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar"


@pytest.fixture(scope="session")
def oracle(tmp_path_factory):
    """Returns the results of VisualVM's heap library for a dump: counts and sizes by class, and
    size, retained size and class of the given objects.
    """
    out, jdk = tmp_path_factory.mktemp("oracle"), lab.Jdk(17)
    built = jdk.run(
        "javac", "-cp", VISUALVM, "-d", out, lab.ROOT / "tests" / "tools" / "HeapOracle.java"
    )
    assert built.returncode == 0, built.stderr

    def read(dump, objects):
        ids = dump.with_suffix(".ids")
        ids.write_text("\n".join(objects) + "\n")
        done = jdk.run(
            "java", "-Xmx3g", "-cp", f"{VISUALVM}:{out}", "HeapOracle", dump, ids, timeout=3000
        )
        assert done.returncode == 0, done.stderr
        classes = {
            m[3]: (int(m[1]), int(m[2]))
            for m in re.finditer(r"^class (\d+) (\d+) (.+)$", done.stdout, re.M)
        }
        sizes = {
            m[1]: (int(m[2]), int(m[3]), m[4])
            for m in re.finditer(r"^object (\S+) (\d+) (\d+) (.+)$", done.stdout, re.M)
        }
        return classes, sizes

    return read


def agrees_with_visualvm(dump, oracle, random_objects):
    """Compares the counts of every class, and the retained sizes of the 100 largest objects and of
    random ones. Sizes are VisualVM's, added up over our tree, because it does not know the fields
    that HotSpot adds, nor headers of eight bytes (arrays have 16 then). In its result an object
    that only weak references reach has no retained size, but what that object refers to is not
    counted for other objects either; sometimes the same holds for class objects. Objects that
    retain either are not compared.
    """
    rows = ask(
        dump,
        "SELECT id, class, shallow, retained, dominator, reachable, length FROM objects",
        "-n",
        str(1 << 40),
    )
    seed = random.randrange(1 << 30)
    print(dump.name, "seed", seed, "objects", len(rows))
    live = [r for r in rows if r[5]]
    largest = sorted(live, key=lambda r: -r[3])[:100]
    chosen = {
        r[0] for r in largest + random.Random(seed).sample(live, min(random_objects, len(live)))
    }
    classes, theirs = oracle(dump, sorted(chosen))
    named = {name: proxies_in_one_row(settled({name: c})) for name, c in classes.items()}
    ours, counted = collections.Counter(r[1] for r in rows), collections.Counter()
    for [(name, (count, _))] in (one.items() for one in named.values()):
        counted[name] += count
    for name, (count, _) in proxies_in_one_row({n: (c, 0) for n, c in ours.items()}).items():
        if name != "java.lang.Class" and "[]" not in name:
            assert counted[name] == count, name
    # Generated classes of one name may differ in size: then their objects are not compared.
    instance = collections.defaultdict(set)
    for name, (count, size) in classes.items():
        if not name.endswith("[]"):
            instance[settled_name(name)].add(size // count)
    children, stack, order, sums, wrong = collections.defaultdict(list), [], [], {}, []
    for r in live:
        children[r[4]].append(r)
    stack.extend(children[None])
    while stack:
        order.append(stack.pop())
        stack.extend(children[order[-1][0]])
    assert len(order) == len(live)
    shared = {
        t
        for [t] in ask(
            dump,
            "SELECT DISTINCT r.target FROM objects o JOIN refs r ON r.source = o.id "
            "WHERE o.reachable IS NOT 'strong'",
            "-n",
            str(1 << 40),
        )
    }
    # VisualVM does not see that a class refers to its protection domain, so in its result other
    # objects that refer to the domain retain it.
    shared |= {
        s
        for [s] in ask(
            dump,
            "SELECT r.source FROM objects p JOIN refs r ON r.target = p.id "
            "WHERE p.class = 'java.security.ProtectionDomain'",
            "-n",
            str(1 << 40),
        )
    }
    compared, apart = 0, set()
    widths = {"boolean[]": 1, "byte[]": 1, "char[]": 2, "short[]": 2, "long[]": 8, "double[]": 8}
    for id, name, shallow, _, _, reachable, length in reversed(order):
        if length is not None:
            shallow = (16 + length * widths.get(name, 4) + 7) // 8 * 8
        known = instance.get(settled_name(name), {shallow})
        sums[id] = min(known) + sum(sums[c[0]] for c in children[id])
        sums[id] = 0 if reachable == "weak" else sums[id]
        unsure = name == "java.lang.Class" or id in shared or len(known) > 1
        if unsure or any(c[0] in apart for c in children[id]):
            apart.add(id)
        elif id in chosen:
            compared += 1
            if sums[id] != theirs[id][1]:
                wrong.append((id, name, theirs[id], sums[id]))
    assert not wrong, (len(wrong), compared, wrong[:5])
    return compared


@pytest.mark.jdks(8, 17)
def test_retained_sizes_are_visualvms(jdk, tmp_path, oracle):
    with Program(jdk, "HeapWaste") as p:
        dump = take(p, tmp_path / "waste.hprof")
    assert agrees_with_visualvm(dump, oracle, 300) > 250


@pytest.mark.slow
@pytest.mark.parametrize("program", workloads.HELD)
def test_real_programs_are_as_the_vm_and_visualvm_see_them(jdk, tmp_path, oracle, program):
    if program == "h2" and jdk.version == 8:
        pytest.skip("Debian's h2 wants JDK 11")
    with Program(jdk, *workloads.held_command(program, jdk, tmp_path / "files")) as p:
        before = jmap(jdk, p.pid)
        dump = take(p, tmp_path / "real.hprof")
        vm = jmap(jdk, p.pid)
    compared, differ = histogram_differences(dump, vm, before)
    print("classes", compared)
    assert compared > 400 and not differ
    assert agrees_with_visualvm(dump, oracle, 1000) > 500


@pytest.mark.slow
def test_list_of_ten_million(tmp_path):
    """A chain of 10.4 million nodes among 46 million objects is indexed, its suspects are found,
    and its children can be listed.
    """
    generate, dump = tmp_path / "generate", tmp_path / "big.hprof"
    subprocess.run(
        ["gcc", "-O2", "-o", generate, lab.ROOT / "bench" / "heap_generate.c"], check=True
    )
    subprocess.run([generate, dump, "1000"], check=True)
    done = lab.jvmscope("heap", "leaks", "--json", dump, timeout=600)
    assert done.returncode == 0, done.stderr
    chain = row(json.loads(done.stdout)["suspects"], accumulatorClass="bench.List$Node")
    assert chain["chain"] == 10400000 and chain["accumulates"] == "java.lang.Integer"
    assert chain["retained"] == 10400000 * (24 + 16)
    assert ask(dump, f"SELECT count(*) FROM retained WHERE holder = {chain['accumulator']}") == [
        [2 * 10400000]
    ]


@pytest.fixture
def memory_group():
    """A memory control group of 128 MiB, of either version. Returns its folder."""
    with lab.control_group("memory", "memory.limit_in_bytes", "memory.max", 128 << 20) as group:
        if not group:
            pytest.skip(
                "no memory cgroup can be made here (needs root and a writable /sys/fs/cgroup)"
            )
        yield group[0]


@pytest.mark.slow
def test_more_than_fits_a_cgroup(tmp_path, memory_group):
    """The kernel's limit includes the pages of files: those of the dump and of spilled data are
    released and read again.
    """
    generate, dump = tmp_path / "generate", tmp_path / "big.hprof"
    subprocess.run(
        ["gcc", "-O2", "-o", generate, lab.ROOT / "bench" / "heap_generate.c"], check=True
    )
    subprocess.run([generate, dump, "500"], check=True)
    with open(dump) as f:  # what others brought into the page cache would not be counted
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'echo $$ > {memory_group}/cgroup.procs && exec "$@"',
            "sh",
            lab.BUILD / "jvmscope",
            "heap",
            "summary",
            "--json",
            "--memory",
            "64M",
            dump,
        ],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    peak = [
        int(p.read_text())
        for p in (memory_group / "memory.max_usage_in_bytes", memory_group / "memory.peak")
        if p.exists()
    ]
    print(answer["indexTimes"], "spilled", answer["indexSpilled"], "peak of the group", peak)
    assert answer["file"] > 8 * (128 << 20) and answer["reachable"] > 20000000
    assert not peak or peak[0] <= 128 << 20


@pytest.mark.slow
def test_more_than_fits_the_memory_allowed(tmp_path):
    """A dump eight times as large as the limit: anonymous memory stays below it, and the rest is in
    unlinked files.
    """
    generate, dump = tmp_path / "generate", tmp_path / "big.hprof"
    subprocess.run(
        ["gcc", "-O2", "-o", generate, lab.ROOT / "bench" / "heap_generate.c"], check=True
    )
    subprocess.run([generate, dump, "1000"], check=True)
    done = lab.jvmscope("heap", "summary", "--json", "--memory", "256M", dump, timeout=3000)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    print(answer["indexTimes"], answer["indexMemory"], answer.get("indexSpilled"))
    assert answer["file"] > 8 * (256 << 20) and answer["indexSpilled"] > 0
    assert answer["indexMemory"] < 256 << 20
    assert not [
        p
        for p in tmp_path.iterdir()
        if p.name not in ("generate", "big.hprof", "big.hprof.heapidx")
    ]


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_two_selections_are_refused(waste):
    """None of them is ignored without a word."""
    ways = {
        "--class": "java.lang.String",
        "--object": "0x1000",
        "--package": "java.util",
        "--loader": "0",
    }
    for verb in ("retained", "paths", "objects"):
        for one, other in itertools.combinations(ways, 2):
            done = lab.jvmscope("heap", verb, one, ways[one], other, ways[other], waste)
            assert done.returncode == 2 and done.stdout == "", (verb, one, other)
            assert done.stderr == f"jvmscope: {other}: cannot be combined with {one}\n"
        for one in ways:
            done = lab.jvmscope("heap", verb, one, ways[one], waste, "java.lang.Thread")
            assert done.returncode == 2 and done.stderr.endswith(
                f"{one}: cannot be combined with java.lang.Thread\n"
            )
    done = lab.jvmscope("heap", "query", "--sql", "SELECT 1", waste, "SELECT 2")
    assert done.returncode == 2 and "--sql: cannot be combined with a statement" in done.stderr


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_a_name_after_equals_selects_this_class_alone(waste):
    """As in other readers; in heap, a name without = is a whole name already."""
    for name in ("java.lang.Thread", "=java.lang.Thread"):
        assert {o["class"] for o in heap("objects", waste, name)["objects"]} == {"java.lang.Thread"}
    assert len({o["class"] for o in heap("objects", waste, "java.lang.Thread*")["objects"]}) > 1
    for name in ("=java.lang.Thread*", "=java.lang.Threa", "java.lang.Threa"):
        for verb in ("objects", "retained", "paths"):
            done = lab.jvmscope("heap", verb, "--class", name, waste)
            assert done.returncode == 1 and done.stdout == "", (verb, name)
            assert f"{name}: this matches no class of the dump" in done.stderr


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_names_of_classes_accumulate(waste):
    """By commas or by giving the option again; a name among them that matches nothing is refused."""
    names = ("java.lang.Thread", "java.lang.ThreadGroup")
    single = [{o["object"] for o in heap("objects", waste, name)["objects"]} for name in names]
    assert all(single)
    for words in (
        ("--class", ",".join(names)),
        ("--class", names[0], "--class", names[1]),
        (", ".join(names),),
    ):
        both = heap("objects", waste, *words)["objects"]
        assert {o["object"] for o in both} == single[0] | single[1], words
    packages = heap("objects", "-n", 1, waste, "--package", "java.lang,java.util")
    assert packages == heap(
        "objects", "-n", 1, waste, "--package", "java.lang", "--package", "java.util"
    )
    for verb in ("objects", "retained", "paths"):
        for option in ("--class", "--package"):
            done = lab.jvmscope("heap", verb, option, "java.lang,no.Such", waste)
            wrong = "java.lang" if option == "--class" else "no.Such"
            assert (done.returncode, done.stdout) == (1, ""), (verb, option, done)
            assert f"jvmscope: {wrong}: this matches no class of the dump\n" in done.stderr


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_strong_is_an_option_of_the_verbs_with_retained_sizes(waste, tmp_path):
    """In the others it used to be accepted and to change nothing."""
    verbs = re.findall(r"(?m)^  heap (\S+)  ", lab.output("heap", "--help"))
    assert len(verbs) >= 17
    one = heap("objects", "-n", 1, waste, "java.lang.Thread")["objects"][0]["object"]
    operands = {
        "objects": ["java.lang.Thread"],
        "paths": [one],
        "query": ["SELECT retained FROM objects LIMIT 1"],
        "retained": ["java.lang.Thread"],
    }
    for verb in set(verbs) - {"dump"}:
        offered = "--strong" in lab.output("heap", verb, "--help")
        words = ["--find", "a"] if verb == "strings" else ["--retained"] * (verb == "histogram")
        files = [waste, waste] if verb == "diff" else [waste]
        index = [] if verb == "diff" else ["--index", tmp_path / "strong.heapidx"]
        answer = lab.output("heap", verb, "--json", *words, *files, *operands.get(verb, ()))
        shows = re.search(r'"\w*[rR]etained\w*"(?!: ?null)', answer) is not None
        # The summary says in words whether such references retain anything, and leaks searches by
        # retained sizes, of which it shows none if it finds nothing.
        assert offered == (shows or verb in ("summary", "leaks")), (verb, offered)
        done = lab.jvmscope(
            "heap", verb, "--strong", *index, *words, *files, *operands.get(verb, ())
        )
        assert done.returncode == (0 if offered else 2), (verb, done.stderr)
    done = lab.jvmscope("heap", "strings", "--strong", waste)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("jvmscope: --strong: has no effect without --find: ")
    done = lab.jvmscope("heap", "paths", "--strong", waste, "java.lang.Thread")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--strong: has no effect on the paths of several objects; " in done.stderr
    # The histogram has retained sizes once an index is needed.
    assert "retained" in lab.output(
        "heap", "histogram", "--strong", "--index", tmp_path / "h.heapidx", waste
    )


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_exclusions_accumulate_and_statements_only_read(waste, tmp_path):
    of = heap("objects", "-n", 1, waste, "java.lang.Thread")["objects"][0]["object"]
    assert heap("paths", "--exclude", "soft", "--exclude", "weak", waste, of) == heap(
        "paths", "--exclude", "soft,weak", waste, of
    )
    done = lab.jvmscope("heap", "paths", "--exclude", "soft", "--exclude", "foo", waste, of)
    assert done.returncode == 2 and "--exclude: foo: allowed: soft" in done.stderr
    for statement in (f"VACUUM INTO '{tmp_path}/z.db'", "VACUUM", "REINDEX", "DROP TABLE objects"):
        done = lab.jvmscope("heap", "query", waste, statement)
        assert done.returncode == 2 and "only SELECT is possible" in done.stderr, done.stderr
    assert not (tmp_path / "z.db").exists()


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_a_difference_of_equal_dumps_is_empty_in_words(waste, tmp_path):
    page = tmp_path / "d.html"
    assert lab.jvmscope("heap", "diff", "-o", page, waste, waste).returncode == 0
    assert page.read_text().count("<p>(none)</p>") == 3
    assert lab.output("heap", "diff", waste, waste).count("(none)\n") == 3
    refused = lab.jvmscope("heap", "diff", "--json", "-o", page, waste, waste)
    assert refused.returncode == 2 and "--json: no effect on a page" in refused.stderr, refused
    refused = lab.jvmscope("heap", "diff", "--index", tmp_path / "i", waste, waste)
    assert refused.returncode == 2 and "--index: not for diff" in refused.stderr, refused


@pytest.mark.parametrize("waste", (17,), indirect=True, ids=("jdk17",))
def test_no_output_takes_the_place_of_what_is_read(waste, tmp_path):
    """Neither under the same name nor by way of a link; other verbs that write files as well."""
    page, link = tmp_path / "dump.html", tmp_path / "link.html"
    page.write_bytes(waste.read_bytes())
    link.symlink_to(page)
    recording = tmp_path / "a.jfr"
    done = lab.Jdk(17).java(
        "Rounds", "1", jvm=[lab.Jdk(17).agent(f"cpu=samples,cover=y,format=r,file={recording}")]
    )
    assert recording.exists(), done.stderr
    for words, read in (
        (("heap", "histogram", "-o", page, page), page),
        (("heap", "histogram", "-o", link, page), page),
        (("heap", "diff", "-o", page, waste, page), page),
        (("convert", "-o", recording, "--to", "1s", recording), recording),
        (("coverage", "-o", recording, recording), recording),
    ):
        before = read.read_bytes()
        done = lab.jvmscope(*words)
        assert done.returncode == 2 and "is the file that is read" in done.stderr, (words, done)
        assert read.read_bytes() == before and done.stdout == "", words
