# SPDX-License-Identifier: Apache-2.0
"""The test suite: cmocka programs of tests/unit (plain and sanitized) and the tests in
tests/integration.

tests/integration has a folder for each part of the program, with the names of the rooms of src
where that fits (CONTRIBUTING.md lists them): `make check ARGS=tests/integration/heap` runs one. A
test that belongs to no part alone is in `command` (what holds for every command), `agent` (for the
agent in the VM), `recordings` (for every capture and output) or `project` (for the build and the
documents).

Markers: slow (make check-all only), soak (make soak only), measured (make check-all only: the test
compares measured times with a bound, which needs a machine that does nothing else). A test with a
`jdk` argument runs once under each JDK of the matrix, or under those that it names by
@pytest.mark.jdks(17, 25); make check takes a third of these (see daily_jdks). @pytest.mark.jdks(17,
25, slow=(8,)) has further ones for make check-all, which takes them all, and with
@pytest.mark.jdks(daily=1) make check takes one, for tests that are long. A test that cannot run is
skipped; the reason is given, and it is counted.

`make check` runs several tests at once and must pass on a busy machine: a test waits for a
condition and never for a time, compares CPU time and not elapsed time, or runs its program ahead of
all others (lab.on_time) where sleeps must end on time.

There is one place where failed tests are run again, `run_again` below: those that failed while other
programs took at least a tenth of the processors' time, and at most two that failed without that: of
2,500 tests that fail once in 10,000 runs each, one fails in every fourth run. The closing lines name
and count what passed when it was run again, and for each failure the share that other programs took.
No test repeats itself.
"""
import collections
import ctypes
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zlib

import pytest

import clickhouse
import disturbance
import lab

ROOT = pathlib.Path(__file__).resolve().parent.parent


def unique(members):
    """Reads an object of JSON as a dict, and fails when a key occurs twice, because most readers
    would see only one of the values.
    """
    keys = [key for key, _ in members]
    assert len(set(keys)) == len(
        keys
    ), f"JSON with a key twice in one object: {sorted({k for k in keys if keys.count(k) > 1})}"
    return dict(members)


# All JSON that any test reads, of every verb and export.
json.loads = functools.partial(json.loads, object_pairs_hook=unique)


STARTED = set()  # the process ids of all programs that this process has started
BEGAN = time.time()
SHARED = ("/tmp", "/var/tmp", "/dev/shm")
OURS = re.compile(r"\.?jvmscope|hs_err|heap|java_pid|core")
REPOSITORY = re.compile(
    r"\d{4}(?:_\d\d){5}_(\d+)"
)  # the folder of the JDK's Flight Recorder in a VM that was killed


def count_started(popen=subprocess.Popen.__init__):
    def start(self, *args, **kwargs):
        popen(self, *args, **kwargs)
        STARTED.add(self.pid)

    subprocess.Popen.__init__ = start


count_started()


def numbers_in(name):
    """The numbers in a file's name that may be process ids: neither a date and time nor digits of a
    random name, which are those of another run's file as often as the ids are many.
    """
    name = re.sub(r"\d{8}-\d{6}|[0-9a-f]{16}", "", name)
    return {int(n) for n in re.findall(r"\d+", name)}


def left_behind(at_end=True):
    """Returns the files in shared folders that belong to programs that this process started: their
    names contain the process id. Files of other runs on the machine are not included. At the end,
    when no program is running, removes what a JDK leaves when its VM is killed.
    """
    left = []
    for entry in (e for folder in SHARED for e in os.scandir(folder)):
        ids = STARTED & numbers_in(entry.name)
        try:
            if not ids or entry.stat(follow_symlinks=False).st_mtime < BEGAN:
                continue
        except FileNotFoundError:
            continue
        if at_end and REPOSITORY.fullmatch(entry.name):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif OURS.match(entry.name):
            left.append(entry.path)
    return sorted(left)


SEEN = {}  # what was left behind at the end of a test: path -> the first such test


def pytest_runtest_logfinish(nodeid):
    """Remembers after which test a file existed. The run fails only if the file still exists at the
    end, see pytest_sessionfinish.
    """
    if STARTED - pytest_runtest_logfinish.known:
        pytest_runtest_logfinish.known = set(STARTED)
        for path in left_behind(at_end=False):
            SEEN.setdefault(path, nodeid)


pytest_runtest_logfinish.known = set()


def still_left():
    return [
        f"{path} (first seen after {SEEN.get(path, 'the last test')})" for path in left_behind()
    ]


@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_testnodedown(node):
    """In the process that reports: receives what the tests of a worker left behind."""
    LEFT.extend(getattr(node, "workeroutput", {}).get("left", []))


LEFT = []


def pytest_configure(config):
    # Under nohup or in the background of a script these signals are ignored, and every program that
    # is tested would inherit that. On a busy machine a worker of xdist may run in another thread
    # than Python's main one, which alone may call signal.signal.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    else:
        for number in (signal.SIGINT, signal.SIGHUP):
            ctypes.CDLL(None).signal(number, None)
    config.addinivalue_line("markers", "slow: part of make check-all, not of make check")
    config.addinivalue_line("markers", "soak: part of make soak only")
    config.addinivalue_line(
        "markers",
        "measured: compares measured times with a bound; part of make check-all, not of make check",
    )
    config.addinivalue_line(
        "markers",
        "jdks(*versions, slow=(), daily=): the JDKs to run under, instead of all; `slow`: "
        "in check-all only; `daily`: how many of them make check takes, instead of a third",
    )


def pytest_addoption(parser):
    parser.addoption(
        "--run-again",
        action="store_true",
        help="give a few failed tests another chance, see run_again",
    )


# How many failed tests, of 2,500, may be run again: a defect of the program breaks more, or breaks
# them every time.
FEW = 6

# Texts that no load of the machine explains: such a test has failed, whatever happens when it is
# run again.
CRASHES = re.compile(
    r"SIGSEGV|SIGABRT|SIGBUS|SIGILL|hs_err|fatal error has been detected|Sanitizer|runtime error:"
    r"|core dumped|returncode=-(?:4|6|7|8|11)\b"
)


# The least share of the processors' time that other programs must have taken while a test failed.
# On a machine that did nothing else it was 0 to 2 %.
DISTURBED = 0.1
# How many tests that failed without that may be run again.
UNDISTURBED = 2


def run_again(failed, root):
    """Runs a few failed tests again, and returns those that pass three times in a row when nothing
    else runs. With 2,500 tests on a shared machine, some that fail once in a thousand runs make
    most runs of all of them fail. If many tests fail, or one crashes, that is a failure at once,
    and so are failures that other programs cannot have disturbed, if there are more than two.
    """
    if len(failed) > FEW or any(CRASHES.search(report.longreprtext) for report in failed):
        return []
    passing = []
    undisturbed = [r for r in failed if (share_of_others(r) or 0) < DISTURBED]
    for report in failed:
        if report in undisturbed and len(undisturbed) > UNDISTURBED:
            continue
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            f"{root}/{report.nodeid}",
        ]
        if all(
            subprocess.run(command, cwd=ROOT, capture_output=True, timeout=1200).returncode == 0
            for _ in range(3)
        ):
            passing.append(report)
    return passing


def pytest_runtest_logreport(report):
    """Names a failed test at once, in the process that reports; its output follows at the end,
    about 20 minutes later.
    """
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\nFAILED {report.nodeid}", flush=True)
        FAILED_AT[report.nodeid] = time.monotonic()


FAILED_AT = {}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Runs in the process that reports the results; the others have no reporter. A run fails if it
    leaves files of its programs in the shared folders.
    """
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = still_left()
    else:
        LEFT.extend(still_left())
    for process in COMPILING:
        process.wait()
    if LEFT and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        not session.config.getoption("--run-again")
        or hasattr(session.config, "workerinput")
        or not reporter
        or exitstatus != 1
    ):
        return
    failed = reporter.stats.get("failed", [])
    if reporter.stats.get("error"):
        return
    again = run_again(failed, session.config.rootpath)
    reporter.stats["again"] = again
    if failed and len(again) == len(failed) and not LEFT:
        session.exitstatus = pytest.ExitCode.OK


# The files that take longest, in that order. They begin first, so that no worker is alone with one
# of them at the end.
LONGEST = (
    "test_page",
    "test_fleet",
    "test_base",
    "test_trace",
    "test_amounts",
    "test_attach_hard",
    "test_fleet_clickhouse",
    "test_fleet_vm",
    "test_reading_costs",
    "test_walker",
    "test_live_estimates",
    "test_jvmpi_contract",
    "test_vm",
    "test_reports",
    "test_hprof_sites",
    "test_reader_options",
    "test_exceptions",
    "test_threads",
    "test_span",
    "test_heap",
    "test_slow_requests",
    "test_requests",
    "test_build",
    "test_times",
    "test_counts",
    "test_convert",
    "test_files",
    "test_triggers",
    "test_budget",
    "test_run",
    "test_attach",
    "test_robust",
    "test_endings",
    "test_cpu_samples",
    "test_jvmpi",
    "test_options",
    "test_full_disk",
    "test_threads_truth",
    "test_otlp",
    "test_fleet_recordings",
    "test_fleet_hostile",
    "test_always",
    "test_deb",
    "test_jfr_reader",
    "test_heap_hostile",
    "test_trace_hostile",
    "test_fleet_host",
    "test_check",
    "test_budget_bombs",
    "test_hostile_texts",
    "test_every_output",
    "test_cpu_time",
    "test_stalls",
    "test_classfile",
    "test_times_cycles",
    "test_cds",
    "test_disturbance",
    "test_fuzz",
    "test_agent",
    "test_cpu_timers",
)


@pytest.hookimpl(tryfirst=True)  # before -m deselects tests
def pytest_collection_modifyitems(items):
    one_jdk_each(items)
    one_clickhouse_each(items)
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def daily_jdks(name, versions, most):
    """The JDKs on which `make check` runs a test that `make check-all` runs on all of the versions:
    every third one. The test's name chooses the first, so that every JDK runs about a third of the
    tests. most: a limit for their number, or None.
    """
    n = len(versions)
    first = zlib.crc32(name.encode()) % n
    return {versions[(first + 3 * i) % n] for i in range(min(max(1, n // 3), most or n))}


def one_of_each(sets):
    """Leaves one test of each set to `make check`: which one depends on the set's name."""
    for name, alike in sets.items():
        daily = zlib.crc32(name.encode()) % len(alike)
        for item in alike[:daily] + alike[daily + 1 :]:
            item.add_marker(pytest.mark.slow)


def one_jdk_each(items):
    """For a test with further parameters, `make check` runs each set of them on one of the test's
    daily JDKs. The parameters decide which one, so every set runs, and every JDK gets some. `make
    check-all` runs all.
    """
    sets = collections.defaultdict(list)
    for item in items:
        params = getattr(item, "callspec", None) and item.callspec.params
        if params and "jdk" in params and len(params) > 1 and not any(item.iter_markers("slow")):
            sets[item.nodeid.replace(f"jdk{params['jdk']}", "")].append(item)
    one_of_each(sets)


CLICKHOUSES = {"clickhouse", "shards", "current", "current_clickhouse"}


def one_clickhouse_each(items):
    """A test that runs with both versions of ClickHouse runs with one of them in `make check`,
    which its name chooses, and with both in `make check-all`.
    """
    sets = collections.defaultdict(list)
    for item in items:
        params = getattr(item, "callspec", None) and item.callspec.params or {}
        kinds = {v for v in params.values() if isinstance(v, str)} & CLICKHOUSES
        if kinds:
            others = sorted(f"{k}={v}" for k, v in params.items() if v not in kinds)
            sets[" ".join([item.nodeid.split("[")[0], *others])].append(item)
    one_of_each(sets)


def pytest_generate_tests(metafunc):
    if "jdk" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("jdks")
        named = sorted(mark.args if mark and mark.args else lab.VERSIONS)
        daily = daily_jdks(metafunc.definition.name, named, mark and mark.kwargs.get("daily"))
        every = sorted({*named, *(mark.kwargs.get("slow", ()) if mark else ())})
        metafunc.parametrize(
            "jdk",
            [
                pytest.param(v, id=f"jdk{v}", marks=[pytest.mark.slow] * (v not in daily))
                for v in every
            ],
            indirect=True,
        )


def pytest_sessionstart(session):
    """In the process that reports, when there are workers: compiles most programs for them, and
    measures what other programs take.
    """
    if session.config.getoption("--run-again") and not hasattr(session.config, "workerinput"):
        OTHERS.start()
    if (
        getattr(session.config.option, "numprocesses", None)
        and not session.config.option.collectonly
        and lab.matrix_ready()
    ):
        COMPILING.append(lab.compile_programs())


COMPILING = []
OTHERS = disturbance.Others()


def share_of_others(report):
    """The share of the processors' time that other programs took while a test failed; None if it is
    not known, which is no excuse.
    """
    end = FAILED_AT.get(report.nodeid, 0)
    return OTHERS.share(end - report.duration, end)


def disturbed(report):
    """What other programs took while a test failed, as the end of a sentence."""
    share = share_of_others(report)
    return (
        "what other programs took is not known"
        if share is None
        else f"other programs took {share:.0%} of the processors' time"
    )


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory):
    """A folder for recordings that several tests read; pytest removes it some runs later."""
    lab.SCRATCH = tmp_path_factory.mktemp("recordings")


# An idle server takes 5 % of a processor, so servers end with the tests of a file.


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two servers of ClickHouse, the shards of a cluster."""
    servers = clickhouse.servers(tmp_path_factory.mktemp("shards"), 2)
    yield servers
    for s in servers:
        s.kill()


@pytest.fixture(scope="module")
def current_clickhouse(tmp_path_factory):
    """A ClickHouse of today."""
    if not clickhouse.CurrentClickHouse.LIBRARY.exists():
        pytest.skip(
            f"no current ClickHouse: {clickhouse.CurrentClickHouse.LIBRARY} is not there (tools/setup check, as root and with npm)"
        )
    server = clickhouse.CurrentClickHouse(tmp_path_factory.mktemp("current"))
    yield server
    server.kill()


@pytest.fixture
def jdk(request):
    """A lab.Jdk: runs programs under one version of the matrix. Programs that are still running
    when the test ends are killed.
    """
    if not lab.matrix_ready():
        pytest.skip(f"JDK {request.param}: the chroot is not there (tools/jdks setup)")
    if request.param not in lab.versions_there():
        pytest.skip(
            f"JDK {request.param} is not set up for {lab.ARCH} (tools/jdks setup --arch {lab.ARCH} {request.param})"
        )
    version = lab.Jdk(request.param)
    yield version
    version.kill_started()


@pytest.fixture
def container(jdk):
    """A control group with the name that container engines would give it, and the container's id.
    The programs that the jdk starts must be in it and end before it is removed.
    """
    digits = uuid.uuid4().hex * 2
    group = next(
        (
            g
            for g in (pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/pids"))
            if (g / "cgroup.procs").exists()
        ),
        None,
    )
    if not group or not os.access(group, os.W_OK):
        pytest.skip("no control group can be made here")
    group = group / f"docker-{digits}.scope"
    try:
        group.mkdir()
    except OSError as e:
        pytest.skip(f"no control group can be made here: {e}")
    yield group, digits
    jdk.kill_started()
    group.rmdir()


@pytest.fixture
def on_time():
    """The test and the programs that it starts run with a higher priority than all others, where
    that is permitted, so that sleeps end in time and wake-ups happen at once, however busy the
    machine is.
    """
    lab.on_time()
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture
def jvmscope():
    """Runs build/jvmscope with the given arguments and returns the CompletedProcess."""
    return lab.jvmscope


def pytest_collect_file(parent, file_path):
    if file_path.name == "test_base.c":
        return UnitPrograms.from_parent(parent, path=file_path)
    return None


class UnitPrograms(pytest.File):
    """The cmocka programs that meson lists for each build folder. Each test in one is a test
    here.
    """

    def collect(self):
        for folder in ("build", "build-san"):
            if folder != "build" and not (ROOT / folder).exists():
                continue
            unit = ROOT / folder / "tests" / "unit"
            listed = unit / "unit_tests"
            names = listed.read_text().split() if listed.exists() else []
            missing = [name for name in names if not os.access(unit / name, os.X_OK)]
            if missing or not names:
                raise self.CollectError(f"{unit}: not built: {' '.join(missing) or 'any test'}")
            for name in names:
                yield UnitProgram.from_parent(self, name=f"{folder}/{name}", program=unit / name)


class UnitProgram(pytest.Collector):
    def __init__(self, *, program, **kwargs):
        super().__init__(**kwargs)
        self.program = program
        self.results = None

    def collect(self):
        source = ROOT / "tests" / "unit" / (self.program.name + ".c")
        names = re.findall(r"cmocka_unit_test\w*\(\s*(\w+)", source.read_text())
        if not names:
            raise self.CollectError(f"{source}: no test")
        for name in names:
            yield UnitTest.from_parent(self, name=name)

    def result(self, name):
        if self.results is None:
            env = dict(
                os.environ,
                CMOCKA_MESSAGE_OUTPUT="TAP",
                UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
            )
            # In a separate folder, so that a program that fails or is killed leaves nothing behind.
            with tempfile.TemporaryDirectory(prefix="jvmscope-test-", dir="/var/tmp") as folder:
                (pathlib.Path(folder) / "tests").symlink_to(ROOT / "tests")
                done = subprocess.run(
                    [self.program],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    env=env,
                    timeout=900,
                    cwd=folder,
                )
            self.output = done.stdout + done.stderr
            self.results = {
                m[2]: m[1] for m in re.finditer(r"^(ok|not ok) \d+ - (\w+)", done.stdout, re.M)
            }
            self.crashed = (
                done.returncode < 0 or "ERROR: " in done.stderr or "runtime error" in done.stderr
            )
        return self.results.get(name), self.crashed, self.output


class UnitTest(pytest.Item):
    def runtest(self):
        outcome, crashed, output = self.parent.result(self.name)
        if outcome != "ok" or crashed:
            raise AssertionError(output)

    def repr_failure(self, excinfo):
        return str(excinfo.value)


def longest_files(stats):
    """The files whose tests took longest, with their seconds. LONGEST should begin with these."""
    seconds = collections.Counter()
    for report in (r for reports in stats.values() for r in reports if hasattr(r, "duration")):
        seconds[
            report.nodeid.split("::")[0].rpartition("/")[2].removesuffix(".py")
        ] += report.duration
    return ", ".join(f"{name} {spent:.0f} s" for name, spent in seconds.most_common(len(LONGEST)))


def pytest_terminal_summary(terminalreporter, config):
    """Reports what was skipped and what was run again. The failures of tests that passed in the end
    are printed above.
    """
    stats = terminalreporter.stats
    if getattr(config.option, "numprocesses", None):
        terminalreporter.write_line(f"longest files: {longest_files(stats)}")
    skipped = stats.get("skipped", [])
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"SKIPPED {report.nodeid}: {reason}")
    again = stats.pop("again", [])
    for report in again:
        terminalreporter.write_line(
            f"FAILED ONCE {report.nodeid}, while {disturbed(report)}: "
            "it then passed three times in a row, alone"
        )
        stats["failed"].remove(report)
        stats.setdefault("passed", []).append(report)
    for report in stats.get("failed", []):
        if FAILED_AT and OTHERS.measured:
            terminalreporter.write_line(f"FAILED {report.nodeid}, while {disturbed(report)}")
    terminalreporter.write_line(f"run again: {len(again)}")
    for path in LEFT:
        terminalreporter.write_line(f"LEFT BEHIND {path}")
    failed = len(stats.get("failed", [])) + len(stats.get("error", [])) + len(LEFT)
    config.closing_line = (
        f"{len(stats.get('passed', []))} passed, {failed} failed, {len(skipped)} skipped"
        + f", {len(again)} of the passed only when run again" * bool(again)
    )


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """The last line gives the totals, in a form that the readers of every test runner know."""
    if hasattr(config, "closing_line"):
        print(config.closing_line)
