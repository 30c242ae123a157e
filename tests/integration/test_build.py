# SPDX-License-Identifier: Apache-2.0
"""What the build leaves, and the machine it needs."""


def test_version_and_help(jvmscope):
    assert jvmscope("--version").stdout.startswith("jvmscope ")
    assert jvmscope("--help").returncode == 0
    assert jvmscope().returncode == 2
    wrong = jvmscope("nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("jvmscope: nonsense: no such command")


def test_each_jdk_of_the_matrix_answers(jdk):
    done = jdk.run("java", "-version")
    assert done.returncode == 0
    version = done.stderr.split('"')[1]
    assert version.startswith("1.8." if jdk.version == 8 else f"{jdk.version}")
