# SPDX-License-Identifier: Apache-2.0
"""A VM that publishes no counters: its flags and its main class are found wherever they were given,
and a VM that takes no requests to attach is never made to print a thread dump."""
import json
import os
import socket
import subprocess

import pytest

import lab

COMMAND = lab.BUILD / "jvmscope"
DISABLED, REFUSING = "-XX:+DisableAttachMechanism", "-XX:-EnableDynamicAgentLoading"
# The command must not read the VM's memory, as where kernel.yama.ptrace_scope is 1.
NO_MEMORY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
static int guarded(const char *symbol, const char *path, int flags, int mode)
{
    size_t n = strlen(path);
    if (n > 4 && strncmp(path, "/proc/", 6) == 0 && strcmp(path + n - 4, "/mem") == 0)
        return errno = EACCES, -1;
    return ((int (*)(const char *, int, int))dlsym(RTLD_NEXT, symbol))(path, flags, mode);
}
#define GUARD(name) int name(const char *path, int flags, ...) { \
    va_list args; va_start(args, flags); int mode = va_arg(args, int); va_end(args); \
    return guarded(#name, path, flags, mode); }
GUARD(open) GUARD(open64)
"""


@pytest.fixture(scope="module")
def no_memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preload")
    (folder / "guard.c").write_text(NO_MEMORY)
    guard = folder / "guard.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", guard, folder / "guard.c", "-ldl"], check=True)
    return guard


def places(flag, folder):
    """Where a flag can be given: by name, the first JDK that reads it there, the environment, and
    the arguments before and in place of the class path.
    """
    (folder / "words").write_text(f'# a comment\n"{flag}"  -Dfile=\'a b\'\n')
    (folder / "options").write_text(f"-Da='b c' {flag}\n")
    (folder / "flags").write_text(f"# a comment\n{flag.removeprefix('-XX:')}\n")
    # Relative names are those of the VM's working folder.
    (folder / "main").write_text(f"{flag} -cp {lab.compiled('Busy')} Busy 62")
    return {
        "line": (8, "", flag, None),
        "JAVA_TOOL_OPTIONS": (8, f"JAVA_TOOL_OPTIONS={flag}", "", None),
        "_JAVA_OPTIONS": (8, f"_JAVA_OPTIONS={flag}", "", None),
        "JDK_JAVA_OPTIONS": (11, f"JDK_JAVA_OPTIONS={flag}", "", None),
        "file in JDK_JAVA_OPTIONS": (11, f"JDK_JAVA_OPTIONS=@{folder}/words", "", None),
        "@file": (11, "", f"@{folder}/words", None),
        "@file with the main class": (11, "", "@main", ""),
        "Flags": (8, "", f"-XX:Flags={folder}/flags", None),
        "Flags in JAVA_TOOL_OPTIONS": (11, "JAVA_TOOL_OPTIONS=-XX:Flags=flags", "", None),
        "VMOptionsFile": (11, "", "-XX:VMOptionsFile=options", None),
        "VMOptionsFile in _JAVA_OPTIONS": (
            11,
            f"_JAVA_OPTIONS=-XX:VMOptionsFile={folder}/options",
            "",
            None,
        ),
    }


PLACES = [
    "line",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "file in JDK_JAVA_OPTIONS",
    "@file",
    "@file with the main class",
    "Flags",
    "Flags in JAVA_TOOL_OPTIONS",
    "VMOptionsFile",
    "VMOptionsFile in _JAVA_OPTIONS",
]


class Started:
    """Starts a VM without counters whose flags were given in one of the places."""

    def __init__(self, jdk, folder, environment="", arguments="", rest=None):
        rest = f"-cp {lab.compiled('Busy')} Busy 62" if rest is None else rest
        self.process = jdk.start(
            "sh",
            "-c",
            f"cd {folder} && exec env {environment} java -XX:-UsePerfData -Xmx32m {arguments} {rest}",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, *words, preload=None):
        environment = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
        return subprocess.run(
            [str(w) for w in (COMMAND, *words, self.pid)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )

    def checks(self, preload=None):
        found = json.loads(self.ask("check", "--json", preload=preload).stdout)["checks"]
        return {c["name"]: (c["verdict"], c["why"]) for c in found}

    def end(self):
        """Ends the program and returns what else it has printed."""
        self.process.kill()
        return self.process.communicate()[0]


def recorded(done):
    """On a busy machine the program may have had no CPU time to be sampled."""
    return done.returncode == 0 or "holds no samples" in done.stderr


def refused_everywhere(started, folder, preload, *words):
    """No command makes the VM print a thread dump, and each says why it is refused."""
    for command in (
        ("attach", "--cpu", "-t", "50ms", "-o", folder / "x.jfr"),
        ("heap", "dump", "-o", folder / "x.hprof"),
        ("status",),
        ("inspect",),
    ):
        tail = ("vm",) if command == ("inspect",) else ()
        done = subprocess.run(
            [str(w) for w in (COMMAND, *command, started.pid, *tail)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})},
        )
        assert done.returncode == 1, done
        if command != ("status",):
            assert all(w in done.stderr for w in words), done


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("memory", ["memory", "arguments"])
@pytest.mark.parametrize("place", PLACES)
def test_disabled_attach_is_seen(jdk, tmp_path, no_memory, place, memory):
    first, *how = places(DISABLED, tmp_path)[place]
    if jdk.version < first:
        pytest.skip(f"JDK {jdk.version} does not read it there")
    preload = None if memory == "memory" else no_memory
    started = Started(jdk, tmp_path, *how)
    checks = started.checks(preload)
    for row in ("attach", "record", "heap dump"):
        verdict, why = checks[row]
        assert verdict == "no" and DISABLED in why and "jvmscope run" in why, checks
    refused_everywhere(started, tmp_path, preload, DISABLED, "jvmscope run")
    [vm] = [vm for vm in lab.read_json("list", "--json") if vm["pid"] == started.pid]
    assert vm["command"] == "Busy 62" and not vm["attachable"], vm
    assert "Full thread dump" not in started.end()


@pytest.mark.jdks(17, 25)
@pytest.mark.parametrize("memory", ["memory", "arguments"])
@pytest.mark.parametrize("place", ["JDK_JAVA_OPTIONS", "@file", "Flags", "VMOptionsFile"])
def test_refused_agents_are_seen(jdk, tmp_path, no_memory, place, memory):
    started = Started(jdk, tmp_path, *places(REFUSING, tmp_path)[place][1:])
    verdict, why = started.checks(None if memory == "memory" else no_memory)["record"]
    assert verdict == "no" and REFUSING in why and "jvmscope run" in why, why
    done = started.ask("attach", "--cpu", "-t", "50ms", "-o", tmp_path / "x.jfr")
    assert done.returncode == 1 and why in done.stderr, done
    assert "Full thread dump" not in started.end()


@pytest.mark.jdks(8, 17, 25)
@pytest.mark.parametrize("memory", ["memory", "arguments"])
def test_the_last_of_two_flags_holds(jdk, tmp_path, no_memory, memory):
    """The variables precede or follow the command line, as the VM reads them, and the arguments of
    the program are none of the VM's."""
    (tmp_path / "flags").write_text("+DisableAttachMechanism\n")
    started = Started(
        jdk,
        tmp_path,
        f"JAVA_TOOL_OPTIONS={DISABLED} _JAVA_OPTIONS=-XX:-DisableAttachMechanism",
        f"-XX:Flags={tmp_path}/flags {DISABLED}",
        f"-cp {lab.compiled('Busy')} Busy 62 1 0 {DISABLED}",
    )
    preload = None if memory == "memory" else no_memory
    assert started.checks(preload)["record"][0] == "yes"
    done = started.ask("attach", "--cpu", "-t", "50ms", "-o", tmp_path / "x.jfr", preload=preload)
    assert recorded(done), done
    assert "Full thread dump" not in started.end()


@pytest.mark.jdks(17)
def test_a_vm_whose_arguments_are_gone_is_not_signalled(jdk, tmp_path, no_memory):
    """Its memory shows that it accepts no requests. If the memory may not be read, nothing proves
    that it accepts them.
    """
    how = places(DISABLED, tmp_path)["@file"][1:]
    started = Started(jdk, tmp_path, *how)
    (tmp_path / "words").unlink()
    refused_everywhere(started, tmp_path, None, DISABLED)
    refused_everywhere(started, tmp_path, no_memory, "cannot be read", "as root")
    verdict, why = started.checks(no_memory)["attach"]
    assert verdict == "no" and "cannot be read" in why
    # A socket that an earlier VM has left, where nobody listens, proves nothing either.
    path = f"/proc/{started.pid}/root/tmp/.java_pid{started.pid}"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    refused_everywhere(started, tmp_path, no_memory, "cannot be read")
    os.unlink(path)
    assert "Full thread dump" not in started.end()


@pytest.mark.jdks(17)
def test_a_vm_that_listens_already_needs_no_proof(jdk, tmp_path, no_memory):
    (tmp_path / "words").write_text("-Dx=y\n")
    started = Started(jdk, tmp_path, "", f"@{tmp_path}/words")
    (tmp_path / "words").unlink()
    attach = ("attach", "--cpu", "-t", "50ms", "-o", tmp_path / "x.jfr")
    assert started.ask(*attach, preload=no_memory).returncode == 1
    assert recorded(started.ask(*attach))
    assert recorded(started.ask(*attach, preload=no_memory))
    assert "Full thread dump" not in started.end()
