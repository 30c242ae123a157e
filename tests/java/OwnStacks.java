// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.function.IntUnaryOperator;

/**
 * Threads that throw, allocate, contend and wait at the end of many different stacks, interpreted
 * and compiled, with lambdas, reflection and deep recursion: OwnStacks DEPTH MILLISECONDS
 * [virtual], the last one for virtual threads (JDK 21).
 */
public class OwnStacks {
    static final Object LOCK = new Object();
    static final int LEAST = 100; // rounds of each thread, on a busy machine
    static volatile Object sink;
    static volatile long end;

    static int bottom(int n) {
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException e) {
            sink = e;
        }
        sink = new byte[600_000];
        synchronized (LOCK) {
            for (int i = 0; i < 2000; i++)
                n += i % 7;
        }
        if (n % 16 == 0)
            await();
        return n;
    }

    static void await() {
        synchronized (LOCK) {
            try {
                LOCK.wait(1);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static int even(int depth, int way) {
        if (depth == 0)
            return bottom(way);
        return (way & 1) == 0 ? odd(depth - 1, way >> 1) + 1
                              : new Nest().inner(depth - 1, way >> 1) + 2;
    }

    static int odd(int depth, int way) {
        if (depth == 0)
            return bottom(way);
        IntUnaryOperator next = d -> even(d, way >> 1);
        return (way & 1) == 0 ? even(depth - 1, way >> 1) + 1 : next.applyAsInt(depth - 1) + 2;
    }

    static class Nest {
        synchronized int inner(int depth, int way) {
            if (depth == 0)
                return bottom(way);
            if (way % 8 == 5)
                try {
                    Method m = OwnStacks.class.getDeclaredMethod("odd", int.class, int.class);
                    return (Integer) m.invoke(null, depth - 1, way >> 1);
                } catch (ReflectiveOperationException e) {
                    throw new AssertionError(e);
                }
            return depth % 2 == 0 ? even(depth - 1, way >> 1) : odd(depth - 1, way >> 1);
        }
    }

    static Thread start(Runnable body, boolean virtual) throws Exception {
        if (virtual)
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, body);
        Thread t = new Thread(body);
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        int depth = Integer.parseInt(args[0]);
        boolean virtual = args.length > 2;
        end = System.nanoTime() + Long.parseLong(args[1]) * 1_000_000L;
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            int seed = i;
            threads[i] = start(() -> {
                for (int n = 0, way = seed * 7919; n < LEAST || System.nanoTime() < end;
                     n++, way += 104729)
                    sink = even(depth - way % 5 % depth, way & 0x7fffffff);
            }, virtual);
        }
        for (Thread t : threads)
            t.join();
        System.out.println("done");
    }
}
