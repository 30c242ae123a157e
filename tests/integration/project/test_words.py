# SPDX-License-Identifier: Apache-2.0
"""One thing has one name in everything that people read: the command, the page, and the glossary."""
import re

import lab


def source(path):
    return (lab.ROOT / path).read_text()


def texts_of(path, start, row):
    text = source(path)
    begin = text.index(start)
    return dict(re.findall(row, text[begin : text.index("};", begin)]))


def test_the_command_and_the_page_call_causes_and_states_the_same():
    ledger = source("src/analysis/request_ledger.c")
    begin = ledger.index("cause_names[")
    names = re.findall(r'"([a-z-]+)"', ledger[begin : ledger.index("};", begin)])
    enum = source("src/analysis/request_ledger.h").split("enum request_cause {")[1].split("}")[0]
    order = re.findall(r"\bCAUSE_\w+", enum)
    by_enum = texts_of(
        "src/analysis/request_ledger.c", "cause_texts[", r'\[(CAUSE_\w+)\] = "([^"]+)"'
    )
    causes = {name: by_enum[of] for name, of in zip(names, order, strict=True)}
    page = texts_of("web/src/causes.ts", "const texts", r'"?([a-z-]+)"?: "([^"]+)"')
    assert causes == page
    # The same time is a cause of a request and a state of a thread.
    states = texts_of(
        "src/analysis/critical_path.c", "texts[PATH_STATES]", r'\[PATH_(\w+)\] = "([^"]+)"'
    )
    same = {"IO": "io", "GC": "gc", "PREEMPTED": "runnable", "THROTTLED": "throttled"}
    assert states == {state: causes[cause] for state, cause in same.items()}
    titles = texts_of("web/src/threadpaint.ts", "const stateTitles", r'"?([a-z-]+)"?: "([^"]+)"')
    assert titles["preempted"] == causes["runnable"]
    timeline = source("src/timeline/timeline.c")
    assert f'TL_PREEMPTED ? "{causes["runnable"]}"' in timeline
    assert f"\n| {causes['runnable']} | " in source("doc/glossary.md")
    table = source("doc/requests.md")
    for name, text in causes.items():
        assert f"| {text} | `{name}` | " in table, name
