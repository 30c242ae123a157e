# SPDX-License-Identifier: Apache-2.0
"""Patterns, conditions and methods that cannot be traced: one clear line each, and the program is
unaffected.
"""
import json
import subprocess

import lab
import pytest

PATTERNS = [
    "*",
    "*" * 60,
    "implements ",
    "HostileTrace$*:java.lang.String:java.lang.Thread",
    "a" * 2000,
]
MORE = [
    "**",
    ":::",
    "@",
    "implements",
    "@*",
    "no.such.Class.method",
    "HostileTrace.(",
    "HostileTrace.main(X)Y",
    "java.lang.Object",
    "java.lang.JvmscopeTrace",
    "é.ü",
    "%s%n",
    "$",
    ".",
    "(",
]
REFUSED = ["implements ", "implements", "@", "HostileTrace.(", "HostileTrace.main(X)Y", "("]


def run(jdk, tmp_path, *options):
    out = tmp_path / "h.jfr"
    done = jdk.java(
        "HostileTrace", jvm=("-Xmx64m", jdk.agent(f"format=r,{','.join(options)},file={out}"))
    )
    assert done.returncode == 0 and done.stdout == "done 150\n" and done.stderr == "", (
        options,
        done.stdout,
        done.stderr,
    )
    return out


def calls(jvmscope, out):
    listed = jvmscope("trace", "--json", out)
    return json.loads(listed.stdout)["calls"] if listed.returncode == 0 else []


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_what_is_hard_to_trace(jdk, jvmscope, tmp_path):
    line = (lab.ROOT / "tests" / "java" / "HostileTrace.java").read_text().split("return n + 1;")[
        0
    ].count("\n") + 1
    out = run(
        jdk,
        tmp_path,
        "trace=HostileTrace",
        f"log=HostileTrace:1 {{x}};HostileTrace$Guest:{line} {{n}}",
        "watch=HostileTrace.nothing",
        "cover=y",
    )
    seen = [
        (
            c["method"].split("HostileTrace")[-1].split("(")[0],
            c["args"],
            c.get("return"),
            c["exception"],
        )
        for c in calls(jvmscope, out)
    ]
    events = lab.read_json("trace", "--json", out)["events"]
    assert [e["text"] for e in events] == [
        "0",
        "1",
        "2",
        "note: nothing was logged: the class is loaded and has no code for this line",
        "note: nothing was watched: the class is loaded and declares no field of this name",
    ]
    assert [s for s in seen if s[0] == "$Guest.hello"] == [
        ("$Guest.hello", [i], i + 1, None) for i in range(3)
    ], "classes that unload"
    halves = [s for s in seen if s[0] == "$Half.<init>"]
    # An exception that leaves this() or super() cannot be caught there. That the outer constructor
    # threw it is known only when its caller ends.
    assert [h for h in halves if len(h[1]) == 1] == [
        ("$Half.<init>", [1], None, None),
        ("$Half.<init>", [7], None, "?"),
        ("$Half.<init>", [-1], None, "?"),
    ]
    assert ("$Half.<init>", [None, -1], None, "java.lang.NullPointerException") in seen
    assert ("$Half.<init>", ["yes", 7], None, "java.lang.IllegalArgumentException") in seen
    wide = next(s for s in seen if s[0] == ".wide")
    assert wide[1][:6] == [1, 2.0, 3, 4.0, 5.0, 6] and wide[2] == 23.0
    assert not any(
        "nothing" in s[0] for s in seen
    ), "a native method that is bound to nothing does not run"


@pytest.mark.jdks(daily=1)
def test_everything_is_traced(jdk, jvmscope, tmp_path):
    """Methods that the probes themselves call must not be traced, or cannot be. Each JDK has
    different native methods.
    """
    out = run(jdk, tmp_path, "trace=*", "limit=2000")
    assert len(calls(jvmscope, out)) > 1000
    out = run(jdk, tmp_path, "trace=java.lang.Class:HostileTrace", "limit=100000")
    seen = {c["method"].split("(")[0] for c in calls(jvmscope, out)}
    assert seen >= {"java.lang.Class.forName0", "HostileTrace.wide"}, seen


def test_a_full_table_is_reported_as_such(tmp_path):
    """More reads of a watched field than there are sites: the methods for which there is no room
    stay unchanged.
    """
    methods, reads, sites = 90, 200, 1 << 14
    (tmp_path / "Full.java").write_text(
        "class Full { static int x; "
        + "".join(
            f"static int m{i}() {{ return {' + '.join(['x'] * reads)}; }} " for i in range(methods)
        )
        + "public static void main(String[] a) throws Exception { System.out.println(m0()); System.in.read(); } }"
    )
    jdk = lab.Jdk(17)
    assert jdk.run("javac", "-d", tmp_path, tmp_path / "Full.java").returncode == 0
    with jdk.start(
        "java",
        jdk.agent(f"format=r,watch=Full.x,file={tmp_path}/f.jfr"),
        "-cp",
        tmp_path,
        "Full",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == "0\n"
        left = lab.read_json("status", "--json", process.pid)
        process.communicate("")
    assert (
        left["instrument.methods"] == sites // reads
        and left["instrument.left.table_full"] == methods - sites // reads
    ), left
    assert "instrument.left.constant_pool_full" not in left


def run_or_be_refused(tmp_path, pattern):
    jdk = lab.Jdk(17)
    if pattern not in REFUSED:
        run(jdk, tmp_path, f"trace={pattern}", "limit=2000")
        return
    done = jdk.java(
        "HostileTrace", jvm=(jdk.agent(f"format=r,file={tmp_path}/h.jfr,trace={pattern}"),)
    )
    assert (
        done.returncode == 1
        and done.stdout == ""
        and done.stderr.startswith(f"hprof: trace={pattern.strip()}: ")
        and done.stderr.count("\n") == 1
    ), done


@pytest.mark.slow
@pytest.mark.parametrize("pattern", MORE)
def test_more_patterns(tmp_path, pattern):
    run_or_be_refused(tmp_path, pattern)


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
def test_patterns_of_all_kinds(tmp_path, pattern):
    run_or_be_refused(tmp_path, pattern)


@pytest.mark.parametrize(
    "condition",
    [
        "arg1 == 'x",
        "arg300 > 1",
        "arg1 >> 2",
        "time > 99999999999999999999h",
        "((((((((((arg1 > 0))))))))))",
        "arg9 > 1 && arg1 == null",
        "return > 'a'",
        "arg1 > 1e999",
        "arg1 == 'a\\,b'",
    ],
)
def test_conditions_run_or_are_refused_in_one_line(tmp_path, condition):
    jdk = lab.Jdk(17)
    done = jdk.java(
        "HostileTrace",
        jvm=(jdk.agent(f"format=r,trace=HostileTrace,if={condition},file={tmp_path}/c.jfr"),),
    )
    if done.returncode == 0:
        assert done.stdout == "done 150\n" and done.stderr == ""
    else:
        assert (
            done.returncode == 1
            and done.stdout == ""
            and len(done.stderr.splitlines()) == 1
            and "condition: " in done.stderr
        )


@pytest.mark.parametrize(
    "words, says",
    [
        (["add"], "add: a pattern is missing: trace PID add|remove package.Class.method"),
        (["add", ""], "add: a pattern is missing"),
        (["add", ",:"], ",:: a pattern is missing"),
        (["add", "implements "], "implements : no type name after implements"),
        (["add", "@"], "@: no annotation name after @"),
        (["add", "a/B.c"], "a/B.c: names are written with dots"),
        (["add", "a.b)"], "a.b): this cannot be the name"),
        (["add", "a.b(I"], "a.b(I: the parenthesis after the name is not closed"),
        (["add", "a.b(Ljava.lang.X)V"], "parameters are types"),
        (
            ["add", "a.b(int x)"],
            "a.b(int x): parameters are types, as in (int, String[], ..), or a descriptor",
        ),
        (["remove"], "remove: a pattern is missing"),
        (["change", "x"], "change x: allowed"),
        (["add", "a" * 5000], "PATTERN: too long"),
        # These are valid; only the process does not exist.
        (["add", "a.B.<init>([[Ljava/lang/String;J)V"], "999999999: "),
        (["add", "a.B.c(int, java.util.Map<String, Integer>..., ..); d.E"], "999999999: "),
        (["add", "a.b,:c.d"], "999999999: "),
        (["add", "my test*"], "999999999: "),
        (["list"], "999999999: "),
    ],
)
def test_faults_of_a_request_are_reported_first(jvmscope, words, says):
    done = jvmscope("trace", "999999999", *words)
    assert done.returncode == (1 if says == "999999999: " else 2) and done.stdout == ""
    assert (
        done.stderr.startswith("jvmscope: ")
        and says in done.stderr
        and done.stderr.count("\n") == 1
    )
