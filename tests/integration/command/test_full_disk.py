# SPDX-License-Identifier: Apache-2.0
"""A full disk, simulated by a small tmpfs, by ulimit -f and by /dev/full: every writer reports what
it lost, with the system's reason, and exits with 1. The profiled program is not affected.
"""
import contextlib
import json
import os
import re
import subprocess

import pytest

import lab
import outputs
from fleet_lab import NOW, Collector, collector, fleet, total

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, who may mount a small file system"
)

LIMIT = 768 * 1024


@pytest.fixture
def small(tmp_path):
    """A folder on a file system of LIMIT bytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LIMIT}", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(params=["tmpfs", "ulimit"])
def limited(request, tmp_path):
    """Returns a folder, a command prefix under which files in it hold at most LIMIT bytes, and the
    system's reason.
    """
    if request.param == "ulimit":
        return tmp_path, ["prlimit", f"--fsize={LIMIT}"], "File too large"
    return request.getfixturevalue("small"), [], "No space left on device"


def only_line(stderr, *parts):
    """Returns the command's own line among the output of a command and a VM."""
    lines = [x for x in stderr.splitlines() if x.startswith("jvmscope: ")]
    assert len(lines) == 1 and all(p in lines[0] for p in parts), stderr
    assert not re.search("^hprof: ", stderr, re.M), stderr
    return lines[0]


@pytest.mark.jdks(8, 25, slow=(17,))
@pytest.mark.parametrize(
    "flags, output",
    [
        (["--trace", "Hot.*"], "out.jfr"),
        (["--heap=dump"], "out.hprof"),
        (["--heap=dump"], "out.hprof.txt"),
        (["--heap=dump"], "out.jfr"),
    ],
)
def test_run_reports_what_a_full_disk_took(jdk, limited, flags, output):
    folder, prefix, reason = limited
    program = [
        "java",
        "-Xmx64m",
        "-cp",
        lab.compiled("Hot"),
        "Hot",
        "exceptions",
        1500 if "--trace" in flags else 10,
    ]  # calls fill the disk, or the heap
    command = [
        *prefix,
        lab.BUILD / "jvmscope",
        "run",
        *flags,
        "-o",
        folder / output,
        "--",
        *jdk.command(*program),
    ]
    done = subprocess.run(
        [str(x) for x in command], capture_output=True, text=True, errors="replace", timeout=120
    )
    assert done.returncode == 1 and "cpu_ns" in done.stdout, done
    line = only_line(
        done.stderr, "some data was not recorded", reason, str(folder / output.split(".")[0])
    )
    if output == "out.jfr" and flags[0] != "--heap=dump":
        lost = int(re.search(r"(\d+) events were lost", line)[1])
        assert lost > 0
        report = lab.jvmscope("trace", folder / output)
        assert report.returncode == 0, "what there is can be read: " + report.stderr


def held_in(losses):
    return {
        (loss["capture"], loss["what"], what["what"]): what["amount"]
        for loss in losses
        for what in loss.get("with", [])
    }


@pytest.mark.jdks(8, 25, slow=(17,))
def test_lost_calls_have_their_own_time(jdk, tmp_path):
    """Calls for which the file has no room are lost at the time at which they were made, which is
    before they were to be written.
    """
    out, calls = tmp_path / "out.jfr", 200_000
    done = subprocess.run(
        [
            "prlimit",
            f"--fsize={LIMIT}",
            lab.BUILD / "jvmscope",
            *("run", "--trace", "Amounts.called", "-o", out, "--"),
            *jdk.command(
                "java", "-Xmx64m", "-cp", lab.compiled("Amounts"), "Amounts", "calls", str(calls)
            ),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    took = int(re.search(r"^in (\d+)$", done.stdout, re.M)[1]) / 1e9
    shown = lab.read_json("trace", "--json", out)
    room = [loss for loss in shown["losses"] if "could not grow" in loss["reason"]]
    first = float(
        re.search(r"^ +(\d+\.\d+) .*Amounts.called", lab.jvmscope("trace", out).stdout, re.M)[1]
    )
    assert len(room) == 1 and room[0]["amount"] > calls / 2, shown["losses"]
    begins, ends = room[0]["from_ns"] / 1e9, room[0]["to_ns"] / 1e9
    assert first <= begins < ends <= first + took + 0.001, (first, took, room)


@pytest.mark.jdks(8, 17, 25)
def test_what_lost_sums_held_is_reported(jdk, tmp_path):
    """An event that has a sum stands for any number of objects, bytes, exceptions and calls: what
    is lost and what is recorded add up to at least what the program did, in the table, in JSON and
    on the page.
    """
    out = tmp_path / "out.jfr"
    flags = [
        "--trace",
        "Amounts.*",
        "--alloc=exact",
        "--exceptions=counts",
        "--cpu=times",
    ]  # the calls fill the file
    program = ["java", "-Xmx64m", "-cp", lab.compiled("Amounts"), "Amounts"]
    command = [
        "prlimit",
        f"--fsize={LIMIT}",
        lab.BUILD / "jvmscope",
        "run",
        *flags,
        "-o",
        out,
        "--",
        *jdk.command(*program),
    ]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "sum " in done.stdout, done
    only_line(done.stderr, "some data was not recorded", "File too large")
    assert lab.jvmscope("convert", "-o", tmp_path / "out.html", out).returncode == 0
    page = outputs.page(tmp_path / "out.html")
    held = held_in(page["losses"])
    traced = lab.jvmscope("trace", "--json", out)  # it fails when all calls were lost
    assert (
        held_in(json.loads(traced.stdout)["losses"]) == held
        if traced.returncode == 0
        else "holds no calls" in traced.stderr
    ), traced.stderr
    assert sorted(held) == [
        ("alloc", "sites", "bytes"),
        ("alloc", "sites", "objects"),
        ("exceptions", "counts", "exceptions"),
        ("times", "rows", "calls"),
    ]
    left = lab.jvmscope("report", "--json", out)
    report = json.loads(left.stdout) if left.returncode == 0 else {}  # they are missing altogether
    assert held["alloc", "sites", "objects"] <= 1_000_000  # nothing counts twice
    assert (
        report.get("allocations", {}).get("total", 0) + held["alloc", "sites", "bytes"]
        >= 20_000 * 1000
    )
    assert (
        sum(m["calls"] for m in report.get("times", {}).get("methods", []))
        + held["times", "rows", "calls"]
        >= 75_000
    )
    thrown = lab.jvmscope("trace", "--exceptions", "--json", out)
    counts = json.loads(thrown.stdout)["exceptions"] if thrown.returncode == 0 else []
    assert (
        31
        <= sum(e["count"] for e in counts) + held["exceptions", "counts", "exceptions"]
        < 31 + 1000
    )
    reported = lab.jvmscope("report", out).stderr
    assert re.search(
        r"alloc: \d+ sites? with %d objects and %d bytes w(as|ere) lost between"
        % (held["alloc", "sites", "objects"], held["alloc", "sites", "bytes"]),
        reported,
    ), reported
    assert not re.search(r"alloc: \d+ (objects|bytes)", reported)


@pytest.mark.jdks(17)
@pytest.mark.parametrize("output", ["out.collapsed", "out.html", "out.pb.gz"])
def test_run_reports_that_its_output_was_not_made(jdk, small, output):
    """The recording of a short run fits, or the command says what happened to it."""
    program = ["java", "-Xmx64m", "-cp", lab.compiled("Busy"), "Busy", 0.5]
    (small / "filler").write_bytes(bytes(LIMIT - 8192))
    command = [lab.BUILD / "jvmscope", "run", "-o", small / output, "--", *jdk.command(*program)]
    done = subprocess.run(
        [str(x) for x in command], capture_output=True, text=True, errors="replace", timeout=120
    )
    assert done.returncode != 0 and "No space left on device" in done.stderr, done
    assert not (small / output).exists()


@pytest.fixture
def hot(jdk):
    process = jdk.start_java(
        "Hot",
        "exceptions",
        120000,
        jvm=["-Xmx64m"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    lab.use_cpu(process, 1)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.jdks(8, 17, 25)
def test_attach_and_heap_dump_report_what_a_full_disk_took(jdk, small, hot, tmp_path):
    """The disk is full for the VM (the output is where it can write) and for the command; the VM
    continues.
    """
    done = lab.jvmscope("attach", "--trace", "Hot.*", "-t", "2s", "-o", small / "out.jfr", hot.pid)
    assert done.returncode == 1, done
    line = only_line(done.stderr, "some data was not recorded", "No space left on device")
    assert int(re.search(r"(\d+) events were lost", line)[1]) > 0
    assert lab.jvmscope("trace", small / "out.jfr").returncode == 0
    done = lab.jvmscope("heap", "dump", "-o", small / "heap.hprof", hot.pid)
    assert done.returncode == 1
    only_line(done.stderr, "the VM wrote no heap dump", "No space left on device")
    # The VM writes under the name of the output with a number behind it.
    done = lab.jvmscope("heap", "dump", "-o", tmp_path / f"{'n' * 246}.hprof", hot.pid)
    assert done.returncode == 1
    line = only_line(done.stderr, "the VM wrote no heap dump", "ame too long")
    assert "Dumping" not in line
    # The index of a dump needs room as well.
    assert lab.jvmscope("heap", "dump", "-o", tmp_path / "heap.hprof", hot.pid).returncode == 0
    command = [
        "prlimit",
        "--fsize=4096",
        lab.BUILD / "jvmscope",
        "heap",
        "summary",
        tmp_path / "heap.hprof",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    only_line(done.stderr, "cannot analyse", "(ulimit -f)")
    (small / "out.jfr").unlink()
    done = lab.jvmscope("attach", "--heap=dump", "-t", "100ms", "-o", small / "out.hprof", hot.pid)
    assert done.returncode == 1
    only_line(done.stderr, "some data was not recorded", "No space left on device")
    (small / "out.hprof").unlink()
    assert [p.name for p in small.iterdir()] == []
    # A recording that cannot begin says so and leaves no file.
    (small / "filler").write_bytes(bytes(LIMIT - 8192))
    done = lab.jvmscope("attach", "--cpu", "-t", "1s", "-o", small / "out.jfr", hot.pid)
    assert done.returncode == 1
    only_line(done.stderr, "cannot record", "No space left on device")
    # A recording without a duration, on a disk that becomes full: stop and dump report it.
    (small / "filler").unlink()
    assert (
        lab.jvmscope("attach", "--trace", "Hot.*", "-o", small / "out.jfr", hot.pid).returncode == 0
    )
    lab.use_cpu(hot, 1)
    for verb in ("dump", "stop"):
        done = lab.jvmscope(verb, hot.pid)
        assert done.returncode == 1 and "No space left on device" in done.stderr, done
    assert hot.poll() is None and lab.jvmscope("status", hot.pid).returncode == 0


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording with something for every verb."""
    path = tmp_path_factory.mktemp("recording") / "all.jfr"
    jdk = lab.Jdk(17)
    done = jdk.java(
        "Hot",
        "exceptions",
        1000,
        jvm=[
            jdk.agent(
                f"cpu=samples,interval=1,threads=y,trace=Hot.main,cover=y,format=r,file={path}"
            )
        ],
    )
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize(
    "extension",
    [
        ".html",
        ".collapsed",
        ".pb.gz",
        ".hprof.txt",
        ".hprof",
        ".jfr",
        ".trcxml",
        ".pftrace",
        ".json",
    ],
)
def test_convert_writes_all_or_says_why_not(recording, small, tmp_path, extension):
    """To a full disk, to a file that may not grow, and to a device that accepts nothing: no
    incomplete file is left.
    """
    (small / "filler").write_bytes(bytes(LIMIT))
    convert = [lab.BUILD / "jvmscope", "convert", recording, "-o"]
    device = tmp_path / f"full{extension}"
    device.symlink_to("/dev/full")
    for prefix, output, reason in (
        ([], small / f"a{extension}", "No space left on device"),
        (["prlimit", "--fsize=512"], tmp_path / f"a{extension}", "File too large"),
        ([], device, "No space left on device"),
    ):
        done = subprocess.run(
            [str(x) for x in (*prefix, *convert, output)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 1, (output, done)
        only_line(done.stderr, reason)
        assert output == device or not output.exists()
    assert [p.name for p in small.iterdir()] == ["filler"]


VERBS = [
    ["report"],
    ["report", "--json"],
    ["trace"],
    ["coverage"],
    ["coverage", "--json"],
    ["threads", "summary"],
    ["threads", "timeline"],
    ["list"],
    ["list", "--json"],
    ["--version"],
    ["--help"],
    ["report", "--help"],
    ["completion", "bash"],
]


def without_notes(text):
    """Messages without the note of `list` about processes of other tests that it may not inspect."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("jvmscope: note: "))


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_what_is_printed_to_a_full_disk_is_an_error(recording, verb):
    operands = (
        []
        if verb[0] in ("list", "completion") or verb[-1] in ("--version", "--help")
        else [recording]
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [lab.BUILD / "jvmscope", *verb, *operands],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1, done
    only_line(without_notes(done.stderr), "standard output", "No space left on device")
    # A reader of the output that stops early is not treated as a full disk.
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -c 1 >/dev/null', "-", lab.BUILD / "jvmscope", *verb, *operands],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert without_notes(done.stderr) == ""


CALLS = {
    "write": "ENOSPC",
    "pwrite64": "ENOSPC",
    "fallocate": "ENOSPC",
    "ftruncate": "EIO",
    "fsync": "EIO",
    "rename": "EIO",
    "renameat2": "EIO",
    "linkat": "EIO",
    "close": "EIO",
}


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "-o", "out.html"],
        ["convert", "-o", "out.pb.gz"],
        ["convert", "-o", "out.jfr"],
        ["coverage", "-o", "out.info"],
        ["report"],
    ],
    ids=lambda w: w[-1],
)
def test_each_call_that_fails_is_reported_or_changes_nothing(recording, tmp_path, words):
    """One after the other, each system call that writes or closes fails. The output is complete, or
    the status is 1, one line has the system's reason, and no output remains that looks complete.
    """
    out, trace = tmp_path / words[-1], tmp_path / "trace"
    printed = words[-1] == "report"
    command = [
        str(x)
        for x in (lab.BUILD / "jvmscope", *words[:-1], words[0] if printed else out, recording)
    ]
    if printed:
        out = tmp_path / "report.txt"

    def run(*before):
        with open(out if printed else "/dev/null", "w") as stdout:
            return subprocess.run(
                [*before, *command], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120
            )

    assert run().returncode == 0
    whole, failed, wrong = out.read_bytes(), 0, []
    for call, error in CALLS.items():
        for nth in range(1, 100):
            out.unlink(missing_ok=True)
            done = run(
                "strace",
                "-f",
                "-o",
                str(trace),
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:error={error}:when={nth}",
            )
            injected = [line for line in trace.read_text().splitlines() if "(INJECTED)" in line]
            if not injected:
                break
            if done.returncode == 127:  # before main
                assert "loading shared libraries" in done.stderr
                continue
            failed += 1
            complete = out.exists() and out.read_bytes() == whole
            if done.returncode == 0 and complete:
                continue
            reported = done.returncode == 1 and (
                not done.stderr and "write(2" in injected[0] or len(done.stderr.splitlines()) == 1
            )
            if not reported or (out.exists() and not printed):
                wrong.append((injected[0], done, complete))
    assert failed >= 4 and not wrong, wrong


def frames(n, upload):
    """Collapsed stacks of n samples; no two uploads have a stack in common."""
    return "".join(
        f"Main.main;Upload{upload}.of_a_long_name_{upload * 7919 % 1009:x}_{i};Leaf{i % 7}.run 1\n"
        for i in range(n)
    )


def answers(c, uploads):
    """Returns the status of each upload, and the reasons of those that were refused. The answer to
    a refused upload is one line, and tells when to try again.
    """
    statuses, reasons = {}, set()
    for key, n in uploads.items():
        status, text, headers = c.request(
            "POST",
            "/v1/upload",
            frames(n, int(key)),
            service=f"s{int(key) % 3}",
            id=key,
            **{"from": NOW - 3600 + int(key) * 17},
        )
        assert status == 200 or status == 503 and int(headers["Retry-After"]) > 0, (status, text)
        assert status == 200 or len(text.splitlines()) == 1, text
        statuses[key] = status
        if status == 503:
            reasons.add(text.strip())
    assert reasons <= {
        "the store: database or disk is full",
        "the body cannot be kept: No space left on device",
    }, reasons
    return statuses, reasons


@pytest.mark.parametrize("end", ["goes on", "kill"])
def test_a_store_on_a_full_disk_neither_loses_nor_duplicates(small, end):
    """Uploads that were accepted are in the store, others are sent again, and in the end each
    counts once.
    """
    store = f"sqlite:{small / 'fleet.db'}"
    subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
    uploads = {str(i): 300 + 40 * (i % 11) for i in range(90)}
    with contextlib.ExitStack() as running:
        c = Collector(small, store=store)
        running.callback(c.kill)
        first, reasons = answers(c, uploads)
        taken = sum(n for key, n in uploads.items() if first[key] == 200)
        assert 0 < list(first.values()).count(200) < len(uploads), first
        assert "the store: database or disk is full" in reasons
        assert total(c) == taken, "the questions are answered on a full disk"
        # Not a single byte is free, but the collector continues.
        with open(small / "filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
        again, _ = answers(c, uploads)
        taken = sum(n for key, n in uploads.items() if 200 in (first[key], again[key]))
        assert 503 in again.values() and total(c) == taken
        failed = int(
            re.search(
                r"^jvmscope_uploads_failed_total (\d+)", c.request("GET", "/metrics")[1], re.M
            )[1]
        )
        assert 0 < failed <= list(first.values()).count(503) + list(again.values()).count(503)
        if end == "kill":
            c.kill()
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        (small / "filler").unlink()
        if end == "kill":
            c = running.enter_context(collector(small, store=store))
        assert total(c) == taken
        assert set(answers(c, uploads)[0].values()) == {200}
        assert total(c) == sum(uploads.values())
        # The stacks are those that were sent, because each upload has different ones.
        counts = dict.fromkeys(uploads, 0)
        for m in fleet(c, "top", "--service", "*", "--limit", "100000")["methods"]:
            if key := re.match(r"Upload(\d+)\.", m["method"]):
                counts[key[1]] += m["total"]
        assert counts == uploads
        c.stop()
