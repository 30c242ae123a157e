# SPDX-License-Identifier: Apache-2.0
"""run and attach end to end: the program is unaffected, and the recording is there in each
format.
"""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import lab
from recording import window


def samples(path, *args):
    done = lab.jvmscope("report", "--json", *args, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["samples"]


def run(jdk, output, *program, flags=(), **kwargs):
    """Runs jvmscope run with a program inside the chroot: a wrapper that starts java, so the agent
    is loaded by JAVA_TOOL_OPTIONS.
    """
    kwargs.setdefault("timeout", 120)
    command = [lab.BUILD / "jvmscope", "run", *flags, "-o", output, "--", *jdk.command(*program)]
    return subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, errors="replace", **kwargs
    )


def busy(*args):
    return ("java", "-Xmx64m", "-cp", lab.compiled("Busy"), "Busy", *args)


def test_run_records_and_leaves_the_program_alone(jdk, tmp_path):
    out = tmp_path / "app.jfr"
    done = run(jdk, out, *busy(0.5, 2, 0.8))
    assert done.returncode == 0 and done.stdout == "ready\ndone\n", done.stderr
    assert f"wrote {out}" in done.stderr
    got = samples(out)
    assert got["interval_ns"] == 10_000_000
    only = samples(out, "--thread", "busy-1")
    assert 7 < only["total"] < got["total"]
    # The share of the VM's start depends on the load of the machine. A thread that only runs the
    # loop has no such part.
    whole, own = (
        next(m["self"] for m in found["methods"] if m["method"] == "Busy.work")
        for found in (got, only)
    )
    assert own > 0.9 * only["total"] and whole > own
    # The halves before and after the middle sample: on a busy machine the VM's start alone may take
    # a second.
    done = subprocess.run(
        [lab.BUILD / "tests/unit/jfr_dump", "--get=startTime", out, "jdk.ExecutionSample"],
        capture_output=True,
        text=True,
        check=True,
    )
    times = sorted(int(line.split("(")[1][:-1]) for line in done.stdout.splitlines())
    middle = f"{times[len(times) // 2] - window(out)[0]}ns"
    parts = [samples(out, "--from", middle)["total"], samples(out, "--to", middle)["total"]]
    assert sum(parts) == got["total"]


@pytest.mark.jdks(8, 17, 27)
def test_the_programs_exit_status_is_ours(jdk, tmp_path):
    for status in (0, 3, 255):
        done = run(
            jdk,
            tmp_path / f"{status}.jfr",
            "java",
            "-Xmx32m",
            "-cp",
            lab.compiled("Exits"),
            "Exits",
            status,
        )
        assert done.returncode == status and done.stdout == "out\n" and "err\n" in done.stderr


def test_a_program_that_records_nothing(tmp_path):
    """What an earlier run has left is not reported as the output of this one. An agent that refuses
    its options leaves no file.
    """
    jdk, out = lab.Jdk(17), tmp_path / "old.jfr"
    out.write_bytes(b"FLR\0of before")
    os.utime(out, (1, 1))
    done = lab.jvmscope("run", "-o", out, "--", "true")
    none = f"jvmscope: {out}: no recording was written: the program started no VM that loaded the agent\n"
    assert (done.returncode, out.read_bytes(), done.stderr) == (1, b"FLR\0of before", none)
    done = lab.jvmscope("run", "-o", out, "--", "sh", "-c", "exit 3")
    assert (done.returncode, done.stderr) == (3, none)
    for option in ("--always", "--always=memory"):  # a ring for which the agent finds a place
        done = lab.jvmscope("run", option, "--", "true")
        why = "no VM reported the end of a ring: the program started no VM that loaded the agent, or it was killed"
        assert (done.returncode, done.stderr) == (1, f"jvmscope: run: {why}\n")
    for jdk_8, n in ((lab.Jdk(8), 1023), (lab.Jdk(8), 1024)):

        def started(pattern):
            return run(
                jdk_8,
                out,
                "java",
                "-cp",
                lab.compiled("Exits"),
                "Exits",
                0,
                flags=("--trace", pattern),
            )

        printed = started("a.B").stderr.split("Picked up JAVA_TOOL_OPTIONS: ")[1].split("\n")[0]
        done = started("a.B" + "x" * (n - len(printed)))
        why = (
            ""
            if n == 1023
            else "the program started no VM that loaded the agent; JDK 8 takes no more than 1023 characters of JAVA_TOOL_OPTIONS, and it had 1024\n"
        )
        assert (
            done.returncode == 1
            and ("no recording was written" in done.stderr) == (n == 1024)
            and done.stderr.endswith(why)
        ), done.stderr
    bad = tmp_path / "bad.jfc"
    bad.write_text("<configuration>")
    done = run(jdk, tmp_path / "new.jfr", *busy(0.1), flags=(f"--jfr={bad}",))
    assert (
        done.returncode == 1
        and f"jvmscope: --jfr={bad}: the VM's Flight Recorder does not start" in done.stderr
        and done.stderr.count("jvmscope: ") == 1
        and "hprof: " not in done.stderr
    ), done
    assert not (tmp_path / "new.jfr").exists()


NAMES_NOTHING = (
    ("--trace", "no.Such.m"),
    ("--trace", "no.Such.m,Exits.mian"),
    ("--trace", "implements no.Such"),
    ("--trace", "Exits.main", "--if", "arg9 > 1"),
    ("--trace", "no.Such.m", "--cpu"),
    ("--log", "no.Such:1 x"),
    ("--log", "Exits:1 x"),
    ("--watch", "no.Such.f"),
    ("--requests=no.Such.m",),
)
NAMES_SOMETHING = (
    ("--trace", "Exits.main"),
    ("--trace", "java.lang.Integer.parseInt,no.Such.m"),
    ("--trace", "Exits.main", "--if", "time > 1h"),
    ("--trace", "Exits.unused,no.Such.m"),
    ("--log", "Exits:8 x"),
    ("--requests=Exits.main",),
    ("--requests=Exits.unused,no.Such.m",),
)


@pytest.mark.jdks(8, 17, 25)
def test_an_option_that_names_nothing_in_the_program_is_a_failure(jdk, tmp_path):
    """Unless the program has failed: its exit status is passed on. If a call was not made or no
    condition held, that is not a failure.
    """
    for words, program, status in (
        [(w, 0, 1) for w in NAMES_NOTHING]
        + [(w, 0, 0) for w in NAMES_SOMETHING]
        + [(NAMES_NOTHING[0], 7, 7)]
    ):
        done = run(
            jdk,
            tmp_path / "n.jfr",
            "java",
            "-cp",
            lab.compiled("Exits"),
            "Exits",
            program,
            flags=words,
        )
        assert done.returncode == status, (words, done.stderr)


@pytest.mark.jdks(8, 17, 25)
def test_a_name_that_attach_does_not_find_is_a_failure_as_in_run(jdk, tmp_path):
    process = jdk.start_java("Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    missing = [
        ("--trace", "no.Such.m"),
        ("--log", "no.Such:1 x"),
        ("--watch", "no.Such.f"),
        ("--requests=no.Such.m",),
        ("--requests=no.Such.m,Busy.nosuch",),
    ]
    there = [
        ("--trace", "Busy.work"),
        ("--trace", "Busy.work,no.Such.m"),
        ("--requests=Busy.main,no.Such.m",),
        ("--requests=auto,no.Such.m",),
        ("--alloc",),
    ]
    for words, status in [(w, 1) for w in missing] + [(w, 0) for w in there]:
        for name in ("n.jfr", "n.html"):
            more = ("--cpu",) if name == "n.html" else ()  # without it a page would be empty
            out = tmp_path / name
            out.unlink(missing_ok=True)
            done = lab.jvmscope("attach", "-t", "500ms", *words, *more, "-o", out, process.pid)
            assert done.returncode == status and out.exists(), (words, done.stderr)
        # Without a time limit `stop` reports what is missing; `dump` may run too early to know it.
        for stop in ((), ("-o", tmp_path / "s.jfr")):
            done = lab.jvmscope("attach", *words, "-o", tmp_path / "m.jfr", process.pid)
            assert done.returncode == 0, done.stderr
            time.sleep(0.2)
            done = lab.jvmscope("dump", "-o", tmp_path / "d.jfr", process.pid)
            assert done.returncode == 0, done.stderr
            done = lab.jvmscope("stop", *stop, process.pid)
            assert done.returncode == status, (words, stop, done.stderr)
    for command, words in (
        (("dump",), ""),
        (("stop",), ""),
        (("trace", "add", "a.B"), "--trace PATTERN "),
        (("attach", "--on", "oom"), "--always "),
    ):
        verb, *rest = command
        done = lab.jvmscope(
            verb,
            *(rest if verb == "attach" else ()),
            process.pid,
            *(() if verb == "attach" else rest),
        )
        assert done.returncode == 1
        assert done.stderr.endswith(f"; begin with: jvmscope attach {words}{process.pid}\n"), done
    process.kill()
    process.communicate()


def scaled(size):
    """Returns a size in the form of messages."""
    units = ["B", "KiB", "MiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    digits = 0 if units[0] == "B" else 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{digits}f} {units[0]}"


@pytest.mark.jdks(8, 17, 25)
def test_the_message_has_the_size_of_the_file_and_whether_it_replaced_one(jdk, tmp_path):
    """The command reports that it replaced a file that has content. An empty file, as mktemp makes
    it, is not mentioned.
    """
    process = jdk.start_java("Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    again = "in place of an older file"

    def wrote(
        out,
        *words,
        how=r"wrote {out} \(([^),]*)(?:, \d+\.\d s)?\)( in place of an older file)?[;:\n]",
    ):
        for before in ("none", "empty", "older"):
            if before == "empty":
                out.write_bytes(b"")
            done = lab.jvmscope(*words)
            assert done.returncode == 0, done.stderr
            printed = re.search(how.format(out=re.escape(str(out))), done.stderr)
            assert printed and printed[1] == scaled(out.stat().st_size), (done.stderr, out.stat())
            assert bool(printed[2]) == (before == "older"), (before, done.stderr)

    pid = process.pid
    # The same holds for a heap dump next to a recording.
    for before in (0, 1):
        done = lab.jvmscope("attach", "--heap=dump", "-t", "300ms", "-o", tmp_path / "b.jfr", pid)
        dumped = re.search(rf"wrote {tmp_path}/b\.hprof \([^)]*\)( {again})?; see", done.stderr)
        assert dumped and bool(dumped[1]) == before, done.stderr
    for name in ("a.jfr", "a.html", "a.hprof.txt"):
        wrote(tmp_path / name, "attach", "-t", "300ms", "-o", tmp_path / name, pid)
        program = jdk.command("java", "-Xmx64m", "-cp", lab.compiled("Busy"), "Busy", 0.3)
        wrote(tmp_path / f"r{name}", "run", "-o", tmp_path / f"r{name}", "--", *program)
    assert lab.jvmscope("attach", "-o", tmp_path / "o.jfr", pid).returncode == 0
    wrote(tmp_path / "d.jfr", "dump", "-o", tmp_path / "d.jfr", pid)
    done = lab.jvmscope("stop", "-o", tmp_path / "d.jfr", pid)
    assert done.returncode == 0 and f"){' ' + again};" in done.stderr, done.stderr
    # A file that this recording itself has written is not an older file.
    begun = lab.jvmscope("attach", "-o", tmp_path / "o.jfr", pid).stderr
    assert f"recording to {tmp_path}/o.jfr {again};" in begun, begun
    assert again not in lab.jvmscope("stop", "-o", tmp_path / "o.jfr", pid).stderr
    wrote(tmp_path / "h.hprof", "heap", "dump", "-o", tmp_path / "h.hprof", pid)
    assert lab.jvmscope("attach", "--always", "-o", tmp_path / "a.ring", pid).returncode == 0
    wrote(tmp_path / "p.jfr", "dump", "--last", "1s", "-o", tmp_path / "p.jfr", pid)
    process.kill()
    process.communicate()


def java_below(pid):
    """The process id of the java that a process has started, itself or through others."""
    while open(f"/proc/{pid}/comm").read() != "java\n":
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            pid = int(children.read().split()[0])
    return pid


@pytest.mark.jdks(8, 17, 25)
def test_equal_recordings_do_not_differ_and_a_removed_ring_is_not_named(jdk, tmp_path):
    out, ring = tmp_path / "a.jfr", tmp_path / "r.ring"
    done = run(jdk, out, *busy(1, 2), flags=("--cpu", "--threads"))
    assert done.returncode == 0, done.stderr
    stated = lab.output("diff", out, out)
    assert "  no difference: each method has the same share of both\n" in stated, stated
    shares = [float(x) for x in re.findall(r"^ +\+0\.00 +([\d.]+) %", stated, re.M)]
    assert len(shares) > 1 and shares == sorted(shares, reverse=True) and shares[0] > 0, stated
    ends = [
        lab.read_json("threads", "what-if", "--json", "--method", "*", *end, out)
        for end in (("--thread", "main"), ("--end", "main"))
    ]
    assert ends[0] == ends[1]
    process = subprocess.Popen(
        [
            str(c)
            for c in [
                lab.BUILD / "jvmscope",
                "run",
                "--always",
                "--max-size",
                "4M",
                "-o",
                ring,
                "--",
            ]
            + jdk.command(*busy(600))
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    ring.unlink()
    os.kill(java_below(process.pid), signal.SIGTERM)
    printed = process.communicate(timeout=60)[1]
    assert "extract them with" not in printed and "no recording was written" not in printed, printed
    assert f"note: {ring}: the ring is missing: it was removed" in printed, printed


def test_a_program_that_does_not_exist_is_answered_with_how_java_is_run():
    for words, hint in (
        (("run", "Hand"), "no such program; of a class: jvmscope run -- java Hand"),
        (("run", "a.jar"), "no such program; of a jar: jvmscope run -- java -jar a.jar"),
    ):
        done = lab.jvmscope(*words)
        assert done.returncode == 1 and done.stderr == f"jvmscope: {words[1]}: cannot run: {hint}\n"
    done = lab.jvmscope("attach", "Hand")
    hint = "to choose a VM by its main class or jar: --match 'Hand'"
    assert (done.returncode, done.stderr) == (2, f"jvmscope: Hand: not a process id: {hint}\n")
    assert lab.output("version") == lab.output("--version")


def test_a_folder_that_does_not_exist_is_reported_before_the_program_runs(tmp_path):
    java = subprocess.run(
        [lab.ROOT / "tools" / "java-home"], capture_output=True, text=True, check=True
    ).stdout.strip()
    out = tmp_path / "none" / "a.html"
    done = lab.jvmscope("run", "-o", out, "--", f"{java}/bin/java", "-version")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"jvmscope: {out}: cannot write: No such file or directory\n",
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--deadlocks",),
        ("--watch", "Busy.x"),
        ("--events",),
        ("--trace", "Busy.main"),
        ("--cover",),
        ("--threads",),
        ("--exceptions",),
        ("--log", "Busy:3"),
        ("--locks", "Busy"),
    ],
    ids=lambda w: w[0],
)
@pytest.mark.parametrize("output", ["o.hprof", "o.hprof.txt"])
def test_what_hprof_has_no_place_for_is_reported_before_the_program_runs(words, output, tmp_path):
    done = lab.jvmscope("run", *words, "-o", output, "--", "sh", "-c", "touch ran", cwd=tmp_path)
    assert (
        done.returncode == 2 and f"{output}: {words[0]} is recorded into a .jfr" in done.stderr
    ), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["o.hprof", "o.hprof.txt", "o.jfr"])
@pytest.mark.jdks(17)
def test_an_output_that_cannot_be_written_is_not_reported_as_written(jdk, output, tmp_path):
    command = [
        "sh",
        "-c",
        'ulimit -f 0; exec "$@"',
        "sh",
        lab.BUILD / "jvmscope",
        "run",
        "-o",
        output,
        "--",
        *jdk.command(*busy(1)),
    ]
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (
        done.returncode != 0
        and "File too large" in done.stderr
        and "no recording was written" in done.stderr
    ), done.stderr
    assert "jvmscope: wrote" not in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.jdks(17)
def test_an_output_that_cannot_be_created_is_refused_before_the_start(jdk, tmp_path):
    """The permissions of a folder do not show this on every file system."""
    (tmp_path / "folder.jfr").mkdir()
    for out, why in (
        ("/proc/x.jfr", "No such file or directory"),
        (tmp_path / "none" / "x.jfr", "No such file or directory"),
        (tmp_path / "folder.jfr", "Is a directory"),
    ):
        done = lab.jvmscope("run", "-o", out, "--", *jdk.command(*busy(1)))
        assert (done.returncode, done.stderr) == (1, f"jvmscope: {out}: cannot write: {why}\n")
    assert os.listdir(tmp_path) == ["folder.jfr"]


@pytest.mark.jdks(8, 25)
def test_every_format_by_its_extension(jdk, tmp_path):
    checks = {
        "x.hprof.txt": b"JAVA PROFILE 1.0.1",
        "x.hprof": b"JAVA PROFILE 1.0.",
        "x.collapsed": b"Busy.main;",
        "x.html": b"<!doctype html>",
        "x.pb.gz": b"\x1f\x8b",
        "x-%p.jfr": b"FLR\0",
    }
    for name, magic in checks.items():
        done = run(jdk, tmp_path / name, *busy(0.7))
        assert done.returncode == 0, done.stderr
        written = re.search(r"wrote (\S+) ", done.stderr)[1]
        assert magic in open(written, "rb").read(4000), name
    assert not list(tmp_path.glob("*.html.jfr")), "what was converted is not left behind"


def test_run_java_itself_by_an_argument(jvmscope, tmp_path):
    """The host's java is used, so that nothing is printed about environment variables."""
    out = tmp_path / "app.jfr"
    done = jvmscope("run", "-o", out, *busy(1))
    assert done.returncode == 0 and done.stdout == "ready\ndone\n"
    assert [l for l in done.stderr.splitlines() if not l.startswith("jvmscope: wrote")] == []
    assert samples(out)["methods"][0]["method"] == "Busy.work"


def test_a_signal_reaches_the_program(tmp_path):
    out = tmp_path / "app.jfr"
    command = [lab.BUILD / "jvmscope", "run", "-o", out, *busy(30)]
    process = subprocess.Popen(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert samples(out)["total"] > 5
    process.communicate()


@pytest.mark.jdks(8, 17, 25, 27, slow=(11, 21))
def test_attach_records_twice_and_stops(jdk, jvmscope, tmp_path):
    there = set(
        os.listdir("/tmp")
    )  # a command that was killed earlier may have left a file with the same process id
    process = jdk.start_java(
        "Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        first, second = tmp_path / "first.jfr", tmp_path / "second.collapsed"
        done = jvmscope("attach", "-t", "1s", "-o", first, process.pid)
        assert done.returncode == 0, done.stderr
        assert samples(first)["methods"][0]["method"] == "Busy.work"
        assert json.loads(jvmscope("status", "--json", process.pid).stdout)["state"] == "idle"

        assert jvmscope("attach", "-o", tmp_path / "x.jfr", process.pid).returncode == 0
        again = jvmscope("attach", "-t", "1s", "-o", tmp_path / "y.jfr", process.pid)
        assert again.returncode == 1 and "already recording" in again.stderr
        assert json.loads(jvmscope("status", "--json", process.pid).stdout)["state"] == "recording"
        time.sleep(0.7)
        done = jvmscope("stop", "-o", second, process.pid)
        assert done.returncode == 0, done.stderr
        assert "Busy.main;Busy.loop;Busy.work" in second.read_text()
        left = [
            p
            for p in set(os.listdir("/tmp")) - there
            if p.startswith(
                (
                    "jvmscope-%d-" % process.pid,
                    ".jvmscope-reply-%d-" % process.pid,
                    ".attach_pid%d" % process.pid,
                )
            )
        ]
        assert not left
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(8, 17)
def test_dump_and_stop_write_what_the_extension_names(jdk, jvmscope, tmp_path):
    """The extension selects between a flight recording and HPROF; no file has the contents of the
    one under a name of the other.
    """
    heads = {
        "jfr": rb"FLR\0",
        "hprof.txt": rb"JAVA PROFILE 1\.0\.1, created",
        "hprof": rb"JAVA PROFILE 1\.0\.[12]\0",
    }
    process = jdk.start_java("Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"

    def begin(*options):
        done = jvmscope("attach", "--cpu", "-i", "1ms", *options, process.pid)
        assert done.returncode == 0, done.stderr
        lab.use_cpu(process, 0.2)

    for verb in ("dump", "stop"):
        for extension, head in heads.items():
            begin("-o", tmp_path / "whole.jfr")
            out = tmp_path / f"{verb}.{extension}"
            done = jvmscope(verb, "-o", out, process.pid)
            assert done.returncode == 0, done.stderr
            assert re.match(head, out.read_bytes()), (verb, extension)
            assert samples(out)["methods"][0]["method"] == "Busy.work"
            if verb == "dump":
                assert jvmscope("stop", process.pid).returncode == 0
    for written in ("hprof.txt", "hprof"):
        first = tmp_path / f"first.{written}"
        begin("-o", first)
        done = jvmscope("stop", "-o", tmp_path / "none.jfr", process.pid)
        assert done.returncode == 1 and str(first) in done.stderr, done.stderr
        assert "only a flight recording can become one" in done.stderr
        assert re.match(heads[written], first.read_bytes())
        assert not (tmp_path / "none.jfr").exists()


@pytest.mark.jdks(17)
def test_attach_ends_when_another_stops_the_recording(jdk, jvmscope, tmp_path):
    process = jdk.start_java(
        "Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "ready\n"
        out = tmp_path / "x.jfr"
        attach = subprocess.Popen(
            [lab.BUILD / "jvmscope", "attach", "-t", "50s", "-o", out, str(process.pid)],
            stderr=subprocess.PIPE,
            text=True,
        )

        def sampled():
            assert attach.poll() is None
            return (
                re.search(
                    '"cpu.samples":[1-9]', text := jvmscope("status", "--json", process.pid).stdout
                )
                and text
            )

        printed = lab.wait_for(sampled, 40, "a sample")
        assert all(re.fullmatch("[A-Za-z0-9_.]+", key) for key in json.loads(printed))
        start = time.monotonic()
        assert jvmscope("stop", process.pid).returncode == 0
        stderr = attach.communicate(timeout=60)[1]
        assert (
            attach.returncode == 0
            and "the recording was stopped before the time was over" in stderr
        ), stderr
        assert time.monotonic() - start < 40 and process.poll() is None
        assert samples(out)["interval_ns"] == 10_000_000
    finally:
        process.kill()
        process.communicate()


@pytest.mark.jdks(17)
def test_a_vm_that_ends_before_the_time(jdk, jvmscope, tmp_path):
    out = tmp_path / "x.jfr"
    process = jdk.start_java("Busy", 600, jvm=("-Xmx64m",), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    attach = subprocess.Popen(
        [lab.BUILD / "jvmscope", "attach", "-t", "600s", "-o", out, str(process.pid)],
        stderr=subprocess.PIPE,
        text=True,
    )

    def sampled():
        assert attach.poll() is None
        counters = jvmscope("status", "--json", process.pid).stdout
        return int((re.search(r'"cpu\.samples":(\d+)', counters) or "00")[1]) > 5

    lab.wait_for(sampled, 60, "samples")
    process.terminate()
    printed = attach.communicate(timeout=60)[1]
    assert attach.returncode == 0 and "the VM ended" in printed, printed
    assert samples(out)["total"] > 5


@pytest.mark.jdks(8, 21)
def test_another_users_vm_in_other_namespaces(jdk, jvmscope, tmp_path):
    """A VM of the user nobody in its own pid and mount namespaces, with a /tmp of its own, as in a
    container.
    """
    if os.getuid() != 0:
        pytest.skip("needs root")
    script = (
        "mount -t tmpfs tmpfs \"$0/tmp\"; cd /; exec chroot --userspec=65534:65534 \"$0\" "
        f"/usr/lib/jvm/java-{jdk.version}-openjdk-amd64/bin/java -Xmx64m -cp /var/tmp/{lab.compiled('Busy').relative_to('/var/tmp')} Busy 30"
    )
    outer = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            'mount --rbind /dev "$0/dev"; mount --rbind /var/tmp "$0/var/tmp"; exec unshare --pid --fork --kill-child '
            'sh -c \'mount -t proc proc "$0/proc"; ' + script + '\' "$0"',
            str(lab.chroot()),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert outer.stdout.readline() == "ready\n", outer.stderr.read()
        vms = json.loads(jvmscope("list", "--json").stdout)
        vm = next(
            v
            for v in vms
            if v["uid"] == 65534 and v["inner_pid"] != v["pid"] and v["command"] == "Busy 30"
        )
        out = tmp_path / "inside.jfr"
        done = jvmscope("attach", "-t", "1s", "-o", out, vm["pid"])
        assert done.returncode == 0, done.stderr
        assert samples(out)["methods"][0]["method"] == "Busy.work"
        left = os.listdir(f"/proc/{vm['pid']}/root/tmp")
        assert [f for f in left if "jvmscope" in f or "attach_pid" in f] == []
        # As another user it is refused in one line.
        if (
            subprocess.run(
                ["su", "-s", "/bin/sh", "daemon", "-c", f"test -x {lab.BUILD}/jvmscope"],
                capture_output=True,
            ).returncode
            == 0
        ):
            other = subprocess.run(
                [
                    "su",
                    "-s",
                    "/bin/sh",
                    "daemon",
                    "-c",
                    f"{lab.BUILD}/jvmscope attach -t 1s {vm['pid']}",
                ],
                capture_output=True,
                text=True,
            )
            assert (
                other.returncode == 1
                and "another user" in other.stderr
                and len(other.stderr.splitlines()) == 1
            )
    finally:
        subprocess.run(
            ["pkill", "-KILL", "-P", str(outer.pid)]
        )  # the first process of its namespace
        outer.kill()
        outer.communicate()
