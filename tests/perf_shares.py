# SPDX-License-Identifier: Apache-2.0
"""The share of a program's CPU time that perf finds in the agent: a measurement that is independent
of the agent's own.
"""
import subprocess

# The agent's JVM TI callbacks and natives call these functions of the program's own, which would
# run without the agent, too.
REAL = ("Unsafe_Park", "Unsafe_Unpark")


def shares(pid, seconds, data):
    """Samples of all threads: in all, of the agent's threads, and in the agent's code on threads
    of the program, including what that calls. The handler of a CPU sample counts as code of the
    agent. So does a clock that seems to be read by compiled Java code, because perf loses the
    caller of a function that keeps no frame pointer; the program must not read it.
    """
    subprocess.run(
        [
            "perf",
            "record",
            "-q",
            "-g",
            "-e",
            "cpu-clock",
            "-F",
            "999",
            "-p",
            str(pid),
            "-o",
            data,
            "--",
            "sleep",
            str(seconds),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    text = subprocess.run(
        ["perf", "script", "-i", data, "-F", "comm,tid,ip,sym,dso"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    stacks = [block.strip().splitlines() for block in text.split("\n\n") if block.strip()]
    own = sum(s[0].startswith("jvmscope") for s in stacks)
    callbacks = sum(is_callback(s[1:]) for s in stacks if not s[0].startswith("jvmscope"))
    return len(stacks), own, callbacks


def is_callback(frames):
    if any(name in frame for name in REAL for frame in frames):
        return False
    if any("libhprof" in frame for frame in frames):
        return True
    # the vDSO, libc, or the loader (for variables of a thread)
    called = next(
        (
            i
            for i, frame in enumerate(frames)
            if not any(name in frame for name in ("[vdso]", "/libc.so", "/ld-linux"))
        ),
        len(frames),
    )
    return (
        0 < called < len(frames)
        and "perf-" in frames[called]
        and not any("libjvm" in frame for frame in frames)
    )
