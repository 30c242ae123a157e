# SPDX-License-Identifier: Apache-2.0
"""Servers of several makes that the tests of requests record."""
import functools
import pathlib
import subprocess

import lab


def jars(*names):
    return [pathlib.Path("/usr/share/java") / f"{name}.jar" for name in names]


SERVERS = {
    "Tomcat10": jars(
        "tomcat10-catalina",
        "tomcat10-coyote",
        "tomcat10-util",
        "tomcat10-util-scan",
        "tomcat10-servlet-api",
        "tomcat10-juli",
        "tomcat10-annotations-api",
        "tomcat10-api",
        "tomcat10-jaspic-api",
        "tomcat10-jni",
        "tomcat10-jasper",
        "tomcat10-el-api",
        "tomcat10-jsp-api",
    ),
    "Jetty9": jars(
        "jetty9-server",
        "jetty9-servlet",
        "jetty9-util",
        "jetty9-http",
        "jetty9-io",
        "jetty9-security",
        "jetty9-util-ajax",
        "servlet-api",
    ),
    "Netty4": jars(
        "netty-buffer",
        "netty-codec",
        "netty-codec-http",
        "netty-common",
        "netty-handler",
        "netty-resolver",
        "netty-transport",
    ),
}


@functools.cache
def jetty12():
    """The jar of Jetty 12, which needs JDK 17, or None."""
    done = subprocess.run([lab.ROOT / "tools" / "jars", "jetty12"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def served(jdk, server, out, rounds, paths, *jvm):
    """Runs a server and its client, which asks for the paths."""
    causes = lab.compiled("RequestCauses")
    path = [
        lab.compiled("Servers", 11, [causes, *(j for of in SERVERS.values() for j in of)]),
        causes,
        *SERVERS.get(server, ()),
    ]
    if server == "Jetty12":
        path = [lab.compiled("Jetty12", 17, [*path, jetty12()]), *path, jetty12()]
    return jdk.run(
        "java",
        jdk.agent(f"format=r,requests=auto,file={out}"),
        *jvm,
        "-cp",
        ":".join(map(str, path)),
        server,
        out.parent,
        rounds,
        ",".join(paths),
        cwd=out.parent,
    )
