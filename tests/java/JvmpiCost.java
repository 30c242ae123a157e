// SPDX-License-Identifier: Apache-2.0
import com.sun.management.OperatingSystemMXBean;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * For bench/jvmpi: prints "ns X Y", the time of one operation in the quickest of ten rounds, and
 * in the last five including collections.
 */
public class JvmpiCost {
    static int sink;
    static Object kept;

    /** Makes N calls. It is recursive so that no compiler can inline all of them. */
    static int down(int n) {
        return n == 0 ? sink : down(n - 1) + 1;
    }

    public static class Loaded {
        static Object reference;
        static byte small;
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] code) {
            return defineClass("JvmpiCost$Loaded", code, 0, code.length);
        }
    }

    /**
     * Prints the CPU time of the whole process while it loads 300 classes, with a million objects
     * in the heap.
     */
    static void classes() throws Exception {
        Object[] living = new Object[1000000], made = new Object[300];
        for (int i = 0; i < living.length; i++)
            living[i] = new Object[2];
        byte[] code = new byte[10000];
        int n = 0;
        try (InputStream in = JvmpiCost.class.getResourceAsStream("JvmpiCost$Loaded.class")) {
            for (int more; (more = in.read(code, n, code.length - n)) > 0; )
                n += more;
        }
        code = Arrays.copyOf(code, n);
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long start = system.getProcessCpuTime();
        for (int i = 0; i < made.length; i++)
            made[i] = new Loader().define(code).getDeclaredConstructor().newInstance();
        System.out.println("cpu_ms " + (system.getProcessCpuTime() - start) / 1000000);
        kept = living;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("classes")) {
            classes();
            return;
        }
        boolean call = arguments[0].equals("call");
        if (arguments[0].equals("nothing")) {
            System.out.println("ns 0 0");
            return;
        }
        double best = Double.MAX_VALUE, sum = 0;
        for (int round = 0; round < 10; round++) {
            long start = System.nanoTime();
            int n = 0, enough = call ? 2000000 : 400000;
            while (n < enough) {
                if (call) {
                    sink = down(99) & 1;
                    n += 100;
                } else {
                    kept = new Object();
                    n++;
                }
            }
            double each = (System.nanoTime() - start) / (double) n;
            best = Math.min(best, each);
            sum += round < 5 ? 0 : each;
        }
        System.out.println("ns " + best + " " + sum / 5);
    }
}
