# SPDX-License-Identifier: Apache-2.0
"""The class file rewriter, every kind of code it can insert (tests/unit/rewrite_pack.c), against
java.lang.classfile's verifier, and running. make check takes a sample of the classes, make
check-all takes all of the six JDKs and of the jars that tools/jars fetches. What the agent inserts
is verified by each VM in test_classfile_vms.py.
"""
import re
import struct
import subprocess

import lab
import pytest

PACK = lab.BUILD / "tests" / "unit" / "rewrite_pack"
KINDS = [
    "none",
    "times",
    "resume",
    "lines",
    "branches",
    "calls",
    "allocations",
    "monitors",
    "instructions",
    "locals",
    "wide",
    "all",
]
LEFT = ("malformed", "too_long", "huge", "pool", "doubt", "other")


def counts_of(text):
    return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", text)}


def rewrite(kind, pack, out):
    """Rewrites a pack; returns the counts of rewrite_pack."""
    with open(pack, "rb") as source, open(out, "wb") as to:
        done = subprocess.run(
            [PACK, kind], stdin=source, stdout=to, stderr=subprocess.PIPE, text=True, timeout=600
        )
    assert done.returncode == 0, done.stderr
    return counts_of(done.stderr)


def class_pack(version, *args, heap="700m"):
    done = lab.Jdk(version).run(
        "java",
        f"-Xmx{heap}",
        "--add-modules=ALL-SYSTEM",
        "-cp",
        lab.compiled("ClassPack", 25),
        "ClassPack",
        *args,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(pack, tmp_path, verifier=25):
    """Every kind of insertion over a pack, in one run of the verifier."""
    text = class_pack(verifier, "verify", pack, PACK, *KINDS, heap="2g")
    lines = [line for line in text.splitlines() if line.startswith("verified=")]
    assert len(lines) == len(KINDS), text
    print(text)
    for kind, line in zip(KINDS, lines):
        counts = counts_of(line)
        assert counts["bad"] == counts["missing"] == counts["exit"] == 0, f"{kind}: {text}"
        assert (
            counts["unjudged"] <= counts["verified"] / 100
        ), f"{kind}: {text}"  # `old` ones are for the VMs' verifiers
        assert (
            counts["refused"] == 0 and counts["malformed"] == 0 and counts["other"] == 0
        ), f"{kind}: {text}"
        # At most one method in a thousand is left unchanged, except by the kinds that make every
        # method several times as long.
        if kind not in ("instructions", "wide"):
            assert sum(counts[why] for why in LEFT) <= counts["methods"] / 1000, f"{kind}: {text}"
    rewrite("none", pack, tmp_path / "none")
    if pack.read_bytes() != (tmp_path / "none").read_bytes():
        check_same_but_frames(pack.read_bytes(), (tmp_path / "none").read_bytes(), pack.parent)


def frames_in_short(path):
    """Returns a class as javap prints it, with each frame in the shortest equivalent form."""
    done = lab.Jdk(25).run("javap", "-v", "-p", path)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"^(Classfile|  Last modified|  SHA-256|  MD5).*\n", "", done.stdout, flags=re.M)
    short = (
        lambda least, name: lambda m: f"frame_type = {least + int(m[1])} /* {name} */"
        if int(m[1]) < 64
        else m[0]
    )
    text = re.sub(
        r"frame_type = 251 /\* same_frame_extended \*/\n +offset_delta = (\d+)",
        short(0, "same"),
        text,
    )
    return re.sub(
        r"frame_type = 247 /\* same_locals_1_stack_item_frame_extended \*/\n +offset_delta = (\d+)",
        short(64, "same_locals_1_stack_item"),
        text,
    )


def check_same_but_frames(before, after, folder):
    """What is not edited must be unchanged, except for frames that a compiler wrote in a longer
    form than necessary.
    """
    i = k = 0
    while i < len(before):
        (a,) = struct.unpack_from(">I", before, i)
        (b,) = struct.unpack_from(">I", after, k)
        if before[i : i + 4 + a] != after[k : k + 4 + b]:
            (folder / "before.class").write_bytes(before[i + 4 : i + 4 + a])
            (folder / "after.class").write_bytes(after[k + 4 : k + 4 + b])
            assert frames_in_short(folder / "before.class") == frames_in_short(
                folder / "after.class"
            )
        i, k = i + 4 + a, k + 4 + b
    assert k == len(after)


def pack_of(pack, every, *sources):
    """A pack of the classes in jars and JDKs, by version."""
    homes = [lab.home(source) if isinstance(source, int) else source for source in sources]
    class_pack(25, "pack", pack, every, *homes)
    return pack


def test_sample_passes_the_class_file_verifier(tmp_path):
    if not lab.matrix_ready():
        pytest.skip("the chroot is not there (tools/jdks setup)")
    check(pack_of(tmp_path / "pack", 60, 25), tmp_path)


@pytest.mark.slow
def test_every_class_of_the_jdk_passes(jdk, tmp_path):
    # JDK 25's verifier takes no class files of later versions.
    check(pack_of(tmp_path / "pack", 1, jdk.version), tmp_path, max(25, jdk.version))


@pytest.mark.slow
def test_every_class_of_the_jars_passes(tmp_path):
    check(pack_of(tmp_path / "pack", 1, *lab.jars()), tmp_path)


def write_pack(folders, pack):
    with open(pack, "wb") as out:
        for path in sorted(path for folder in folders for path in folder.glob("*.class")):
            data = path.read_bytes()
            out.write(struct.pack(">I", len(data)) + data)


# What must have been counted in each of the constructs, and how often; see
# tests/java/EachConstruct.java.
FIRES = {
    "times": "entered",
    "resume": "entered",
    "lines": "hits",
    "branches": "hits",
    "calls": "hits",
    "allocations": "objects",
    "monitors": "objects",
    "instructions": "hits",
    "locals": None,
    "wide": "hits",
    "all": "objects",
}
EACH = """EachConstruct$Initialised.<clinit> EachConstruct$AfterSuper.<init> EachConstruct$Thrown.<init>
    EachConstruct$Shape.byDefault EachConstruct$Shape.ofInterface EachConstruct$Constant$1.body EachConstruct$Abstract.concrete
    EachConstruct.isSynchronized EachConstruct.tableSwitch EachConstruct.lookupSwitch EachConstruct.nestedFinally
    EachConstruct.exceptionalExit EachConstruct.loopAtEntry EachConstruct.lambda$main$0 EachConstruct$Worker.run
    EachJsr.subroutine""".split()
MODERN = "EachModern$Point.<init> EachModern$Point.inRecord EachModern.patternSwitch EachModern$Private.ofInterface".split()
# Without a monitor, which cannot come before super().
BEFORE_SUPER = "EachConstruct$BeforeSuper.<init>"


@pytest.fixture(scope="module")
def subroutines(tmp_path_factory):
    """The classes of EachJsr: only old compilers write jsr and ret, and this one only with an
    option.
    """
    folder = tmp_path_factory.mktemp("jsr")
    done = lab.Jdk(8).run(
        "javac",
        "-nowarn",
        "-g",
        "-source",
        "1.5",
        "-target",
        "1.5",
        "-XDjsrlimit=0",
        "-d",
        folder,
        lab.ROOT / "tests" / "java" / "EachJsr.java",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r" ret ", lab.Jdk(8).run("javap", "-c", "-cp", folder, "EachJsr").stdout)
    return folder


def counted(text):
    """Returns hits, entered, left, objects by method of the pack."""
    return [
        dict(zip(("hits", "entered", "left", "objects"), map(int, one.split("/"))))
        for one in text.split()
    ]


def test_probes_fire_in_each_construct_and_change_nothing(jdk, subroutines, tmp_path):
    modern = jdk.version >= 25
    release = 25 if modern else 8
    programs = ["Constructs", "EachConstruct"] + ["EachModern"] * modern
    folders = [lab.compiled(name, release) for name in programs] + [subroutines]
    programs.append("EachJsr")
    write_pack(folders, tmp_path / "none")
    names = subprocess.run(
        [PACK, "-names"], stdin=open(tmp_path / "none", "rb"), capture_output=True, text=True
    ).stdout.splitlines()
    for kind in FIRES:
        counts = rewrite(kind, tmp_path / "none", tmp_path / kind)
        assert (
            counts["malformed"]
            + counts["doubt"] * (kind != "wide")
            + counts["huge"] * (kind != "instructions")
            == 0
        ), (kind, counts)
    done = jdk.java("Probed", ",".join(programs), *[tmp_path / kind for kind in ["none", *FIRES]])
    plain, *probed = re.findall(r"(.*?)^counts (.*?)$", done.stdout, re.M | re.S)
    assert len(probed) == len(FIRES), done.stderr
    assert len(plain[0].splitlines()) == len(programs) + 5 and not re.search("[1-9]", plain[1])
    for (kind, what), (printed, text) in zip(FIRES.items(), probed):
        assert printed.strip() == plain[0].strip(), kind
        all_counts = counted(text)
        by_name = {re.match(r"[^(]+", name)[0]: counts for name, counts in zip(names, all_counts)}
        check_each(kind, what, by_name, modern)
        # Every call is left except the one whose super() throws, where the verifier allows no
        # handler.
        if kind in ("times", "resume"):
            assert sum(c["entered"] - c["left"] for c in all_counts) == 1, kind


def check_each(kind, what, by_name, modern):
    each = EACH + MODERN * modern
    if kind not in ("monitors", "wide"):
        each = [*each, BEFORE_SUPER]
    for name in each:
        counts = by_name[name]
        if kind in ("times", "resume", "all"):
            times = 2 if name == "EachModern$Point.<init>" else 1
            assert counts["entered"] == counts["left"] == times, (kind, name, counts)
        if what and not (kind == "wide" and counts["entered"] == 0):
            assert counts[what] > 0, (kind, name, counts)
