// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** Allocations that fail, in several threads, among such that do not: "CLASS METHOD OBJECTS". */
public class AllocFails {
    static class Broken {
        static final Broken FIRST = new Broken();
        static final int NEVER = Integer.parseInt("none");
    }

    static class Late {
        static final List<Late> OWN = new ArrayList<>();

        static {
            for (int i = 0; i < 5; i++) {
                OWN.add(new Late());
            }
        }
    }

    static volatile Object sink;

    static void broken(int n) {
        for (int i = 0; i < n; i++) {
            try {
                sink = new Broken();
                throw new AssertionError();
            } catch (ExceptionInInitializerError | NoClassDefFoundError e) {
                sink = null;
            }
        }
    }

    static void late(int n) {
        for (int i = 0; i < n; i++) {
            sink = new Late();
        }
    }

    static void negative(int n) {
        for (int i = 0; i < n; i++) {
            try {
                sink = new int[i % 3 - 1];
                sink = new Late[i % 2 - 1];
            } catch (NegativeArraySizeException e) {
                sink = null;
            }
        }
    }

    static void large(int n) {
        for (int i = 0; i < n; i++) {
            try {
                sink = new long[i % 2 == 0 ? 70000 : Integer.MAX_VALUE];
            } catch (OutOfMemoryError e) {
                sink = null;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]), threads = 3;
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            Thread thread = new Thread(() -> {
                broken(n);
                late(n);
                negative(n);
                large(n / 100);
            });
            thread.start();
            all.add(thread);
        }
        for (Thread t : all) {
            t.join();
        }
        System.out.println("AllocFails$Broken <clinit> 1");
        System.out.println("AllocFails$Broken broken 0");
        System.out.println("AllocFails$Late <clinit> 5");
        System.out.println("AllocFails$Late late " + n * threads);
        int ints = 0, lates = 0;
        for (int i = 0; i < n; i++) {
            ints += i % 3 == 0 ? 0 : 1;
            lates += i % 3 == 0 || i % 2 == 0 ? 0 : 1;
        }
        System.out.println("int[] negative " + ints * threads);
        System.out.println("AllocFails$Late[] negative " + lates * threads);
        System.out.println("long[] large " + (n / 100 + 1) / 2 * threads);
    }
}
