# SPDX-License-Identifier: Apache-2.0
"""The options and verbs that exist, according to the command itself."""
import functools
import json
import os
import re
import subprocess

import lab

OPTIONS_READ = lab.BUILD / "tests" / "unit" / "options_read"

# Commands that make requests of a VM, with what follows the process id.
ASKING = {
    "heap dump": [],
    "check": [],
    "top": [],
    "status": [],
    "dump": [],
    "stop": [],
    "inspect": ["threads"],
    "control": ["list"],
}
# Commands that record, with their operands: the options here are those that are not the agent's
# (test_options.py).
OWN = {"run": ["--", "/no/such/program"], "attach": [os.getpid()], "slow": [os.getpid()]}


@functools.cache
def table():
    """Returns the rows that are flags of the command, without the output and the time, which the
    command keeps to itself.
    """
    lines = subprocess.run(
        [OPTIONS_READ, "table"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        r for r in rows if r["flag"] and not r["hidden"] and r["name"] not in ("file", "duration")
    ]


def verbs():
    yield from ("report", "diff", "convert", "coverage", "trace", "requests", "vm", "serve")
    for command in ("threads", "heap", "requests"):
        yield from (name for name, _ in verbs_of(command))
    yield from (name for name in ASKING if " " not in name)
    yield from OWN
    yield from ("collect", "host", "list")
    yield from (name for name, _ in verbs_of("fleet"))


def verbs_of(command):
    """Returns the verbs in a command's help, with their summaries."""
    return re.findall(rf"(?m)^  ({command} \S+) +(.*)", lab.output(command, "--help"))
