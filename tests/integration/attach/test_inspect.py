# SPDX-License-Identifier: Apache-2.0
"""jvmscope inspect and top: what they show of a program whose state is known, and that the program
is not disturbed.
"""
import json
import re
import subprocess

import pytest

import lab


@pytest.fixture
def program(jdk):
    process = jdk.start_java(
        "Inspected",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def ask(jvmscope, process, *question):
    done = jvmscope("inspect", "--json", process.pid, *question)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_threads_classes_objects_as_they_are(jdk, jvmscope, program):
    threads = {t["name"]: t for t in ask(jvmscope, program, "threads")["threads"]}
    assert {"main", "holder", "blocked"} <= set(threads)
    assert threads["holder"]["state"] == "parked" and threads["blocked"]["state"] == "blocked"
    assert threads["holder"]["group"] == "the group" and threads["holder"]["daemon"] is True
    held = threads["holder"]["holds"]
    assert [h["class"] for h in held] == ["java.lang.Object"]
    awaited = threads["blocked"]["awaits"]
    assert awaited["hash"] == held[0]["hash"] and awaited["owner"] == threads["holder"]["java_id"]
    assert awaited["owner_name"] == "holder"
    assert threads["main"]["cpu_ns"] > 0
    # The table shows the owner by what `stack` and `control` take; it had shown the Java id.
    table = lab.output("inspect", program.pid, "threads")
    assert f"java.lang.Object#{awaited['hash']:x} owner=holder\n" in table, table
    first = lab.output("inspect", program.pid, "stack", "blocked").splitlines()[0]
    assert "owner=holder" in first and "holds=" not in first and "=null" not in first, first

    statics = {
        f["name"]: f["value"] for f in ask(jvmscope, program, "statics", "Inspected")["statics"]
    }
    owner = ask(jvmscope, program, "object", statics["lock"]["id"])
    assert owner["identity_hash"] == awaited["hash"]
    assert owner["monitor"]["owner"]["id"] == threads["holder"]["id"]
    assert (
        owner["monitor"]["waiting_to_enter"] == 1
        and owner["monitor"]["waiting_to_be_notified"] == 0
    )

    def names(groups):
        return [n for g in groups for n in [g["name"], *names(g["groups"])]]

    def members(groups):
        return [n for g in groups for n in [*g["threads"], *members(g["groups"])]]

    groups = ask(jvmscope, program, "groups")["groups"]
    assert "the group" in names(groups)
    assert not [n for n in (*members(groups), *threads) if n.startswith("jvmscope")]
    assert {"main", "holder", "blocked"} <= set(members(groups))

    stack = ask(jvmscope, program, "stack", "holder")
    waiting = [f for f in stack["frames"] if f["method"] == "waiting"]
    assert len(waiting) == 4 and all(f["class"] == "Inspected" for f in waiting)
    assert all(f["line"] > 0 for f in waiting), "no recording was needed for the lines"
    assert (
        "locals" not in waiting[0]
    ), "HotSpot gives locals to agents that were there from start-up alone"
    assert "loaded at its start" in stack["locals_unknown"]
    assert re.search(
        r"^locals unknown +the VM reports them only to",
        lab.output("inspect", program.pid, "stack", "holder"),
        re.M,
    )


def test_classes_and_statics(jdk, jvmscope, program):
    loaded = ask(jvmscope, program, "classes")
    ours = [
        c["class"]
        for c in loaded["classes"]
        if c["class"].startswith(("java.lang.Jvmscope", "jvmscope."))
    ]
    assert not ours and loaded["loaded"] + loaded["arrays"] == len(loaded["classes"]) > 300, ours
    arrays = [c["class"] for c in loaded["classes"] if c["class"].endswith("[]")]
    assert len(arrays) == loaded["arrays"] > 10

    # `top` counts the same; it had 1249 classes where this had 1525, with the arrays.
    def counted():
        last = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", program.pid)
        return last["classes_loaded"] - last["classes_unloaded"]

    before, after = 0, 1
    while before != after:  # or a class was loaded meanwhile
        before, asked, after = counted(), ask(jvmscope, program, "classes"), counted()
    ours = asked["loaded"] + asked.get("of_jvmscope", 0)
    # From JDK 21 on, the VM counts a few classes that it does not list.
    assert ours <= before <= ours + (5 if jdk.version >= 21 else 0), (before, ours)
    assert not [
        c
        for c in ask(jvmscope, program, "class", "java.lang.Object")["subclasses"]
        if "vmscope" in c
    ]
    assert jvmscope("inspect", program.pid, "class", "java.lang.JvmscopeEnding").returncode == 1
    known = ask(jvmscope, program, "class", "Inspected$Known")
    assert known["supers"] == ["Inspected$Base", "java.lang.Object"] and known["interfaces"] == [
        "java.lang.Runnable"
    ]
    assert (
        known["source"] == "Inspected.java"
        and known["version"] == 52
        and known["status"] == "initialized"
    )
    fields = {f["name"]: f for f in known["fields"]}
    assert (
        fields["counter"]["value"] == 42
        and fields["number"]["type"] == "int"
        and "value" not in fields["number"]
    )
    assert fields["numbers"]["type"] == "int[]"
    hot = next(m for m in known["methods"] if m["name"] == "hot")
    assert (
        hot["descriptor"] == "(I)I"
        and hot["runs"] == "compiled"
        and int(hot["code_address"], 16) > 4096
    )
    assert hot["bytecode"] == "1b101f682ab4000260ac" or hot["bytecode"].startswith("1b101f682ab4")
    run = next(m for m in known["methods"] if m["name"] == "run")
    assert run["runs"] == "interpreted" and run["lines"][0]["line"] > 10
    assert ask(jvmscope, program, "class", "Inspected$Base")["subclasses"] == ["Inspected$Known"]

    statics = {
        f["name"]: f.get("value", "absent")
        for f in ask(jvmscope, program, "statics", "Inspected$Known")["statics"]
    }
    assert statics == {"counter": 42, "RATIO": "NaN"}
    untouched = ask(jvmscope, program, "class", "Inspected$NeverInitialized")
    assert untouched["status"] != "initialized" and all(
        "value" not in f for f in untouched.get("fields", ())
    )
    assert {c["class"] for c in ask(jvmscope, program, "classes", "Inspected*")["classes"]} >= {
        "Inspected",
        "Inspected$Known",
    }


def test_objects_keep_their_numbers_over_collections(jdk, jvmscope, program):
    found = ask(jvmscope, program, "instances", "Inspected$Known")
    assert found["objects"] == 5 and len(found["instances"]) == 5 and found["bytes"] >= 5 * 32
    # Requested again, and after one of them has lost its number, they are the same objects.
    numbers = {o["id"] for o in found["instances"]}
    assert {
        o["id"] for o in ask(jvmscope, program, "instances", "Inspected$Known")["instances"]
    } == numbers and "left_out" not in found
    assert ask(jvmscope, program, "free", max(numbers)) == {
        "freed": str(max(numbers)),
        "objects": 1,
    }
    twice = jvmscope("inspect", program.pid, "free", max(numbers))
    assert twice.returncode == 1 and "no object has this number any more" in twice.stderr
    again = {o["id"] for o in ask(jvmscope, program, "instances", "Inspected$Known")["instances"]}
    assert len(again) == 5 and len(again & numbers) == 4 and max(numbers) not in again
    texts = ask(jvmscope, program, "instances", "java.lang.String")
    assert len(texts["instances"]) == 200 and texts["left_out"] == texts["objects"] - 200
    assert re.search(
        r"^and \d+ more objects?$",
        lab.output("inspect", program.pid, "instances", "java.lang.String"),
        re.M,
    )
    number = min(numbers)
    before = ask(jvmscope, program, "object", number)
    values = {f["name"]: f["value"] for f in before["fields"]}
    assert values["number"] == 7 and values["letter"] == "x" and values["yes"] is True
    assert values["big"] == str(2**63 - 1)
    assert values["text"]["value"] == "café 😀" and values["box"]["value"] == 1234
    assert values["numbers"]["length"] == 3 and values["things"]["length"] == 3
    assert ask(jvmscope, program, "object", values["numbers"]["id"])["elements"] == [1, 2, 3]
    things = ask(jvmscope, program, "object", values["things"]["id"])["elements"]
    assert things[0]["value"] == "one" and things[1] is None and things[2]["id"] == number

    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline().startswith("collected")
    after = ask(jvmscope, program, "object", number)
    assert after["identity_hash"] == before["identity_hash"]
    assert after["collections_survived"] > before["collections_survived"]
    ask(jvmscope, program, "free", number)
    gone = jvmscope("inspect", program.pid, "object", number)
    assert gone.returncode == 1 and "no living object has this number" in gone.stderr
    assert ask(jvmscope, program, "free", "all")["objects"] >= 204  # four, and 200 texts
    assert lab.output("inspect", program.pid, "free", "all").split() == [
        "freed",
        "all",
        "objects",
        "0",
    ]

    program.stdin.write("\n\n")
    program.stdin.close()
    assert program.stdout.read() == "done 5\n" and program.wait() == 0


def test_vm_properties_modules_and_refusals(jdk, jvmscope, program):
    vm = ask(jvmscope, program, "vm")
    assert "can_tag_objects" in vm["capabilities_to_be_had"] and vm["timer"]["kind"] == "elapsed"
    properties = ask(jvmscope, program, "properties")["properties"]
    assert properties["java.specification.version"] == (
        "1.8" if jdk.version == 8 else str(jdk.version)
    )
    assert properties["path.separator"] == ":" and properties["line.separator"] == "\n"
    assert (
        properties["java.vendor.url"].startswith("http")
        and "\\" not in properties["java.vendor.url"]
    )
    modules = jvmscope("inspect", "--json", program.pid, "modules")
    if jdk.version == 8:
        assert modules.returncode == 1 and "modules came with JDK 9" in modules.stderr
    else:
        assert "java.base" in {m["name"] for m in json.loads(modules.stdout)["modules"]}
    listed = lab.output("inspect", "--help").split("\nWHAT:\n")[1].split("\n\n")[0]
    words = [line.split()[0] for line in listed.splitlines()]
    assert "properties" in words and len(words) > 10
    for question, message in (
        (("nonsense",), f"nonsense: unknown\njvmscope: WHAT is one of: {', '.join(words)}\n"),
        (("threat",), "threat: unknown; did you mean threads?"),
        (("object",), "object: takes NUMBER"),
        (("instances",), "instances: takes CLASS"),
        (("statics",), "statics: takes NAME"),
        (("stack",), "stack: takes THREAD"),
        (("threads", "extra"), "threads: takes nothing"),
    ):
        done = jvmscope("inspect", program.pid, *question)
        assert done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr
    for question, message in (
        (("class", "no.such.Class"), "no loaded class"),
        (("classes", "no.such.*"), "no.such.*: no loaded class matches"),
        (("stack", "nobody"), "no live thread"),
        (("object", "99999"), "no living object"),
        (("object", "x"), "no living object"),
        (("free", "99999"), "99999: no object was given this number"),
    ):
        done = jvmscope("inspect", program.pid, *question)
        assert (
            done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) <= 2
        ), done.stderr
    for question in (
        ("threads",),
        ("groups",),
        ("classes", "java.lang.*"),
        ("class", "java.lang.String"),
        ("stack", "main"),
        ("vm",),
        ("properties",),
    ):
        done = jvmscope("inspect", program.pid, *question)
        assert done.returncode == 0 and done.stdout and not done.stderr, done.stderr
    program.stdin.close()
    assert program.wait() == 0


def test_top_shows_the_counters(jdk, jvmscope, program):
    # A figure that is unknown before the first collection is not shown as 0. The VM may have
    # collected already, and JDK 8 publishes some figures earlier.
    first = lab.read_json("top", "--json", "-n", 1, program.pid)
    collected = sum(c["collections"] for c in first["collectors"])
    assert first["pools"] and all(p["used"] != 0 or collected for p in first["pools"]), first
    table = jvmscope("top", "-n", 1, program.pid).stdout
    assert " 0 B " not in table or collected, table
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline().startswith(
        "collected"
    )  # G1 counts what is used at collections
    done = jvmscope("top", "--json", "--states", "-n", 2, "-i", "200ms", "-r", 200, program.pid)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2
    last = lines[-1]
    assert last["threads"] >= 3 and last["classes_loaded"] > 300 and last["resident"] > 10 << 20
    assert last["states"]["blocked"] == 1 and last["states"]["parked"] >= 1
    # The agent's own threads are in neither figure.
    assert sum(last["states"].values()) == last["threads"], last
    assert (
        any(p["name"] == "metaspace" and p["used"] > 0 for p in last["pools"]) and last["busiest"]
    )
    # The kernel keeps 15 bytes of a name. The VM, from which states are requested, has the rest.
    names = {
        t["tid"]: t["name"]
        for t in lab.read_json("inspect", "--json", program.pid, "threads")["threads"]
        if "tid" in t
    }
    shown = {t["tid"]: t for t in last["busiest"]}
    assert any(len(name.encode()) > 15 for name in names.values()), names
    assert not any(name.startswith("jvmscope") for name in names.values()), names
    assert {tid: (t["name"], t["name_cut"]) for tid, t in shown.items() if tid in names} == {
        tid: (name, False) for tid, name in names.items() if tid in shown
    }
    # Without a request to the VM the name stays cut, and names that may be longer are marked.
    # (Until JDK 9 threads have the name of the process.)
    last = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", "-r", 200, program.pid)
    assert {t["name_cut"] for t in last["busiest"]} == {True, False}
    assert all(t["name_cut"] == (len(t["name"].encode()) >= 15) for t in last["busiest"]), last[
        "busiest"
    ]
    done = jvmscope("top", "-i", 0, program.pid)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "jvmscope: top: --interval=0: out of range: 10ms to 100000d\njvmscope: `jvmscope top --help` has details\n",
    )
    table = jvmscope("top", "-n", 1, "-i", "100ms", "-r", 200, program.pid)
    assert re.search(r"^ +\d+ +\S+ %  .{15}\.\.\.$", table.stdout, re.M) and re.search(
        r"^ +\d+ +\S+ %  java$", table.stdout, re.M
    )
    assert "POOL" in table.stdout and "\033" not in table.stdout and " 8 B " not in table.stdout


@pytest.mark.jdks(8, 25)
def test_no_thread_of_the_agent_is_counted(jdk, jvmscope, program, tmp_path):
    """Neither by top --states nor by the VM, nor listed in a group, while one takes samples."""
    out = tmp_path / "o.jfr"
    sampled = jvmscope("attach", "--cpu=wall", "--agent", "walker=jvmti", "-o", out, program.pid)
    assert sampled.returncode == 0, sampled.stderr
    last = lab.read_json("top", "--json", "--states", "-n", 1, "-i", "200ms", program.pid)
    assert sum(last["states"].values()) == last["threads"], last
    groups = json.dumps(ask(jvmscope, program, "groups"))
    assert '"main"' in groups and '"jvmscope' not in groups, groups
    done = jvmscope("stop", program.pid)
    assert done.returncode == 0, done.stderr
    assert lab.read_json("report", "--json", out)["wall"]["total"] > 0


@pytest.mark.jdks(8, 17, 25)
def test_top_says_that_changed_classes_are_counted_again(jdk, jvmscope, program, tmp_path):
    """`top` had 3,176 classes, none of them unloaded, where `inspect` had 690 after three
    recordings that change classes. Before an agent is loaded nothing is said.
    """
    before = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", program.pid)
    note = f"jvmscope inspect {program.pid} classes counts those that are loaded.\n"
    assert "changed_classes_counted_again" not in before
    assert note not in jvmscope("top", "-n", 1, "-i", "50ms", program.pid).stdout
    for _ in range(3):
        out = tmp_path / "o.jfr"
        done = jvmscope(
            "attach", "--cover", "--include", "java.util.*", "-t", "50ms", "-o", out, program.pid
        )
        assert done.returncode == 0, done.stderr
    asked = ask(jvmscope, program, "classes")
    last = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", program.pid)
    assert last["classes_loaded"] - last["classes_unloaded"] > 1.3 * asked["loaded"], asked[
        "loaded"
    ]
    assert last["changed_classes_counted_again"] is True
    table = jvmscope("top", "-n", 1, "-i", "50ms", program.pid).stdout
    assert note in table and "the VM counts each class that it changes once more" in table


@pytest.mark.jdks(8, 11, 17, 25)
def test_top_names_the_main_thread_and_inspect_vm_the_version_of_java(jdk, jvmscope, program):
    """Its row was called "java", as the launcher's, and the version of JDK 8 25.504-b01."""
    busiest = lab.read_json("top", "--json", "-n", 1, "-i", "50ms", "-r", 200, program.pid)[
        "busiest"
    ]
    tids = {t["name"]: t["tid"] for t in ask(jvmscope, program, "threads")["threads"]}
    assert [t["tid"] for t in busiest if t["name"] == "main"] == [tids["main"]], (busiest, tids)
    shown = ask(jvmscope, program, "vm")
    [listed] = [vm["version"] for vm in lab.read_json("list", "--json") if vm["pid"] == program.pid]
    assert shown["version"] == listed
    assert ("hotspot_version" in shown) == (jdk.version == 8), shown


def test_tables_are_in_the_words_of_java(jdk, jvmscope, program):
    methods = lab.output("inspect", program.pid, "class", "Inspected")
    assert re.search(r"^ +main +void \(java\.lang\.String\[\]\) +public", methods, re.M), methods
    assert not re.search(r"\([A-Z\[;/a-z]*\)[VIJZ\[L]", methods), methods
    assert lab.output("inspect", program.pid, "deadlocks") == "no deadlocks\n"
    threads = lab.output("inspect", program.pid, "threads")
    assert re.search(r"^ +\d+ +holder +the group +parked ", threads, re.M), threads


@pytest.mark.jdks(8, 17, 21, 25)
@pytest.mark.parametrize("control", [False, True])
def test_locals_that_are_missing_have_their_reason(jdk, jvmscope, tmp_path, control):
    """The agent was loaded at the start of the VM, so that is not the reason."""
    options = f"{'allow-control=y,' if control else ''}format=r,file={tmp_path / 'i.jfr'}"
    process = jdk.start_java(
        "Inspected",
        jvm=("-Xmx64m", jdk.agent(options)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        stack = ask(jvmscope, process, "stack", "holder")
        has = any(f.get("locals") for f in stack["frames"] if f["method"] == "waiting")
        why = stack.get("locals_unknown", "")
        assert has == (control and jdk.version < 21), stack
        assert has or ("control suspend" if control else "--allow-control") in why, why
        if control and not has:
            lab.output("control", process.pid, "suspend", "holder")
            stack = ask(jvmscope, process, "stack", "holder")
            assert any(f.get("locals") for f in stack["frames"]), stack
            assert "locals_unknown" not in stack, stack
    finally:
        process.kill()
        process.communicate()


def scalars(value):
    """Returns every number and text in a JSON value, at any depth, without truth values."""
    if isinstance(value, dict):
        return [s for v in value.values() for s in scalars(v)]
    if isinstance(value, list):
        return [s for v in value for s in scalars(v)]
    return [str(value)] if isinstance(value, (str, int)) and not isinstance(value, bool) else []


@pytest.mark.jdks(8, 17)
def test_text_shows_what_json_has(jdk, jvmscope, tmp_path):
    """Includes locals and other nested values. No modifier may appear that a field or class cannot
    have.
    """
    process = jdk.start_java(
        "Inspected",
        jvm=("-Xmx64m", jdk.agent(f"allow-control=y,format=r,file={tmp_path / 'i.jfr'}")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for question in (
            ("stack", "holder"),
            ("class", "Inspected"),
            ("class", "Inspected$Known"),
            ("statics", "Inspected"),
            ("groups",),
        ):
            answer = ask(jvmscope, process, *question)
            for method in answer.get("methods", ()):
                method.pop("bytecode", None)
            text = lab.output("inspect", process.pid, *question)
            changing = {
                str(answer.get("thread", {}).get(key)) for key in ("cpu_ns", "id", "flags")
            } | {"None"}
            hexadecimal = {
                s for s in scalars(answer) if s.isdigit() and f"#{int(s):x}" in text
            }  # identity hashes
            # Descriptors are shown as in Java's source code; bytecode is in JSON alone.
            missing = (
                {
                    s
                    for s in scalars(answer)
                    if s[:40] not in text and not re.match(r"\(.*\)[A-Z\[]", s)
                }
                - changing
                - hexadecimal
            )
            assert not missing, (question, missing, text)
        stack = ask(jvmscope, process, "stack", "holder")
        assert any(
            f.get("locals") for f in stack["frames"] if f["method"] == "waiting"
        ), "JSON has no locals either"
        assert "locals_unknown" not in stack
        # A string is quoted and escaped, so that nobody takes it for a name or a number.
        text = lab.output("inspect", process.pid, "stack", "holder")
        assert re.search(r'argument=java\.lang\.String@\d+ "hello"(?! *hello)', text), text
        kept = ask(jvmscope, process, "statics", "Inspected")["statics"]
        known = next(f["value"]["id"] for f in kept if f["name"] == "kept")
        first = ask(jvmscope, process, "object", known)["elements"][0]["id"]
        text = lab.output("inspect", process.pid, "object", first)
        assert '"caf\u00e9 \U0001f600"' in text, text
        assert re.search(r"^ +quoted +.*@\d+ \"a \\\"b\\\\c\\n\"$", text, re.M), text
        main = ask(jvmscope, process, "stack", "main")["frames"][-1]
        assert main["method"] == "main" and "this" not in main, main  # a static method
        text = lab.output("inspect", process.pid, "class", "Inspected")
        assert re.search(r"^ +nothing +java\.lang\.Object +static +null$", text, re.M), text
        assert re.search(r"^ +tenth +double +static +0\.1$", text, re.M) and re.search(
            r"^ +third +float +static +0\.33333334$", text, re.M
        ), text
        for name, bad in (
            ("Inspected$Known", {"strictfp", "super", "synchronized"}),
            ("java.lang.String", {"strictfp", "super"}),
        ):
            answer = ask(jvmscope, process, "class", name)
            of_fields = {m for f in answer["fields"] for m in f["modifiers"].split()}
            assert of_fields <= {
                "public",
                "private",
                "protected",
                "static",
                "final",
                "volatile",
                "transient",
                "synthetic",
                "enum",
            }
            assert not bad & set(answer["modifiers"].split())
    finally:
        process.kill()
        process.communicate()
