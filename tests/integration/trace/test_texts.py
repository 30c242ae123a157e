# SPDX-License-Identifier: Apache-2.0
"""tostring=: values whose toString() is slow or throws say so, and the recording counts them."""
import collections
import re
import subprocess

import lab


def record(jdk, out, *options, args=()):
    """Runs Texts ahead of other programs, because a toString() that is without a processor for
    100 ms is given up.
    """
    process = jdk.start_java(
        "Texts",
        *args,
        jvm=("-Xmx64m", jdk.agent(",".join(("format=r", *options, f"file={out}")))),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lab.on_time,
    )
    stdout, stderr = process.communicate()
    assert process.returncode == 0 and stderr == "", stderr
    return stdout


def texts(told):
    return [re.sub("@[0-9a-f]+", "", c["args"][0]["object"]) for c in told["calls"]]


def test_a_value_without_text_says_why(jdk, tmp_path):
    """A class whose toString() takes too long is asked again later, and others keep their texts
    meanwhile. The thread that calls toString() is not interrupted by an earlier object.
    """
    out = tmp_path / "t.jfr"
    assert record(jdk, out, "trace=Texts.take", "tostring=Texts$*") == "1\n"
    told = lab.read_json("trace", "--json", out)
    seen = texts(told)
    assert seen[:8] == [
        "Texts$Quick{quick}",
        "Texts$Throws (toString: threw java.lang.IllegalStateException)",
        "Texts$Throws (toString: threw java.lang.IllegalStateException)",
        "Texts$Interrupts{interrupted false}",
        "Texts$Interrupts{interrupted false}",
        "Texts$Slow (toString: longer than 100 ms)",
        "Texts$Slow (toString: not called)",
        "Texts$Quick{quick}",
    ]
    assert set(seen[8:-1]) <= {"Texts$Slow (toString: not called)"}
    assert seen[-1] == "Texts$Slow{slow 2}"
    lost = {l["reason"]: l["amount"] for l in told["losses"]}
    amounts = collections.Counter(re.search(r"toString: (\w+)", t)[1] for t in seen if "(to" in t)
    assert {reason.split(",")[0]: n for reason, n in lost.items()} == {
        "toString() threw an exception": amounts["threw"],
        "toString() took longer than 100 ms": amounts["longer"],
        "toString() was not called": amounts["not"],
    }
    table = lab.output("trace", out)
    assert "Texts$Throws@" in table and "(toString: threw java.lang.IllegalStateException)" in table


def test_run_says_that_values_lack_their_text(jdk, jvmscope, tmp_path):
    done = jvmscope(
        "run",
        *("--trace", "Texts.take", "--to-string", "Texts$*", "-o", tmp_path / "r.jfr", "--"),
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Texts"), "Texts"),
    )
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"r\.jfr: trace: 2 texts of values were lost between .* toString\(\) threw an exception$",
        done.stderr,
        re.M,
    ), done.stderr
