# SPDX-License-Identifier: Apache-2.0
"""A process that looks like a Java VM to the command, and answers attach requests as an attacker
who owns a VM would.

hostile_vm.py FOLDER ATTACK SECRET: maps files named libjvm.so and libhprof.so in FOLDER, listens on
/tmp/.java_pidN, and writes "ready". ATTACK says what it does where the command looks: link    every
file that it is asked to write is a symbolic link to SECRET pipe    ... is a named pipe that nobody
writes to other   ... is a file of its own that is not a recording named   a recording that it says
to have written lies at the path SECRET itself deaf    it does not listen at all, and SIGQUIT stays
pending
"""
import mmap
import os
import signal
import socket
import sys

folder, attack, secret = sys.argv[1:]
mapped = []
for name in ("libjvm.so", "libhprof.so"):
    with open(os.path.join(folder, name), "w+b") as f:
        f.write(bytes(4096))
        f.flush()
        mapped.append(mmap.mmap(f.fileno(), 4096))
signal.signal(signal.SIGQUIT, lambda *_: None)


def plant(path):
    """What the command finds in place of what it asked for."""
    if os.path.lexists(path):
        os.unlink(path)
    if attack == "link":
        os.symlink(secret, path)
    elif attack == "pipe":
        os.mkfifo(path)
    else:
        with open(path, "w") as f:
            f.write("root:x:0:0\n")


def load(options):
    words = dict(w.split("=", 1) for w in options.split(",") if "=" in w)
    recording = words.get("file", f"/tmp/jvmscope-hostile-{os.getpid()}.jfr")
    if attack == "named":
        recording = secret
    elif words["control"] in ("start", "stop"):
        plant(recording)
    with open(words["reply"], "w") as f:
        f.write(f"ok\nstate recording\nfile {recording}\nformat r\n")


if attack == "deaf":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
    print("ready", flush=True)
    while True:
        signal.pause()

name = f"/tmp/.java_pid{os.getpid()}"
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen(5)
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    request = b""
    while request.count(b"\0") < 5:
        request += connection.recv(8192)
    _, verb, first, _, options = request.decode().split("\0")[:5]
    if verb == "dumpheap":
        plant(first)
        connection.sendall(b"0\nHeap dump file created\n")
    else:
        load(options)
        connection.sendall(b"0\n0\n")
    connection.close()
