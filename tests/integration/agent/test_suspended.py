# SPDX-License-Identifier: Apache-2.0
"""Another tool stops a thread at any place, possibly while the thread holds a lock of the agent."""
import re
import subprocess
import time

import pytest

import lab

ROUNDS, OBJECTS = 40, 1000


def run(jdk, out, *words, more=""):
    done = jdk.java(
        "Suspended",
        lab.BUILD / "tests/agents/libsuspendjni.so",
        ROUNDS,
        *words,
        jvm=[jdk.agent(f"alloc=exact,format=r,file={out}{more}"), "-Xmx256m"],
        timeout=60,
    )

    report = lab.read_json("report", "--json", out)
    losses = [loss for loss in report["losses"] if "another tool had stopped" in loss["reason"]]
    assert all(loss["capture"] == "alloc" and loss["amount"] > 0 for loss in losses), losses
    ended = [s for s in report["allocations"]["sites"] if s["class"].endswith("Suspended$Last")]
    return done, ended, losses


@pytest.mark.jdks(8, 25, slow=(11, 27))
def test_a_stopped_thread_does_not_stop_the_others(jdk, tmp_path):
    """The thread that stops and resumes the others allocates, too, so it must not wait for a lock
    whose owner only it can resume. Threads end meanwhile, and their counts are not lost, whether or
    not each has rows of its own.
    """
    done, ended, losses = run(
        jdk, tmp_path / "out.jfr", more=",thread=y" if jdk.version == 25 else ""
    )
    assert (done.returncode, done.stdout) == (
        0,
        f"{ROUNDS} stopped, 0 stuck, 0 not ended\n",
    ), done.stderr
    assert sum(s["objects"] for s in ended) == ROUNDS * OBJECTS, (ended, losses)


@pytest.mark.jdks(8, 17, daily=1)
def test_losses_are_reported_on_stderr_where_the_output_cannot_hold_them(jdk, tmp_path):
    """Objects that other threads allocated while a stopped thread held the lock are missing from
    HPROF's text, and a warning says so.
    """
    done = jdk.java(
        "Suspended",
        lab.BUILD / "tests/agents/libsuspendjni.so",
        ROUNDS,
        timeout=60,
        jvm=[jdk.agent(f"heap=sites,cutoff=0,verbose=y,file={tmp_path}/s.txt"), "-Xmx256m"],
    )
    assert (
        done.stdout == f"{ROUNDS} stopped, 0 stuck, 0 not ended\n" and done.returncode == 0
    ), done.stderr
    assert re.search(
        r"^hprof: heap=sites: not counted: \d+ bytes: another tool had stopped the thread ",
        done.stderr,
        re.M,
    ), done.stderr
    assert "(allocated as counted, live " in done.stderr, done.stderr


@pytest.mark.jdks(17, slow=(21,))
def test_the_vm_ends_while_a_thread_is_stopped(jdk, tmp_path):
    """The stopped thread holds the lock of the counts, which the end of the recording needs. Its
    last part is then missing.
    """
    done, ended, losses = run(jdk, tmp_path / "out.jfr", "stays")
    assert (
        done.stdout == f"{ROUNDS} stopped, 0 stuck, 0 not ended, one held: true\n"
        and done.returncode == 0
    ), done.stderr
    assert done.stderr.count("alloc: what was recorded last is missing") == 1, done.stderr
    (unsaved,) = [loss["amount"] for loss in losses if loss["what"] == "milliseconds at the end"]
    objects = sum(s["objects"] for s in ended)
    assert objects > 0 and unsaved > 0, (objects, losses)


# write() to a file of this name creates a file "held", and does not return while the file "hold" is
# next to it.
HOLDS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    char link[64], path[4096] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 10);
    char *name = len > 0 ? strstr(path, "stuck.hprof.txt") : NULL;
    if (name && (strcpy(name, "hold"), access(path, F_OK) == 0)) {
        strcpy(name, "held");
        close(open(path, O_CREAT | O_WRONLY, 0600));
        for (;;)
            pause();
    }
    return real(fd, bytes, n);
}
"""


@pytest.mark.jdks(8, 25, daily=1)
def test_the_vm_waits_ten_seconds_for_a_stuck_thread_that_has_the_recordings_lock(jdk, tmp_path):
    """A thread that does not continue, such as one that a debugger has stopped, is writing a dump.
    The VM ends with the program's own status, and one line says what is missing.
    """
    (tmp_path / "holds.c").write_text(HOLDS)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", tmp_path / "holds.so", tmp_path / "holds.c", "-ldl"],
        check=True,
    )
    agent = jdk.agent(f"heap=sites,file={tmp_path}/stuck.hprof.txt")
    vm = jdk.start(
        "env",
        f"LD_PRELOAD={tmp_path}/holds.so",
        "java",
        agent,
        "-cp",
        lab.compiled("Endings"),
        "Endings",
        "wait",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert vm.stdout.readline() == "ready\n"
    (tmp_path / "hold").touch()
    with subprocess.Popen(
        [lab.BUILD / "jvmscope", "dump", str(vm.pid)], stderr=subprocess.PIPE, text=True
    ) as dump:
        try:
            lab.wait_for((tmp_path / "held").exists, 60, "the dump")
            began = time.monotonic()
            _, printed = vm.communicate("\n\n", timeout=60)
            took = time.monotonic() - began
            assert vm.returncode == 7, printed
            assert (
                printed.count(
                    "what the agent was doing did not end within 10 s of the VM's end; the output lacks its last part\n"
                )
                == 1
            ), printed
            assert took >= 10, took
            assert dump.wait(20) == 1 and "ended" in dump.stderr.read()
        finally:
            dump.kill()
