// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.IOException;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.math.BigDecimal;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Passes one argument of each kind that a condition can compare, first one that the test's
 * condition selects and then others.
 */
public class Comparisons {
    enum Color {
        RED, GREEN;

        int shade(int n) {
            return n;
        }
    }

    static class Failure extends Exception {
        Failure(String message) {
            super(message);
        }

        int describe(int n) {
            return n;
        }
    }

    static int object(int n, Object o) { return n; }
    static int array(int n, int[] a) { return n; }
    static int objects(int n, Object[] a) { return n; }
    static int list(int n, List<?> l) { return n; }
    static int set(int n, Set<?> s) { return n; }
    static int collection(int n, Collection<?> c) { return n; }
    static int map(int n, Map<?, ?> m) { return n; }
    static int real(int n, double d) { return n; }
    static int single(int n, float f) { return n; }
    static int boxedReal(int n, Double d) { return n; }
    static int whole(int n, long l) { return n; }
    static int truth(int n, boolean b) { return n; }
    static int letter(int n, char c) { return n; }
    static int text(int n, String s) { return n; }
    static int chars(int n, CharSequence s) { return n; }
    static int exception(int n, Exception e) { return n; }
    static int throwable(int n, Throwable t) { return n; }
    static int failure(int n, Failure f) { return n; }
    static int constant(int n, Color c) { return n; }
    static int type(int n, Class<?> c) { return n; }
    static int optional(int n, Optional<?> o) { return n; }
    static int atomic(int n, AtomicInteger a) { return n; }
    static int reference(int n, AtomicReference<?> r) { return n; }
    static int soft(int n, SoftReference<?> r) { return n; }
    static int weak(int n, WeakReference<?> r) { return n; }
    static int decimal(int n, BigDecimal d) { return n; }
    static int file(int n, File f) { return n; }
    static int ninth(Object a, String b, long c, boolean d, char e, Map<?, ?> map,
                     Collection<?> three, double real, Exception f) {
        return 1;
    }
    static int tenth(Object a, String b, long c, boolean d, char e, Object map, Object three,
                     Object real, Object f) {
        return 1;
    }

    public static void main(String[] args) {
        Map<String, Integer> one = new HashMap<>(Collections.singletonMap("k", 1));
        List<String> three = new ArrayList<>(Arrays.asList("a", "b", "c"));
        Object[] kinds = {new IllegalStateException("boom"),
                          new Failure("boom"),
                          new Error("boom"),
                          "boom",
                          new StringBuilder("boom"),
                          Optional.of("boom"),
                          new AtomicReference<>("boom")};
        for (Object o : kinds)
            object(1, o);
        for (Object o : new Object[] {new Error("bang"), new Error(), new Error(""), "bang",
                                      new Object(), 5, new AtomicReference<>(), null})
            object(2, o);
        array(1, new int[3]); array(2, new int[2]); array(3, null);
        objects(1, new Object[3]); objects(2, new Object[0]);
        list(1, three); list(2, new LinkedList<>());
        set(1, new TreeSet<>(three)); set(2, new HashSet<>());
        collection(1, new ArrayDeque<>(three)); collection(2, one.values());
        map(1, one); map(2, new TreeMap<>());
        real(1, 0.1); real(2, 0.2);
        single(1, 0.1f); single(2, 0.2f);
        boxedReal(1, 0.1); boxedReal(2, null);
        whole(1, 1L << 60); whole(2, 0);
        truth(1, true); truth(2, false);
        letter(1, 'x'); letter(2, 'y');
        text(1, "boom"); text(2, ""); text(3, null);
        chars(1, "boom"); chars(1, new StringBuilder("boom")); chars(2, new StringBuffer("bang"));
        exception(1, new IOException("boom"));
        exception(1, new Failure("boom"));
        exception(2, new Failure(null));
        exception(3, null);
        throwable(1, new Error("boom")); throwable(2, new Error(new Failure("boom")));
        failure(1, new Failure("boom")); failure(2, new Failure("boom "));
        constant(1, Color.RED); constant(2, Color.GREEN);
        type(1, String.class); type(2, Color.class);
        optional(1, Optional.of("boom")); optional(2, Optional.empty());
        atomic(1, new AtomicInteger(7)); atomic(2, new AtomicInteger(8));
        reference(1, new AtomicReference<>("boom"));
        reference(2, new AtomicReference<>(new Object()));
        reference(3, new AtomicReference<>());
        soft(1, new SoftReference<>("boom")); soft(2, new SoftReference<>(null));
        weak(1, new WeakReference<>("boom")); weak(2, new WeakReference<>(null));
        decimal(1, new BigDecimal("0.1")); decimal(2, BigDecimal.ONE);
        file(1, new File("boom")); file(2, new File("bang"));
        ninth(null, "", 0, true, 'x', one, three, 0.1, new Failure("boom"));
        tenth(null, "", 0, true, 'x', Collections.unmodifiableMap(one), new int[3], 0.1f, "boom");
        new Failure("boom").describe(1);
        new Failure("bang").describe(2);
        Color.RED.shade(1);
        Color.GREEN.shade(2);
        System.out.println("done");
    }
}
