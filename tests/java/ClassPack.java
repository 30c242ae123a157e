// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.lang.classfile.*;
import java.lang.constant.*;
import java.net.URI;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

/**
 * Packs of class files (length, bytes ...) for rewrite_pack. JDK 25 and later.
 * pack OUT EVERY SOURCE...: every EVERYth class of jars, or of the running JDK for the source "jrt".
 * verify ORIGINAL REWRITTEN...: prints, a line a rewritten pack, classes, those whose rewritten form fails java.lang.classfile's verifier while the
 * original passes, and those it could not judge because classes they refer to are missing.
 */
public class ClassPack {
    static void emit(DataOutputStream out, byte[] b) throws IOException {
        if (b.length > 4 && (b[0] & 255) == 0xca && (b[1] & 255) == 0xfe) {
            out.writeInt(b.length);
            out.write(b);
        }
    }

    static boolean wanted(String name) {
        return name.endsWith(".class") && !name.endsWith("module-info.class") && !name.startsWith("META-INF/versions");
    }

    static void pack(String[] a) throws Exception {
        int every = Integer.parseInt(a[2]), n = 0;
        try (var out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(a[1])))) {
            for (int i = 3; i < a.length; i++) {
                if (a[i].equals("jrt")) {
                    try (var s = Files.walk(FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules"))) {
                        for (Path p : (Iterable<Path>) s::iterator)
                            if (wanted(p.toString()) && n++ % every == 0)
                                emit(out, Files.readAllBytes(p));
                    }
                } else {
                    try (ZipFile z = new ZipFile(a[i])) {
                        for (var e : Collections.list(z.entries()))
                            if (wanted(e.getName()) && n++ % every == 0)
                                emit(out, z.getInputStream(e).readAllBytes());
                    }
                }
            }
        }
    }

    static DataInputStream open(String file) throws IOException {
        return new DataInputStream(new BufferedInputStream(new FileInputStream(file), 1 << 20));
    }

    /** The next class of a pack, null at its end. */
    static byte[] next(DataInputStream in) throws IOException {
        try {
            return in.readNBytes(in.readInt());
        } catch (EOFException e) {
            return null;
        }
    }

    static List<byte[]> read(String file) throws IOException {
        List<byte[]> all = new ArrayList<>();
        try (var in = open(file)) {
            for (byte[] b; (b = next(in)) != null;)
                all.add(b);
        }
        return all;
    }

    static String failure(ClassFile cf, byte[] b) {
        try {
            var errors = cf.verify(b);
            return errors.isEmpty() ? null : errors.get(0).getMessage();
        } catch (Throwable t) {
            return t.toString();
        }
    }

    static void verify(String[] a) throws Exception {
        List<byte[]> original = read(a[1]);
        Map<ClassDesc, ClassHierarchyResolver.ClassHierarchyInfo> known = new HashMap<>();
        for (byte[] b : original) {
            try {
                var m = ClassFile.of().parse(b);
                known.put(m.thisClass().asSymbol(), m.flags().has(java.lang.reflect.AccessFlag.INTERFACE)
                    ? ClassHierarchyResolver.ClassHierarchyInfo.ofInterface()
                    : ClassHierarchyResolver.ClassHierarchyInfo.ofClass(m.superclass().map(s -> s.asSymbol()).orElse(null)));
            } catch (IllegalArgumentException e) {
                continue; // verify reports it
            }
        }
        ClassHierarchyResolver resolver = known::get;
        var cf = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(
            resolver.orElse(ClassHierarchyResolver.defaultResolver())));
        Arrays.asList(a).subList(2, a.length).parallelStream().map(rewritten -> verify(cf, original, rewritten))
            .forEachOrdered(System.out::print);
    }

    /** The lines to print of one rewritten pack. */
    static String verify(ClassFile cf, List<byte[]> original, String rewritten) {
        StringBuilder lines = new StringBuilder();
        int bad = 0, unjudged = 0, n = 0;
        try (var in = open(rewritten)) { // may be many times as large as the original
            for (byte[] b; (b = next(in)) != null; n++) {
                String why = failure(cf, b);
                if (why == null)
                    continue;
                if (failure(cf, original.get(n)) != null)
                    unjudged++;
                else if (bad++ < 3)
                    lines.append("BAD " + cf.parse(original.get(n)).thisClass().asInternalName() + " " + why + "\n");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return lines + "classes=" + n + " bad=" + bad + " unjudged=" + unjudged + " missing=" + (original.size() - n) + "\n";
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("pack"))
            pack(a);
        else
            verify(a);
    }
}
