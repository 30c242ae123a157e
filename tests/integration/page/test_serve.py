# SPDX-License-Identifier: Apache-2.0
"""The page's server and hostile clients; what a page shows is tested in tests/page."""
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import lab


@pytest.fixture
def served(jdk, tmp_path):
    """A server of a small recording: its address, port and path with the token."""
    recording = tmp_path / "a.jfr"
    done = jdk.java("Busy", 1, jvm=[jdk.agent(f"cpu=samples,format=r,file={recording}")])
    assert done.returncode == 0, done.stderr
    process = subprocess.Popen(
        [lab.BUILD / "jvmscope", "serve", recording], stdout=subprocess.PIPE, text=True
    )
    try:
        yield urllib.parse.urlparse(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.communicate(timeout=30)


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read()


def ask(url, request=None, timeout=20):
    """Returns the status with which a request (for the page when None) is answered."""
    with socket.create_connection((url.hostname, url.port), timeout=timeout) as s:
        s.sendall(
            request
            or f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = s.recv(4096)
        return int(answer.split()[1]) if answer else 0


@pytest.mark.jdks(17)
def test_a_time_before_the_first_event_of_a_thread_is_no_error(jdk, tmp_path):
    """Browsers report each answer of status 404 in their console."""
    recording = tmp_path / "a.jfr"
    done = jdk.java("Busy", 1, jvm=[jdk.agent(f"threads=y,format=r,file={recording}")])
    assert done.returncode == 0, done.stderr
    process = subprocess.Popen(
        [lab.BUILD / "jvmscope", "serve", recording], stdout=subprocess.PIPE, text=True
    )
    try:
        base = process.stdout.readline().strip() + "0/"
        lab.wait_for(lambda: b"wait" not in get(base + "ready"), 60, "the timeline")
        answers = []
        with pytest.raises(urllib.error.HTTPError):  # for the first number that no thread has
            while True:
                answers.append(get(f"{base}at?thread={len(answers)}&time=0"))
        assert len(answers) > 1 and b"null" in answers, answers
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.jdks(17)
def test_idle_connections_keep_nobody_out(served):
    """There are ten times as many idle connections as are allowed. The page is answered at once,
    and the idle connections are ended soon.
    """
    assert ask(served) == 302
    idle = [socket.create_connection((served.hostname, served.port)) for _ in range(800)]
    start = time.monotonic()
    assert ask(served) == 302
    assert time.monotonic() - start < 4, "before the idle connections were ended for their age"
    idle[-1].settimeout(60)
    assert idle[-1].recv(1) == b"", "an idle connection is ended"
    for s in idle:
        s.close()
    assert ask(served) == 302


@pytest.mark.jdks(17)
def test_requests_that_are_read_in_two_ways_are_refused(served):
    host = served.netloc
    for request in (
        f"GET {served.path} HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
        f"GET {served.path} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
        f"GET {served.path}0/%00x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        f"GET {served.path}0/?a=%00 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        f"GET {served.path}0/\0x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ):
        assert ask(served, request.encode()) in (0, 400), request
    assert ask(served, f"GET {served.path} HTTP/1.1\r\n\r\n".encode()) in (400, 403)
    assert ask(served) == 302


def test_a_file_that_cannot_be_shown_is_refused_at_the_start(tmp_path):
    """As report refuses it, with the reason."""
    (tmp_path / "dir.jfr").mkdir()
    (tmp_path / "text.jfr").write_text("hello")
    (tmp_path / "empty.jfr").touch()
    os.mkfifo(tmp_path / "fifo.jfr")
    for name, why in (
        ("dir.jfr", "Is a directory"),
        ("text.jfr", "not a recording"),
        ("empty.jfr", "the file is empty"),
        ("fifo.jfr", "it is a pipe or a device, not a file"),
        ("nosuch.jfr", "No such file"),
    ):
        for verb in ("serve", "report"):
            done = lab.jvmscope(verb, tmp_path / name, timeout=20)
            assert (done.returncode, done.stdout) == (1, ""), (verb, name, done)
            assert f"{name}: cannot read: {why}" in done.stderr, (verb, name, done)
