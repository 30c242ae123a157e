// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Stops one of three threads after the other and prints in how many rounds the two others did not
 * go on within three seconds. In each round another thread, which has made its objects before, ends
 * meanwhile: it has to within three seconds as well. If the last argument is "stays", the VM ends
 * while a thread is stopped that holds a lock of the agent, as is known from how long the others
 * waited for it.
 */
public class Suspended {
    static final int THREADS = 3, OBJECTS = 1000;
    static final AtomicLongArray done = new AtomicLongArray(THREADS * 16);
    static volatile Object sink, sunk;

    static native int suspend(Thread t);

    static native int resume(Thread t);

    public static class Made {
        int[] field = new int[2];
    }

    static class Last {
    }

    static void work(int me) {
        try {
            for (;;) {
                sink = new int[4].clone();
                sink = Made.class.getDeclaredConstructor().newInstance();
                sink = new Made();
                sink = new int[2][3];
                done.incrementAndGet(me * 16);
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** Starts a thread that makes objects, and returns when it has; it ends when `end` opens. */
    static Thread starter(CountDownLatch end, int round) throws InterruptedException {
        CountDownLatch made = new CountDownLatch(1);
        Thread t = new Thread(() -> {
            for (int i = 0; i < OBJECTS; i++)
                sunk = new Last();
            made.countDown();
            try {
                end.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }, "ender " + round);
        t.setDaemon(true);
        t.start();
        made.await();
        return t;
    }

    static boolean goOn(int victim) throws InterruptedException {
        long[] before = new long[THREADS];
        for (int i = 0; i < THREADS; i++)
            before[i] = done.get(i * 16);
        long end = System.nanoTime() + 3_000_000_000L;
        boolean all = false;
        while (!all && System.nanoTime() < end) {
            all = true;
            for (int i = 0; i < THREADS; i++)
                all &= i == victim || done.get(i * 16) > before[i] + 3;
            Thread.sleep(1);
        }
        return all;
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        int rounds = Integer.parseInt(args[1]), stuck = 0, known = 0, unended = 0;
        boolean stays = args.length > 2;
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int me = i;
            threads[i] = new Thread(() -> work(me), "w" + i);
            threads[i].setDaemon(true);
            threads[i].start();
        }
        while (done.get(0) < 100 || done.get(16) < 100 || done.get(32) < 100)
            Thread.sleep(10);
        boolean holds = false;
        for (int r = 0; r < rounds || (stays && !holds && r < 20 * rounds); r++) {
            int victim = r % THREADS;
            CountDownLatch end = new CountDownLatch(1);
            Thread ender = starter(end, r);
            long start = System.nanoTime();
            int stopped = suspend(threads[victim]) == 0 ? 1 : 0;
            known += r < rounds ? stopped : 0;
            stuck += goOn(victim) ? 0 : 1;
            holds = System.nanoTime() - start > TimeUnit.MILLISECONDS.toNanos(400);
            end.countDown();
            ender.join(3000);
            unended += ender.isAlive() ? 1 : 0;
            if (stays && holds && r >= rounds - 1)
                break;
            resume(threads[victim]);
            ender.join();
            Thread.sleep(2);
        }
        System.out.println(known + " stopped, " + stuck + " stuck, " + unended + " not ended"
                           + (stays ? ", one held: " + holds : ""));
    }
}
