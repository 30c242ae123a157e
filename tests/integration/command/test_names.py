# SPDX-License-Identifier: Apache-2.0
"""A plain name selects whatever it is a part of; = before it selects the name alone. One rule for
every option of a reader that takes names."""
import json
import re

import lab
import pytest
from option_tables import verbs

NAMED = ("Named.call", "Named.callMore")
WORKERS = ("worker-1", "worker-10")
LOCKS = ("Named$Lock", "Named$LockMore")
CLASSES = ("Named$Work", "Named$WorkMore")


@pytest.fixture
def recording(jdk, tmp_path):
    out = tmp_path / "n.jfr"
    methods = ",".join(NAMED)
    done = lab.jvmscope(
        "run",
        *("--cpu", "-i", "1ms", "--threads", f"--requests={methods}", "--trace", methods),
        *("-o", out, "--", *jdk.command("java", "-cp", lab.compiled("Named"), "Named")),
    )
    assert done.returncode == 0, done.stderr
    return out


def samples(answer):
    return answer["samples"]["total"]


def calls(answer):
    return len(answer["calls"])


def requests(answer):
    return sum(r["count"] for r in answer["requests"])


def events(answer):
    return len(answer["events"])


# verb, option, a name and another of which it is a part, what the answer counts
COUNTED = (
    ("report", "--thread", WORKERS, samples),
    ("report", "--class", CLASSES, samples),
    ("report", "--request", NAMED, samples),
    ("trace", "--thread", WORKERS, calls),
    ("trace", "--method", NAMED, calls),
    ("trace", "--request", NAMED, calls),
    ("requests", "--name", NAMED, requests),
    ("requests", "--thread", WORKERS, requests),
    ("threads timeline", "--lock", LOCKS, events),
    ("threads timeline", "--class", LOCKS, events),
    ("threads timeline", "--thread", WORKERS, events),
)
# Whether a class is meant with those whose names begin with it is not asked; calls are not searched
# twice.
NO_NOTE = {("report", "--class"), ("trace", "--thread"), ("trace", "--method")}
# These have no figure that adds up.
OTHERS = (
    ("diff", "--thread", WORKERS),
    ("diff", "--class", CLASSES),
    ("diff", "--request", NAMED),
    ("convert", "--thread", WORKERS),
    ("convert", "--class", CLASSES),
    ("convert", "--request", NAMED),
    ("requests slow", "--name", NAMED),
    ("requests slow", "--thread", WORKERS),
    ("threads summary", "--thread", WORKERS),
    ("threads summary", "--lock", LOCKS),
    ("threads monitors", "--thread", WORKERS),
    ("threads monitors", "--class", LOCKS),
    ("threads critical-path", "--end", WORKERS),
    ("threads critical-path", "--thread", WORKERS),
    ("threads what-if", "--lock", LOCKS),
    ("threads what-if", "--method", NAMED),
    ("threads what-if", "--end", WORKERS),
    ("threads what-if", "--thread", WORKERS),
)


@pytest.mark.jdks(8, 25)
def test_a_name_is_distinguished_from_those_of_which_it_is_a_part(jdk, recording, tmp_path):
    for verb, option, (name, longer), count in COUNTED:
        n = {}
        for pattern in (name, "=" + name, "=" + longer, f"={name},={longer}"):
            done = lab.jvmscope(*verb.split(), "--json", option, pattern, recording)
            assert done.returncode == 0, (verb, option, pattern, done.stderr)
            n[pattern] = count(json.loads(done.stdout))
            note = f"note: {name} also selects {longer}; ={name} selects this name alone\n"
            if (verb, option) not in NO_NOTE:
                assert (note in done.stderr) == (pattern == name), (verb, option, done.stderr)
        parts = n["=" + name], n["=" + longer]
        assert all(parts), (verb, option, n)
        assert n[name] == n[f"={name},={longer}"] == sum(parts), (verb, option, n)


@pytest.mark.jdks(25)
def test_the_threads_of_a_request_are_those_of_its_samples(recording):
    for name in NAMED:
        printed = lab.output("report", "--request", "=" + name, recording)
        assert re.search(r"CPU samples: \d+, .*, from 1 thread\n", printed), printed
    done = lab.jvmscope("report", "--thread", WORKERS[1], "--request", "=" + NAMED[0], recording)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.endswith(": no sample is selected by: --thread --request\n"), done.stderr


@pytest.mark.jdks(25)
def test_every_option_that_takes_names_takes_exact_ones(jdk, recording, tmp_path):
    out = ("-o", tmp_path / "o.pb.gz")
    for verb, *more, (name, _) in OTHERS + tuple((v, o, n) for v, o, n, _ in COUNTED):
        files = {"diff": (recording, recording), "convert": (*out, recording)}
        for pattern, status in (("=" + name, 0), ("=" + name[:-1], 1), (name[:-1], 0)):
            done = lab.jvmscope(*verb.split(), *more, pattern, *files.get(verb, (recording,)))
            assert done.returncode == status, (verb, more, pattern, done.stderr)
            if status:
                assert done.stderr.count("=" + name[:-1]) == 1, done.stderr


def test_no_option_that_takes_names_is_left_out():
    """An option of a verb of threads that all of them share is tested with one of them."""
    shared = {"--thread", "--class", "--lock", "--request"}
    tested = {(verb, option) for verb, option, *_ in OTHERS + COUNTED}
    for verb in verbs():
        if verb.split()[0] not in ("report", "diff", "convert", "trace", "requests", "threads"):
            continue
        options = re.findall(
            r"(?m)^ +(--[a-z]+) (?:PATTERN|NAME)", lab.output(*verb.split(), "--help")
        )
        assert options or verb in ("threads deadlocks", "requests show"), verb
        for option in options:
            assert (verb, option) in tested or (verb.startswith("threads ") and option in shared), (
                verb,
                option,
            )


@pytest.mark.jdks(25)
def test_the_end_of_a_path_is_the_thread_of_just_this_name(jdk, recording):
    def end(option, pattern):
        path = lab.read_json("threads", "critical-path", "--json", option, pattern, recording)
        return path["segments"][-1]["thread"]

    for option in ("--end", "--thread"):
        assert [end(option, p) for p in ("worker-1", "=worker-1", "worker-10", "*-1", "*-10")] == [
            "worker-1",
            "worker-1",
            "worker-10",
            "worker-1",
            "worker-10",
        ]
