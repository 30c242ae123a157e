# SPDX-License-Identifier: Apache-2.0
"""heap=sites: allocation by site, estimated from the VM's samples where it has them (JDK 11 on)."""
import re
import struct

import pytest

import hproftext

N = 2000000


def by_method(text, rows, name):
    """Sums of the rows of a class by the method that allocated."""
    sums = {}
    for r in rows:
        if r.name == name and text.traces[r.trace]:
            method = text.traces[r.trace][0][0]
            live, alloc, size = sums.get(method, (0, 0, 0))
            sums[method] = (live + r.live_objects, alloc + r.alloc_objects, size + r.alloc_bytes)
    return sums


@pytest.mark.jdks(11, 17, 21, 25, 27)
def test_estimates_are_near_the_truth(jdk, tmp_path):
    done = jdk.java("Allocates", str(N), jvm=[jdk.agent(f"heap=sites,cutoff=0,file={tmp_path}/s.txt"), "-Xmx512m"])
    assert (done.returncode, done.stdout) == (0, f"allocated {N // 4}\n"), done.stderr
    text = hproftext.Text(tmp_path / "s.txt")
    assert text.site_orders == ["live bytes"]
    rows = text.sites[0]
    assert all(a.live_bytes >= b.live_bytes for a, b in zip(rows, rows[1:]))
    arrays = by_method(text, rows, "byte[]")["Allocates.arrays"]
    # 200 MB in samples of 512 KiB: 400 samples, a standard error of 5 %; four of them are allowed.
    assert arrays[1] == pytest.approx(N / 10, rel=0.2)
    assert arrays[2] == pytest.approx(N / 10 * 1016, rel=0.2)
    # 48 or 64 MB: about 100 samples.
    small = by_method(text, rows, "Allocates$Small")["Allocates.small"]
    assert small[1] == pytest.approx(N, rel=0.45)
    assert small[0] == pytest.approx(N / 4, rel=0.9)
    assert re.search(r"estimated from \d+ samples, standard error of all bytes \d+\.\d\d %", done.stderr)


@pytest.mark.jdks(8)
def test_a_vm_without_samples_says_so(jdk, tmp_path):
    done = jdk.java("Exits", "3", jvm=[jdk.agent(f"heap=sites,file={tmp_path}/s.txt")])
    assert done.returncode == 1 and "heap=sites" in done.stderr and "sampled" in done.stderr


@pytest.mark.jdks(17, 27)
def test_sites_and_summary_by_command(jdk):
    from test_hprof_socket import FrontEnd
    f = FrontEnd(jdk, "format=b,heap=sites,cutoff=0")
    f.send(4)
    f.send(3, struct.pack(">Hf", 2 | 4, 0.0))
    f.wait(lambda s: len(s.summaries) == 1 and len(s.sites) == 1)
    flags, cutoff, totals, rows = f.stream.sites[0]
    assert flags == 6 and cutoff == 0
    assert all(a[5] >= b[5] for a, b in zip(rows, rows[1:])), "by allocation"
    assert all(r[1] in f.stream.classes and r[2] in f.stream.traces for r in rows)
    f.send(3, struct.pack(">Hf", 1, 0.25))
    f.wait(lambda s: len(s.sites) == 2)
    f.end()
    assert len(f.stream.sites) == 3 and f.stream.data == b""
