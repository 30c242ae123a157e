# SPDX-License-Identifier: Apache-2.0
"""Another tool stops a thread wherever it is, possibly while it holds a lock of the agent."""
import pytest

import lab


@pytest.mark.jdks(8, 17, 25, slow=(11, 21, 27))
def test_a_stopped_thread_does_not_stop_the_others(jdk, tmp_path):
    """The thread that stops and resumes the others allocates, too: it would wait for a lock whose owner only it can resume."""
    out = tmp_path / "out.jfr"
    done = jdk.java("Suspended", lab.BUILD / "tests/agents/libsuspendjni.so", 40,
                    jvm=[jdk.agent(f"alloc=exact,format=r,file={out}"), "-Xmx256m"], timeout=240)
    assert (done.returncode, done.stdout) == (0, "40 stopped, 0 stuck\n"), done.stderr
    losses = [loss for loss in lab.read_json("report", "--json", out)["losses"] if "had stopped the thread" in loss["reason"]]
    assert all(loss["capture"] == "alloc" and loss["amount"] > 0 for loss in losses), losses
