// SPDX-License-Identifier: Apache-2.0
/*
 * Holds monitors for known times. Each case prints its name, how often its lock was held, and a
 * lower and an upper bound of the total time by the program's own clock: from the first statement
 * inside to the last, and from before the lock is taken to after its release. They go to stderr,
 * because the VM reports compilations on stdout. Arguments: N [LIBRARY].
 */
import java.util.concurrent.CountDownLatch;

public class HeldLocks {
    static class Block {}
    static class Nested {}
    static class Thrown {}
    static class Waits {}
    static class Loops {}
    static class Contended {}
    static class Native {}
    static class Other {}

    static class Whole {
        long inner;

        synchronized void plain() {
            long begin = System.nanoTime();
            spin(20_000);
            inner += System.nanoTime() - begin;
        }

        synchronized int thrown(int i) {
            long begin = System.nanoTime();
            try {
                spin(20_000);
                if (i % 2 == 0)
                    throw new IllegalStateException();
                return i;
            } finally {
                inner += System.nanoTime() - begin;
            }
        }

        /** Takes its lock again while holding it, which is still one hold. */
        synchronized void again(int depth) {
            if (depth > 0)
                again(depth - 1);
            else
                spin(20_000);
        }
    }

    static class OfClass {
        static long inner;

        static synchronized void plain() {
            long begin = System.nanoTime();
            spin(20_000);
            inner += System.nanoTime() - begin;
        }
    }

    static void spin(long ns) {
        for (long end = System.nanoTime() + ns; System.nanoTime() < end;)
            ;
    }

    static void report(String name, int count, long inner, long outer) {
        System.err.println(name + " " + count + " " + inner + " " + outer);
    }

    static void block(int n) {
        Object lock = new Block();
        long inner = 0, outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            synchronized (lock) {
                long begin = System.nanoTime();
                spin(20_000);
                inner += System.nanoTime() - begin;
            }
            outer += System.nanoTime() - before;
        }
        report("Block", n, inner, outer);
    }

    /** The outer lock is taken again inside of the inner one. */
    static void nested(int n) {
        Object lock = new Nested(), other = new Other();
        long inner = 0, outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            synchronized (lock) {
                synchronized (other) {
                    long begin = System.nanoTime();
                    synchronized (lock) {
                        spin(20_000);
                    }
                    inner += System.nanoTime() - begin;
                }
            }
            outer += System.nanoTime() - before;
        }
        report("Nested", n, inner, outer);
    }

    static int leave(Object lock, int i, long[] inner) {
        synchronized (lock) {
            long begin = System.nanoTime();
            spin(20_000);
            inner[0] += System.nanoTime() - begin;
            if (i % 3 == 0)
                throw new IllegalArgumentException();
            if (i % 3 == 1)
                return i / (i - i);
        }
        return 0;
    }

    static void thrown(int n) {
        Object lock = new Thrown();
        long[] inner = new long[1];
        long outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            try {
                leave(lock, i, inner);
            } catch (IllegalArgumentException | ArithmeticException e) {
                // the exception is part of the test
            }
            outer += System.nanoTime() - before;
        }
        report("Thrown", n, inner[0], outer);
    }

    /** wait() releases the monitor in the middle, which makes two holds. */
    static void waits(int n) throws InterruptedException {
        Object lock = new Waits();
        long inner = 0, outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime(), begin, end;
            synchronized (lock) {
                begin = System.nanoTime();
                spin(20_000);
                inner += System.nanoTime() - begin;
                end = System.nanoTime();
                synchronized (lock) {
                    lock.wait(2);
                }
                begin = System.nanoTime();
                spin(20_000);
                inner += System.nanoTime() - begin;
            }
            outer += System.nanoTime() - before - 2_000_000;
        }
        report("Waits", 2 * n, inner, outer);
    }

    /**
     * A loop that begins with the block's first instruction. Its jump back must not count as a new
     * hold.
     */
    static void loops(int n) {
        Object lock = new Loops();
        long outer = 0;
        int k = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            synchronized (lock) {
                while (k % 10 != 9)
                    k++;
            }
            k++;
            outer += System.nanoTime() - before;
        }
        report("Loops", n, 0, outer);
    }

    static void whole(int n) {
        Whole plain = new Whole(), thrown = new Whole(), again = new Whole();
        long outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            plain.plain();
            again.again(3);
            try {
                thrown.thrown(i);
            } catch (IllegalStateException e) {
                // the exception is part of the test
            }
            outer += System.nanoTime() - before;
        }
        report("Whole", 3 * n, plain.inner + thrown.inner, outer);
    }

    static void ofClass(int n) {
        long outer = 0;
        for (int i = 0; i < n; i++) {
            long before = System.nanoTime();
            OfClass.plain();
            outer += System.nanoTime() - before;
        }
        report("OfClass", n, OfClass.inner, outer);
    }

    /** Implemented in tests/agents/lock_jni.c: runs the task while it holds the monitor. */
    static native void held(Object lock, Runnable inside);

    static void ofNative(int n) {
        Object lock = new Native();
        long[] inner = new long[1];
        long outer = 0;
        for (int i = 0; i < n; i++) {
            int k = i;
            long before = System.nanoTime();
            try {
                held(lock, () -> inner[0] += leaveAgain(lock, k));
            } catch (IllegalStateException e) {
                // the exception is part of the test
            }
            outer += System.nanoTime() - before;
        }
        report("Native", n, inner[0], outer);
    }

    /** Taking a monitor that native code already holds is not a new hold. */
    static long leaveAgain(Object lock, int i) {
        long begin = System.nanoTime();
        synchronized (lock) {
            spin(20_000);
            if (i % 3 == 0)
                throw new IllegalStateException();
        }
        return System.nanoTime() - begin;
    }

    static void contended(int n) throws InterruptedException {
        Object lock = new Contended();
        Thread[] threads = new Thread[3];
        long[] inner = new long[threads.length], outer = new long[threads.length];
        CountDownLatch ready = new CountDownLatch(threads.length);
        for (int t = 0; t < threads.length; t++) {
            int me = t;
            threads[t] = new Thread(() -> {
                ready.countDown();
                for (int i = 0; i < n; i++) {
                    long before = System.nanoTime();
                    synchronized (lock) {
                        long begin = System.nanoTime();
                        spin(50_000);
                        inner[me] += System.nanoTime() - begin;
                    }
                    outer[me] += System.nanoTime() - before;
                }
            }, "holder-" + t);
            threads[t].start();
        }
        long in = 0, out = 0;
        for (int t = 0; t < threads.length; t++) {
            threads[t].join();
            in += inner[t];
            out += outer[t];
        }
        report("Contended", threads.length * n, in, out);
    }

    /**
     * Not one of the recorded locks. Runs fast, so that the test can see whether the method is
     * compiled.
     */
    static int hot(int n) {
        Object lock = new Other();
        int sum = 0;
        for (int i = 0; i < n; i++)
            synchronized (lock) {
                sum += i;
            }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        block(n);
        nested(n);
        thrown(n);
        waits(n / 10);
        loops(n);
        whole(n);
        ofClass(n);
        contended(n);
        if (args.length > 1) {
            System.load(args[1]);
            ofNative(n);
        }
        for (int i = 0; i < 30; i++)
            hot(100_000);
    }
}
