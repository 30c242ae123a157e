# SPDX-License-Identifier: Apache-2.0
"""The Debian package, and the examples that show how services and clusters use the command."""
import os
import re
import shutil
import subprocess

import pytest
import yaml

import lab
from documents import links_lead_to_files

UNITS = lab.ROOT / "examples" / "systemd"
MANIFESTS = sorted((lab.ROOT / "examples" / "kubernetes").glob("*.yaml"))


def built(folder, *arch, **environment):
    """The package that `make deb` makes of the sources in a folder."""
    made = subprocess.run(
        [folder / "tools" / "deb", *arch],
        env=os.environ | {"DEB_BUILD_OPTIONS": ""} | environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return folder / made.stdout.split()[-1]


@pytest.fixture(scope="module")
def package():
    if not shutil.which("dh"):
        pytest.skip("debhelper is missing (tools/setup deb)")
    return built(lab.ROOT)


@pytest.fixture(scope="module")
def quickly(tmp_path_factory):
    """The package of the files of the build that is tested, because compiling all of it again takes
    minutes. Everything but the compiler's options is as it is in the package.
    """
    if not shutil.which("dh"):
        pytest.skip("debhelper is missing (tools/setup deb)")
    return built(
        lab.ROOT,
        JVMSCOPE_DEB_FROM=str(lab.BUILD),
        JVMSCOPE_DEB_OUT=str(tmp_path_factory.mktemp("deb")),
        DEB_BUILD_OPTIONS="noautodbgsym",
    )


@pytest.fixture(scope="module")
def arm_package():
    if not shutil.which("dh") or not os.path.exists(
        "/var/cache/jvmscope/runtime-aarch64/.jvmscope-ready"
    ):
        pytest.skip(
            "debhelper or the libraries of arm64 are missing (tools/setup deb cross-aarch64 deb-arm64)"
        )
    return built(lab.ROOT, "arm64")


SPELLING = re.compile(r"I: jvmscope: spelling-error-in-binary (.*) (\S+) \[(\S+)\]")


def is_a_text(word, path):
    """Whether a program's constants have it; lintian also takes machine code for words."""
    constants = subprocess.run(
        ["readelf", "-p", ".rodata", path],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    ).stdout
    assert "jvmscope" in constants
    return word in constants


def lintian_is_silent(package, folder):
    """No error, no warning and no information, except on misspelt words that no text has."""
    if not shutil.which("lintian"):
        pytest.skip("lintian is missing (tools/setup deb)")
    changes = next(package.parent.glob("*.changes"))
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on=error,warning", "--display-info", changes],
        capture_output=True,
        text=True,
    )
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    printed = [(line, SPELLING.fullmatch(line)) for line in done.stdout.splitlines()]
    left = [line for line, m in printed if not m or is_a_text(m[1], folder / m[3])]
    assert (done.returncode, left) == (0, []), done


@pytest.mark.parametrize("which", ["quickly", pytest.param("package", marks=pytest.mark.slow)])
def test_the_package_is_whole(request, tmp_path, which):
    """What it installs runs from there."""
    package = request.getfixturevalue(which)
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    for name in ("bin/jvmscope", "lib/jvmscope/libhprof.so", "lib/jvmscope/libjvmpi.so"):
        assert (tmp_path / "usr" / name).is_file()
    assert {p.name for p in (tmp_path / "usr/share/man/man1").iterdir()} == {
        p.name + ".gz" for p in lab.BUILD.glob("*.1")
    }
    assert links_lead_to_files(tmp_path / "usr/share/doc/jvmscope") > 50
    (tmp_path / "a.collapsed").write_text("main;work 5\nmain;rest 7\n")
    report = ["report", "--json", tmp_path / "a.collapsed"]
    done = subprocess.run([tmp_path / "usr/bin/jvmscope", *report], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == lab.jvmscope(*report).stdout


def listed(package):
    """The files of a package, with their modes and owners."""
    done = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {(row[0], row[1], row[5]) for row in rows}


@pytest.mark.slow
def test_the_package_that_is_made_quickly_has_the_same_files(package, quickly):
    assert listed(package) == listed(quickly)


@pytest.mark.slow
def test_lintian_has_nothing_to_say(package, tmp_path):
    lintian_is_silent(package, tmp_path)


@pytest.mark.slow
def test_the_package_for_arm64(arm_package, tmp_path):
    """Cross-built: the programs are of that architecture and linked with the system's libraries,
    and the command runs in an emulator.
    """
    lintian_is_silent(arm_package, tmp_path)
    fields = dict(
        re.findall(
            r"^(\S+): (.*)$",
            subprocess.run(["dpkg-deb", "-f", arm_package], capture_output=True, text=True).stdout,
            re.M,
        )
    )
    assert fields["Architecture"] == "arm64" and {"libc6", "libjson-c5", "libsqlite3-0"} <= {
        d.split()[0] for d in fields["Depends"].split(", ")
    }
    for name in ("bin/jvmscope", "lib/jvmscope/libhprof.so", "lib/jvmscope/libjvmpi.so"):
        assert (tmp_path / "usr" / name).read_bytes()[18:20] == b"\xb7\0", "EM_AARCH64"
    (tmp_path / "a.collapsed").write_text("main;work 5\nmain;rest 7\n")
    shown = subprocess.run(
        [
            "qemu-aarch64",
            "-L",
            "/var/cache/jvmscope/runtime-aarch64",
            tmp_path / "usr/bin/jvmscope",
            "report",
            tmp_path / "a.collapsed",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 0 and "work" in shown.stdout, shown
    assert {p.name for p in (tmp_path / "usr/share/man/man1").iterdir()} == {
        p.name + ".gz" for p in lab.BUILD.glob("*.1")
    }
    assert "check" in (tmp_path / "usr/share/bash-completion/completions/jvmscope").read_text()


# What a user does on a machine on which nothing of ours has been installed.
NEWCOMER = """set -e
cd {folder}
{command} run --cpu -i 1ms -o started.jfr -- java -cp {classes} Busy 1
java -cp {classes} Busy 60 >busy.txt & busy=$!
while ! grep -q ready busy.txt; do sleep 0.1; done
{command} check $busy
{command} attach --cpu -i 1ms -t 300ms -o attached.jfr $busy
kill -9 $busy
for recording in started attached; do {command} report $recording.jfr | grep Busy.work; {command} convert $recording.jfr -o $recording.html; done
"""


@pytest.fixture
def bare():
    """Runs a script in a copy of a bare Debian 12; returns the finished process."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    made = subprocess.run(
        [lab.ROOT / "tools" / "bare", "setup"], capture_output=True, text=True, timeout=900
    )
    assert made.returncode == 0, made.stderr
    return lambda script: subprocess.run(
        [lab.ROOT / "tools" / "bare", "run", "bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_the_package_records_on_a_bare_debian(package, bare, tmp_path):
    """Installed by apt with its dependencies, and removed without a trace."""
    shutil.copy(package, tmp_path)
    done = bare(
        f"set -e; apt-get update -q && apt-get install -q -y {tmp_path}/{package.name}\n"
        + NEWCOMER.format(folder=tmp_path, command="jvmscope", classes=lab.compiled("Busy"))
        + "apt-get purge -q -y jvmscope\n! find / -xdev -name '*jvmscope*' -not -path '/proc/*' -not -path '/var/*' -not -path '/.jvmscope-ready' "
        "-not -path '/etc/apt/*' | grep ."
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_the_tarball_records_on_a_bare_debian(bare, tmp_path):
    made = subprocess.run(
        [lab.ROOT / "tools" / "dist"], capture_output=True, text=True, timeout=900
    )
    assert made.returncode == 0, made.stderr[-2000:]
    assert "warning" not in made.stderr, made.stderr
    subprocess.run(["tar", "-xzf", lab.ROOT / made.stdout.split()[-1], "-C", tmp_path], check=True)
    folder = next(p for p in tmp_path.iterdir() if p.name.startswith("jvmscope-"))
    done = bare(
        NEWCOMER.format(folder=tmp_path, command=folder / "jvmscope", classes=lab.compiled("Busy"))
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def records(command, jdk, tmp_path):
    """The command finds the agent with which it was installed, and needs nothing else for a page."""
    done = subprocess.run(
        [
            command,
            "run",
            "--cpu",
            "-o",
            tmp_path / "x.jfr",
            "--",
            *jdk.command("java", "-cp", lab.compiled("Busy"), "Busy", "1"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "Busy.work"
        in subprocess.run(
            [command, "report", tmp_path / "x.jfr"], capture_output=True, text=True
        ).stdout
    )
    subprocess.run([command, "convert", tmp_path / "x.jfr", "-o", tmp_path / "x.html"], check=True)


@pytest.mark.jdks(17)
def test_what_meson_installs_records(jdk, tmp_path):
    """The files of the present build, as `make install` puts them into a folder. Building those of
    the package takes minutes; make check-all does that.
    """
    subprocess.run(
        ["meson", "install", "-C", lab.BUILD, "--no-rebuild", "--destdir", tmp_path / "root"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [command] = (tmp_path / "root").rglob("bin/jvmscope")
    records(command, jdk, tmp_path)
    pages = {p.name for p in command.parents[1].glob("share/man/man1/*")}
    assert (
        pages == {p.name for p in lab.BUILD.glob("*.1")}
        and {"jvmscope.1", "jvmscope-attach.1", "jvmscope-check.1"} <= pages
    )
    for shell in ("bash", "zsh", "fish"):
        assert (
            "check"
            in subprocess.run(
                [command, "completion", shell], capture_output=True, text=True, check=True
            ).stdout
        )


@pytest.mark.slow
@pytest.mark.jdks(17)
def test_what_is_installed_records(package, jdk, tmp_path):
    """The command finds the agent where the package puts it; manual pages and completions are where
    programs look for them.
    """
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    records(tmp_path / "usr/bin/jvmscope", jdk, tmp_path)
    pages = {p.name for p in (tmp_path / "usr/share/man/man1").iterdir()}
    assert {"jvmscope.1.gz", "jvmscope-attach.1.gz", "jvmscope-check.1.gz"} <= pages
    for path in (
        "bash-completion/completions/jvmscope",
        "zsh/vendor-completions/_jvmscope",
        "fish/vendor_completions.d/jvmscope.fish",
    ):
        assert "check" in (tmp_path / "usr/share" / path).read_text()
    subprocess.run(
        ["bash", "-n", tmp_path / "usr/share/bash-completion/completions/jvmscope"], check=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "which,arch", [("package", []), ("arm_package", ["arm64"])], ids=["amd64", "arm64"]
)
def test_two_packages_are_the_same_to_the_byte(request, tmp_path, which, arch):
    """A second build, from a copy of the sources elsewhere, is identical."""
    package = request.getfixturevalue(which)
    copy = tmp_path / "copy of the sources"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=lab.ROOT,
        capture_output=True,
        check=True,
    ).stdout
    copy.mkdir()
    subprocess.run(["git", "init", "-q", copy], check=True)
    subprocess.run(
        f"tar -c --null -T - | tar -x -C '{copy}'",
        shell=True,
        cwd=lab.ROOT,
        input=files,
        check=True,
    )
    assert package.read_bytes() == built(copy, *arch).read_bytes()


def test_units_are_valid(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/usr/bin/jvmscope", str(lab.BUILD / "jvmscope"))
        (tmp_path / unit.name.replace("@", "@com.shop.Main")).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not [
        x for x in done.stderr.splitlines() if str(tmp_path) in x
    ], done.stderr


def words_of(unit):
    """The command line of a unit, as systemd would pass it for com.shop.Main."""
    line = re.search(r"^ExecStart=\S+ (.*)$", unit.read_text(), re.M)[1]
    return line.replace("%I", "com.shop.Main").replace("%%", "%").split()


def test_manifests_are_valid():
    """Each names an API, a kind and a name. Containers run the command as it is, with options that
    exist.
    """
    containers = []
    for path in MANIFESTS:
        for document in yaml.safe_load_all(path.read_text()):
            assert {"apiVersion", "kind", "metadata"} <= document.keys() and document["metadata"][
                "name"
            ], path
            spec = document.get("spec", {})
            if document["kind"] == "DaemonSet":
                assert (
                    spec["selector"]["matchLabels"].items()
                    <= spec["template"]["metadata"]["labels"].items()
                )
                spec = spec["template"]["spec"]
                assert {m["name"] for c in spec["containers"] for m in c["volumeMounts"]} == {
                    v["name"] for v in spec["volumes"]
                }
            containers += spec.get("containers", []) + spec.get("ephemeralContainers", [])
    assert len(containers) == 2 and all(c["name"] and c["image"] for c in containers)
    for words in [c["args"] for c in containers if "args" in c] + [
        words_of(UNITS / "jvmscope-record@.service")
    ]:
        options = {w for w in words if w.startswith("--")}
        assert options <= set(
            re.findall(r"--[a-z-]+", lab.jvmscope(words[0], "--help").stdout)
        ), words


@pytest.mark.jdks(17)
def test_the_capabilities_of_the_examples_are_enough(jdk, tmp_path):
    """The capabilities that the unit keeps and the DaemonSet adds, for a VM of another user with a
    /tmp of its own.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to run programs of other users")
    unit = re.search(
        r"^CapabilityBoundingSet=(.*)$", (UNITS / "jvmscope-record@.service").read_text(), re.M
    )[1]
    sets = [{c.removeprefix("CAP_").lower() for c in unit.split()}]
    for document in yaml.safe_load_all(
        (lab.ROOT / "examples/kubernetes/daemonset.yaml").read_text()
    ):
        if document["kind"] == "DaemonSet":
            sets.append(
                {
                    c.lower()
                    for c in document["spec"]["template"]["spec"]["containers"][0][
                        "securityContext"
                    ]["capabilities"]["add"]
                }
            )
    assert len(sets) == 2
    process = jdk.start(
        "sh",
        "-c",
        "mount -t tmpfs -o mode=1777 none /tmp && exec setpriv --reuid=65534 --regid=65534 --clear-groups "
        f"java -Xmx32m -cp {lab.compiled('Busy')} Busy 60",
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "ready\n"
    for i, capabilities in enumerate(sets):
        limited = [
            "setpriv",
            "--inh-caps=-all",
            "--bounding-set=-all" + "".join(f",+{c}" for c in sorted(capabilities)),
        ]
        done = subprocess.run(
            [
                *limited,
                lab.BUILD / "jvmscope",
                "attach",
                "--cpu",
                "-i",
                "1ms",
                "-t",
                "300ms",
                "-o",
                tmp_path / f"{i}.jfr",
                str(process.pid),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0 and "Busy.work" in lab.output(
            "report", tmp_path / f"{i}.jfr"
        ), done.stderr
