# SPDX-License-Identifier: Apache-2.0
"""Classes that come from the VM's shared archive go on coming from there, with what samples and records waits."""
import re
import time

import pytest

import lab

# Captures that change no class of the program at its start.
LIGHT = ["cpu=samples,threads=y", "cpu=wall"]


def loaded(jdk, tmp_path, *flags, options=None):
    """The classes that a short program loads: from the archive, from elsewhere."""
    log = tmp_path / "classes.txt"
    agent = [jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")] if options else []
    done = jdk.java("Busy", "0.1", jvm=[f"-Xlog:class+load:file={log}", *flags, *agent])
    assert done.returncode == 0, done.stderr
    lines = re.findall(r" (\S+) source: (.*)$", log.read_text(), re.M)
    shared = {name for name, source in lines if source.startswith("shared objects file")}
    return shared, {name for name, _ in lines} - shared


@pytest.mark.jdks(17, 25)
def test_samples_and_waits_leave_the_shared_archive_in_use(jdk, tmp_path):
    plain, _ = loaded(jdk, tmp_path)
    assert len(plain) > 300  # the default archive is there
    for options in LIGHT:
        shared, other = loaded(jdk, tmp_path, options=options)
        assert plain <= shared, (options, sorted(plain - shared)[:5])
        assert len(other) < 60, (options, sorted(other)[:20])


@pytest.mark.jdks(17, 25)
def test_an_archive_of_the_program_stays_in_use(jdk, tmp_path):
    """-XX:SharedArchiveFile, and -Xshare:on, with which a VM that cannot use its archive ends."""
    archive, jar = tmp_path / "app.jsa", tmp_path / "app.jar"
    assert jdk.run("jar", "cf", jar, "-C", lab.compiled("Busy"), ".").returncode == 0
    command = ["java", "-cp", jar]
    assert jdk.run(*command, f"-XX:ArchiveClassesAtExit={archive}", "Busy", "0.1").returncode == 0 and archive.exists()
    log = tmp_path / "classes.txt"
    for options in (None, "cpu=samples,threads=y"):
        agent = [jdk.agent(f"format=r,{options},file={tmp_path}/x.jfr")] if options else []
        done = jdk.run(*command, f"-Xlog:class+load:file={log}", "-Xshare:on", f"-XX:SharedArchiveFile={archive}", *agent, "Busy", "0.1")
        assert done.returncode == 0, done.stderr
        assert re.search(r" Busy source: shared objects file \(top\)", log.read_text()), options


@pytest.mark.measured
@pytest.mark.jdks(17, 25)
def test_start_up_takes_at_most_ten_milliseconds_more(jdk, tmp_path):
    """The median of the differences of neighbouring runs, with the archive."""
    command = ["java", "-Xshare:auto", "-cp", lab.compiled("Busy")]
    agent = jdk.agent(f"format=r,cpu=samples,threads=y,file={tmp_path}/x.jfr")

    def run(*flags):
        start = time.monotonic()
        assert jdk.run(*command, *flags, "Busy", "0").returncode == 0
        return time.monotonic() - start

    more = sorted(run(agent) - run() for _ in range(21))
    assert more[10] <= 0.010, more
