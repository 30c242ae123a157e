# SPDX-License-Identifier: Apache-2.0
"""How much of the processors' time other programs take while tests run."""
import collections
import os
import pathlib
import threading
import time

EVERY = 2  # seconds


# start: when it started, which distinguishes it from a later process with the same id. own: the
# time that it has used. ended: the time of the children that it has waited for. All in ticks.
Process = collections.namedtuple("Process", "start parent own ended")


def processes(proc="/proc"):
    """All processes, by their ids."""
    found = {}
    for entry in os.scandir(proc):
        if entry.name.isdigit():
            try:
                text = pathlib.Path(entry.path, "stat").read_text(errors="replace")
            except OSError:  # it has ended
                continue
            field = text.rpartition(")")[2].split()
            found[int(entry.name)] = Process(
                start=int(field[19]),
                parent=int(field[1]),
                own=int(field[11]) + int(field[12]),
                ended=int(field[13]) + int(field[14]),
            )
    return found


def ours(root, now, before=None):
    """Of all processes, those that a process has started, directly or not, and itself. before: the
    result of the last call, because a process loses its parent when that ends.
    """
    before = before or {}
    found = {
        pid: p
        for pid, p in now.items()
        if pid == root or pid in before and before[pid].start == p.start
    }
    more = True
    while more:
        more = {pid: p for pid, p in now.items() if pid not in found and p.parent in found}
        found.update(more)
    return found


def used(before, now):
    """The ticks that our processes have used between two calls. The whole time of a child that was
    waited for is added to its parent's, so what was counted while the child ran is subtracted. A
    process that ends together with its parent may be counted twice, never left out.
    """
    unknown = Process(0, 0, 0, 0)
    ticks = 0
    for pid, p in now.items():
        old = before.get(pid, unknown)
        if old.start != p.start:
            old = unknown
        ticks += p.own - old.own + p.ended - old.ended
    for pid, p in before.items():
        if (pid not in now or now[pid].start != p.start) and p.parent in now:
            ticks -= p.own + p.ended
    return max(0, ticks)


def all_ticks(text):
    """From /proc/stat: the ticks in which the processors did something, or the host gave their time
    to others; and all ticks.
    """
    user, nice, system, idle, wait, irq, softirq, steal = map(int, text.split("\n")[0].split()[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy, busy + idle + wait


class Others(threading.Thread):
    """Measures what other programs take while this process and its children run the tests."""

    def __init__(self):
        super().__init__(daemon=True)
        self.measured = []  # (begin, end, share)
        self.over = threading.Event()

    def run(self):
        stat = pathlib.Path("/proc/stat")
        began, ticks = time.monotonic(), all_ticks(stat.read_text())
        mine = ours(os.getpid(), processes())
        while not self.over.wait(EVERY):
            ended, later = time.monotonic(), all_ticks(stat.read_text())
            then = ours(os.getpid(), processes(), mine)
            busy, passed = later[0] - ticks[0], later[1] - ticks[1]
            if passed > 0:
                share = min(1, max(0, busy - used(mine, then)) / passed)
                self.measured.append((began, ended, share))
            began, ticks, mine = ended, later, then

    def share(self, begin, end):
        """The share of the time of all processors that others took in a span of time, which is
        None if nothing was measured.
        """
        found = [(min(end, e) - max(begin, b), s) for b, e, s in self.measured]
        found = [(length, s) for length, s in found if length > 0]
        whole = sum(length for length, _ in found)
        return sum(length * s for length, s in found) / whole if whole else None
