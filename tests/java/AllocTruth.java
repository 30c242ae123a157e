// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

/**
 * Allocates in every way a program can, in several threads, and says how often: "CLASS METHOD
 * OBJECTS".
 */
public class AllocTruth {
    static class Plain {
        int a;
    }

    static class Derived extends Plain {
        long b, c;
        final Plain inner = new Plain();
    }

    static class Throws {
        Throws(int i) {
            if (i % 2 == 0) {
                throw new IllegalStateException();
            }
        }
    }

    static class Reflected {
        long x;
    }

    static class Cloned implements Cloneable {
        int[] data = {1, 2};

        @Override
        public Cloned clone() {
            try {
                return (Cloned) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Captured {
    }

    static class Kept {
    }

    static class Nested {
        final Object o;

        Nested(Object o) {
            this.o = o;
        }
    }

    static final List<Object> KEEP = new ArrayList<>();
    static volatile Object sink;

    static void plain(int n) {
        for (int i = 0; i < n; i++) {
            sink = new Plain();
        }
    }

    static void derived(int n) {
        for (int i = 0; i < n; i++) {
            sink = new Derived();
        }
    }

    static void nested(int n) {
        for (int i = 0; i < n; i++) {
            sink = new Nested(i % 3 == 0 ? new Nested(null) : new Nested(new Nested(null)));
        }
    }

    static void throwing(int n) {
        for (int i = 0; i < n; i++) {
            try {
                sink = new Throws(i);
            } catch (IllegalStateException e) {
                sink = e;
            }
        }
    }

    static void arrays(int n) {
        for (int i = 0; i < n; i++) {
            sink = new byte[i % 50];
            sink = new long[i % 5];
            sink = new char[3];
            sink = new Plain[i % 7];
        }
    }

    /**
     * Lengths that are constants, and some that only seem to be: the instruction before is one way
     * to come to the array's.
     */
    static void lengths(int n) {
        for (int i = 0; i < n; i++) {
            sink = new int[i % 2 == 0 ? 3 : i % 9];
            sink = new int[i % 2 == 0 ? i % 9 : 3];
            sink = new int[i == 0 ? 70000 : 4];
            sink = new int[200];
            sink = new String[] {"a", "b"};
            sink = new Derived[5];
        }
    }

    static void multi(int n) {
        for (int i = 0; i < n; i++) {
            sink = new short[2][3][4];
            sink = new Plain[i % 2][5];
            sink = new double[4][];
        }
    }

    static void reflection(int n) throws Exception {
        Constructor<Reflected> c = Reflected.class.getDeclaredConstructor();
        for (int i = 0; i < n; i++) {
            sink = c.newInstance();
            sink = Array.newInstance(Reflected.class, 3);
            sink = Array.newInstance(float.class, i % 9);
        }
    }

    static void cloning(int n) {
        Cloned c = new Cloned();
        float[] f = new float[3];
        Reflected[] r = new Reflected[2];
        for (int i = 0; i < n; i++) {
            sink = c.clone();
            sink = f.clone();
            sink = r.clone();
        }
    }

    static void copying(int n) {
        Nested[] a = new Nested[5];
        for (int i = 0; i < n; i++) {
            sink = Arrays.copyOf(a, 7);
            sink = Arrays.copyOfRange(a, 1, 3);
        }
    }

    static void lambdas(int n) {
        for (int i = 0; i < n; i++) {
            Object o = sink;
            Supplier<Object> s = () -> o == null ? new Captured() : new Captured();
            sink = s.get();
        }
    }

    static void joined(int n) {
        for (int i = 0; i < n; i++) {
            sink = "n" + i + sink.getClass();
        }
    }

    /**
     * One array of bytes for each, and where the concatenation is not done by a builder nothing
     * else.
     */
    static void length(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += ("a" + i).length();
        }
        sink = sum;
    }

    static void kept(int n) {
        for (int i = 0; i < n / 10; i++) {
            synchronized (KEEP) {
                KEEP.add(new Kept());
            }
        }
    }

    static void all(int n) throws Exception {
        kept(n);
        length(n);
        plain(n);
        derived(n);
        nested(n);
        throwing(n);
        arrays(n);
        lengths(n);
        multi(n);
        reflection(n);
        cloning(n);
        copying(n);
        lambdas(n);
        joined(n);
    }

    static void truth(String name, String method, long objects) {
        System.out.println(name + " " + method + " " + objects);
    }

    public static void main(String[] args) throws Exception {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 20000;
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            Thread thread = new Thread(() -> {
                try {
                    all(n);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread t : all) {
            t.join();
        }
        long k = (long) n * threads, nested = 0, matrix = 0;
        for (int i = 0; i < n; i++) {
            nested += (i % 3 == 0 ? 2 : 3) * threads;
            matrix += (i % 2 + 1) * threads;
        }
        truth("AllocTruth$Plain", "plain", k);
        truth("AllocTruth$Derived", "derived", k);
        truth("AllocTruth$Plain", "<init>", k);
        truth("AllocTruth$Nested", "nested", nested);
        truth("AllocTruth$Throws", "throwing", k);
        truth("byte[]", "arrays", k);
        truth("long[]", "arrays", k);
        truth("char[]", "arrays", k);
        truth("AllocTruth$Plain[]", "arrays", k);
        truth("int[]", "lengths", 4 * k);
        truth("java.lang.String[]", "lengths", k);
        truth("AllocTruth$Derived[]", "lengths", k);
        truth("short[][][]", "multi", k);
        truth("short[][]", "multi", 2 * k);
        truth("short[]", "multi", 6 * k);
        truth("AllocTruth$Plain[][]", "multi", k);
        truth("AllocTruth$Plain[]", "multi", matrix - k);
        truth("double[][]", "multi", k);
        truth("AllocTruth$Reflected", "*", k);
        truth("AllocTruth$Reflected[]", "reflection", k);
        truth("float[]", "reflection", k);
        truth("AllocTruth$Cloned", "clone", k);
        truth("AllocTruth$Cloned", "cloning", threads);
        truth("float[]", "cloning", k + threads);
        truth("AllocTruth$Reflected[]", "cloning", k + threads);
        truth("AllocTruth$Nested[]", "copying", 2 * k + threads);
        truth("AllocTruth$Captured", "lambda$lambdas$0", k);
        truth("AllocTruth$$Lambda", "*", k + threads);
        truth("AllocTruth$Kept", "kept", threads * (long) (n / 10));
    }
}
