# SPDX-License-Identifier: Apache-2.0
"""Time in which a thread could run and had no processor, with more busy threads than processors."""
import json

import lab


def test_preempted_time_is_what_linux_counts(jdk, tmp_path):
    out = tmp_path / "out.jfr"
    done = jdk.java("Crowd", jvm=[jdk.agent(f"threads=y,format=r,file={out}"), "-Xmx64m"], timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    crowd = {name: (int(took), int(delay)) for name, took, delay in (line.split() for line in done.stdout.splitlines())}
    assert len(crowd) >= 4
    for name, (took, delay) in list(crowd.items())[:4]:
        shown = lab.jvmscope("threads", "critical-path", "--json", "--end", name, out)
        assert shown.returncode == 0, shown.stderr
        path = json.loads(shown.stdout)
        states = {}
        for s in path["segments"]:
            if s["thread"] == name:
                states[s["state"]] = states.get(s["state"], 0) + s["ns"]
                assert s["state"] != "preempted" or s["inferred"]
        # Four times as many as there are processors: most of the time a thread has none.
        assert delay > 0.3 * took, (name, took, delay)
        # Before and behind what the program counts lie the thread's own beginning and end, under the same load.
        assert 0.95 * delay <= states.get("preempted", 0), (name, took, delay, states)
        assert states["preempted"] + states["run"] >= took and states["run"] >= 0.9 * (took - delay), (name, took, delay, states)
