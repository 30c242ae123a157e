# SPDX-License-Identifier: Apache-2.0
"""A name of a class, a method, a field or a local that is nearly right is answered with the right
one, by every option and verb that takes such names."""
import pathlib
import subprocess

import lab
import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "java" / "Misspelt.java"


def line_with(comment):
    lines = SOURCE.read_text().splitlines()
    return 1 + next(i for i, l in enumerate(lines) if l.endswith(f"// {comment}"))


LOGGED, WEIGHED, NONE = (line_with(w) for w in ("logged", "weighed", "none"))

NO_METHOD = "Misspelt is loaded and has no such method; there is "
NO_ANNOTATION = "no method of a loaded class, and no such class, has this annotation"
NOT_LOADED = "no class that is loaded so far matches, but there is "
NO_CLASS = "no class of this name is loaded, but Misspelt is"
NO_FIELD = "no class that is loaded so far has this field, but there is "
UNDECLARED = "the class is loaded and declares no field of this name; there is "
PRICE = "price(int)"
NO_REQUESTS = "nothing so far: the class is loaded and has no such method, but there is Misspelt."

# The words of attach, and how one of its lines ends. A method, a field or a class has another case,
# or lacks letters, or has them in another order.
NOTES = (
    (["--trace", "Misspelt.F"], NO_METHOD + "f(Misspelt$Child)"),
    (["--trace", "Misspelt.prise(int)"], NO_METHOD + PRICE),
    (["--trace", "Misspelt.getPrices"], "Misspelt is loaded and has no such method"),
    (["--trace", "Mispelt.price"], NO_CLASS),
    (["--trace", "Mispelt$Child.shown"], "no class of this name is loaded, but Misspelt$Child is"),
    (["--trace", "Misspelt$Chidl.shown"], "no class of this name is loaded, but Misspelt$Child is"),
    (["--trace", "Misspelt$Nosuch.shown"], "no class of this name is loaded"),
    (
        ["--trace", "@Deprecate"],
        NO_ANNOTATION + "; there is @java.lang.Deprecated",
    ),
    (["--trace", "@com.other.Deprecated"], NO_ANNOTATION + "; there is @java.lang.Deprecated"),
    (["--trace", "@com.other.Depercated"], NO_ANNOTATION + "; there is @java.lang.Deprecated"),
    (["--trace", "@Transactional"], NO_ANNOTATION),
    # A class of the name is in another package.
    (["--trace", "com.shop.Misspelt.price"], NO_CLASS),
    (["--requests", "com.shop.Misspelt.price(..)"], NOT_LOADED + "Misspelt"),
    (["--requests", "Mispelt.price(..)"], NOT_LOADED + "Misspelt"),
    (["--requests", "com.shop.Nosuch.price(..)"], "no class that is loaded so far matches"),
    (
        ["--trace", "Misspelt.f", "--show", "com.shop.Misspelt.total"],
        NO_FIELD + "Misspelt.total",
    ),
    (
        ["--trace", "Misspelt.f", "--to-string", "com.shop.Misspelt$Child"],
        NOT_LOADED + "Misspelt$Child",
    ),
    # Methods whose calls cannot be requests.
    (
        ["--requests", "Misspelt$Priced.cost(..)"],
        "nothing so far: Misspelt$Priced.cost is abstract: name the methods that implement it, "
        "such as Misspelt$Child.cost",
    ),
    (
        ["--requests", "Misspelt.Price(..)"],
        NO_REQUESTS + PRICE,
    ),
    # The method exists with other parameters.
    (
        ["--requests", "Misspelt.price(long)"],
        NO_REQUESTS + PRICE,
    ),
    # A superclass or an interface declares the method.
    (
        ["--trace", "Misspelt$Child.shown"],
        "Misspelt$Child is loaded and has no such method, but inherits Misspelt$Parent.shown()",
    ),
    (
        ["--trace", "Misspelt$Child.twice()"],
        "Misspelt$Child is loaded and has no such method, but inherits Misspelt$Priced.twice()",
    ),
    (["--trace", "Misspelt$Child.secret"], "Misspelt$Child is loaded and has no such method"),
    (
        ["--requests", "Misspelt$Child.shown(..)"],
        "the class is loaded and has no such method, but there is Misspelt$Parent.shown()",
    ),
    # Of two classes of a name, the one that has the member is meant.
    (["--trace", "Twin.lift"], "no class of this name is loaded, but Misspelt$Other$Twin is"),
    (["--watch", "Twin.lifted"], "no class of this name is loaded, but Misspelt$Other$Twin is"),
    (["--trace", "Twin.lower"], "no class of this name is loaded, but Misspelt$Twin is"),
    (
        ["--trace", "Misspelt.f", "--show", "Misspelt$Child.hidden"],
        NO_FIELD + "Misspelt$Parent.hidden",
    ),
    (
        ["--trace", "Misspelt.f", "--show", "Misspelt$Child.wieght"],
        NO_FIELD + "Misspelt$Child.weight",
    ),
    (
        ["--trace", "Misspelt.f", "--show", "Misspelt.Child.weight"],
        NO_FIELD + "Misspelt$Child.weight",
    ),
    (
        ["--trace", "Misspelt.f", "--show", "Misspelt$Chidl.weight"],
        NO_FIELD + "Misspelt$Child.weight",
    ),
    (
        ["--trace", "Misspelt.f", "--show", "Misspelt$Chidl.hidden"],
        "no class that is loaded so far has this field",
    ),
    (
        ["--trace", "Misspelt.f", "--to-string", "Mispelt$Child"],
        "no class that is loaded so far matches, but there is Misspelt$Child",
    ),
    (["--watch", "Misspelt.Total"], UNDECLARED + "Misspelt.total"),
    (
        ["--watch", "Misspelt$Child.hidden"],
        "the class inherits this field: --watch Misspelt$Parent.hidden names it",
    ),
    (["--watch", "Misspel.total"], NO_CLASS),
    (["--log", f"Mispelt:{LOGGED} x"], NO_CLASS),
    (
        ["--log", f"Misspelt:{LOGGED} {{dobled}}"],
        "nor a field of the class itself; there is doubled",
    ),
    # amount differs in two letters of five: it is another name.
    (["--log", f"Misspelt:{LOGGED} {{about}}"], "nor a field of the class itself"),
)
REFUSED = (
    ("Misspelt.price(int)", "this.cuont > 0", "Misspelt has no field cuont; there is count"),
    ("Misspelt.f", "arg1.Weight > 0", "Misspelt$Child has no field Weight; there is weight"),
    ("Misspelt.f", "Misspelt.totl > 0", "Misspelt has no static field totl; there is total"),
    ("Misspelt.f", "Misspelt.local > 0", "Misspelt has no static field local"),
    (
        "Misspelt.f",
        "Misspelt$Child.made.x > 0",
        "the field made is a number, which has no fields",
    ),
    ("Misspelt.f", "Misspelt.count > 0", "Misspelt has no static field count"),
)


@pytest.fixture
def misspelt(jdk):
    process = jdk.start_java(
        "Misspelt",
        jvm=("-Xmx64m",),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        out, err = process.communicate("x", timeout=60)
        assert out == "done\n", err


@pytest.mark.jdks(8, 25)
def test_names_that_are_nearly_right_are_answered_with_the_right_ones(jdk, misspelt, tmp_path):
    out = tmp_path / "a.jfr"

    def attach(*words):
        return lab.jvmscope("attach", "-t", "100ms", *words, "-o", out, misspelt)

    for words, ending in NOTES:
        done = attach(*words)
        lines = done.stderr.splitlines()
        assert any(l.endswith(ending) for l in lines), (words, done.stderr)
    for pattern, condition, ending in REFUSED:
        done = attach("--trace", pattern, "--if", condition)
        first = done.stderr.splitlines()[0]
        assert done.returncode == 1 and first.endswith(": " + ending), (condition, done.stderr)
    # A static field may be named by a class that inherits it.
    done = attach("--trace", "Misspelt.f", "--if", "Misspelt$Child.made == 9")
    assert done.returncode == 0 and "never hold" not in done.stderr, done.stderr
    assert lab.read_json("trace", "--json", out)["calls"]
    # Which classes there are is known only at the end.
    for word, meant in (
        ("Mispelt.total", "Misspelt.total"),
        ("Twin.lifted", "Misspelt$Other$Twin.lifted"),
    ):
        done = attach("--trace", "Misspelt.f", "--if", f"{word} == -1")
        assert (
            f"no class was loaded that has a static field {word}; there is {meant}\n" in done.stderr
        ), done.stderr
    # What the recording itself says at its end.
    done = lab.jvmscope(
        "run",
        *("--trace", "Misspelt.f", "--show", "Misspelt$Child.hidden", "-o", out, "--"),
        *jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Misspelt"), "Misspelt"),
        input="x",
    )
    assert (
        "jvmscope: --show: no class that was loaded has this field: Misspelt$Child.hidden, but there"
        " is Misspelt$Parent.hidden\n" in done.stderr
    ), done.stderr


@pytest.mark.jdks(8, 25)
def test_requests_of_methods_without_code_name_those_that_implement_them(jdk, tmp_path):
    """With what lambdas and method references run, as for --trace. Of several patterns it is no
    failure if one is right.
    """
    out = tmp_path / "a.jfr"
    cannot = "no call of it can be a request: "
    lambda_ = "the code of a lambda is traced by its own name, such as Implemented.lambda$main$"
    for patterns, status, says in (
        (
            "Implemented$Job.work(..)",
            1,
            "is abstract: name the methods that implement it, such as Implemented$Worker.work; "
            + lambda_,
        ),
        (
            "Implemented$Task.run",
            1,
            "is abstract, and no loaded class of the program that can be changed implements it; "
            + lambda_,
        ),
        (
            "Implemented$Plain.plain,Implemented$Worker.plain",
            0,
            "is abstract: name the methods that implement it, such as Implemented$Worker.plain",
        ),
    ):
        done = lab.jvmscope(
            *("run", f"--requests={patterns}", "-o", out, "--"),
            *jdk.command("java", "-cp", lab.compiled("Implemented"), "Implemented"),
        )
        first = patterns.split(",")[0]
        name = first.split("(")[0]
        line = f"jvmscope: --requests: {first}: {cannot}{name} {says}"
        assert done.returncode == status and any(
            l.startswith(line) for l in done.stderr.splitlines()
        ), (patterns, done.stderr)
    done = lab.jvmscope("run", "--requests=@Audited", "-o", out, "--", "java", "Nosuch")
    assert done.returncode == 2 and "annotations are for --trace" in done.stderr, done.stderr


@pytest.mark.jdks(8, 25)
def test_verbs_answer_names_that_are_nearly_right(jdk, tmp_path):
    process = jdk.start_java(
        "Misspelt",
        jvm=(
            "-Xmx64m",
            jdk.agent(f"format=r,allow-control=y,trace=Misspelt.f,file={tmp_path / 'a.jfr'}"),
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        pid = process.pid
        added = lab.read_json("trace", "--json", pid, "add", "Misspelt.Price")
        assert added["unmatched"] == [{"pattern": "Misspelt.Price", "why": NO_METHOD + PRICE}]
        for words, ending in (
            (
                ["control", pid, "break", "Misspelt.prcie"],
                "the class has no such method; there is " + PRICE,
            ),
            (
                ["control", pid, "break", "Misspelt$Child.shown"],
                "the class has no such method, but inherits Misspelt$Parent.shown()",
            ),
            (
                ["control", pid, "break", "Twin.lift"],
                "no loaded class of this name; there is Misspelt$Other$Twin",
            ),
            (
                ["control", pid, "break", "java.util.ArrayList"],
                "this is a class; its method or line must follow, as in java.util.ArrayList:12",
            ),
            (
                ["control", pid, "break", "Misspelt.Twin"],
                "the class has no such method",
            ),
            (
                ["control", pid, "break", "Mispelt:5"],
                "no loaded class of this name; there is Misspelt",
            ),
            (
                ["inspect", pid, "class", "mispelt"],
                "no loaded class of this name; there is Misspelt",
            ),
            (
                ["inspect", pid, "instances", "Misspelt.Child"],
                "no loaded class of this name; there is Misspelt$Child",
            ),
        ):
            done = lab.jvmscope(*words)
            assert done.returncode == 1 and done.stderr.endswith(f": {ending}\n"), done.stderr
    finally:
        assert process.communicate("x", timeout=60)[0] == "done\n"


@pytest.mark.jdks(8, 25)
def test_an_annotation_is_named_with_or_without_its_package(jdk, misspelt, tmp_path):
    for name in ("@Deprecated", "@java.lang.Deprecated", "@lang.Deprecated", "@*precated"):
        out = tmp_path / "a.jfr"
        done = lab.jvmscope("attach", "-t", "200ms", "--trace", name, "-o", out, misspelt)
        assert done.returncode == 0 and "note" not in done.stderr, (name, done.stderr)
        calls = lab.read_json("trace", "--json", out)["calls"]
        assert {c["method"] for c in calls} == {"void Misspelt.old()"} or {
            c["method"].split("(")[0] for c in calls
        } == {"Misspelt.old"}, (name, calls)


@pytest.mark.jdks(8, 25)
def test_a_field_of_a_number_or_of_nothing_is_not_logged_as_null(misspelt, tmp_path):
    out = tmp_path / "a.jfr"
    values = {
        "c.weight": None,
        "c.weight.x": "",
        "c.wieght.x": "; there is Misspelt$Child.weight",
        "c.hiden": "; there is Misspelt$Parent.hidden",
        "c.made": "; there is Misspelt$Parent.made",  # which is static
        "c.names.lenght": "; there is length",
        "Misspelt$Child.made": None,
        "Misspelt$Child.mad": "; there is Misspelt$Parent.made",
        "Misspelt.total.x": "",
        "Misspelt.totl.length": "; there is Misspelt.total",
    }
    text = "|".join(f"{{{v}}}" for v in values)
    done = lab.jvmscope(
        "attach", "-t", "300ms", "--log", f"Misspelt:{WEIGHED} {text}", "-o", out, misspelt
    )
    assert done.returncode == 0, done.stderr
    events = lab.read_json("trace", "--json", out)["events"]
    rows = [e["text"].split("|") for e in events if e["kind"] == "log" and e["thread"]]
    assert rows, done.stderr
    for row in rows:
        assert row[6] == "9" and row[0].isdigit(), row
        assert set(row[1:6] + row[7:]) <= {"(no such field)"}, row
    noted = {e["text"] for e in events if e["kind"] == "log" and not e["thread"]}
    assert noted == {
        f"note: {value}: there was no such field{similar}"
        for value, similar in values.items()
        if similar is not None
    }, noted
    for value, similar in values.items():
        # what the agent has reported while it recorded is not repeated at the end
        lines = (
            f" {value}: there was no such field{similar}\n",
            f" {{{value}}}: so far no object and no class of that name has such a field{similar}\n",
        )
        reported = sum(done.stderr.count(line) for line in lines)
        assert reported == (similar is not None), done.stderr


@pytest.mark.jdks(8, 25)
def test_a_field_that_no_object_has_is_reported_although_there_was_null_too(misspelt, tmp_path):
    out = tmp_path / "a.jfr"
    text = "{c.wieght}|{c.weight}"
    done = lab.jvmscope(
        "attach", "-t", "300ms", "--log", f"Misspelt:{NONE} {text}", "-o", out, misspelt
    )
    assert done.returncode == 0, done.stderr
    events = lab.read_json("trace", "--json", out)["events"]
    rows = {e["text"].split("|")[0] for e in events if e["kind"] == "log" and e["thread"]}
    assert rows == {"null", "(no such field)"}, rows
    assert [e["text"] for e in events if e["kind"] == "log" and not e["thread"]] == [
        "note: c.wieght: there was no such field; there is Misspelt$Child.weight"
    ]
