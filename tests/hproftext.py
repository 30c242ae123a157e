# SPDX-License-Identifier: Apache-2.0
"""Parses HPROF text, ours and the original agent's, line by line. A line that matches no rule of
the grammar is an error.
"""
import collections
import re

DATE = r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}"
PERCENT = r"[ \d]+\.\d\d%"
FRAME = re.compile(
    r"\t(?P<method>.+)\((?P<source>[^():]*|Unknown Source):(?P<line>\d+|Unknown line|Compiled method)\)$"
)
RANKED = re.compile(rf" *(\d+) +({PERCENT}) +({PERCENT}) +(\d+) +(\d+) (.+)$")
SITE = re.compile(rf" *(\d+) +({PERCENT}) +({PERCENT}) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) (.+)$")
ROOT = re.compile(
    r"ROOT [0-9a-f]+ \(kind=<(thread|JNI global ref|JNI local ref|Java stack|native stack|system class|busy monitor|"
    r"thread block|unknown)>(, (id|thread|trace|frame|name)=[^,()]+)*\)$"
)
HEAP_LINE = re.compile(
    r"\t(super|loader|signers|domain)\t\t[0-9a-f]+$|\tstatic [^\t]+\t[0-9a-f]+$|"
    r"\tconstant pool entry \d+\t[0-9a-f]+$|\t[^\t]+\t{1,2}[0-9a-f]+$"
)
OBJECT = re.compile(r"OBJ ([0-9a-f]+) \(sz=(\d+), trace=(\d+), class=(.+)@([0-9a-f]+)\)$")
ARRAY = re.compile(
    r"ARR ([0-9a-f]+) \(sz=(\d+), trace=(\d+), nelems=(\d+), elem type=(.+?)(?:@([0-9a-f]+))?\)$"
)
CLASS = re.compile(r"CLS ([0-9a-f]+) \(name=(.+), trace=(\d+)\)$")

Row = collections.namedtuple("Row", "rank self accum count trace name")
Site = collections.namedtuple(
    "Site", "rank self accum live_bytes live_objects alloc_bytes alloc_objects trace name"
)
Heap = collections.namedtuple("Heap", "objects bytes roots classes instances arrays references")
Call = collections.namedtuple("Call", "count callee caller ms")


class Text:
    """threads: serial -> name; traces: serial -> [(method, source, line)]; ranked: title ->
    [dump][rows]; and so on.
    """

    def __init__(self, path):
        lines = open(path, encoding="utf-8", errors="replace").read().split("\n")
        assert lines.pop() == "", "the last line is cut"
        self.threads, self.ended, self.traces = {}, [], {}
        self.trace_threads = {}
        self.ranked = collections.defaultdict(list)
        self.totals = collections.defaultdict(list)
        self.sites, self.heaps, self.old = [], [], []
        self.site_orders, self.live_errors, self.not_counted = [], [], []
        self.left_out = []
        self.waits, self.monitor_dumps = [], []
        self.wall = False
        if lines[0] != "count callee caller time":
            assert re.fullmatch(rf"JAVA PROFILE 1\.0\.1, created {DATE}", lines[0]), lines[0]
            lines = lines[lines.index("--------") + 1 :]
            assert lines.pop(0) == ""
        self.lines = collections.deque(lines)
        while self.lines:
            self.item(self.lines.popleft())

    def item(self, line):
        if m := re.fullmatch(
            r'THREAD START \(obj=([0-9a-f]+), id = (\d+), name="(.*)", group="(.*)"\)', line
        ):
            self.threads[int(m[2])] = m[3]
        elif m := re.fullmatch(r"THREAD END \(id = (\d+)\)", line):
            self.ended.append(int(m[1]))
        elif m := re.fullmatch(r"TRACE (\d+):(?: \(thread=(\d+)\))?", line):
            self.trace(int(m[1]), m[2])
        elif m := re.fullmatch(
            rf"(CPU SAMPLES|CPU TIME \(ms\)|MONITOR TIME) BEGIN \(total = (\d+)( ms)?\) {DATE}",
            line,
        ):
            self.table(m[1], int(m[2]))
        elif line == "SAMPLES OF ELAPSED TIME (cpu=wall), waiting threads included:":
            assert self.lines[0].startswith("CPU SAMPLES BEGIN ")
            self.wall = True
        elif m := re.fullmatch(rf"SITES BEGIN \(ordered by ([a-z ]+)\) {DATE}", line):
            self.site_orders.append(m[1])
            self.site_table()
        elif line.startswith("LEFT OUT BEGIN "):
            self.site_rest()
        elif line.startswith("NOT COUNTED BEGIN "):
            self.uncounted()
        elif line.startswith("LIVE ERRORS BEGIN "):
            self.live_error_table()
        elif m := re.fullmatch(rf"HEAP DUMP BEGIN \((\d+) objects, (\d+) bytes\) {DATE}", line):
            self.heap(int(m[1]), int(m[2]))
        elif m := re.fullmatch(
            r"(WAIT|WAITED): MONITOR (\S+), (?:timeout|time_waited)=(\d+), (?:thread (\d+)|<unknown thread>)",
            line,
        ):
            self.waits.append((m[1], m[2], int(m[3]), int(m[4] or 0)))
        elif line == "MONITOR DUMP BEGIN":
            self.monitors()
        elif line == "count callee caller time":
            self.old.append([])
        elif m := re.fullmatch(r"(\d+) (\S+) (<unknown caller>|\S+) (\d+)", line):
            self.old[-1].append(Call(int(m[1]), m[2], m[3], int(m[4])))
        else:
            raise AssertionError(f"no rule for: {line!r}")

    def trace(self, serial, thread):
        assert serial not in self.traces, f"TRACE {serial} twice"
        frames = []
        while self.lines and self.lines[0].startswith("\t"):
            line = self.lines.popleft()
            if line == "\t<empty>":
                break
            m = FRAME.fullmatch(line)
            assert m, line
            frames.append((m["method"], m["source"], m["line"]))
        self.traces[serial] = frames
        self.trace_threads[serial] = int(thread or 0)

    def until(self, end):
        while True:
            line = self.lines.popleft()
            if line == end:
                return
            yield line

    def table(self, title, total):
        rows = []
        what = "monitor" if title == "MONITOR TIME" else "method"
        assert self.lines.popleft() == f"rank   self  accum   count trace {what}"
        for line in self.until(f"{title} END"):
            # Ours alone: a time that the probes' own cost exceeds (doc/hprof-differences.md).
            m = RANKED.fullmatch(
                re.sub(r"^( *\d+ +)-(\d)", r"\1\2", line) if title == "CPU TIME (ms)" else line
            )
            assert m, line
            rows.append(
                Row(int(m[1]), float(m[2][:-1]), float(m[3][:-1]), int(m[4]), int(m[5]), m[6])
            )
            assert (
                rows[-1].trace in self.traces
            ), f"trace {rows[-1].trace} is not reported before its table"
        assert [r.rank for r in rows] == list(range(1, len(rows) + 1))
        self.ranked[title].append(rows)
        self.totals[title].append(total)

    def site_table(self):
        rows = []
        assert (
            self.lines.popleft() == "          percent          live          alloc'ed  stack class"
        )
        assert (
            self.lines.popleft() == " rank   self  accum     bytes objs     bytes  objs trace name"
        )
        for line in self.until("SITES END"):
            m = SITE.fullmatch(line)
            assert m, line
            rows.append(
                Site(
                    int(m[1]), float(m[2][:-1]), float(m[3][:-1]), *map(int, m.groups()[3:8]), m[9]
                )
            )
            assert rows[-1].trace in self.traces
        self.sites.append(rows)

    def site_rest(self):
        """Reads a section of ours: how many sites SITES does not list, their bytes and objects."""
        (line,) = self.until("LEFT OUT END")
        m = re.fullmatch(r"(\d+) sites?: (\d+) bytes? in (\d+) objects?", line)
        assert m, line
        self.left_out.append(tuple(map(int, m.groups())))

    def uncounted(self):
        """Returns a section of ours as (bytes, objects), or None if they are unknown."""
        (line,) = self.until("NOT COUNTED END")
        m = re.fullmatch(r"estimated from samples: (\d+) bytes in (\d+) objects?", line)
        assert m or line == "unknown: no samples were taken", line
        self.not_counted.append((int(m[1]), int(m[2])) if m else None)

    def live_error_table(self):
        """Returns a section of ours as {rank: (bytes, objects)}, and the standard error of all live
        bytes.
        """
        assert self.lines.popleft() == " rank     bytes objs"
        *rows, last = self.until("LIVE ERRORS END")
        assert re.fullmatch(
            r"of all live bytes: \d+; below the error and ranked last: \d+ sites?, \d+ bytes? in all",
            last,
        )
        self.live_errors.append(
            {int(rank): (int(size), int(objects)) for rank, size, objects in map(str.split, rows)}
        )

    def heap(self, objects, size):
        h = Heap(objects, size, collections.Counter(), {}, {}, {}, collections.Counter())
        holder = None
        for line in self.until("HEAP DUMP END"):
            if line.startswith("\t"):
                assert HEAP_LINE.fullmatch(line), line
                h.references[holder] += 1
            elif m := ROOT.fullmatch(line):
                h.roots[m[1]] += 1
            elif m := OBJECT.fullmatch(line):
                holder = m[1]
                h.instances[holder] = (m[4], int(m[2]), int(m[3]))
            elif m := ARRAY.fullmatch(line):
                holder = m[1]
                h.arrays[holder] = (m[5], int(m[2]), int(m[3]), int(m[4]))
            elif m := CLASS.fullmatch(line):
                holder = m[1]
                h.classes[holder] = m[2]
            else:
                raise AssertionError(f"no rule for: {line!r}")
        self.heaps.append(h)

    def monitors(self):
        threads, monitors = {}, []
        for line in self.until("MONITOR DUMP END"):
            if m := re.fullmatch(
                r"    THREAD (\d+), trace (\d+), status: ((?:S\||intr\||native\|)*(?:NS|ZO|CW|SL|MW|P|R)(?:\|INTR)?)",
                line,
            ):
                threads[int(m[1])] = (int(m[2]), m[3])
                assert int(m[2]) in self.traces
            elif m := re.fullmatch(r"    MONITOR (\S+)( unowned)?", line):
                owner = None
                if not m[2]:
                    o = re.fullmatch(
                        r"\towner: thread (\d+), entry count: (\d+)", self.lines.popleft()
                    )
                    owner = int(o[1])
                lists = []
                for what in ("enter", "be notified"):
                    line = self.lines.popleft()
                    assert re.fullmatch(rf"\twaiting to {what}:( thread \d+,?)*", line), line
                    lists.append([int(n) for n in re.findall(r"thread (\d+)", line)])
                monitors.append((m[1], owner, *lists))
            else:
                raise AssertionError(f"no rule for: {line!r}")
        self.monitor_dumps.append((threads, monitors))
