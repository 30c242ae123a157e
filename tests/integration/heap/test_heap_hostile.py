# SPDX-License-Identifier: Apache-2.0
"""`jvmscope heap` on every kind of dump, and on damaged and malicious ones."""
import gzip
import json
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest

import hprofdump
import lab
from hprofdump import INT, OBJECT, THREAD, small

VERBS = (
    ("summary",),
    ("histogram", "--retained"),
    ("dominators",),
    ("dominators", "--children", "root"),
    ("leaks",),
    ("threads",),
    ("strings",),
    ("strings", "--find", "main"),
    ("collections",),
    ("arrays",),
    ("references",),
    ("classes",),
    ("components",),
    ("unreachable",),
    ("objects", "app.Node"),
    ("objects", "0x20000"),
    ("paths", "0x20020"),
    ("paths", "app.Node"),
    ("retained", "app.Node"),
    ("query", "SELECT * FROM fields, strings, refs, roots"),
    ("query", 'SELECT * FROM "app.Node"'),
)


def spooled():
    """Returns the unlinked files that we still hold, and the named files that the tests could have
    left behind.
    """
    return {p for folder in ("/tmp", "/var/tmp") for p in pathlib.Path(folder).glob("*heapidx*")}


def ask(path, verb, *args, **kwargs):
    return lab.jvmscope("heap", verb, "--json", path, *args, **kwargs)


def write(tmp_path, data, name="x.hprof"):
    path = tmp_path / name
    path.write_bytes(data)
    for old in tmp_path.glob("*.heapidx"):
        old.unlink()
    return path


def sound(path, nodes=6, **kwargs):
    done = ask(path, "histogram", "--retained", **kwargs)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    # All is read; some of the objects are held by nothing.
    assert all("unreachable objects" in note for note in answer.get("notes", [])), answer["notes"]
    rows = {c["class"]: c for c in answer["classes"]}
    assert rows["app.Node"]["objects"] == nodes and rows["java.lang.Class"]["objects"] == 7
    assert rows["app.Node"]["retained"] == rows["app.Node"]["shallow"]
    return answer


def survives(path, verb, *args, allowed=(0, 1, 2)):
    """The command neither crashes nor hangs: the answer is JSON, or one line that says why there is
    none.
    """
    done = ask(path, verb, *args, timeout=20)
    assert done.returncode in allowed, (verb, args, done)
    if done.returncode:
        assert done.stdout == "" and re.fullmatch(r"jvmscope: [^\n]+\n", done.stderr), done.stderr
        return None
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", ("1.0.1", "1.0.2"))
@pytest.mark.parametrize("id_size", (4, 8))
def test_every_version_and_id_size(tmp_path, version, id_size):
    d = small(version, id_size)
    d.end_heap()
    sound(write(tmp_path, d.data()))
    d = small(version, id_size, android=True)
    d.end_heap()
    sound(write(tmp_path, d.data()))
    for verb in VERBS:
        assert survives(tmp_path / "x.hprof", verb[0], *verb[1:]) is not None


def test_length_that_was_never_filled_in(tmp_path):
    d = small("1.0.1")
    d.end_heap(length=0)
    sound(write(tmp_path, d.data()))


def test_frames_of_the_agent_are_in_no_stack(tmp_path):
    """The dump was made while a thread was inside probes. What the probes' frames hold counts as
    held by the frames that called them.
    """
    d = small()
    frames = (
        "java/lang/JvmscopeTimes.enter",
        "app/Main.inner",
        "java/lang/JvmscopeTrace.entered",
        "java/lang/JvmscopeTrace.arg",
        "app/Main.main",
        "java/lang/JvmscopeEnd.run",
    )
    for i, name in enumerate(frames):
        owner, method = name.split(".")
        if owner != "app/Main":
            d.load_class(20 + i, 0x60000 + 0x80 * i, owner)
            d.class_dump(0x60000 + 0x80 * i, 0x10000)
            d.item(0x05, d.id(0x60000 + 0x80 * i))
        d.frame(10 + i, method, "A.java", 7 if owner == "app/Main" else 20 + i, 40 + i)
    d.trace(6, 2, *range(10, 10 + len(frames)))
    d.instance(0x61000, THREAD, (OBJECT, 0x30000))
    d.item(0x08, d.id(0x61000), struct.pack(">II", 2, 6))
    held = (0x50000, 0x50100, 0x50200, 0x50300, 0x50400, 0x50500)
    for frame, object in enumerate(held):
        d.item(0x03, d.id(object), struct.pack(">II", 2, frame))
    d.item(0x02, d.id(0x50600), struct.pack(">II", 2, 0xFFFFFFFF))
    d.end_heap()
    path = write(tmp_path, d.data())
    inner, main = "app.Main.inner (A.java:41)", "app.Main.main (A.java:44)"
    for _ in range(2):  # without an index and with it
        answer = json.loads(ask(path, "threads").stdout)
        assert [
            (t["frames"], t["locals"])
            for t in answer["threads"]
            if int(str(t["object"]), 0) == 0x61000
        ] == [(2, 7)], answer["threads"]
        rows = [
            (s["depth"], s["frame"], int(str(s["object"]), 0))
            for s in answer["stacks"]
            if int(str(s["thread"]), 0) == 0x61000
        ]
        assert rows == [
            (0, inner, 0x50600),
            (0, "", 0x50000),
            (0, "", 0x50100),
            (1, main, 0x50200),
            (1, "", 0x50300),
            (1, "", 0x50400),
            (1, "", 0x50500),
        ]
        places = json.loads(
            ask(
                path,
                "query",
                "SELECT object, place FROM roots WHERE place IS NOT NULL AND kind <> 'JNI local'",
            ).stdout
        )
        assert "Jvmscope" not in json.dumps(places) + json.dumps(answer)
        places = {int(str(object), 0): place for object, place in places["rows"]}
        assert [places[o] for o in held[1:]] == [
            f'thread "main" in {f}' for f in (inner, main, main, main, main)
        ], places


def test_record_over_4_gib(tmp_path):
    """A single HEAP DUMP record, as VMs wrote it before there were segments; its 32-bit length has
    wrapped. The array is a hole in the file.
    """
    elements = 600_000_000
    d = small("1.0.1")
    d.item(0x23, d.id(0x70000), struct.pack(">IIB", 0, elements, hprofdump.LONG))
    split = len(d.heap)
    d.primitives(0x80000, INT, 1, 2, 3)
    start = len(d.bytes)
    d.end_heap(length=(len(d.heap) + elements * 8) & 0xFFFFFFFF)
    d.name("a record behind it")
    path, (head, tail) = tmp_path / "big.hprof", (
        d.data()[: start + 9 + split],
        d.data()[start + 9 + split :],
    )
    with open(path, "wb") as f:
        f.write(head)
        f.seek(elements * 8, os.SEEK_CUR)
        f.write(tail)
    assert path.stat().st_size > 1 << 32
    rows = {c["class"]: c for c in sound(path)["classes"]}
    assert (
        rows["long[]"]["objects"] == 2
        and rows["long[]"]["shallow"] >= elements * 8
        and rows["int[]"]["objects"] == 2
    )


def test_several_dumps_in_a_file(tmp_path):
    d = small(nodes=3)
    d.end_heap()
    second = small(nodes=5)
    d.heap, d.items = second.heap, second.items
    d.end_heap()
    path = write(tmp_path, d.data())
    for which, nodes in (("1", 3), ("2", 5)):
        rows = json.loads(ask(path, "histogram", "--dump", which).stdout)["classes"]
        assert [c["objects"] for c in rows if c["class"] == "app.Node"] == [nodes]
    assert "holds 2 dumps; this is number 2" in lab.jvmscope("heap", "summary", path).stdout
    assert (
        lab.jvmscope("heap", "summary", "--dump", "3", path).stderr
        == f"jvmscope: {path}: cannot analyse: the file has fewer dumps\n"
    )


def test_gz_and_pipe(tmp_path):
    d = small()
    d.end_heap()
    before = spooled()
    answer = sound(write(tmp_path, gzip.compress(d.data()), "x.hprof.gz"))
    plain = write(tmp_path, d.data())
    assert sound(plain) == answer
    for command in (
        f"cat {plain} | {lab.BUILD}/jvmscope heap histogram --retained --json -",
        f"{lab.BUILD}/jvmscope heap histogram --retained --json <(cat {plain})",
        f"gzip -c {plain} | {lab.BUILD}/jvmscope heap histogram --retained --json -",
    ):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and json.loads(done.stdout) == answer, done.stderr
    assert spooled() == before


def test_truncated_at_every_boundary(tmp_path):
    d = small()
    d.end_heap()
    whole, before = d.data(), spooled()
    assert len(d.boundaries) > 55
    partial = 0
    for at in sorted({*d.boundaries, *(b + 3 for b in d.boundaries), *range(0, 40, 3)}):
        answer = survives(write(tmp_path, whole[:at]), "summary")
        if answer is not None and at not in d.boundaries:
            assert any("PARTIAL" in n for n in answer["notes"]), at
            leaks = survives(tmp_path / "x.hprof", "leaks")
            assert leaks["suspects"] or any(
                "the rest is unknown" in n for n in leaks["notes"]
            ), leaks
            assert not any("No suspects" in n for n in leaks["notes"]), leaks
            partial += 1
    assert partial > 30
    assert spooled() == before
    # A .gz that was cut short: the answer is for the part that can be unpacked.
    packed = gzip.compress(whole, mtime=0)
    assert survives(write(tmp_path, packed[:-20], "y.hprof.gz"), "summary") is not None


def test_flipped_bits(tmp_path):
    d = small()
    d.end_heap()
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    for i in range(150):
        damaged = bytearray(d.data())
        for _ in range(source.choice((1, 1, 2, 8))):
            damaged[source.randrange(20, len(damaged))] ^= 1 << source.randrange(8)
        verb = VERBS[i % len(VERBS)]
        survives(write(tmp_path, bytes(damaged)), verb[0], *verb[1:])


def test_lies(tmp_path):
    """Superclasses in a cycle, lengths beyond the file, ids at the ends of the range, values that
    do not match their class.
    """

    def variant(change):
        d = small()
        change(d)
        d.end_heap()
        path = write(tmp_path, d.data())
        for verb in VERBS:
            survives(path, verb[0], *verb[1:])

    def circle(d):
        for id, other in ((0x60000, 0x60100), (0x60100, 0x60000), (0x60200, 0x60200)):
            d.class_dump(id, other, fields=[("next", OBJECT)])
            d.instance(id + 16, id, (OBJECT, id + 16))

    variant(circle)
    variant(lambda d: d.objects(0x70000, hprofdump.NODES, 1, 2, length=0xFFFFFFFF))
    variant(lambda d: d.primitives(0x70000, hprofdump.LONG, 1, length=0xFFFFFFF0))
    variant(lambda d: d.instance(0x70000, hprofdump.NODE, (INT, 1), length=0x7FFFFFFF))
    variant(lambda d: d.instance(0x70000, hprofdump.NODE, (INT, 1)))
    variant(
        lambda d: [
            d.primitives(id, hprofdump.BYTE, 1)
            for id in (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
        ]
    )
    variant(lambda d: [d.instance(0x70000 + 8 * i, 0xBAD00 + i) for i in range(300)])
    variant(
        lambda d: d.instance(
            hprofdump.LIST, hprofdump.NODE, (OBJECT, hprofdump.LIST), (OBJECT, 0x10000), (INT, 1)
        )
    )
    variant(lambda d: d.class_dump(0x60000, fields=[("f%d" % i, OBJECT) for i in range(3000)]))
    variant(lambda d: d.item(0x42, b"nonsense"))


def test_bomb(tmp_path):
    """A .gz of a few hundred KiB that unpacks to an enormous size is refused before it fills the
    disk.
    """
    path = tmp_path / "bomb.hprof.gz"
    with gzip.open(path, "wb", compresslevel=9) as out:
        out.write(small().data())
        for _ in range(400):
            out.write(bytes(1 << 20))
    done = ask(path, "summary")
    assert done.returncode == 1 and "unpacks to" in done.stderr and done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["bomb.hprof.gz"]


def test_files_that_are_no_dump(tmp_path):
    for name, data, why in (
        ("empty", b"", "not a heap dump"),
        ("text", b"hello\n" * 100, "not a heap dump"),
        ("gz", gzip.compress(b"hello"), "not a heap dump"),
        ("version", b"JAVA PROFILE 1.0.9\0" + bytes(12), "version"),
        (
            "hprof text",
            b"JAVA PROFILE 1.0.1, created Sat Nov 28 15:39:14 2026\n\n",
            "HPROF's text format; the verbs",
        ),
        ("ids", b"JAVA PROFILE 1.0.2\0\0\0\0\5" + bytes(8), "the size of ids is invalid"),
        ("header", b"JAVA PROFILE 1.0.2\0\0\0\0\x08" + bytes(8), "without a heap dump"),
    ):
        done = lab.jvmscope("heap", "summary", write(tmp_path, data, name))
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1, (
            name,
            done.stderr,
        )
    done = lab.jvmscope("heap", "summary", tmp_path / "nothing")
    assert done.returncode == 1 and "No such file" in done.stderr


def test_index_is_rebuilt_when_it_does_not_fit(tmp_path):
    d = small()
    d.end_heap()
    path = write(tmp_path, d.data())
    answer = sound(path)
    index = path.with_name(path.name + ".heapidx")
    good = index.read_bytes()
    source = random.Random(1)
    for i in range(40):
        bad = bytearray(good)
        if i % 4 == 0:
            bad = bad[: source.randrange(len(bad))]
        else:
            bad[source.randrange(600 if i % 2 else len(bad))] ^= 1 << source.randrange(8)
        index.write_bytes(bytes(bad))
        for verb in VERBS[i % len(VERBS) :][:3]:
            survives(path, verb[0], *verb[1:])
    index.write_bytes(good[:100])
    assert sound(path) == answer
    # Another dump with the same name.
    d = small(nodes=9)
    d.end_heap()
    path.write_bytes(d.data())
    sound(path, nodes=9)
    where = tmp_path / "elsewhere.idx"
    os.unlink(index)
    done = lab.jvmscope("heap", "summary", "--json", "--index", where, path)
    assert done.returncode == 0 and where.exists() and not index.exists()


def test_only_an_index_is_replaced_by_an_index(tmp_path):
    """No other file is replaced by an index, above all not the dump itself."""
    d = small()
    d.end_heap()
    path = write(tmp_path, d.data())
    note, folder = tmp_path / "note.txt", tmp_path / "folder"
    folder.mkdir()
    note.write_text("precious")
    own = path.with_name(path.name + ".heapidx")
    own.write_text("of another program")
    empty = tmp_path / "empty"
    empty.touch()
    for where in (path, note, folder, "/dev/null", own):
        options = () if where == own else ("--index", where)
        for more in ((), ("--rebuild",)):
            done = lab.jvmscope("heap", "dominators", *options, *more, path)
            assert done.returncode == 1 and done.stdout == "", (where, done)
            assert f"{where}: the file exists and is not an index: --index names" in done.stderr
    assert path.read_bytes() == d.data() and note.read_text() == "precious"
    assert own.read_text() == "of another program" and os.path.exists("/dev/null")
    for _ in range(2):  # built, and built anew
        assert (
            lab.jvmscope("heap", "dominators", "--index", empty, "--rebuild", path).returncode == 0
        )
    missing = tmp_path / "nosuch" / "x.heapidx"
    done = lab.jvmscope("heap", "dominators", "--index", missing, path)
    assert done.returncode == 0 and done.stdout, done
    assert f"{missing}: note: the index is not kept: the file cannot be written\n" in done.stderr


def test_what_follows_a_dump_is_reported(tmp_path):
    """Bytes that are no records, and a record that is cut off."""
    d = small()
    d.end_heap()
    good = d.data()
    assert "PARTIAL" not in lab.output("heap", "summary", write(tmp_path, good))
    for tail in (
        random.Random(3).randbytes(10000),
        b"\x45" * 10000,
        b"\x7f\0\0\0\0\0\0\0\1x",
        b"\x01\0\0\0\0\0\0\x10\0" + bytes(100),
        b"rest",
    ):
        path = write(tmp_path, good + tail)
        for verb in ("summary", "leaks", "histogram"):
            printed = lab.output("heap", verb, path)
            at = re.search(r"PARTIAL: .* at byte (\d+) of (\d+);", printed)
            assert at and int(at[1]) == len(good) and int(at[2]) == len(good + tail), tail[:9]


def test_what_follows_a_compressed_dump_is_reported(tmp_path):
    """Whatever is no further member, and a member that is cut within its checksum or damaged. Zeros
    that only fill the file up are no part of it.
    """
    d = small()
    d.end_heap()
    plain = d.data()
    packed = gzip.compress(plain, mtime=0)
    half = len(plain) // 2
    whole = (
        packed,
        packed + bytes(5000),
        gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
        gzip.compress(plain[:half]) + gzip.compress(b"") + gzip.compress(plain[half:]),
    )
    for content in whole:
        path = write(tmp_path, content, "x.hprof.gz")
        assert "PARTIAL" not in lab.output("heap", "summary", path)
        assert sound(path) == sound(write(tmp_path, plain))
    for content in (
        packed + b"rest",
        packed + b"\n",
        packed + random.Random(3).randbytes(600000),
        packed + bytes(600000) + b"rest",
        packed + packed[:20],
        packed[:-1],
        packed[:-8],
        packed[:-8] + bytes(8),
    ):
        path = write(tmp_path, content, "x.hprof.gz")
        for verb in ("summary", "leaks", "histogram"):
            assert "PARTIAL: " in lab.output("heap", verb, path), (content[-9:], verb)
        with open(path) as f:
            done = subprocess.run(
                [lab.BUILD / "jvmscope", "heap", "summary", "-"],
                stdin=f,
                capture_output=True,
                text=True,
                timeout=60,
            )
        assert "PARTIAL: " in done.stdout, (content[-9:], done.stderr)


def test_damaged_index_gives_no_other_answer(tmp_path):
    """With 20,000 objects most sections exceed the part that is always checked."""
    d = small(nodes=20000)
    d.end_heap()
    path = write(tmp_path, d.data())
    done = ask(path, "dominators", "--limit", 20000)
    assert done.returncode == 0, done.stderr
    index = path.with_name(path.name + ".heapidx")
    good = index.read_bytes()
    assert len(good) > 4 * 65536
    for part in range(1, 12):
        at = len(good) * part // 12
        index.write_bytes(
            good[:at] + bytes(b ^ 0x11 for b in good[at : at + 8192]) + good[at + 8192 :]
        )
        again = ask(path, "dominators", "--limit", 20000)
        assert (again.returncode, again.stdout) == (0, done.stdout), at


def test_index_of_a_folder_that_cannot_be_written(tmp_path):
    """Files cannot be created in /proc: the query is answered nevertheless, and nothing is left
    behind.
    """
    d = small()
    d.end_heap()
    with open(write(tmp_path, d.data())) as f:
        before = spooled()
        sound(f"/proc/{os.getpid()}/fd/{f.fileno()}")
    assert spooled() == before and [p.name for p in tmp_path.iterdir()] == ["x.hprof"]
