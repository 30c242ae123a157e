# SPDX-License-Identifier: Apache-2.0
"""What reading samples costs, in instructions and memory, which do not depend on how busy the
machine is.
"""
import json
import re
import shutil
import subprocess
import sys

import pytest

import lab

CHUNK = 16384
SAMPLES = {None: (10000, 40000), CHUNK: (2500, 10000)}
STACKS, THREADS, DEPTH = 100, 16, 10


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Recordings of the same stacks with few and with more samples, by (samples, bytes per
    chunk).
    """
    folder = tmp_path_factory.mktemp("reading")
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-std=gnu17",
            "-D_GNU_SOURCE",
            "-o",
            folder / "generate",
            lab.ROOT / "bench" / "jfr_generate.c",
        ],
        check=True,
    )

    def make(samples, stacks=STACKS, chunk=None, depth=DEPTH):
        path = folder / f"{samples}-{stacks}-{chunk}-{depth}.jfr"
        if not path.exists():
            subprocess.run(
                [
                    folder / "generate",
                    path,
                    str(samples),
                    str(stacks),
                    str(THREADS),
                    str(depth),
                    *([str(chunk)] if chunk else []),
                ],
                check=True,
            )
        return path

    return make


def instructions(*args):
    """Returns how many instructions the command executes."""
    done = subprocess.run(
        [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
            lab.BUILD / "jvmscope",
            *map(str, args),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(re.search(r"I +refs: +([\d,]+)", done.stderr)[1].replace(",", ""))


# Instructions per sample may exceed the number when this was written by a quarter, in one chunk and
# in small ones, most of which are constants. If you reduce them, lower the bound.
BOUNDS = {
    "report": (450, 3400),
    "collapsed": (450, 3400),
    "pb.gz": (775, 4000),
    "html": (2050, 5200),
}


@pytest.mark.parametrize("chunk", [None, CHUNK], ids=["one_chunk", "chunks_of_16_KiB"])
@pytest.mark.parametrize("output", BOUNDS)
def test_a_sample_takes_few_instructions(recordings, tmp_path, output, chunk):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    few, many = (
        instructions(
            *(
                ["report", path]
                if output == "report"
                else ["convert", path, "-o", tmp_path / f"x.{output}"]
            )
        )
        for path in (recordings(n, chunk=chunk) for n in SAMPLES[chunk])
    )
    each = (many - few) / (SAMPLES[chunk][1] - SAMPLES[chunk][0])
    print(f"{output}, {'chunks' if chunk else 'one chunk'}: {each:.0f} instructions per sample")
    assert each <= BOUNDS[output][chunk is not None]


# The same for chunks of many deep stacks, most of which earlier chunks have defined too.
DEEP_STACKS, DEEP_SAMPLES, DEEP_BOUND = 500, (5000, 20000), 12400


def test_a_stack_that_earlier_chunks_defined_is_not_decoded_again(recordings):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    few, many = (
        instructions("report", recordings(n, stacks=DEEP_STACKS, chunk=CHUNK, depth=30))
        for n in DEEP_SAMPLES
    )
    each = (many - few) / (DEEP_SAMPLES[1] - DEEP_SAMPLES[0])
    print(f"deep stacks, chunks: {each:.0f} instructions per sample")
    assert each <= DEEP_BOUND


def test_ids_that_stand_for_other_methods_in_later_chunks_are_distinguished(recordings, tmp_path):
    """Two recordings in one file, with the same ids and stacks but other classes: each keeps its
    samples.
    """
    first = recordings(SAMPLES[CHUNK][1], stacks=DEEP_STACKS, chunk=CHUNK)
    both = tmp_path / "both.jfr"
    both.write_bytes(first.read_bytes() + first.read_bytes().replace(b"bench/p", b"bench/q"))

    def methods(file):
        shown = subprocess.run(
            [lab.BUILD / "jvmscope", "report", "--json", file], capture_output=True, check=True
        )
        return {
            m["method"]: (m["self"], m["total"])
            for m in json.loads(shown.stdout)["samples"]["methods"]
        }

    alone = methods(first)
    assert methods(both) == alone | {
        name.replace("bench.p", "bench.q"): sums for name, sums in alone.items()
    }


def most_memory(*args):
    """The peak of the command's resident memory in MiB."""
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, lab.BUILD / "jvmscope", *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout) / 1024


@pytest.mark.parametrize("chunk", [None, CHUNK], ids=["one_chunk", "chunks_of_16_KiB"])
@pytest.mark.parametrize("output", BOUNDS)
def test_memory_does_not_grow_with_the_number_of_samples(recordings, tmp_path, output, chunk):
    """For recordings that are larger than what is read ahead, with the same stacks and threads."""
    few, many = (
        most_memory(
            *(
                ["report", path]
                if output == "report"
                else ["convert", path, "-o", tmp_path / f"x.{output}"]
            )
        )
        for path in (recordings(n, stacks=20, chunk=chunk) for n in (1000000, 4000000))
    )
    assert many - few < 8, (few, many)


EVENTS = 1300000  # as many as a recording has at least that gets an index

# Instructions per event of a timeline: at most a quarter more than when this was written, for
# reading it and writing its index, and for answers from the index. If you reduce them, lower the
# bound. With the index, `deadlocks` only passes over the recording's events. Distinguishing
# sections of a monitor that its owner left and took again takes 300 of the instructions and 3 of
# the bytes.
TIMELINE_BOUNDS = {
    "deadlocks": 3550,
    "critical-path": 2020,
    "critical-path again": 85,
    "deadlocks again": 160,
    "summary": 831,
}
# Of these, 6,000 are for what is possible with locks that were free: another replay, and the time
# in which nothing else was done.
WHAT_IF_EVENTS, WHAT_IF_BOUND = (20000, 60000), 15900
INDEX_BYTES = 27


@pytest.fixture(scope="module")
def timeline(tmp_path_factory):
    """Returns a function that records contended monitors and parks, as many events as its argument
    says.
    """
    folder = tmp_path_factory.mktemp("timelines")
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-std=gnu17",
            "-D_GNU_SOURCE",
            f"-I{lab.ROOT / 'src'}",
            lab.ROOT / "bench" / "threads_generate.c",
            lab.BUILD / "src/jfr/libjfr.a",
            lab.BUILD / "src/base/libbase.a",
            "-lpthread",
            "-lz",
            "-o",
            folder / "generate",
        ],
        check=True,
    )

    def make(events):
        path = folder / f"{events}.jfr"
        subprocess.run(
            [folder / "generate", path, str(events)], check=True, stdout=subprocess.DEVNULL
        )
        return path

    return make


def test_an_event_of_a_timeline_takes_few_instructions_and_bytes(timeline):
    """The index is made by the first command and gets the holds of locks by the second, which both
    write; the others read it.
    """
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    file = timeline(EVENTS)
    each = {
        step: instructions("threads", step.split()[0], file) / EVENTS for step in TIMELINE_BOUNDS
    }
    size = file.with_suffix(".jfr.timeline").stat().st_size / EVENTS
    print(f"instructions per event: {each}; bytes: {size:.1f}")
    assert not {step: n for step, n in each.items() if n > TIMELINE_BOUNDS[step]}
    assert size <= INDEX_BYTES


def test_an_event_of_a_what_if_takes_few_instructions(timeline):
    """Both orders: that of the recording and the one decided anew."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    few, many = (
        instructions("threads", "what-if", "--lock", "Server", "--factor", "0.5", timeline(n))
        for n in WHAT_IF_EVENTS
    )
    each = (many - few) / (WHAT_IF_EVENTS[1] - WHAT_IF_EVENTS[0])
    print(f"what-if: {each:.0f} instructions per event")
    assert each <= WHAT_IF_BOUND
