# SPDX-License-Identifier: Apache-2.0
"""An output replaces an older one of its own kind, and nothing else."""
import gzip
import re
import subprocess

import lab
import pytest

LOST = "and would be lost"
OLDER = " in place of an older file"


def run(*words):
    done = lab.jvmscope(*words)
    return done.returncode, done.stdout, done.stderr


def others(folder, *kinds):
    """A file of each kind that is not among these."""
    texts = {
        "recording": b"FLR\0" + bytes(range(200)),
        "ring": b"JVMRING\1" + bytes(range(200)),
        "dump": b"JAVA PROFILE 1.0.2\0" + bytes(range(200)),
        "text": b"JAVA PROFILE 1.0.1, created Sun Nov 29 20:00:00 2026\n",
        "gzip": gzip.compress(b"anything"),
        "database": b"SQLite format 3\0" + bytes(200),
        "note": b"precious\n",
    }
    return {kind: text for kind, text in texts.items() if kind not in kinds}


def refuses(path, text, *words):
    """The command neither replaces the file nor does anything else."""
    path.write_bytes(text)
    code, out, printed = run(*words)
    assert code != 0 and LOST in printed, (words, printed)
    assert path.read_bytes() == text and out == "", words
    path.unlink()


OWN = {
    ".jfr": ("recording",),
    ".hprof": ("dump",),
    ".hprof.txt": ("text",),
    ".pb.gz": ("gzip",),
}


@pytest.mark.jdks(17)
def test_what_is_made_of_a_file_replaces_nothing_of_another_kind(jdk, tmp_path):
    good = tmp_path / "good.jfr"
    options = f"format=r,cpu=samples,threads=y,cover=y,file={good}"
    done = jdk.java("EveryView", jvm=[jdk.agent(options)])
    assert done.returncode == 0, done.stderr
    formats = re.findall(r"(?m)^  (\.[a-z.]+) ", run("convert", "--help")[1])
    assert len(formats) >= 10
    verbs = [(("convert",), f) for f in formats]
    verbs += [(("coverage",), f) for f in (".html", ".info", ".xml")]
    for verb, extension in verbs:
        out = tmp_path / f"x{extension}"
        # A text may be replaced by a text, as any compiler replaces its output.
        own = OWN.get(extension, ("note",))
        for kind, text in others(tmp_path, *own).items():
            refuses(out, text, *verb, "-o", out, good)
        for older in (None, b"", bytes(4096)):
            if older is not None:
                out.write_bytes(older)
            for again in (bool(older), True):  # the second time in place of the first
                code, _, printed = run(*verb, "-o", out, good)
                assert code == 0 and out.stat().st_size > 4, (verb, extension, printed)
                assert (f"jvmscope: wrote {out}{OLDER}\n" in printed) == again, (verb, printed)
            out.unlink()
    named = tmp_path / "without-extension"
    for _ in range(2):
        code, _, printed = run("convert", "-f", "jfr", "-o", named, good)
        assert code == 0, printed
    assert run("convert", "-o", "/dev/null", "-f", "jfr", good)[0] == 0


def start(jdk):
    process = jdk.start_java("Busy", 600, stdout=subprocess.PIPE)
    lab.read_until(process.stdout, "ready")
    return process


@pytest.mark.jdks(8, 17)
def test_what_a_running_vm_writes_replaces_nothing_of_another_kind(jdk, tmp_path):
    """A recording, a ring and a heap dump of a running VM are refused if a file of another kind
    would be lost, and take the place of one of their own kind.
    """
    process = start(jdk)
    pid = process.pid
    out, ring = tmp_path / "x.jfr", tmp_path / "x.ring"
    for kind, text in others(tmp_path, "recording").items():
        refuses(out, text, "attach", "-t", "100ms", "-o", out, pid)
    for kind, text in others(tmp_path, "ring").items():
        refuses(ring, text, "attach", "--always", "-o", ring, pid)
    assert "idle" in run("status", pid)[1]
    dump = tmp_path / "x.hprof"
    for kind, text in others(tmp_path, "dump").items():
        refuses(dump, text, "heap", "dump", "-o", dump, pid)
    for again in (False, True):
        code, _, printed = run("heap", "dump", "-o", tmp_path / "heap", pid)
        assert code == 0 and (OLDER in printed) == again, printed
    for verb, files in (("summary", ["heap"]), ("classes", ["heap"]), ("diff", ["heap", "heap"])):
        for extension in (".html", ".json"):
            page = tmp_path / (verb + extension)
            for again in (False, True):
                code, _, printed = run("heap", verb, "-o", page, *(tmp_path / f for f in files))
                assert code == 0, printed
                assert (f"jvmscope: wrote {page}{OLDER}\n" in printed) == again, (verb, printed)
    for _ in range(2):
        code, _, printed = run("attach", "-t", "100ms", "-o", out, pid)
        assert code == 0, printed
    assert OLDER in printed

    # A ring is dumped, and stopped, into what is no recording.
    for _ in range(2):
        code, _, printed = run("attach", "--always", "-o", ring, pid)
        assert code == 0, printed
        code, _, printed = run("dump", "-o", out, pid)
        assert code == 0, printed
        for kind, text in others(tmp_path, "recording").items():
            other = tmp_path / "y.jfr"
            refuses(other, text, "dump", "--last", "5m", "-o", other, pid)
            refuses(other, text, "stop", "-o", other, pid)
            refuses(other, text, "dump", "-o", other, ring)
        assert run("stop", "-o", out, pid)[0] == 0
    process.kill()
    process.wait()


@pytest.mark.jdks(8, 17)
def test_run_replaces_nothing_of_another_kind(jdk, tmp_path):
    out, ring = tmp_path / "x.jfr", tmp_path / "x.ring"
    begun = tmp_path / "begun"
    program = ("--", "touch", begun)
    for kind, text in others(tmp_path, "recording").items():
        refuses(out, text, "run", "-o", out, *program)
    for kind, text in others(tmp_path, "ring").items():
        refuses(ring, text, "run", "--always", "-o", ring, *program)
    for kind, text in others(tmp_path, "note").items():
        page = tmp_path / "x.html"
        refuses(page, text, "run", "-o", page, *program)
    assert not begun.exists()
    # Where only the agent knows the name, it refuses too.
    for always, path, own in (("", out, "recording"), ("always=y,", ring, "ring")):
        for kind, text in others(tmp_path, own).items():
            path.write_bytes(text)
            done = jdk.java("Busy", 0, jvm=[jdk.agent(f"{always}format=r,file={path}")])
            assert (done.returncode != 0) == (not always), kind  # --always lets it go on
            assert LOST in done.stderr, (kind, done.stderr)
            assert path.read_bytes() == text
        path.write_bytes(b"")
        for _ in range(2):
            done = jdk.java("Busy", 0, jvm=[jdk.agent(f"{always}format=r,file={path}")])
            assert done.returncode == 0, done.stderr


@pytest.mark.jdks(17)
def test_samples_replace_no_heap_dump(jdk, tmp_path):
    """Both are binary HPROF output. Samples may replace samples."""
    dump, out = tmp_path / "d.hprof", tmp_path / "s.jfr"
    agents = (f"heap=dump,format=b,file={dump}", f"cpu=samples,format=r,file={out}")
    for agent in agents:
        assert jdk.java("Busy", "1", jvm=[jdk.agent(agent)]).returncode == 0
    older = dump.read_bytes()
    done = lab.jvmscope("convert", out, "-o", dump)
    assert done.returncode == 2 and "what is there is a heap dump" in done.stderr, done.stderr
    assert dump.read_bytes() == older
    for replaced in ("", " in place of an older file"):
        done = lab.jvmscope("convert", out, "-o", tmp_path / "s.hprof")
        assert done.returncode == 0 and done.stderr.strip().endswith(replaced), done.stderr
