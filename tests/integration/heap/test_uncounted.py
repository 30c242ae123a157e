# SPDX-License-Identifier: Apache-2.0
"""What exact counts of allocations cannot count, because the VM itself allocates it, is estimated
and marked in every output, or reported as missing.
"""
import re

import pytest

import hproftext
import lab

N = 30000
JIT = "short-lived objects are included that the JIT does not allocate when nothing counts them"
CODE = "what the VM itself and code that is not changed allocate"


def record(jdk, out, options):
    """Returns the bytes that the VM counted."""
    done = jdk.java("Backtraces", N, jvm=[jdk.agent(f"{options},file={out}")])
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def backtraces(allocations, key="self"):
    return sum(
        m[key]
        for m in allocations["methods"]
        if m["method"] == "java.lang.Throwable.fillInStackTrace"
    )


@pytest.mark.jdks(17, 25)
def test_estimates_are_marked_among_counts(jdk, tmp_path):
    """The stack traces of exceptions are most of what this program allocates."""
    out = tmp_path / "s.jfr"
    truth = record(jdk, out, "format=r,alloc=exact")
    found = lab.read_json("report", "--json", out)["allocations"]
    exceptions = [s for s in found["sites"] if s["class"] == "java.lang.IllegalStateException"]
    assert [(s["objects"], s.get("estimated")) for s in exceptions] == [(N, None)]
    estimated = backtraces(found)
    # The sampling interval is a 1,024th of the bytes so far: a standard error of 3 %, of which four
    # are allowed.
    assert estimated + exceptions[0]["bytes"] == pytest.approx(truth, rel=0.12)
    assert {
        s.get("estimated") for s in found["sites"] if "fillInStackTrace" in "".join(s["trace"][:1])
    } == {True}
    marked = {m["method"] for m in found["methods"] if m.get("estimated")}
    assert "java.lang.Throwable.fillInStackTrace" in marked
    share = re.match(
        rf"counted, except for an estimated (\d+\.\d) %: {CODE}, [\d.]+ MiB, is estimated from samples, and {JIT}\. A place to which several",
        found["note"],
    )
    # The VM itself allocates more than the traces.
    estimated = sum(s["bytes"] for s in found["sites"] if s.get("estimated"))
    assert share and float(share[1]) == pytest.approx(
        100 * estimated / found["total"], abs=0.2
    ), found["note"]

    table = lab.jvmscope("report", out, check=True).stdout
    assert (
        re.search(r" ~[\d.]+ MiB  java\.lang\.Throwable\.fillInStackTrace$", table, re.M)
        and found["note"] in table
    )
    assert re.search(r" [\d.]+ [KM]iB  Backtraces\.down$", table, re.M)
    for name in ("s.pb.gz", "s.collapsed", "s.otlp"):
        lab.jvmscope("convert", "--metric", "allocations", "-o", tmp_path / name, out, check=True)
        assert (
            lab.read_json("report", "--json", tmp_path / name)["allocations"]["note"]
            == found["note"]
        ), name


@pytest.mark.jdks(8, 17, 25)
def test_what_is_missing_is_reported(jdk, tmp_path):
    """On JDK 8, and where every object is followed, no samples are taken in addition to the
    counts.
    """
    for options in ("alloc=exact,live=exact", *["alloc=exact"][: jdk.version == 8]):
        out = tmp_path / "s.jfr"
        truth = record(jdk, out, f"format=r,{options}")
        found = lab.read_json("report", "--json", out)["allocations"]
        assert found["total"] < truth / 2 and not backtraces(found)
        assert found["note"].startswith(
            f"counted: {CODE}, such as the stack traces of exceptions, is left out, but {JIT}"
        ), found["note"]
        assert not [m for m in found["methods"] if m.get("estimated")]
        assert found["note"] in lab.jvmscope("report", out, check=True).stdout


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("options", ["heap=sites", "heap=sites,live=exact"])
def test_text_has_the_sum_that_is_not_counted(jdk, tmp_path, options):
    out = tmp_path / "s.txt"
    truth = record(jdk, out, f"cutoff=0,{options}")
    text = hproftext.Text(out)
    counted = sum(r.alloc_bytes for r in text.sites[0])
    assert counted < truth / 2
    if jdk.version == 8 or "live" in options:
        assert text.not_counted == [None]
    else:
        ((size, objects),) = text.not_counted
        assert size + counted == pytest.approx(truth, rel=0.12) and objects > N


def objects_of_replaced(jdk, out, n, options):
    """Returns {class: (objects, of these in rows that are marked as estimates)}."""
    done = jdk.java("Replaced", n, jvm=[jdk.agent(f"format=r,alloc=exact,{options}file={out}")])
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    found = {}
    for s in lab.read_json("report", "--json", out)["allocations"]["sites"]:
        if s["class"].startswith("Replaced$"):
            name = s["class"].split("[lambda")[0]
            all_of, estimated = found.get(name, (0, 0))
            found[name] = (
                all_of + s["objects"],
                estimated + (s["objects"] if s.get("estimated") else 0),
            )
    return {name: sums for name, sums in found.items() if sums[0] > 100}


REPLACED = {"Built", "Cloned", "$Lambda", "Element[]", "Item[]"}


@pytest.mark.jdks(8, 11, 17, slow=(21, 25, 27))
def test_what_the_jit_replaces_is_counted_once(jdk, tmp_path):
    """A lambda's object is created in the VM's own code, of which samples are taken, but counted
    where the lambda expression is.
    """
    n = 200_000
    found = objects_of_replaced(jdk, tmp_path / "s.jfr", n, "")
    assert found == {f"Replaced${name}": (n, 0) for name in REPLACED}


@pytest.mark.jdks(11, 17, slow=(21, 25, 27))
def test_what_the_jit_replaces_in_code_that_is_left_out_is_estimated(jdk, tmp_path):
    """Code that `include` leaves out has no probes. The VM reports what such methods create until
    the JIT replaces them; the rest is known from samples.
    """
    n = 200_000
    found = objects_of_replaced(jdk, tmp_path / "s.jfr", n, "include=NoSuchClass,")
    assert set(found) == {f"Replaced${name}" for name in REPLACED}
    for name, (objects, estimated) in found.items():
        # The sampling interval is a 1,024th of the bytes so far: a class with a sixth of all bytes
        # has 170 samples, a standard error of 8 %, of which four are allowed.
        assert objects == pytest.approx(n, rel=0.32), (name, found)
        assert objects - estimated < n / 10 or objects == n, (name, found)
