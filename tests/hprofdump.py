# SPDX-License-Identifier: Apache-2.0
"""Writes small heap dumps, valid or damaged, of any version and id size."""
import struct

OBJECT, BOOLEAN, CHAR, FLOAT, DOUBLE, BYTE, SHORT, INT, LONG = 2, 4, 5, 6, 7, 8, 9, 10, 11
WIDTHS = {BOOLEAN: 1, CHAR: 2, FLOAT: 4, DOUBLE: 8, BYTE: 1, SHORT: 2, INT: 4, LONG: 8}


class Dump:
    """Records in order. `boundaries` are the offsets at which records and sub-records begin."""

    def __init__(self, version="1.0.2", id_size=8):
        self.id_size, self.segments = id_size, version != "1.0.1"
        self.bytes = bytearray(
            f"JAVA PROFILE {version}\0".encode() + struct.pack(">IQ", id_size, 1700000000000)
        )
        self.boundaries, self.heap, self.names, self.items = [], bytearray(), {}, []

    def id(self, n):
        return (n & (1 << 8 * self.id_size) - 1).to_bytes(self.id_size, "big")

    def record(self, tag, body, length=None):
        self.boundaries.append(len(self.bytes))
        self.bytes += struct.pack(">BII", tag, 0, len(body) if length is None else length) + body

    def name(self, text):
        if text not in self.names:
            self.names[text] = 1 + len(self.names)
            self.record(1, self.id(self.names[text]) + text.encode())
        return self.id(self.names[text])

    def load_class(self, serial, id, name):
        self.record(
            2, struct.pack(">I", serial) + self.id(id) + struct.pack(">I", 0) + self.name(name)
        )

    def frame(self, id, method, file, class_serial, line):
        self.record(
            4,
            self.id(id)
            + self.name(method)
            + self.name("()V")
            + self.name(file)
            + struct.pack(">Ii", class_serial, line),
        )

    def trace(self, serial, thread, *frames):
        self.record(
            5, struct.pack(">III", serial, thread, len(frames)) + b"".join(map(self.id, frames))
        )

    def item(self, tag, *parts):
        self.items.append(len(self.heap))
        self.heap += bytes([tag]) + b"".join(parts)

    def class_dump(self, id, super_id=0, loader=0, statics=(), fields=()):
        size = sum(self.width(t) for _, t in fields)
        self.item(
            0x20,
            self.id(id),
            b"\0\0\0\0",
            self.id(super_id),
            self.id(loader),
            self.id(0) * 4,
            struct.pack(">IH", size, 0),
            struct.pack(">H", len(statics)),
            *(self.name(n) + bytes([t]) + self.value(t, v) for n, t, v in statics),
            struct.pack(">H", len(fields)),
            *(self.name(n) + bytes([t]) for n, t in fields),
        )

    def width(self, kind):
        return self.id_size if kind == OBJECT else WIDTHS[kind]

    def value(self, kind, v):
        return (
            self.id(v)
            if kind == OBJECT
            else (v & (1 << 8 * WIDTHS[kind]) - 1).to_bytes(WIDTHS[kind], "big")
        )

    def instance(self, id, class_id, *values, length=None):
        body = b"".join(self.value(t, v) for t, v in values)
        self.item(
            0x21,
            self.id(id),
            b"\0\0\0\0",
            self.id(class_id),
            struct.pack(">I", len(body) if length is None else length),
            body,
        )

    def objects(self, id, class_id, *elements, length=None):
        self.item(
            0x22,
            self.id(id),
            struct.pack(">II", 0, len(elements) if length is None else length),
            self.id(class_id),
            *map(self.id, elements),
        )

    def primitives(self, id, kind, *elements, length=None):
        self.item(
            0x23,
            self.id(id),
            struct.pack(">IIB", 0, len(elements) if length is None else length, kind),
            *(self.value(kind, e) for e in elements),
        )

    def end_heap(self, length=None, last=True):
        """Ends the heap dump that consists of the items so far."""
        start = len(self.bytes) + 9
        self.record(0x1C if self.segments else 0x0C, bytes(self.heap), length)
        self.boundaries += [start + at for at in self.items]
        self.heap, self.items = bytearray(), []
        if self.segments and last:
            self.record(0x2C, b"")

    def data(self):
        return bytes(self.bytes)


STRING, THREAD, NODE, NODES, MAIN, LIST = 0x10100, 0x10200, 0x10300, 0x10400, 0x10500, 0x20000


def small(version="1.0.2", id_size=8, nodes=6, android=False):
    """A list of nodes held by a static field, a string, a thread with a frame and a local, arrays
    of all types.
    """
    d = Dump(version, id_size)
    for serial, (id, name) in enumerate(
        {
            0x10000: "java/lang/Object",
            0x10080: "java/lang/Class",
            STRING: "java/lang/String",
            THREAD: "java/lang/Thread",
            NODE: "app/Node",
            NODES: "[Lapp/Node;",
            MAIN: "app/Main",
        }.items()
    ):
        d.load_class(serial + 1, id, name)
    d.frame(1, "main", "Main.java", 7, 12)
    d.trace(5, 1, 1)
    for text in ("value", "coder", "name", "next", "text", "head", "count"):
        d.name(text)
    if android:
        d.item(0xFE, b"\0\0\0\1", d.id(1))
    d.class_dump(0x10000)
    d.class_dump(0x10080, 0x10000)
    d.class_dump(STRING, 0x10000, fields=[("value", OBJECT), ("coder", BYTE)])
    d.class_dump(THREAD, 0x10000, fields=[("name", OBJECT)])
    d.class_dump(NODE, 0x10000, fields=[("next", OBJECT), ("text", OBJECT), ("count", INT)])
    d.class_dump(NODES, 0x10000)
    d.class_dump(MAIN, 0x10000, statics=[("head", OBJECT, LIST), ("count", INT, nodes)])
    d.instance(0x30000, STRING, (OBJECT, 0x30020), (BYTE, 0))
    d.primitives(0x30020, BYTE, *b"main")
    d.instance(0x30040, THREAD, (OBJECT, 0x30000))
    for i in range(nodes):
        d.instance(
            LIST + 32 * i,
            NODE,
            (OBJECT, LIST + 32 * (i + 1) if i + 1 < nodes else 0),
            (OBJECT, 0x30000),
            (INT, i),
        )
    d.objects(0x40000, NODES, LIST, 0, LIST + 32, 0xDEAD0)
    for i, kind in enumerate(WIDTHS):
        d.primitives(0x50000 + 256 * i, kind, 1, 2, 3)
    if android:
        d.item(0x89, d.id(0x30000))
        d.item(0x8D, d.id(0x30000))
    for id in (0x10000, 0x10080, STRING, THREAD, NODE, NODES, MAIN):
        d.item(0x05, d.id(id))
    d.item(0x08, d.id(0x30040), struct.pack(">II", 1, 5))
    d.item(0x03, d.id(0x40000), struct.pack(">II", 1, 0))
    d.item(0x01, d.id(0x50000), d.id(1))
    return d
