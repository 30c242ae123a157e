# SPDX-License-Identifier: Apache-2.0
"""tostring=: values whose toString() is slow or throws say so, and the recording counts them."""
import collections
import re
import subprocess

import lab


def record(jdk, out, *options, args=()):
    """Runs Texts with a higher priority than other programs, because a toString() that has no
    processor for 100 ms is abandoned.
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


def texts(reported):
    return [re.sub("@[0-9a-f]+", "", c["args"][0]["object"]) for c in reported["calls"]]


def test_a_value_without_text_says_why(jdk, tmp_path):
    """A class whose toString() takes too long is asked again later, and others keep their texts
    meanwhile. The thread that calls toString() is not interrupted by an earlier object.
    """
    out = tmp_path / "t.jfr"
    assert record(jdk, out, "trace=Texts.take", "tostring=Texts$*") == "1\n"
    reported = lab.read_json("trace", "--json", out)
    seen = texts(reported)
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
    lost = {l["reason"]: l["amount"] for l in reported["losses"]}
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


def test_times_do_not_contain_the_reading_of_values(jdk, tmp_path):
    """Each toString() takes 40 ms, the calls themselves almost nothing. A condition on time sees
    the same times as the reader.
    """
    n, out = 8, tmp_path / "t.jfr"
    record(jdk, out, "trace=Texts.", "tostring=Texts$Sleeps", args=(str(n),))
    calls = lab.read_json("trace", "--json", out)["calls"]
    named = {
        name: [c for c in calls if c["method"].startswith(f"Texts.{name}(")]
        for name in ("outer", "inner", "main")
    }
    assert len(named["outer"]) == len(named["inner"]) == n
    # of outer: its argument; of inner: its argument and its result, which outer contains
    for name, shown in (("outer", 3), ("inner", 1)):
        assert all(c["reading_ns"] >= shown * 40e6 for c in named[name]), named[name]
        assert min(c["ns"] for c in named[name]) < 20e6, named[name]
    total = sum(c["ns"] + c["reading_ns"] for c in named["outer"])
    (main,) = named["main"]
    assert main["reading_ns"] >= n * 3 * 40e6 and main["ns"] < total
    short = tmp_path / "s.jfr"
    record(
        jdk, short, "trace=Texts.outer", "if=time < 20ms", "tostring=Texts$Sleeps", args=(str(n),)
    )
    assert lab.read_json("trace", "--json", short)["calls"]


def test_to_string_counts_as_time_of_the_profiler(jdk, tmp_path):
    """The time of toString() is that of a thread of the agent, which is not sampled and whose calls
    are not recorded. The time to hand over an object does not count as time of the traced method.
    """
    burnt, quick = tmp_path / "b.jfr", tmp_path / "q.jfr"
    options = "trace=Texts*.", "tostring=Texts$*", "cpu=samples", "interval=1ms"
    n = 20
    record(jdk, burnt, *options, args=("burns", str(n)))
    reported = lab.read_json("report", "--json", "--metric", "samples", burnt)["samples"]
    times = reported["cpu_time_ns"]
    assert times["jvmscope"] >= n * 20e6, times
    assert times["java"] < times["process"] - n * 20e6, times
    called = {c["method"].split("(")[0] for c in lab.read_json("trace", "--json", burnt)["calls"]}
    assert "Texts.take" in called and "Texts$Burns.burn" not in called, called

    record(jdk, quick, *options, args=("quick", "20000"))
    reported = lab.read_json("report", "--json", "--metric", "samples", quick)["samples"]
    take = [m["self"] for m in reported["methods"] if m["method"].startswith("Texts.take")]
    assert reported["profiler"] > sum(take) and reported["profiler"] >= 50, reported


def test_a_note_says_that_waiting_for_a_text_counts_as_running(jdk, tmp_path):
    note = "tostring: a thread that waits for a text counts as running in threads and requests"
    for options in (",threads=y", ",requests=Texts.nosuch(..)", ""):
        agent = jdk.agent(
            f"format=r,trace=Texts.nosuch,tostring=Texts{options},file={tmp_path / 'n.jfr'}"
        )
        done = jdk.java("Texts", 1, jvm=[agent])
        assert (note in done.stderr) == (options != ""), done.stderr
