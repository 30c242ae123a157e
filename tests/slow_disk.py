# SPDX-License-Identifier: Apache-2.0
"""A file on a disk that takes a given time for each page: a file system of FUSE with a single file,
which a thread of the test serves.
"""
import collections
import contextlib
import ctypes
import errno
import os
import stat
import struct
import threading
import time

PAGE = 4096
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
ROOT, FILE = 1, 2
Read = collections.namedtuple("Read", "offset size start end")  # in bytes and ns
NO_ANSWER = (FORGET, 36, 42)  # interrupts, and several nodes that are forgotten at once


class SlowDisk:
    """path: the file; reads: when each page was asked for and delivered."""

    def __init__(self, folder, pages, seconds):
        self.path, self.pages, self.seconds, self.reads = folder / "file", pages, seconds, []
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)

    def attributes(self, node):
        mode, size = (
            (stat.S_IFDIR | 0o755, 0) if node == ROOT else (stat.S_IFREG | 0o644, self.pages * PAGE)
        )
        return struct.pack("<6Q10I", node, size, size // 512, *[0] * 6, mode, 1, *[0] * 5)

    def answer(self, code, node, body):
        """The answer to a request, or the number of an error."""
        if code == INIT:
            return struct.pack("<4I2H10I", 7, 31, 0, 0, 1, 1, PAGE, 1, *[0] * 8)
        if code == LOOKUP:
            if body != b"file\0":
                return errno.ENOENT
            return struct.pack("<4Q2I", FILE, 0, 3600, 3600, 0, 0) + self.attributes(FILE)
        if code == GETATTR:
            return struct.pack("<Q2I", 3600, 0, 0) + self.attributes(node)
        if code == OPEN:
            return struct.pack("<Q2I", 0, 0, 0)
        if code == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            asked = time.monotonic_ns()
            time.sleep(self.seconds)
            self.reads.append(Read(offset, size, asked, time.monotonic_ns()))
            return bytes(min(size, max(self.pages * PAGE - offset, 0)))
        return b"" if code in (RELEASE, FLUSH) else errno.ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return
            _, code, unique, node = struct.unpack_from("<2I2Q", request)
            if code in NO_ANSWER:
                continue
            reply = self.answer(code, node, request[40:])
            error, data = (-reply, b"") if isinstance(reply, int) else (0, reply)
            with contextlib.suppress(OSError):  # whoever asked may have gone
                os.write(self.fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


@contextlib.contextmanager
def slow_disk(folder, pages, seconds):
    """Mounts it in the folder. None where that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        disk = SlowDisk(folder, pages, seconds)
    except OSError:
        yield None
        return
    options = f"fd={disk.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"slow", bytes(folder), b"fuse", 0, options.encode()):
        os.close(disk.fd)
        yield None
        return
    server = threading.Thread(target=disk.serve, daemon=True)
    server.start()
    try:
        yield disk
    finally:
        libc.umount2(bytes(folder), 2)  # MNT_DETACH
        server.join(10)
        os.close(disk.fd)
