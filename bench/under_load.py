# SPDX-License-Identifier: Apache-2.0
"""A program that does the same work all the time and says how much. Used by bench/threads and
bench/always.
"""
import re
import subprocess
import time

import lab


class Server:
    """tests/java/UnderLoad.java with the arguments `args`; warm: seconds after which it is asked
    for figures.
    """

    def __init__(self, jdk, jars, args, warm):
        path = ":".join(map(str, [lab.compiled("UnderLoad"), *jars]))
        quiet = ["-Xlog:disable"] if jdk.version > 8 else []
        self.program = jdk.start(
            "java",
            "-Xmx256m",
            *quiet,
            "-cp",
            path,
            "UnderLoad",
            *args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self.program.pid
        self.ask()
        time.sleep(warm)

    def ask(self):
        """Units done, CPU time of the process and the time, both ns."""
        self.program.stdin.write("\n")
        self.program.stdin.flush()
        while True:  # other profilers write there too
            line = self.program.stdout.readline()
            assert line, "the program has ended"
            if re.fullmatch(r"\d+ \d+ \d+\n", line):
                return [int(word) for word in line.split()]

    def during(self, seconds):
        """Units, CPU time and time of the next seconds."""
        before = self.ask()
        time.sleep(seconds)
        return [b - a for a, b in zip(before, self.ask())]

    def end(self):
        self.program.stdin.close()
        self.program.wait(timeout=60)
