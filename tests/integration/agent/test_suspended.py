# SPDX-License-Identifier: Apache-2.0
"""Another tool stops a thread wherever it is, possibly while it holds a lock of the agent."""
import pytest

import lab

ROUNDS, OBJECTS = 40, 1000


def run(jdk, out, more=""):
    done = jdk.java("Suspended", lab.BUILD / "tests/agents/libsuspendjni.so", ROUNDS,
                    jvm=[jdk.agent(f"alloc=exact,format=r,file={out}{more}"), "-Xmx256m"], timeout=240)
    report = lab.read_json("report", "--json", out)
    losses = [loss for loss in report["losses"] if "had stopped the thread" in loss["reason"]]
    assert all(loss["capture"] == "alloc" and loss["amount"] > 0 for loss in losses), losses
    ended = [s for s in report["allocations"]["sites"] if s["class"].endswith("Suspended$Last")]
    return done, ended, losses


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_a_stopped_thread_does_not_stop_the_others(jdk, tmp_path):
    """The thread that stops and resumes the others allocates, too: it would wait for a lock whose owner only it can resume. Threads end
    meanwhile, and what they counted is not lost, whether or not each has rows of its own."""
    done, ended, losses = run(jdk, tmp_path / "out.jfr", more=",thread=y" if jdk.version == 25 else "")
    assert (done.returncode, done.stdout) == (0, f"{ROUNDS} stopped, 0 stuck, 0 not ended\n"), done.stderr
    assert sum(s["objects"] for s in ended) == ROUNDS * OBJECTS, (ended, losses)
