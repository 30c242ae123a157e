# SPDX-License-Identifier: Apache-2.0
"""The class file rewriter against the verifiers: java.lang.classfile's (JDK 25) and each VM's own. make check takes a sample of
the classes, make check-all takes all of the JDKs and of the jars that tools/jars fetches."""
import collections
import json
import re
import struct
import subprocess

import lab
import pytest

PACK = lab.BUILD / "tests" / "unit" / "rewrite_pack"
KINDS = ["none", "times", "resume", "lines", "branches", "calls", "allocations", "monitors", "instructions", "locals", "wide", "all"]


def rewrite(kind, pack, out):
    """Rewrites a pack; the counts of rewrite_pack."""
    with open(pack, "rb") as source, open(out, "wb") as to:
        done = subprocess.run([PACK, kind], stdin=source, stdout=to, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", done.stderr)}


def class_pack(*args, heap="700m"):
    done = lab.Jdk(25).run("java", f"-Xmx{heap}", "-cp", lab.compiled("ClassPack", 25), "ClassPack", *args, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(pack, out, kinds):
    """One kind after the other, each into `out`, for packs whose rewritten forms take gigabytes together."""
    for kind in kinds:
        check_together(pack, [kind], lambda kind: out)


def check_together(pack, kinds, out):
    """All kinds in one run of the verifier; out(kind) is the file for one."""
    all_counts = [rewrite(kind, pack, out(kind)) for kind in kinds]
    text = class_pack("verify", pack, *map(out, kinds), heap="2g")
    lines = [line for line in text.splitlines() if line.startswith("classes=")]
    assert len(lines) == len(kinds)
    for kind, counts, said in zip(kinds, all_counts, lines):
        assert re.search(r"bad=0 .*missing=0", said), f"{kind}: {text}"
        assert counts["refused"] == 0 and counts["malformed"] == 0 and counts["other"] == 0, (kind, counts)
        # What is left alone: at most one method in a thousand, but for the kinds that make every method several times as long.
        if kind not in ("instructions", "wide"):
            assert counts["huge"] + counts["doubt"] + counts["too_long"] + counts["pool"] <= counts["methods"] / 1000, (kind, counts)
        if kind == "none" and pack.read_bytes() != out(kind).read_bytes():
            check_same_but_frames(pack.read_bytes(), out(kind).read_bytes(), pack.parent)


def frames_in_short(path):
    """A class as javap writes it, with each frame in the shortest form that says the same."""
    done = lab.Jdk(25).run("javap", "-v", "-p", path)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"^(Classfile|  Last modified|  SHA-256|  MD5).*\n", "", done.stdout, flags=re.M)
    short = lambda least, name: lambda m: f"frame_type = {least + int(m[1])} /* {name} */" if int(m[1]) < 64 else m[0]
    text = re.sub(r"frame_type = 251 /\* same_frame_extended \*/\n +offset_delta = (\d+)", short(0, "same"), text)
    return re.sub(r"frame_type = 247 /\* same_locals_1_stack_item_frame_extended \*/\n +offset_delta = (\d+)",
                  short(64, "same_locals_1_stack_item"), text)


def check_same_but_frames(before, after, folder):
    """What is not edited must come out as it was: but for frames that a compiler wrote in a longer form than they need."""
    i = k = 0
    while i < len(before):
        a, = struct.unpack_from(">I", before, i)
        b, = struct.unpack_from(">I", after, k)
        if before[i:i + 4 + a] != after[k:k + 4 + b]:
            (folder / "before.class").write_bytes(before[i + 4:i + 4 + a])
            (folder / "after.class").write_bytes(after[k + 4:k + 4 + b])
            assert frames_in_short(folder / "before.class") == frames_in_short(folder / "after.class")
        i, k = i + 4 + a, k + 4 + b
    assert k == len(after)


def test_sample_passes_the_class_file_verifier(tmp_path):
    if not lab.matrix_ready():
        pytest.skip("the chroot is not there (tools/jdks setup)")
    pack = tmp_path / "pack"
    class_pack("pack", pack, 60, "jrt")
    check_together(pack, KINDS, lambda kind: tmp_path / f"out-{kind}")


@pytest.mark.slow
def test_every_class_of_jdk_25_passes(tmp_path):
    pack = tmp_path / "pack"
    class_pack("pack", pack, 1, "jrt")
    check(pack, tmp_path / "out", KINDS)


@pytest.mark.slow
def test_every_class_of_the_jars_passes(tmp_path):
    pack = tmp_path / "pack"
    class_pack("pack", pack, 1, *jars())
    check(pack, tmp_path / "out", KINDS)


def jars():
    done = subprocess.run([lab.ROOT / "tools" / "jars"], capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    return done.stdout.split()


def link(jdk, tmp_path, options, *args):
    flags = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+BytecodeVerificationLocal", "-XX:+BytecodeVerificationRemote", "-Xmx1g"]
    out = tmp_path / "out.jfr"
    agent = [jdk.agent(f"{options},format=r,file={out}")] if options else []
    done = jdk.java("LinkAll", *args, jvm=flags + agent, timeout=900)
    assert done.returncode == 0, done.stderr
    if options:
        left = json.loads(lab.jvmscope("report", "--json", out).stdout)["times"]["left"]
        reasons = collections.Counter(m["reason"] for m in left)
        # The probes' code went over these classes: it has told their small methods, which none of them calls.
        assert reasons["small"] > 600, reasons
        assert sum(n for why, n in reasons.items() if why not in ("small", "native", "intrinsic")) <= reasons["small"] / 100, reasons
    return re.search(r"linked=.*", done.stdout)[0]


# The agent's own probes, as the VM sees them: its verifier on the JDK's classes, bootstrap ones included.
OPTIONS = ["cpu=times,locks=no.such.Class", "cpu=times", "cpu=times,clock=elapsed"]


def test_each_vm_verifies_a_sample(jdk, tmp_path):
    assert link(jdk, tmp_path, OPTIONS[0], 40) == link(jdk, tmp_path, "", 40)


@pytest.mark.slow
def test_each_vm_verifies_every_class(jdk, tmp_path):
    plain = link(jdk, tmp_path, "", 1)
    for options in OPTIONS:
        assert link(jdk, tmp_path, options, 1) == plain


@pytest.mark.slow
def test_each_vm_verifies_every_class_of_the_jars(jdk, tmp_path):
    plain = link(jdk, tmp_path, "", 1, *jars())
    for options in OPTIONS:
        assert link(jdk, tmp_path, options, 1, *jars()) == plain


def write_pack(folder, pack):
    with open(pack, "wb") as out:
        for path in sorted(folder.glob("*.class")):
            data = path.read_bytes()
            out.write(struct.pack(">I", len(data)) + data)


# Which counter must move for a kind of probe.
FIRES = {"times": "entered", "resume": "hits", "lines": "hits", "branches": "hits", "calls": "hits", "allocations": "objects",
         "monitors": "objects", "instructions": "hits", "locals": None, "wide": "hits", "all": "objects"}


@pytest.mark.parametrize("kind", list(FIRES))
def test_probes_fire_and_change_nothing(jdk, tmp_path, kind):
    release = 8 if jdk.version < 25 else 25
    write_pack(lab.compiled("Constructs", release), tmp_path / "pack")
    counts = rewrite(kind, tmp_path / "pack", tmp_path / "out")
    assert counts["malformed"] + counts["doubt"] * (kind != "wide") + counts["huge"] * (kind != "instructions") == 0, counts
    plain = jdk.java("Constructs", release=release)
    done = jdk.java("Probed", tmp_path / "out", "Constructs")
    *lines, counted = done.stdout.splitlines()
    assert "\n".join(lines) + "\n" == plain.stdout, done.stderr
    numbers = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", counted)}
    if FIRES[kind]:
        assert numbers[FIRES[kind]] > 5
    # Every call is left but the one whose super() throws, where the verifier allows no handler.
    if kind in ("times", "resume"):
        assert numbers["entered"] - numbers["left"] == 1, numbers
