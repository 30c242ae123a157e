#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the probe classes for Java 8 and writes them as C arrays: embed.py OUT.c JAVAC SOURCE...
(stubs are in this directory).
"""
import pathlib
import subprocess
import sys
import tempfile

out, javac, *sources = sys.argv[1:]
stubs = pathlib.Path(__file__).parent / "stubs"
with tempfile.TemporaryDirectory() as classes:
    subprocess.run(
        [
            javac,
            "-nowarn",
            "-Xlint:-options",
            "-g:none",
            "--release",
            "8",
            "-sourcepath",
            stubs,
            "-d",
            classes,
            *sources,
        ],
        check=True,
    )
    rows, arrays = [], []
    for i, source in enumerate(sources):
        name = "java/lang/" + pathlib.Path(source).stem
        data = (pathlib.Path(classes) / (name + ".class")).read_bytes()
        lines = [", ".join(str(b) for b in data[k : k + 24]) for k in range(0, len(data), 24)]
        arrays.append(
            f"static const uint8_t class_{i}[] = {{\n    " + ",\n    ".join(lines) + "};\n"
        )
        rows.append(f'    {{"{name}", class_{i}, sizeof(class_{i})}},\n')
    extra = [
        p
        for p in (pathlib.Path(classes) / "java/lang").glob("*.class")
        if "java/lang/" + p.stem not in "".join(rows)
    ]
    assert not extra, f"a probe must be one class: {extra}"
pathlib.Path(out).write_text(
    '/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by embed.py. */\n#include "agent/instrument/probe_class.h"\n\n'
    + "\n".join(arrays)
    + "\nconst struct probe_class probe_classes[] = {\n"
    + "".join(rows)
    + "    {NULL, NULL, 0},\n};\n"
)
