# SPDX-License-Identifier: Apache-2.0
"""The examples of doc/extending.md compile in the places where the document puts them: each is
added to a copy of the sources as described.
"""
import json
import re
import shlex
import shutil
import subprocess

import lab
import pytest

TEXT = (lab.ROOT / "doc" / "extending.md").read_text()
BLOCKS = re.findall(r"(?ms)^( *)```(c|tsx)\n(.*?)^ *```$", TEXT)


def block(kind, beginning):
    found = [body for _, of, body in BLOCKS if of == kind and beginning in body]
    assert len(found) == 1, (beginning, len(found))
    return found[0]


def before(path, anchor, text):
    whole = path.read_text()
    assert anchor in whole, (path, anchor)
    path.write_text(whole.replace(anchor, text + anchor, 1))


def after(path, anchor, text):
    whole = path.read_text()
    assert anchor in whole, (path, anchor)
    path.write_text(whole.replace(anchor, anchor + text, 1))


def flags(path):
    """Returns the options with which a file of the sources, or one in the same folder, is
    compiled.
    """
    commands = json.loads((lab.BUILD / "compile_commands.json").read_text())
    same = [c for c in commands if c["file"] == f"../src/{path}"]
    neighbours = [
        c for c in commands if c["file"].rsplit("/", 1)[0] == f"../src/{path}".rsplit("/", 1)[0]
    ]
    words = iter(shlex.split((same or neighbours)[0]["command"]))
    kept = []
    for word in words:
        if word in ("-o", "-MQ", "-MF", "-c"):
            next(words)
        elif word != "-MD":
            kept.append(word)
    return kept


@pytest.fixture(scope="module")
def src(tmp_path_factory):
    """The sources with all examples in their places."""
    src = tmp_path_factory.mktemp("extending") / "src"
    shutil.copytree(lab.ROOT / "src", src)
    (src / "cli/pids.c").write_text(block("c", "static int cmd_pids"))
    after(src / "cli/command_list.h", "COMMAND(list)\n", "COMMAND(pids)\n")

    before(src / "options/options.h", "    OPT_MONITOR,", block("c", "    OPT_HEARTBEAT,\n"))
    before(src / "options/table.c", "    [OPT_MONITOR]", block("c", "[OPT_HEARTBEAT] ="))
    (src / "agent/capture/heartbeat.c").write_text(block("c", "heartbeat_type = {"))
    after(src / "agent/session/capture_list.h", "CAPTURE(vm_events)\n", "CAPTURE(heartbeat)\n")

    before(src / "jfr/types.h", "    JFR_LOST,\n", block("c", "    JFR_REMARK,\n"))
    before(src / "jfr/types.c", "    EVENT(JFR_LOST,", block("c", "EVENT(JFR_REMARK,"))
    before(src / "profile/load_jfr.c", "    SETTING,\n", block("c", "    HEARTBEAT,\n"))
    before(
        src / "profile/load_jfr.c",
        '    {"jdk.ActiveSetting", SETTING},\n',
        block("c", '{"jvmscope.Heartbeat", HEARTBEAT}'),
    )
    before(src / "profile/load_jfr.c", "    case SETTING:\n", block("c", "case HEARTBEAT:"))

    before(src / "options/formats.c", '    {.letter = "r"', block("c", '{.letter = "e"'))
    letters = re.search(r'`("a\|b\|r\|.*?")`', TEXT)[1]
    after(
        src / "options/table.c",
        '[OPT_FORMAT] = {"format", NULL, 0, OPTION_WORD, ',
        letters + " /* ",
    )
    after(src / "options/table.c", letters + ' /* "a|b|r"', " */")

    (src / "export/methods.c").write_text(block("c", "static int export_methods"))
    after(src / "export/format_list.h", "FORMAT(collapsed)\n", "FORMAT(methods)\n")

    (src / "answers/heap/count.c").write_text(block("c", "static int heap_answer_count"))
    after(src / "answers/heap/verb_list.h", "VERB(summary)\n", "VERB(count)\n")
    before(
        src / "answers/heap/leaks.c",
        "void heap_suspects(",
        block("c", "static void note_classes") + "\n",
    )

    after(src / "page/members.c", "#include <string.h>\n", "#include <sys/stat.h>\n")
    before(
        src / "page/members.c",
        "/* Each kind of data in a recording",
        block("c", "static int put_about") + "\n",
    )
    before(
        src / "page/members.c", '    {"trace", put_trace},\n', block("c", '{"about", put_about}')
    )
    return src


@pytest.mark.parametrize(
    "path",
    [
        "cli/pids.c",
        "cli/commands.c",
        "options/table.c",
        "agent/session/capture.c",
        "agent/capture/heartbeat.c",
        "export/methods.c",
        "jfr/types.c",
        "profile/load_jfr.c",
        "options/formats.c",
        "export/export.c",
        "answers/heap/count.c",
        "answers/heap/verbs.c",
        "answers/heap/leaks.c",
        "page/members.c",
    ],
)
def test_an_example_compiles_in_its_place(src, path):
    words = [
        w.replace("../src", str(src)).replace(str(lab.ROOT / "src"), str(src)) for w in flags(path)
    ]
    done = subprocess.run(
        [*words, "-Wno-unused-function", "-Werror", "-fsyntax-only", src / path],
        cwd=lab.BUILD,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_an_option_and_a_format_of_the_agent_are_accepted(src, tmp_path):
    """The letter of the example is one of the values of format=, and its row is found by it. The
    capture's option replaces the captures that --always chooses by default; its row is all that
    this needs.
    """
    program = tmp_path / "options"
    program.with_suffix(".c").write_text(
        """\
#include "options/formats.h"
#include <stdio.h>
static void parse(struct options *o, const char *text)
{
    struct buf why = BUF(1000);
    if (options_parse(o, text, &why) < 0)
        puts(buf_str(&why));
}
int main(void)
{
    struct options o;
    parse(&o, "format=e");
    puts(option_format(&o)->file);
    for (int chosen = 0; chosen < 2; chosen++) {
        parse(&o, chosen ? "always=y,heartbeat=y" : "always=y");
        printf("%s %d %d\\n", o.v[OPT_CPU].text ? o.v[OPT_CPU].text : "-", option_on(&o, OPT_EVENTS), option_on(&o, OPT_HEARTBEAT));
    }
    return 0;
}
"""
    )
    words = [
        w.replace("../src", str(src)) for w in flags("options/table.c") if not w.endswith("table.c")
    ]
    sources = [str(p) for p in sorted((src / "options").glob("*.c"))]
    done = subprocess.run(
        [
            *words,
            "-w",
            program.with_suffix(".c"),
            *sources,
            lab.BUILD / "src/base/libbase.a",
            "-lm",
            "-o",
            program,
        ],
        cwd=lab.BUILD,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert out == "hprof-%p.txt\nsamples 1 0\n- 0 1\n"


def test_the_view_of_the_page_has_the_types_that_it_uses(tmp_path):
    web = lab.ROOT / "web"
    if not (web / "node_modules" / "typescript").exists():
        pytest.skip("the packages of web/package-lock.json are not there (npm ci in web)")
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(web / name, tmp_path)
    shutil.copytree(web / "src", tmp_path / "src")
    (tmp_path / "node_modules").symlink_to(web / "node_modules")
    (tmp_path / "src" / "about.tsx").write_text(block("tsx", "export function About"))
    done = subprocess.run(
        ["node_modules/.bin/tsc", "--noEmit"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_each_addition_touches_at_most_three_places_that_exist():
    rows = re.findall(r"(?m)^\| (an? [\w ]+) \| (.*) \| (.*) \|$", TEXT)
    assert len(rows) == 10, [task for task, *_ in rows]
    for task, places, tests in rows:
        paths = re.findall(r"`([\w./]+)`", places)
        assert 1 <= len(paths) <= 3, (task, paths)
        paths += [p for p in re.findall(r"`([\w./]+)`", tests) if "/" in p or "." in p[1:]]
        assert all("NAME" in p or (lab.ROOT / p).exists() for p in paths), (task, paths)
        lists = re.findall(r"`([A-Z]+)`", tests)
        assert all(
            any(
                re.search(rf"(?m)^{name} = ", (lab.ROOT / p).read_text())
                for p in paths
                if p.endswith(".py")
            )
            for name in lists
        ), (task, lists)


def test_the_catalog_of_events_has_each_type_once_and_only_types_that_exist():
    text = (lab.ROOT / "src/jfr/catalog.c").read_text()
    types = re.findall(r'(?m)^    \{"([\w.]+)", SCOPE_', text)
    assert len(types) > 60 and types == sorted(set(types)), types
    sources = "\n".join(p.read_text() for p in (lab.ROOT / "src/agent").rglob("*.[ch]"))
    sources += (lab.ROOT / "src/jfr/types.c").read_text()
    described = (lab.ROOT / "doc/format.md").read_text()
    for name in types:
        if name.startswith("jvmscope."):
            assert f'.name = "{name}"' in sources or f'"{name}"' in sources, name
            assert name.removeprefix("jvmscope.") in described, name
