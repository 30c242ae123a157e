// SPDX-License-Identifier: Apache-2.0
import java.lang.annotation.*;
import java.util.*;
import java.util.function.*;

/**
 * One of every construct that rewriting must get right. Prints what it computes: rewritten, it
 * must print the same.
 */
public class Constructs {
    @Target({ElementType.TYPE_USE, ElementType.LOCAL_VARIABLE})
    @Retention(RetentionPolicy.RUNTIME)
    @interface Marked {
        String[] value() default {"a", "b"};
    }

    static int counter;
    static final long START = start();

    static long start() {
        return 42;
    }

    static class Base {
        final String name;

        Base(String name) {
            if (name == null)
                throw new IllegalArgumentException("null");
            this.name = name;
        }

        Base(Base other) {
            this(other.name + "'");
        }
    }

    static class Derived extends Base {
        int extra = next();

        Derived(boolean which, Object o) {
            super(which ? new Base("yes").name : o.toString());
            extra += 2;
        }

        Derived(String s) {
            super(s);
            try {
                extra /= s.length();
            } catch (ArithmeticException e) {
                extra = -1;
            }
        }
    }

    interface Shape {
        double area();

        default String show() {
            return getClass().getSimpleName() + area();
        }

        static Shape unit() {
            return () -> 1;
        }
    }

    enum Color {
        RED, GREEN {
            @Override
            int weight() {
                return 7;
            }
        };

        int weight() {
            return ordinal();
        }
    }

    static int next() {
        return ++counter;
    }

    static int loopAtStart(int n) {
        do {
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        } while (n != 1);
        return n;
    }

    static int tables(int i) {
        switch (i) {
        case 0: return 10;
        case 1: return 11;
        case 2:
        case 3: i += 5; break;
        default: i = -i;
        }
        switch (i) {
        case -1000: return 1;
        case 7: return 2;
        case 100000: return 3;
        }
        return i;
    }

    static String strings(String s) {
        switch (s) {
        case "one": return "1";
        case "two": return "2";
        default: return "?";
        }
    }

    static int exceptions(int i) {
        int r = 0;
        try {
            try {
                if (i == 1)
                    throw new IllegalStateException();
                if (i == 2)
                    return 100;
                r += new int[i - 4].length;
            } finally {
                r += 1000;
                counter++;
            }
        } catch (IllegalStateException | NegativeArraySizeException e) {
            r += e instanceof IllegalStateException ? 1 : 2;
        }
        return r;
    }

    static synchronized long locks(Object a, Object b) {
        long sum = 0;
        synchronized (a) {
            sum++;
            synchronized (b) {
                sum += 2;
                if (a == b)
                    return sum;
            }
        }
        return sum * 10;
    }

    static double wide(long a, double b, float c, byte d, short e, char f, boolean g) {
        long x = a;
        for (double y = b; y > 0; y -= 1.5) {
            float z = c * d;
            x += (long) z;
            if (g) {
                int k = e + f;
                x -= k;
            }
        }
        return x;
    }

    static int arrays() {
        int[][][] cube = new int[2][3][];
        cube[1][2] = new int[] {1, 2, 3};
        Object[] objects = new Object[cube[1][2].length];
        @Marked List<@Marked String> list = new ArrayList<@Marked String>();
        list.add((@Marked String) "x");
        for (@Marked({"c"}) String s : list)
            objects[0] = s;
        return cube.length + cube[0].length + cube[1][2][2] + objects.length
                + (objects[0] instanceof String ? 1 : 0);
    }

    static int recursion(int n) {
        return n < 2 ? n : recursion(n - 1) + recursion(n - 2);
    }

    static <T extends Comparable<T>> T max(Collection<? extends T> all) {
        T best = null;
        for (T t : all)
            if (best == null || t.compareTo(best) > 0)
                best = t;
        return best;
    }

    static String lambdas(int k) {
        Function<Integer, Supplier<String>> f = i -> () -> i + ":" + k;
        StringBuilder s = new StringBuilder();
        new Object() {
            void inner() {
                s.append(f.apply(3).get()).append(k);
            }
        }.inner();
        Runnable r = s::reverse;
        r.run();
        return s.toString();
    }

    static boolean conditions(boolean a, boolean b, Object o) {
        return (a && !b || o == null) ^ (o instanceof String && ((String) o).length() > 2);
    }

    static void thrower(int depth) {
        if (depth == 0)
            throw new RuntimeException("deep");
        thrower(depth - 1);
    }

    static String tryThrow(String what) {
        try {
            if (what.equals("super"))
                return new Derived(false, new Object() {
                    @Override
                    public String toString() {
                        return null;
                    }
                }).name;
            if (what.equals("argument"))
                return new Derived(false, null).name;
            thrower(5);
            return "no";
        } catch (RuntimeException e) {
            return e.getClass().getSimpleName();
        }
    }

    static long manyLocals(long seed) {
        long a = seed, b = a * 3, c = b ^ a, d = c + 7, e = d * d, f = e - a, g = f | 1,
             h = g % 1000;
        double p = h / 3.0, q = p * p, r = q - p;
        String s = Long.toString(h);
        for (int i = 0; i < s.length(); i++) {
            long t = s.charAt(i);
            h += t * i;
            if (t == '5') {
                double u = r / t;
                h += (long) u;
            }
        }
        return a + b + c + d + e + f + g + h + (long) r;
    }

    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        out.append(START)
                .append(' ')
                .append(new Derived(true, "x").name)
                .append(new Derived(false, "obj").extra);
        out.append(new Derived("").extra)
                .append(new Derived("four").extra)
                .append(new Base(new Base("b")).name)
                .append('\n');
        for (int i = -1; i < 5; i++)
            out.append(tables(i)).append(',').append(exceptions(i)).append(' ');
        out.append(loopAtStart(27)).append(strings("two")).append(strings("zwei")).append('\n');
        Object lock = new Object();
        out.append(locks(lock, lock))
                .append(locks(lock, out))
                .append(' ')
                .append(wide(5, 7.5, 2.5f, (byte) 3, (short) 4, 'c', true));
        out.append(' ')
                .append(arrays())
                .append(' ')
                .append(recursion(15))
                .append(max(Arrays.asList(3, 9, 4)))
                .append('\n');
        out.append(lambdas(8)).append(Shape.unit().area()).append(((Shape) () -> 2.5).area()).append(new Shape() {
            public double area() {
                return 4;
            }
        }.show());
        for (Color c : Color.values())
            out.append(c).append(c.weight()).append(Color.valueOf("RED"));
        out.append(conditions(true, false, "abc"))
                .append(conditions(false, true, null))
                .append('\n');
        out.append(tryThrow("super"))
                .append(tryThrow("argument"))
                .append(tryThrow("x"))
                .append(manyLocals(123457))
                .append('\n');
        Thread t = new Thread(() -> out.append(recursion(10)));
        t.start();
        t.join();
        out.append(counter);
        System.out.println(out);
    }
}
