# SPDX-License-Identifier: Apache-2.0
"""What reading samples costs, in instructions and memory, which do not depend on how busy the machine is."""
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
    """Recordings of the same stacks with few and with more samples, by (samples, bytes a chunk)."""
    folder = tmp_path_factory.mktemp("reading")
    subprocess.run(["gcc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-o", folder / "generate", lab.ROOT / "bench" / "jfr_generate.c"], check=True)

    def make(samples, stacks=STACKS, chunk=None):
        path = folder / f"{samples}-{stacks}-{chunk}.jfr"
        if not path.exists():
            subprocess.run([folder / "generate", path, str(samples), str(stacks), str(THREADS), str(DEPTH), *([str(chunk)] if chunk else [])], check=True)
        return path

    return make


def instructions(*args):
    """Returns how many instructions the command executes."""
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", lab.BUILD / "jvmscope", *map(str, args)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return int(re.search(r"I +refs: +([\d,]+)", done.stderr)[1].replace(",", ""))


# Instructions for each sample, a quarter above what they were when this was written, in one chunk and in small ones, most of which are
# constants. If you reduce them, lower the bound.
BOUNDS = {"report": (655, 4200), "collapsed": (655, 4200), "pb.gz": (775, 4350), "html": (3300, 6850)}


@pytest.mark.parametrize("chunk", [None, CHUNK], ids=["one_chunk", "chunks_of_16_KiB"])
@pytest.mark.parametrize("output", BOUNDS)
def test_a_sample_takes_few_instructions(recordings, tmp_path, output, chunk):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not there (tools/setup check)")
    few, many = (instructions(*(["report", path] if output == "report" else ["convert", path, "-o", tmp_path / f"x.{output}"]))
                 for path in (recordings(n, chunk=chunk) for n in SAMPLES[chunk]))
    each = (many - few) / (SAMPLES[chunk][1] - SAMPLES[chunk][0])
    print(f"{output}, {'chunks' if chunk else 'one chunk'}: {each:.0f} instructions a sample")
    assert each <= BOUNDS[output][chunk is not None]


def most_memory(*args):
    """The peak of the command's resident memory in MiB."""
    code = ("import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-c", code, lab.BUILD / "jvmscope", *map(str, args)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


@pytest.mark.parametrize("chunk", [None, CHUNK], ids=["one_chunk", "chunks_of_16_KiB"])
@pytest.mark.parametrize("output", BOUNDS)
def test_memory_does_not_grow_with_the_number_of_samples(recordings, tmp_path, output, chunk):
    """For recordings that are larger than what is read ahead, with the same stacks and threads."""
    few, many = (most_memory(*(["report", path] if output == "report" else ["convert", path, "-o", tmp_path / f"x.{output}"]))
                 for path in (recordings(n, stacks=20, chunk=chunk) for n in (1000000, 4000000)))
    assert many - few < 8, (few, many)
