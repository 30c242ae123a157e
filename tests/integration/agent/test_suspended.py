# SPDX-License-Identifier: Apache-2.0
"""Another tool stops a thread wherever it is, possibly while it holds a lock of the agent."""
import pytest

import lab

ROUNDS, OBJECTS = 40, 1000


def run(jdk, out, *words, more=""):
    done = jdk.java("Suspended", lab.BUILD / "tests/agents/libsuspendjni.so", ROUNDS, *words,
                    jvm=[jdk.agent(f"alloc=exact,format=r,file={out}{more}"), "-Xmx256m"], timeout=60)

    report = lab.read_json("report", "--json", out)
    losses = [loss for loss in report["losses"] if "another tool had stopped" in loss["reason"]]
    assert all(loss["capture"] == "alloc" and loss["amount"] > 0 for loss in losses), losses
    ended = [s for s in report["allocations"]["sites"] if s["class"].endswith("Suspended$Last")]
    return done, ended, losses


@pytest.mark.jdks(8, 25, slow=(11, 27))
def test_a_stopped_thread_does_not_stop_the_others(jdk, tmp_path):
    """The thread that stops and resumes the others allocates, too: it would wait for a lock whose owner only it can resume. Threads end
    meanwhile, and what they counted is not lost, whether or not each has rows of its own."""
    done, ended, losses = run(jdk, tmp_path / "out.jfr", more=",thread=y" if jdk.version == 25 else "")
    assert (done.returncode, done.stdout) == (0, f"{ROUNDS} stopped, 0 stuck, 0 not ended\n"), done.stderr
    assert sum(s["objects"] for s in ended) == ROUNDS * OBJECTS, (ended, losses)


@pytest.mark.jdks(17, slow=(21,))
def test_the_vm_ends_while_a_thread_is_stopped(jdk, tmp_path):
    """The stopped thread holds the lock of what is counted, which the end of the recording needs: its last part is missing then."""
    done, ended, losses = run(jdk, tmp_path / "out.jfr", "stays")
    assert done.stdout == f"{ROUNDS} stopped, 0 stuck, 0 not ended, one held: true\n" and done.returncode == 0, done.stderr
    assert done.stderr.count("alloc: what was recorded last is missing") == 1, done.stderr
    unsaved, = [loss["amount"] for loss in losses if loss["what"] == "milliseconds at the end"]
    objects = sum(s["objects"] for s in ended)
    assert objects > 0 and unsaved > 0, (objects, losses)
