# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium, and its code that needs none: each tests/page/*.test.mjs is a test
here.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

import lab

PAGES = sorted((lab.ROOT / "tests" / "page").glob("*.test.mjs"))


# Real programs are recorded for half a minute, and large recordings are generated. Part of
# check-all.
SLOW = {"real", "large"}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            p, id=p.name.split(".")[0], marks=[pytest.mark.slow] * (p.name.split(".")[0] in SLOW)
        )
        for p in PAGES
    ],
)
def test_page(script):
    for need in ("node", "chromium"):
        if not shutil.which(need):
            pytest.skip(f"{need} is missing (tools/setup check)")
    if not (lab.ROOT / "web" / "node_modules" / "playwright-core").exists():
        pytest.skip("the packages of web/package-lock.json are not there (npm ci in web)")
    text = script.read_text()
    programs = (
        {
            name
            for call in re.findall(r'\bjava\(("\w+"(?:, "\w+")*)\)', text)
            for name in re.findall(r"\w+", call)
        }
        if lab.matrix_ready()
        else ()
    )
    classes = json.dumps({name: str(lab.compiled(name)) for name in programs})
    # Whatever the browser leaves when it is killed is in a separate folder, whose name is short
    # enough for its socket.
    with tempfile.TemporaryDirectory(
        prefix="jvmscope-test-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as folder:
        done = subprocess.run(
            ["node", "--test", script],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "TMPDIR": folder, "JVMSCOPE_TEST_CLASSES": classes},
        )
    assert done.returncode == 0, done.stdout + done.stderr
