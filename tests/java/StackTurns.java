// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Objects that the same places make on stacks that differ in a single thing: the caller's caller,
 * the depth of a recursion, the line, the thread, who catches what a constructor throws, the class
 * that a loader has put where another one was, compiled code that is thrown away. Prints for each
 * class and each stack of methods, innermost first, how many objects of it live at the end and how
 * many there were: StackTurns ROUNDS [virtual].
 */
public class StackTurns {
    static final List<Object> KEPT = new ArrayList<>();
    static final Map<String, int[]> EXPECTED = new TreeMap<>();
    public static volatile Object sink;

    public static synchronized void keep(Object o) {
        KEPT.add(o);
    }

    static synchronized void expect(String of, int live, int all) {
        int[] n = EXPECTED.computeIfAbsent(of, k -> new int[2]);
        n[0] += live;
        n[1] += all;
    }

    /** Returns pseudo-random numbers below 2 ^ bits, one for each i. */
    static int turn(int i, int bits) {
        int h = i * 0x9e3779b9;
        h = (h ^ h >>> 15) * 0x85ebca6b;
        return (h ^ h >>> 13) >>> 32 - bits;
    }

    // The caller's caller.

    static class Turned {
    }

    static Object make() {
        return new Turned();
    }

    static Object mid() {
        return make();
    }

    static void left() {
        keep(mid());
    }

    static void right() {
        sink = mid();
    }

    static void turns(int n) {
        int lefts = 0;
        for (int i = 0; i < n; i++)
            if (turn(i, 2) == 0) {
                left();
                lefts++;
            } else {
                right();
            }
        expect("Turned make mid left turns", lefts, lefts);
        expect("Turned make mid right turns", 0, n - lefts);
    }

    // The depth.

    static class Deep {
    }

    static Object deep(int depth) {
        return depth == 0 ? new Deep() : deep(depth - 1);
    }

    static void depths(int n) {
        int[] all = new int[8];
        for (int i = 0; i < n; i++) {
            int depth = turn(i, 3);
            all[depth]++;
            if (depth % 3 == 1)
                keep(deep(depth));
            else
                sink = deep(depth);
        }
        String stack = "Deep deep";
        for (int depth = 0; depth < 8; depth++, stack += " deep")
            expect(stack + " depths", depth % 3 == 1 ? all[depth] : 0, all[depth]);
    }

    // The line. What the first one makes is kept.

    static class Lined {
    }

    static Object lined() {
        return new Lined();
    }

    static void lines(int n) {
        int first = 0;
        for (int i = 0; i < n; i++) {
            Object o;
            if (turn(i, 1) == 0)
                o = lined();
            else
                o = lined();
            if (turn(i, 1) == 0) {
                keep(o);
                first++;
            }
            sink = o;
        }
        expect("Lined lined lines:first", first, first);
        expect("Lined lined lines:second", 0, n - first);
    }

    // The method that catches the exception.

    static class Thrown {
        Thrown(boolean fails) {
            if (fails)
                throw new IllegalArgumentException();
        }
    }

    static Object thrown(boolean fails) {
        return new Thrown(fails);
    }

    static Object near(boolean fails) {
        try {
            return thrown(fails);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    static Object passes(boolean fails) {
        return thrown(fails);
    }

    static Object far(boolean fails) {
        try {
            return passes(fails);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    static void throwing(int n) {
        int[] near = new int[2], far = new int[2];
        for (int i = 0; i < n; i++) {
            int turn = turn(i, 3);
            boolean fails = turn % 2 == 0;
            Object o = turn < 3 ? near(fails) : far(fails);
            int[] to = turn < 3 ? near : far;
            to[1]++;
            if (o != null && turn != 5) {
                keep(o);
                to[0]++;
            }
            sink = null;
        }
        expect("Thrown thrown near throwing", near[0], near[1]);
        expect("Thrown thrown passes far throwing", far[0], far[1]);
    }

    // Compiled code that is thrown away when the next class is loaded.

    static class Part {
    }

    abstract static class Maker {
        abstract Object part();
    }

    static class Maker0 extends Maker {
        Object part() {
            return new Part();
        }
    }

    static class Maker1 extends Maker {
        Object part() {
            return new Part();
        }
    }

    static class Maker2 extends Maker {
        Object part() {
            return new Part();
        }
    }

    static Object odd(Maker m) {
        return m.part();
    }

    static Object even(Maker m) {
        return m.part();
    }

    static Maker maker(int kind) {
        return kind == 0 ? new Maker0() : kind == 1 ? new Maker1() : new Maker2();
    }

    static void makers(int n) {
        int[][] odd = new int[3][2], even = new int[3][2];
        Maker[] known = new Maker[3];
        for (int i = 0; i < n; i++) {
            int kind = turn(i, 4) % (1 + Math.min(2, 3 * i / n));
            if (known[kind] == null)
                known[kind] = maker(kind);
            boolean isOdd = turn(i, 1) == 1;
            Object o;
            if (isOdd)
                o = odd(known[kind]);
            else
                o = even(known[kind]);
            int[] to = (isOdd ? odd : even)[kind];
            to[1]++;
            if (isOdd == (kind == 1)) {
                keep(o);
                to[0]++;
            }
            sink = null;
        }
        for (int kind = 0; kind < 3; kind++) {
            expect("Part Maker" + kind + ".part odd makers", odd[kind][0], odd[kind][1]);
            expect("Part Maker" + kind + ".part even makers", even[kind][0], even[kind][1]);
        }
    }

    // Classes that are loaded where others were unloaded.

    static class Loaded {
    }

    public static Object loaded() {
        return new Loaded();
    }

    public static class Guest0 implements Runnable {
        public void run() {
            for (int i = 0; i < 40; i++)
                keep(loaded());
        }
    }

    public static class Guest1 implements Runnable {
        public void run() {
            for (int i = 0; i < 40; i++)
                sink = loaded();
        }
    }

    public static class Guest2 implements Runnable {
        public void run() {
            for (int i = 0; i < 40; i++)
                if (i % 4 == 0)
                    keep(loaded());
                else
                    sink = loaded();
        }
    }

    static class Loader extends ClassLoader {
        Class<?> guest(String name) throws Exception {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            InputStream in = StackTurns.class.getResourceAsStream("/" + name + ".class");
            for (int b; (b = in.read()) >= 0;)
                bytes.write(b);
            return defineClass(name, bytes.toByteArray(), 0, bytes.size());
        }
    }

    static void guests(int n) throws Exception {
        int[] calls = new int[3];
        for (int i = 0; i < n; i++) {
            int kind = turn(i, 4) % 3;
            calls[kind]++;
            Runnable guest = (Runnable) new Loader()
                                     .guest("StackTurns$Guest" + kind)
                                     .getDeclaredConstructor()
                                     .newInstance();
            guest.run();
            if (i % 20 == 19)
                System.gc();
        }
        expect("Loaded loaded Guest0.run guests", 40 * calls[0], 40 * calls[0]);
        expect("Loaded loaded Guest1.run guests", 0, 40 * calls[1]);
        expect("Loaded loaded Guest2.run guests", 10 * calls[2], 40 * calls[2]);
    }

    // Several threads at once, which are virtual or not.

    static class Shared {
    }

    static Object shared() {
        return new Shared();
    }

    static void pauses(int i) {
        if (i % 100 == 0)
            Thread.yield();
    }

    static void first(int i) {
        pauses(i);
        keep(shared());
    }

    static void second(int i) {
        pauses(i);
        sink = shared();
    }

    static void share(int n, int which) {
        int firsts = 0;
        for (int i = 0; i < n; i++)
            if (turn(i + which, 2) == 3) {
                first(i);
                firsts++;
            } else {
                second(i);
            }
        expect("Shared shared first share", firsts, firsts);
        expect("Shared shared second share", 0, n - firsts);
    }

    static void threads(int n, boolean virtual) throws Exception {
        Thread[] all = new Thread[4];
        for (int t = 0; t < all.length; t++) {
            int which = t;
            Runnable body = () -> share(n, which);
            if (virtual) {
                all[t] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                                 .invoke(null, body);
            } else {
                all[t] = new Thread(body);
                all[t].start();
            }
        }
        for (Thread t : all)
            t.join();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        turns(n);
        depths(n);
        lines(n);
        throwing(n);
        makers(n);
        guests(n / 100);
        threads(n / 4, args.length > 1);
        sink = null;
        EXPECTED.forEach((of, n2) -> System.out.println(of + " " + n2[0] + " " + n2[1]));
        System.out.println("done");
    }
}
