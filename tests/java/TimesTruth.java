// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Calls each method a known number of times, by every way in and out; the test knows the numbers.
 */
public class TimesTruth {
    static volatile int sink;

    static int plain(int x) {
        return twice(x) + twice(x + 1);
    }

    static int twice(int x) {
        int y = x;
        for (int i = 0; i < 2; i++)
            y += x * i;
        return y;
    }

    static int recurse(int n) {
        return n == 0 ? 0 : 1 + recurse(n - 1);
    }

    static void throwing(int depth) {
        if (depth == 0)
            throw new IllegalStateException();
        throwing(depth - 1);
    }

    static void catching() {
        try {
            throwing(3);
        } catch (IllegalStateException e) {
            afterCatch();
        }
    }

    static void afterCatch() {
        sink = twice(sink);
    }

    static void cleaning() {
        try {
            catching();
        } finally {
            afterCatch();
        }
    }

    static class Base {
        Base(int x) {
            if (x % 2 == 0)
                throw new IllegalArgumentException();
        }
    }

    static class Derived extends Base {
        final int value;

        Derived(int x) {
            super(twice(x) - twice(x) + x);
            value = afterSuper(x);
        }

        static int afterSuper(int x) {
            return twice(x);
        }
    }

    static void constructing(int x) {
        try {
            sink = new Derived(x).value;
        } catch (IllegalArgumentException e) {
            afterCatch();
        }
        afterCatch();
    }

    static class Lazy {
        static final int VALUE = fill();

        static int fill() {
            return twice(21);
        }
    }

    static synchronized int locked(int x) {
        synchronized (TimesTruth.class) {
            return twice(x);
        }
    }

    public static void reflected() {
        afterCatch();
    }

    public static void reflectedThrowing() {
        throw new IllegalStateException();
    }

    static void reflecting(Method m, Method t) throws Exception {
        m.invoke(null);
        try {
            t.invoke(null);
        } catch (java.lang.reflect.InvocationTargetException e) {
            afterCatch();
        }
        afterCatch();
    }

    interface Shape {
        int area(int x);

        default int doubled(int x) {
            return area(x) + area(x);
        }
    }

    static int lambdas(int x) {
        Shape s = y -> twice(y) + 1;
        return s.doubled(x);
    }

    static int small;

    static int accessor() {
        return small;
    }

    static native int neverBound();

    static int accessing() {
        return accessor() + accessor() + accessor();
    }

    static void inThread() {
        for (int i = 0; i < 100; i++)
            sink = plain(i);
        throwing(2); // the thread ends inside these calls
    }

    static void inVirtualThread() {
        for (int i = 0; i < 10; i++) {
            sink = twice(i);
            yielding();
        }
    }

    static void yielding() {
        LockSupport.parkNanos(1000);
        sink = twice(1);
    }

    static void deep(int n) {
        if (n > 0)
            deep(n - 1);
        else
            afterCatch();
    }

    static void threads() throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Thread t = new Thread(() -> inThread());
            t.setUncaughtExceptionHandler((thread, e) -> { });
            t.start();
            all.add(t);
        }
        for (Thread t : all)
            t.join();
        all.clear();
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        if (Runtime.class.getMethod("version").invoke(null).toString().startsWith("17"))
            return;
        for (int i = 0; i < 500; i++)
            all.add((Thread) start.invoke(null, (Runnable) () -> inVirtualThread()));
        for (Thread t : all)
            t.join();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        Method m = TimesTruth.class.getMethod("reflected"),
               t = TimesTruth.class.getMethod("reflectedThrowing");
        for (int i = 0; i < n; i++) {
            sink = plain(i);
            sink = recurse(20);
            cleaning();
            constructing(i);
            sink = Lazy.VALUE;
            sink = locked(i);
            reflecting(m, t);
            sink = lambdas(i);
            sink = accessing();
        }
        deep(3000);
        threads();
        System.out.println("done " + args[0]);
        if (args.length > 1)
            Thread.sleep(Long.parseLong(args[1]));
    }
}
