# SPDX-License-Identifier: Apache-2.0
"""Real programs to profile: javac over generated sources, H2 under SQL, Tomcat, Lucene. Used by
tests and bench.
"""
import pathlib
import subprocess
import textwrap

import lab

H2_JAR = pathlib.Path("/usr/share/java/h2.jar")


def javac_sources(folder, classes=60):
    """Writes `classes` source files with generics, lambdas, switches and inner classes. Returns
    their paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for c in range(classes):
        methods = "".join(_method(c, m, classes) for m in range(30))
        text = f"""\
            package generated;

            import java.util.*;
            import java.util.function.*;

            public class C{c}<T extends Comparable<T>> {{
                private final Map<String, List<T>> map = new HashMap<>();
                enum Kind {{ ONE, TWO, THREE }}
                static class Node<V> {{ V value; Node<V> next; Node(V v, Node<V> n) {{ value = v; next = n; }} }}
            {methods}
            }}
            """
        path = folder / f"C{c}.java"
        path.write_text(textwrap.dedent(text))
        paths.append(path)
    return paths


def _method(c, m, classes):
    other = (c * 7 + m) % classes
    return f"""
                public <R extends Comparable<R>> List<R> m{m}(Collection<? extends T> in, Function<? super T, ? extends R> f) {{
                    List<R> out = new ArrayList<>();
                    for (T t : in) {{
                        switch (Kind.values()[Math.abs(t.hashCode()) % 3]) {{
                        case ONE: out.add(f.apply(t)); break;
                        case TWO: map.computeIfAbsent("k" + t, k -> new ArrayList<>()).add(t); break;
                        default: new C{other}<R>().m{(m + 1) % 30}(out, x -> x); break;
                        }}
                    }}
                    Supplier<Node<R>> s = () -> out.isEmpty() ? null : new Node<>(out.get(0), null);
                    out.sort(Comparator.<R>naturalOrder().thenComparing((a, b) -> a.toString().length() - b.toString().length()));
                    String text = "m{m} of " + {c} + s.get() + (out.size() > {m} ? "many" : "few") + map.size();
                    return text.length() > 1000 ? null : out;
                }}
"""


def javac_command(folder, jvm=()):
    """javac as one VM, over sources of javac_sources."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    return [
        "javac",
        "-J-Xmx256m",
        *(f"-J{a}" for a in jvm),
        "-nowarn",
        "-d",
        out,
        *sorted(folder.glob("C*.java")),
    ]


def h2_command(rows=60000, jvm=()):
    classes = lab.compiled("SqlRows")
    return ["java", "-Xmx256m", *jvm, "-cp", f"{classes}:{H2_JAR}", "SqlRows", rows]


HELD = ("h2", "javac", "tomcat", "lucene")


def jars(name):
    """The jars of a program that tools/jars knows."""
    done = subprocess.run(
        [lab.ROOT / "tools" / "jars", name], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def held_command(program, jdk, folder, jvm=("-Xmx256m",)):
    """The command line of one of HELD, which prints READY when its work is done and keeps its heap
    until its standard input ends.
    """
    if program == "h2":
        name, args, path, given = "SqlRows", (20000,), [H2_JAR], ()
    elif program == "javac":
        if not folder.exists():
            javac_sources(folder, 40)
        # JDK 8 loads the compiler with a separate loader, because its classes are not on the class
        # path.
        name, args, path, given = "Compiles", (folder,), [], ()
    elif program == "lucene":
        name, args, path = "Searches", (8000,), jars("lucene")
        given = path
    else:
        # Tomcat 10 requires JDK 11. The program uses nothing that differs between the two.
        folder.mkdir(parents=True, exist_ok=True)
        name, args, path = (
            "ServesFiles",
            (folder, 4000),
            jars("tomcat10" if jdk.version >= 11 else "tomcat9"),
        )
        given = jars("tomcat10")
    path = [lab.compiled("Ready"), lab.compiled(name, jars=given), *path]
    return ["java", *jvm, "-cp", ":".join(map(str, path)), "Ready", name, *args]
