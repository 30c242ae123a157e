# SPDX-License-Identifier: Apache-2.0
"""A front end of HPROF's socket."""
import atexit
import collections
import socket
import struct
import subprocess
import threading

import hprofbinary
import lab


class FrontEnd:
    """Listens, runs Serves with the agent connected, and collects the stream. Only one at a time,
    so that a failed test leaves none behind.
    """

    last = None

    def __init__(self, jdk, options, read=True, arguments=()):
        FrontEnd.leave()
        self.server = socket.create_server(("127.0.0.1", 0))
        port = self.server.getsockname()[1]
        self.process = jdk.start_java(
            "Serves",
            *arguments,
            jvm=[jdk.agent(f"net=127.0.0.1:{port},{options}"), "-Xmx128m"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        FrontEnd.last = self.process
        self.server.settimeout(30)
        self.socket, _ = self.server.accept()
        assert self.process.stdout.readline() == "READY\n"
        self.pieces, self.stream = collections.deque(), hprofbinary.Stream()
        self.reader = threading.Thread(target=self.read, daemon=True)
        if read:
            self.reader.start()

    @staticmethod
    def leave():
        if FrontEnd.last and FrontEnd.last.poll() is None:
            FrontEnd.last.kill()
            FrontEnd.last.wait()

    def read(self):
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            self.pieces.append(data)

    def take(self):
        while self.pieces:
            self.stream.feed(self.pieces.popleft())

    def send(self, tag, body=b"", serial=1):
        self.socket.sendall(struct.pack(">BII", tag, serial, len(body)) + body)

    def wait(self, condition, seconds=20):
        def come():
            self.take()
            return condition(self.stream)

        lab.wait_for(come, seconds, "the answer")

    def samples(self, at_least=1, cutoff=0.0):
        """Requests CPU SAMPLES once there are enough, because the machine may be busy with other
        things.
        """

        def asked():
            known = len(self.stream.samples)
            self.send(7, struct.pack(">Hf", 0, cutoff))
            self.wait(lambda s: len(s.samples) > known)
            return self.stream.samples[-1][0] >= at_least and self.stream.samples[-1]

        return lab.wait_for(asked, 60, f"{at_least} samples")

    def drain(self):
        """Reads standard output and error in the background, for a program whose thread dumps would
        fill the pipes.
        """
        self.drained = {}
        self.drains = [
            threading.Thread(
                target=lambda n=n: self.drained.update({n: getattr(self.process, n).read()}),
                daemon=True,
            )
            for n in ("stdout", "stderr")
        ]
        for t in self.drains:
            t.start()

    def end_drained(self):
        self.process.stdin.write("x")
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        for t in [*self.drains, self.reader]:
            t.join(20)
        assert "DONE " in self.drained["stdout"]
        self.take()
        return self.drained["stderr"]

    def end(self):
        self.process.stdin.write("x")
        self.process.stdin.close()
        out, err = self.process.stdout.read(), self.process.stderr.read()
        assert self.process.wait(timeout=30) == 0, err
        assert out.startswith("DONE"), out
        if self.reader.is_alive():
            self.reader.join(10)
        self.take()
        return err


atexit.register(FrontEnd.leave)
