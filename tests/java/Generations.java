// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * Classes G000, G001 ... of the same code, each loaded by a loader of its own, run for MILLISECONDS
 * of CPU time and unloaded before the next one comes, which is given the memory of the last.
 * Arguments: COUNT MILLISECONDS. Prints the CPU time of each, and from when to when it was there,
 * in milliseconds since 1970; between two of them is a pause.
 */
public class Generations {
    static final java.lang.management.ThreadMXBean THREADS =
            java.lang.management.ManagementFactory.getThreadMXBean();
    public static volatile long sink;

    public static boolean before(long end) {
        return THREADS.getCurrentThreadCpuTime() < end;
    }

    public static class G000 implements java.util.function.LongUnaryOperator {
        @Override
        public long applyAsLong(long end) {
            long x = 0;
            while (before(end))
                x += down(20, x);
            return x;
        }

        static long down(int depth, long x) {
            return depth == 0 ? leaf(x) : down(depth - 1, x) * 31;
        }

        static long leaf(long x) {
            for (int i = 0; i < 3000; i++)
                x = x * 31 + (x >>> 7) + i;
            return x;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }

        Loader() {
            super(Generations.class.getClassLoader());
        }
    }

    static byte[] renamed(byte[] bytes, String name) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        return text.replace("Generations$G000", "Generations$" + name)
                .getBytes(StandardCharsets.ISO_8859_1);
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        long each = Long.parseLong(args[1]) * 1_000_000;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = Generations.class.getResourceAsStream("Generations$G000.class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        for (int i = 1; i <= count; i++) {
            Thread.sleep(20);
            String name = String.format("G%03d", i);
            long first = System.currentTimeMillis();
            Class<?> c = new Loader().define(renamed(out.toByteArray(), name));
            java.util.function.LongUnaryOperator g =
                    (java.util.function.LongUnaryOperator) c.getDeclaredConstructor().newInstance();
            long begin = THREADS.getCurrentThreadCpuTime();
            sink += g.applyAsLong(begin + each);
            long used = THREADS.getCurrentThreadCpuTime() - begin;
            c = null;
            g = null;
            System.gc();
            System.out.println(name + " " + used + " " + first + " " + System.currentTimeMillis());
        }
    }
}
