# SPDX-License-Identifier: Apache-2.0
"""Exhausted memory: waiting for it does not change the VM's log, and therefore not the program's
output.
"""
import re
import subprocess

import pytest

import lab

POSTED = "Posting Resource Exhausted event"
WAITING = {
    "onoom": "onoom=dump,format=r",
    "trigger": "format=r,always=y,maxsize=4m,on=oom",
    "both": "format=r,always=y,maxsize=4m,on=oom,onoom=dump",
    "dump at the end": "heap=dump,format=b,verbose=n",
}
# Logs other than the usual one, which has warnings on standard output. PATH stands for the path of
# a file.
LOGS = [
    ["-Xlog:disable"],
    ["-Xlog:all=error:stdout:none"],
    ["-Xlog:disable", "-Xlog:all=warning:stderr:time,tags"],
    ["-Xlog:disable", "-Xlog:gc*=info:stdout:none"],
    ["-Xlog:all=warning:file=PATH"],
    ["-Xlog:jvmti=error:file=PATH"],
]


def exhausted(jdk, folder, options, *flags):
    """Runs a program that exhausts its memory three times; returns its two streams without what the
    agent says, and the text of the file into which the VM logs, if there is one.
    """
    folder.mkdir()
    agent = [jdk.agent(f"{options},file={folder}/o.jfr")] if options else []
    flags = [f.replace("PATH", f"{folder}/vm.log") for f in flags]
    done = jdk.java("Exhausts", jvm=[*agent, *flags, "-XX:+UseSerialGC", "-Xmx48m"])
    assert done.returncode == 0, done
    printed = [x for x in done.stderr.splitlines() if not x.startswith("hprof: ")]
    log = folder / "vm.log"
    return (
        re.sub(r"\d+(\.\d+)?", "N", done.stdout),
        printed,
        log.read_text() if log.exists() else "",
    )


@pytest.mark.parametrize("waiting", WAITING)
def test_the_streams_are_those_of_a_run_without_the_agent(jdk, tmp_path, waiting):
    assert exhausted(jdk, tmp_path / "with", WAITING[waiting]) == ("caught N\n", [], "")
    dumps = [p.name for p in (tmp_path / "with").glob("*.oom.hprof")]
    assert dumps == ["o.oom.hprof"] * ("onoom=" in WAITING[waiting])


@pytest.mark.jdks(17)
def test_the_dump_for_exhausted_memory_is_not_counted_in_the_numbers_of_the_others(jdk, tmp_path):
    """The commands look for dumps without gaps in their numbers."""
    exhausted(jdk, tmp_path / "with", "onoom=dump,heap=dump,format=r")
    dumps = sorted(p.name for p in (tmp_path / "with").glob("*.hprof"))
    assert dumps == ["o.hprof", "o.oom.hprof"]


@pytest.mark.jdks(11, 17, 25, slow=(21, 27))
def test_logs_other_than_the_usual_one(jdk, tmp_path):
    """The outputs that the user chose are like those of a run without the agent. If the user
    requests the lines of JVM TI, they are written.
    """
    for i, flags in enumerate(LOGS):
        out, err, log = exhausted(jdk, tmp_path / f"without{i}", "", *flags)
        now = exhausted(jdk, tmp_path / f"with{i}", WAITING["both"], *flags)
        assert POSTED not in out + "".join(err) + log
        if "gc*=info" not in flags[-1]:  # the agent's own objects cause other collections
            assert now[0] == out
        named = "jvmti" in flags[-1]
        assert POSTED not in now[0] and now[1] == err and now[2].count(POSTED) == 3 * named


def outputs(jdk, pid):
    """Returns the outputs of the VM's log, as the VM describes them."""
    done = jdk.run("jcmd", pid, "VM.log", "list", check=True)
    return [x.strip() for x in done.stdout.splitlines() if re.match(r" *#\d+: ", x)]


@pytest.mark.jdks(11, 17, 25, slow=(21, 27))
def test_the_log_is_restored(jdk, tmp_path):
    """This is done at the end of the last recording that waits for exhausted memory. What the user
    has changed in the meantime remains.
    """
    flags = ("-Xlog:all=warning:stderr:time", f"-Xlog:gc*=info:file={tmp_path}/gc.log:uptime")
    with jdk.start_java(
        "Busy", 600, jvm=flags, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            before = outputs(jdk, process.pid)
            assert len(before) == 3 and "jvmti" not in "".join(before)
            for options in (["--cpu", "--on-oom"], ["--always", "--max-size", "4m", "--on", "oom"]):
                ring = "--always" in options
                where = tmp_path / ("a.ring" if ring else "a.jfr")
                lab.output("attach", *options, "-o", where, process.pid)
                now = outputs(jdk, process.pid)
                assert ["all=warning,jvmti=off" in x for x in now[:2]] == [True, True], now
                assert lab.jvmscope("stop", process.pid).returncode == 0
                after = [x.replace(" (reconfigured)", "") for x in outputs(jdk, process.pid)]
                assert after == before
            lab.output("attach", "--on-oom", "-o", tmp_path / "b.jfr", process.pid)
            jdk.run("jcmd", process.pid, "VM.log", "output=stdout", "what=all=error", check=True)
            changed = outputs(jdk, process.pid)[0]
            assert lab.jvmscope("stop", process.pid).returncode == 0
            first, second, *_ = outputs(jdk, process.pid)
            assert first == changed and "all=error" in first and "jvmti" not in second
        finally:
            process.kill()
