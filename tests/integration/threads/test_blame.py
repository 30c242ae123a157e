# SPDX-License-Identifier: Apache-2.0
"""Which thread is reported as the one that held what another thread waited for: artificial traces
(TRC XML) with a single answer each.
"""
import json

import lab

ORIGIN = 1_700_000_000


def at(ms):
    return f'time="{ORIGIN + ms // 1000}.{ms % 1000:03d}000000"'


def frames(*methods):
    return "".join(f'<annotation name="frame" value="Shop.{m}" line="1"/>' for m in methods)


class Trace:
    """Threads 1, 2, ... named A, B, ..., which exist from the beginning, and one lock."""

    def __init__(self, threads):
        self.events = [
            (
                0,
                f'<threadStart threadId="{i + 1}" {at(0)} groupName="main" parentName="system" threadName="{name}" collationValue="{i + 1}" '
                'traceIdRef="1"><annotation name="kind" value="existing"/></threadStart>',
            )
            for i, name in enumerate(threads)
        ]
        self.ids = {name: i + 1 for i, name in enumerate(threads)}

    def asks(self, ms, thread, owner=None, stack=("buy", "run")):
        stated = f' threadOwner="{self.ids[owner]}"' if owner else ""
        self.events.append(
            (
                ms,
                f'<monContendedEnter threadIdRef="{self.ids[thread]}" {at(ms)} objIdRef="77"{stated}>'
                f'<annotation name="class" value="Lock"/>{frames(*stack)}</monContendedEnter>',
            )
        )

    def gets(self, ms, thread):
        self.events.append(
            (
                ms,
                f'<monContendedEntered threadIdRef="{self.ids[thread]}" {at(ms)} objIdRef="77">'
                '<annotation name="class" value="Lock"/></monContendedEntered>',
            )
        )

    def sleeps(self, ms, until, thread, stack):
        attributes = f'threadIdRef="{self.ids[thread]}"'
        self.events.append(
            (
                ms,
                f'<monWait {attributes} {at(ms)} objIdRef="-1" timeout="{until - ms}">{frames(*stack)}</monWait>',
            )
        )
        self.events.append(
            (
                until,
                f'<monWaited {attributes} {at(until)} objIdRef="-1" timeout="{until - ms}" isTimedOut="1"/>',
            )
        )

    def ends(self, ms, thread):
        self.events.append(
            (
                ms,
                f'<threadEnd threadIdRef="{self.ids[thread]}" {at(ms)} collationValue="{self.ids[thread]}" traceIdRef="1"/>',
            )
        )

    def read(self, path):
        path.write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n<TRACE>\n'
            + "\n".join(x for _, x in sorted(self.events, key=lambda e: e[0]))
            + "\n</TRACE>\n"
        )
        done = lab.jvmscope("threads", "timeline", "--json", path)
        assert done.returncode == 0, done.stderr
        events = json.loads(done.stdout)["events"]
        text = lab.jvmscope("threads", "timeline", path).stdout
        hands = [e for e in events if e["type"] == "TRCThreadHandoffLockEvent"]
        assert text.count("  handoff  ") == len(hands)
        return events, [(e["thread"], e["receiverThread"]) for e in hands]


def waits_of(events, thread):
    return [
        e["lockedThread"]
        for e in events
        if e["thread"] == thread and e["type"] == "TRCThreadWaitingForLockEvent"
    ]


def test_a_lock_is_handed_over_by_an_owner_that_has_died_since(tmp_path):
    t = Trace("AB")
    t.asks(100, "B", owner="A")
    t.ends(200, "A")
    t.gets(201, "B")
    t.ends(300, "B")
    events, hands = t.read(tmp_path / "t.trcxml")
    assert waits_of(events, "B") == ["A"] and hands == [("A", "B")]


def test_a_thread_that_has_left_is_not_to_blame(tmp_path):
    """B got the lock from A. C requests it later, when the VM does not report the owner. As far as
    is known B has it, unless B has been elsewhere since, or has ended.
    """
    for name, does, blamed in (
        ("within", ("part", "buy", "run"), ["B"]),
        ("elsewhere", ("idle", "run"), [None]),
        ("cut", ("part", "deep"), ["B"]),
        ("dead", None, [None]),
    ):
        t = Trace("ABC")
        t.asks(100, "B", owner="A")
        t.gets(150, "B")
        if does:
            t.sleeps(200, 400, "B", does)
        else:
            t.ends(200, "B")
        t.asks(300, "C")
        t.gets(500, "C")
        t.ends(600, "C")
        events, hands = t.read(tmp_path / f"{name}.trcxml")
        assert waits_of(events, "C") == blamed, name
        assert hands == [("A", "B")] + [("B", "C")] * (blamed == ["B"]), name
        monitors = json.loads(
            lab.jvmscope("threads", "monitors", "--json", tmp_path / f"{name}.trcxml").stdout
        )
        summary = json.loads(
            lab.jvmscope("threads", "summary", "--json", tmp_path / f"{name}.trcxml").stdout
        )
        assert monitors["classes"][0]["blocks"]["total_ns"] == 250_000_000 and summary[
            "owner_unknown"
        ] == blamed.count(None), name
