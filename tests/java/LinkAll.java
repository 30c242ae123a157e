// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.lang.reflect.Executable;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

/**
 * Links (so verifies) every class of the running JDK, or of jars, each EVERYth: LinkAll EVERY
 * [JAR...]. Prints how many were linked, how many the verifier refused (and the first of them), how
 * many miss classes they refer to or a later VM, and how many methods with code the linked ones
 * have (but for class initialisers); then waits for the end of its input.
 */
public class LinkAll {
    static List<String> names = new ArrayList<>();

    static void add(String path) {
        if (path.endsWith(".class") && !path.endsWith("module-info.class")
            && !path.startsWith("META-INF/"))
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
        int linked, refused, missing, methods;

        Linker(ClassLoader loader, int first, int every) {
            this.loader = loader;
            this.first = first;
            this.every = every;
        }

        @Override
        public void run() {
            for (int i = first; i < names.size(); i += every) {
                try {
                    Class<?> c = Class.forName(names.get(i), false, loader);
                    methods += withCode(c.getDeclaredMethods())
                               + withCode(c.getDeclaredConstructors());
                    linked++;
                } catch (UnsupportedClassVersionError e) {
                    missing++; // jars have classes for later VMs
                } catch (VerifyError | ClassFormatError e) {
                    if (refused++ < 3)
                        System.out.println(e);
                } catch (Throwable t) {
                    missing++;
                }
            }
        }
    }

    static int withCode(Executable[] all) {
        int n = 0;
        for (Executable e : all)
            n += (e.getModifiers() & (Modifier.ABSTRACT | Modifier.NATIVE)) == 0 ? 1 : 0;
        return n;
    }

    public static void main(String[] a) throws Exception {
        int every = Integer.parseInt(a[0]);
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        List<File> jars = new ArrayList<>();
        for (int i = 1; i < a.length; i++)
            jars.add(new File(a[i]));
        String boot = System.getProperty("sun.boot.class.path"); // JDK 8
        if (a.length == 1 && boot != null) {
            for (String f : boot.split(":"))
                jars.add(new File(f));
            for (File f : new File(System.getProperty("java.ext.dirs").split(":")[0]).listFiles())
                jars.add(f);
            for (File f : new File(System.getProperty("java.home"), "../lib").listFiles())
                jars.add(f);
            jars.removeIf(f -> !f.isFile() || !f.getName().endsWith(".jar"));
        }
        if (!jars.isEmpty()) {
            List<URL> urls = new ArrayList<>();
            for (File f : jars) {
                jar(f.getPath());
                urls.add(f.toURI().toURL());
            }
            loader = new URLClassLoader(urls.toArray(new URL[0]));
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
        int linked = 0, refused = 0, missing = 0, methods = 0;
        for (Linker l : linkers) {
            l.join();
            linked += l.linked;
            refused += l.refused;
            missing += l.missing;
            methods += l.methods;
        }
        System.out.println("linked=" + linked + " refused=" + refused + " missing=" + missing
                           + " methods=" + methods);
        while (System.in.read() >= 0)
            continue;
    }
}
