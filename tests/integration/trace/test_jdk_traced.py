# SPDX-License-Identifier: Apache-2.0
"""What the JDK's own recorder traced and timed, JDK 25 and later."""
import pytest

import lab

CALLS, THROWS = 50_000, 30  # of Amounts


@pytest.mark.jdks(25, 27)
def test_methods_that_the_jdk_traced_and_timed(jdk, tmp_path):
    """trace lists the calls of jdk.MethodTrace and the figures of jdk.MethodTiming, and report says
    that the file contains them.
    """
    out = tmp_path / "jdk.jfr"
    done = jdk.java(
        "Amounts",
        jvm=[
            f"-XX:StartFlightRecording:filename={out},method-trace=Amounts::passes,"
            "method-timing=Amounts::called"
        ],
    )
    assert done.returncode == 0, done.stderr
    shown = lab.read_json("trace", "--json", out)
    assert shown["calls_all"] == len(shown["calls"]) == THROWS
    for call in shown["calls"]:
        assert (call["method"], call["thread"]) == ("Amounts.passes(I)V", "main"), call
        assert call["ns"] >= 0 and not {"args", "depth", "exception", "caller"} & set(call), call
    [timing] = shown["timings"]
    assert (timing["method"], timing["calls"]) == ("Amounts.called(int)", CALLS), timing
    text = lab.output("trace", out)
    assert text.count("  Amounts.passes(int)\n") == THROWS
    assert text.rstrip().split("\n")[-1].split()[0] == str(CALLS), text[-300:]
    for words, n in (
        (["--method", "passes(int)"], THROWS),
        (["--thread", "main", "-n", "3"], THROWS),
    ):
        assert lab.read_json("trace", "--json", *words, out)["calls_all"] == n, words
    report = lab.output("report", "--metric", "allocations", out)
    for kind in ("jdk.MethodTrace", "jdk.MethodTiming"):
        assert f"  also there: {kind} (jvmscope trace)\n" in report, report
