# SPDX-License-Identifier: Apache-2.0
"""A bounded run of every fuzz target, sanitizers on, from its seeds. `make fuzz` runs them for
longer.
"""
import os
import pathlib
import subprocess
import tempfile

import lab
import pytest

TARGETS = sorted(p.stem[len("fuzz_") :] for p in (lab.ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
SECONDS = 2


@pytest.mark.parametrize("target", TARGETS)
def test_survives_what_a_fuzzer_finds(target):
    program = lab.ROOT / "build-san" / "tests" / "fuzz" / f"fuzz_{target}"
    assert program.exists(), "make sanitized"
    seeds = lab.ROOT / "tests" / "fuzz" / "seeds" / target
    with tempfile.TemporaryDirectory() as corpus:
        done = subprocess.run(
            [
                program,
                f"-max_total_time={SECONDS}",
                "-timeout=10",
                "-rss_limit_mb=2048",
                f"-artifact_prefix={pathlib.Path(corpus).parent}/jvmscope-fuzz-{target}-",
                corpus,
                *([seeds] if seeds.is_dir() else []),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            env=dict(os.environ, UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1"),
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done " in done.stderr, done.stderr[-1000:]
