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
 * pack OUT EVERY SOURCE...: every EVERYth class of jars, or of the JDK whose home SOURCE is.
 * verify PACK PROGRAM KIND...: runs PROGRAM KIND (rewrite_pack) over the pack for each kind and
 * prints a line on what comes out: classes, those whose rewritten form fails java.lang.classfile's
 * verifier while the original passes, those of a version before stack maps, which it does not
 * verify, those it could not judge because the original fails, for classes it refers to are
 * missing; and the line of counts that the program printed.
 */
public class ClassPack {
    static void emit(DataOutputStream out, byte[] b) throws IOException {
        if (b.length > 4 && (b[0] & 255) == 0xca && (b[1] & 255) == 0xfe) {
            out.writeInt(b.length);
            out.write(b);
        }
    }

    static boolean wanted(String name) {
        return name.endsWith(".class") && !name.endsWith("module-info.class")
                && !name.startsWith("META-INF/versions");
    }

    static class Packer implements AutoCloseable {
        final DataOutputStream out;
        final int every;
        int n;

        Packer(String file, int every) throws IOException {
            this.out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file)));
            this.every = every;
        }

        void jar(String file) throws IOException {
            try (ZipFile z = new ZipFile(file)) {
                for (var e : Collections.list(z.entries()))
                    if (wanted(e.getName()) && n++ % every == 0)
                        emit(out, z.getInputStream(e).readAllBytes());
            }
        }

        void jdk(Path home) throws IOException {
            boolean modules = Files.exists(home.resolve("lib/modules"));
            try (FileSystem jrt = modules ? FileSystems.newFileSystem(
                                          URI.create("jrt:/"), Map.of("java.home", home.toString()))
                                          : null;
                 var s = Files.walk(modules ? jrt.getPath("/modules") : home)) {
                for (Path p : (Iterable<Path>) s.filter(Files::isRegularFile)::iterator)
                    if (modules && wanted(p.toString()) && n++ % every == 0)
                        emit(out, Files.readAllBytes(p));
                    else if (!modules && p.toString().endsWith(".jar"))
                        jar(p.toString());
            }
        }

        @Override
        public void close() throws IOException {
            out.close();
        }
    }

    static void pack(String[] a) throws Exception {
        try (var packer = new Packer(a[1], Integer.parseInt(a[2]))) {
            for (int i = 3; i < a.length; i++)
                if (a[i].endsWith(".jar"))
                    packer.jar(a[i]);
                else
                    packer.jdk(Path.of(a[i]));
        }
    }

    static DataInputStream open(InputStream in) {
        return new DataInputStream(new BufferedInputStream(in, 1 << 20));
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
        try (var in = open(new FileInputStream(file))) {
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
                known.put(m.thisClass().asSymbol(),
                          m.flags().has(java.lang.reflect.AccessFlag.INTERFACE)
                                  ? ClassHierarchyResolver.ClassHierarchyInfo.ofInterface()
                                  : ClassHierarchyResolver.ClassHierarchyInfo.ofClass(
                                          m.superclass().map(s -> s.asSymbol()).orElse(null)));
            } catch (IllegalArgumentException e) {
                continue; // verify reports it
            }
        }
        // A class that is nowhere counts as an interface, to which the verifier lets anything be
        // assigned, or by its name as an exception.
        ClassHierarchyResolver resolver = known::get;
        var cf = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(resolver.orElse(ClassHierarchyResolver.defaultResolver())
            .orElse(d -> d.displayName().matches(".*(Exception|Error)")
                ? ClassHierarchyResolver.ClassHierarchyInfo.ofClass(ClassDesc.of("java.lang.RuntimeException"))
                : ClassHierarchyResolver.ClassHierarchyInfo.ofInterface())));
        Arrays.asList(a)
                .subList(3, a.length)
                .parallelStream()
                .map(kind -> verify(cf, original, a[1], a[2], kind))
                .forEachOrdered(System.out::print);
    }

    /** The lines to print of one kind. */
    static String verify(ClassFile cf, List<byte[]> original, String pack, String program,
                         String kind) {
        StringBuilder lines = new StringBuilder();
        int bad = 0, old = 0, unjudged = 0, n = 0;
        try {
            Process p = new ProcessBuilder(program, kind).redirectInput(new File(pack)).start();
            try (var in = open(p.getInputStream())) { // may be many times as large as the original
                for (byte[] b; (b = next(in)) != null; n++) {
                    String why = failure(cf, b);
                    if (why == null)
                        continue;
                    if (b[7] < ClassFile.JAVA_6_VERSION)
                        old++;
                    else if (failure(cf, original.get(n)) != null)
                        unjudged++;
                    else if (bad++ < 3)
                        lines.append("BAD " + cf.parse(original.get(n)).thisClass().asInternalName()
                                     + " " + why + "\n");
                }
            }
            String counts = new String(p.getErrorStream().readAllBytes()).trim();
            return lines + "verified=" + n + " bad=" + bad + " old=" + old + " unjudged=" + unjudged
                    + " missing=" + (original.size() - n) + " exit=" + p.waitFor() + " " + counts
                    + "\n";
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("pack"))
            pack(a);
        else
            verify(a);
    }
}
