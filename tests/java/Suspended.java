// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.atomic.AtomicLongArray;

/** Stops one of three threads after the other and prints in how many rounds the two others did not go on within three seconds. */
public class Suspended {
    static final int THREADS = 3;
    static final AtomicLongArray done = new AtomicLongArray(THREADS * 16);
    static volatile Object sink;

    static native int suspend(Thread t);

    static native int resume(Thread t);

    public static class Made {
        int[] field = new int[2];
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

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        int rounds = Integer.parseInt(args[1]), stuck = 0, known = 0;
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int me = i;
            threads[i] = new Thread(() -> work(me), "w" + i);
            threads[i].setDaemon(true);
            threads[i].start();
        }
        while (done.get(0) < 100 || done.get(16) < 100 || done.get(32) < 100)
            Thread.sleep(10);
        for (int r = 0; r < rounds; r++) {
            int victim = r % THREADS;
            known += suspend(threads[victim]) == 0 ? 1 : 0;
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
            stuck += all ? 0 : 1;
            resume(threads[victim]);
            Thread.sleep(2);
        }
        System.out.println(known + " stopped, " + stuck + " stuck");
    }
}
