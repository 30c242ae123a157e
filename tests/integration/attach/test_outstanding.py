# SPDX-License-Identifier: Apache-2.0
"""The memory that the agent allocates for a recording does not grow from recording to recording,
for each capture. The VM's own memory is not counted: HotSpot keeps some of each class that is
changed, and JDK 8 keeps it until the class is unloaded.
"""

import os
import signal
import subprocess

import lab
import pytest

CAPTURES = {
    "cpu": ["--cpu"],
    "wall": ["--cpu=wall", "--native"],
    "times": ["--cpu=times", "--include", "RequestsTruth*"],
    "alloc": ["--alloc", "--live", "--include", "RequestsTruth*"],
    "exact": ["--alloc=exact", "--live", "--include", "RequestsTruth*"],
    "sites": ["--heap=sites", "--include", "RequestsTruth*"],
    "threads": ["--threads", "--monitors", "--locks=all", "--events"],
    "exceptions": ["--exceptions", "--include", "RequestsTruth*"],
    "cover": ["--cover", "--include", "RequestsTruth*"],
    "requests": ["--requests=RequestsTruth$Shop.order"],
    "trace": ["--trace", "RequestsTruth$Shop.order", "--if", "time > 1us"],
    "log": ["--log", "RequestsTruth$Shop:107 {n} {thread}"],
    "both": ["--requests=RequestsTruth$Shop.order", "--cpu", "--threads"],
}
OFTEN = ["cpu", "alloc", "trace"]
RECORDINGS = 20


def outstanding(process, path):
    """The bytes that each call instruction of the agent has allocated, and the bytes mapped."""
    path.unlink(missing_ok=True)
    os.kill(process.pid, signal.SIGRTMAX)
    lab.wait_for(lambda: path.exists() and "total" in path.read_text(), 60, "the figures")
    *places, total = path.read_text().splitlines()
    _, _, mapped, missing = total.split()
    assert missing == "0"
    return {"mapped": int(mapped), **{at: int(n) for at, n in map(str.split, places)}}


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(OFTEN, id="often"),
        pytest.param([n for n in CAPTURES if n not in OFTEN], marks=pytest.mark.slow, id="others"),
    ],
)
def test_what_a_recording_allocates_is_released(jdk, tmp_path, names):
    process = jdk.start_java(
        "RequestsTruth",
        1000000,
        "executor,fork-join,future,async-future,thread,method,virtual",
        "silent",
        env={
            **os.environ,
            "LD_PRELOAD": f"{lab.BUILD}/tests/agents/liboutstanding.so",
            "OUTSTANDING": str(tmp_path / "outstanding"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        for name in names:
            seen, growing = [], None
            # Caches of threads that live on grow seldom. A leak grows with each recording.
            while growing is None or growing:
                assert len(seen) < RECORDINGS, (name, {at: [s[at] for s in seen] for at in growing})
                out = tmp_path / "o.jfr"
                done = lab.jvmscope("attach", *CAPTURES[name], "-t", "50ms", "-o", out, process.pid)
                assert done.returncode == 0, (name, done.stderr)
                seen.append(outstanding(process, tmp_path / "outstanding"))
                if len(seen) > 2:
                    grown = {at for at, n in seen[-1].items() if n > seen[-2].get(at, 0)}
                    growing = grown if growing is None else growing & grown
                    # The tree of an ended recording keeps its addresses without their memory.
                    growing -= {"mapped"} if name == "times" else set()
    finally:
        process.kill()
        process.communicate()
