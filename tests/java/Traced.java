// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/** Calls whose arguments and results are known. */
public class Traced {
    static class Calls {
        final int base;

        Calls(int base, String name) {
            this.base = base;
        }

        static int ints(byte b, short s, char c, int i, boolean z) {
            return b + s + c + i + (z ? 1 : 0);
        }

        static long longs(long a, long b) {
            return a + b;
        }

        static double doubles(float f, double d) {
            return f * d;
        }

        static float floats(float f) {
            return f;
        }

        static char chars(char c) {
            return c;
        }

        static boolean booleans(boolean b) {
            return !b;
        }

        static String strings(String s, Object o) {
            return s == null ? null : s + "!";
        }

        static int[] arrays(int[] a, String[][] b, Object[] c) {
            return a;
        }

        static int varargs(String first, Object... rest) {
            return rest.length;
        }

        static void nothing() {
        }

        int instance(int x) {
            return base + x;
        }

        synchronized long locked(long x) {
            return x * 2;
        }

        static int thrower(int n) {
            if (n > 2) {
                throw new IllegalStateException("n");
            }
            return n;
        }

        static int catcher(int n) {
            try {
                return thrower(n);
            } catch (IllegalStateException e) {
                return -1;
            }
        }

        static int recursive(int n) {
            return n == 0 ? 0 : 1 + recursive(n - 1);
        }

        static int overloaded(int a) {
            return a;
        }

        static int overloaded(long a) {
            return (int) a;
        }
    }

    interface Maker<T> {
        T make(T t);
    }

    static class StringMaker implements Maker<String> {
        public String make(String s) { // with a bridge make(Object)
            return s + s;
        }
    }

    public static void main(String[] args) throws Exception {
        Calls.ints((byte) -1, (short) 300, 'c', 70000, true);
        Calls.longs(1L << 60, 2);
        Calls.longs(-5, 3);
        Calls.doubles(1.5f, 2.0);
        Calls.doubles(Float.NaN, 1.0);
        Calls.floats(Float.POSITIVE_INFINITY);
        Calls.chars('\u00e9');
        Calls.booleans(true);
        Calls.strings("caf\u00e9 \"quoted\"", new ArrayList<String>());
        Calls.strings(null, null);
        StringBuilder longText = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            longText.append('x');
        }
        Calls.strings(longText.toString(), 7);
        Calls.arrays(new int[3], new String[2][4], null);
        Calls.varargs("a", 1, 2, 3);
        Calls.nothing();
        Calls calls = new Calls(10, "ten");
        calls.instance(5);
        calls.locked(21);
        Calls.catcher(1);
        Calls.catcher(3);
        Calls.recursive(3);
        Calls.overloaded(1);
        Calls.overloaded(2L);
        Maker<String> maker = new StringMaker();
        maker.make("ab");
        IntFunction<Integer> lambda = x -> x + 1;
        lambda.apply(4);
        int many = args.length > 0 ? Integer.parseInt(args[0]) : 0;
        long sum = 0;
        for (int i = 0; i < many; i++) {
            sum += Calls.longs(i, 1);
        }
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            final int id = t;
            Thread thread = new Thread(() -> {
                for (int i = 0; i < 50; i++) {
                    Calls.recursive(id);
                }
            }, "worker-" + t);
            thread.start();
            threads.add(thread);
        }
        for (Thread t : threads) {
            t.join();
        }
        System.out.println("done " + sum);
    }
}
