# SPDX-License-Identifier: Apache-2.0
"""Recordings that are always on: how they are attached, read and asked."""
import json
import time

import lab


def attach(pid, *args):
    done = lab.jvmscope("attach", *([] if "--always=memory" in args else ["--always"]), *args, pid)
    assert done.returncode == 0 and f"dump --last 5m -o FILE.jfr {pid}" in done.stderr, done.stderr
    return time.time_ns() // 10**6 + 1


def take(*args):
    done = lab.jvmscope("dump", *args)
    assert done.returncode == 0, done.stderr
    return done.stderr


def status(pid):
    return json.loads(lab.jvmscope("status", "--json", pid).stdout)


def memory_of(now):
    """What status says that the agent has in memory, in bytes."""
    return now["memory.tables_bytes"] + now["names.bytes"] + now["ring.name_bytes"]
