# SPDX-License-Identifier: Apache-2.0
"""Parses HPROF's binary stream by the tables of its specification. An unknown tag or a length that
does not fit is an error.
"""
import collections
import struct

Record = collections.namedtuple("Record", "tag time body")
ROOTS = {0xFF: 0, 1: "i", 2: "44", 3: "44", 4: "4", 5: "", 6: "4", 7: "", 8: "44"}
SIZES = {2: None, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}


class Stream:
    """Records so far; feed() takes bytes in any pieces."""

    def __init__(self):
        self.data, self.records, self.header = b"", [], None
        self.strings, self.classes, self.frames, self.traces, self.threads = {}, {}, {}, {}, {}
        self.samples, self.sites, self.summaries, self.settings, self.dumps = [], [], [], [], []
        self.instances = None

    def feed(self, data):
        self.data += data
        if self.header is None:
            if len(self.data) < 31:
                return
            magic, self.ids, self.ms = self.data[:19], *struct.unpack(">IQ", self.data[19:31])
            assert magic in (b"JAVA PROFILE 1.0.1\0", b"JAVA PROFILE 1.0.2\0") and self.ids in (
                4,
                8,
            )
            self.header, self.data = magic, self.data[31:]
        at = 0
        while len(self.data) - at >= 9:
            tag, time, length = struct.unpack_from(">BII", self.data, at)
            if len(self.data) - at < 9 + length:
                break
            self.record(Record(tag, time, self.data[at + 9 : at + 9 + length]))
            at += 9 + length
        self.data = self.data[at:]

    def id(self, body, at):
        return int.from_bytes(body[at : at + self.ids], "big")

    def record(self, r):
        self.records.append(r)
        b, n = r.body, self.ids
        if r.tag == 0x01:
            self.strings[self.id(b, 0)] = b[n:].decode("utf-8", "replace")
        elif r.tag == 0x02:
            assert len(b) == 8 + 2 * n
            self.classes[struct.unpack(">I", b[:4])[0]] = self.strings[self.id(b, 8 + n)]
        elif r.tag == 0x04:
            assert len(b) == 8 + 4 * n
            serial, line = struct.unpack(">Ii", b[4 * n :])
            self.frames[self.id(b, 0)] = (
                self.classes.get(serial, ""),
                self.strings[self.id(b, n)],
                line,
            )
        elif r.tag == 0x05:
            serial, thread, count = struct.unpack(">III", b[:12])
            assert len(b) == 12 + count * n
            self.traces[serial] = [self.frames[self.id(b, 12 + i * n)] for i in range(count)]
        elif r.tag == 0x06:
            flags, cutoff, lb, lo, ab, ao, count = struct.unpack(">HfIIQQI", b[:34])
            assert len(b) == 34 + 25 * count
            rows = [struct.unpack(">BIIIIII", b[34 + 25 * i : 59 + 25 * i]) for i in range(count)]
            self.sites.append((flags, cutoff, (lb, lo, ab, ao), rows))
        elif r.tag == 0x07:
            self.summaries.append(struct.unpack(">IIQQ", b))
        elif r.tag == 0x0A:
            (serial,) = struct.unpack(">I", b[:4])
            assert len(b) == 8 + 4 * n
            self.threads[serial] = (self.strings[self.id(b, 8 + n)], self.id(b, 4))
        elif r.tag == 0x0D:
            total, count = struct.unpack(">II", b[:8])
            assert len(b) == 8 + 8 * count
            self.samples.append(
                (total, [struct.unpack(">II", b[8 + 8 * i : 16 + 8 * i]) for i in range(count)])
            )
        elif r.tag == 0x0E:
            self.settings.append(struct.unpack(">IH", b))
        elif r.tag == 0x1C:
            self.segment(b)
        elif r.tag == 0x2C:
            assert not b
            self.dumps.append(self.instances or collections.Counter())
            self.instances = None
        else:
            assert r.tag in (0x03, 0x0B) and len(b) == 4, hex(r.tag)

    def typed(self, b, at, name):
        (count,) = struct.unpack(">H", b[at : at + 2])
        at += 2
        for _ in range(count):
            at += name + 1 + (SIZES[b[at + name]] or self.ids)
        return at

    def segment(self, b):
        at, n = 0, self.ids
        self.instances = collections.Counter() if self.instances is None else self.instances
        while at < len(b):
            tag = b[at]
            at += 1
            if tag == 0x21:
                (length,) = struct.unpack(">I", b[at + 2 * n + 4 : at + 2 * n + 8])
                self.instances[self.id(b, at + n + 4)] += 1
                at += 2 * n + 8 + length
            elif tag == 0x22:
                (length,) = struct.unpack(">I", b[at + n + 4 : at + n + 8])
                at += 2 * n + 8 + length * n
            elif tag == 0x23:
                (length,) = struct.unpack(">I", b[at + n + 4 : at + n + 8])
                at += n + 9 + length * SIZES[b[at + n + 8]]
            elif tag == 0x20:
                at = self.typed(b, at + 7 * n + 8, 2)
                at = self.typed(b, at, n)
                at += 2 + struct.unpack(">H", b[at : at + 2])[0] * (n + 1)
            else:
                at += n + sum(n if x == "i" else 4 for x in (ROOTS[tag] or ""))
        assert at == len(b), "a sub-record is split"
