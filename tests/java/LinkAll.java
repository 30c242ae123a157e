// SPDX-License-Identifier: Apache-2.0
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

/**
 * Links (so verifies) every class of the running JDK, or of jars, each EVERYth: LinkAll EVERY [JAR...]. Prints how many were
 * linked, how many the verifier refused (and the first of them), and how many miss classes they refer to.
 */
public class LinkAll {
    static List<String> names = new ArrayList<>();

    static void add(String path) {
        if (path.endsWith(".class") && !path.endsWith("module-info.class") && !path.startsWith("META-INF/"))
            names.add(path.substring(0, path.length() - 6).replace('/', '.'));
    }

    static void jar(String file) throws Exception {
        try (ZipFile z = new ZipFile(file)) {
            for (ZipEntry e : Collections.list(z.entries()))
                add(e.getName());
        }
    }

    /** Links its share of the names. */
    static class Linker extends Thread {
        final ClassLoader loader;
        final int first, every;
        int linked, refused, missing;

        Linker(ClassLoader loader, int first, int every) {
            this.loader = loader;
            this.first = first;
            this.every = every;
        }

        @Override
        public void run() {
            for (int i = first; i < names.size(); i += every) {
                try {
                    Class.forName(names.get(i), false, loader).getDeclaredMethods();
                    linked++;
                } catch (VerifyError | ClassFormatError e) {
                    if (refused++ < 3)
                        System.out.println(e);
                } catch (Throwable t) {
                    missing++;
                }
            }
        }
    }

    public static void main(String[] a) throws Exception {
        int every = Integer.parseInt(a[0]);
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        if (a.length > 1) {
            List<URL> urls = new ArrayList<>();
            for (int i = 1; i < a.length; i++) {
                jar(a[i]);
                urls.add(Paths.get(a[i]).toUri().toURL());
            }
            loader = new URLClassLoader(urls.toArray(new URL[0]));
        } else if (System.getProperty("sun.boot.class.path") != null) {
            for (String f : System.getProperty("sun.boot.class.path").split(":"))
                if (Files.exists(Paths.get(f)) && f.endsWith(".jar"))
                    jar(f);
        } else {
            Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
            List<Path> all = new ArrayList<>();
            try (java.util.stream.Stream<Path> s = Files.walk(modules)) {
                s.forEach(all::add);
            }
            for (Path p : all)
                if (p.getNameCount() > 2)
                    add(p.subpath(2, p.getNameCount()).toString());
        }
        Linker[] linkers = {new Linker(loader, 0, 2 * every), new Linker(loader, every, 2 * every)};
        for (Linker l : linkers)
            l.start();
        int linked = 0, refused = 0, missing = 0;
        for (Linker l : linkers) {
            l.join();
            linked += l.linked;
            refused += l.refused;
            missing += l.missing;
        }
        System.out.println("linked=" + linked + " refused=" + refused + " missing=" + missing);
    }
}
