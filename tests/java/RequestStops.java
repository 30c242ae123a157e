// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.Semaphore;

/**
 * A hundred requests that compute. During two of them a thread asks for a safepoint, which another
 * one delays, in a loop that the VM cannot stop. Prints for how many ns these two requests did not
 * run.
 */
public class RequestStops {
    static final Semaphore audits = new Semaphore(0), watches = new Semaphore(0);
    static volatile boolean counting, over;
    static volatile int sink;

    /** If the VM is told to leave its safepoints out. */
    static int count(int n) {
        int x = 1;
        for (int i = 0; i < n; i++)
            x = x * 31 + (x >>> 7) + i;
        return x;
    }

    static void audit(int n) {
        audits.acquireUninterruptibly();
        counting = true;
        while (!over)
            sink = count(n);
        counting = false;
    }

    /**
     * Computes for 2 ms and returns for how long it did not run. If it is to be stopped, it
     * computes until it has been stopped, and before that for several intervals of the sampler.
     */
    static long order(boolean stop) {
        if (stop)
            for (long begin = System.nanoTime(); System.nanoTime() - begin < 30_000_000;)
                sink++;
        long start = System.nanoTime(), last = start, idle = 0;
        if (stop) {
            audits.release();
            watches.release();
        }
        boolean more;
        do {
            // Read before the clock, so that the loop does not end before a stop is counted.
            more = last - start < 2_000_000 || stop && !over;
            long now = System.nanoTime();
            idle += now - last > 100_000 ? now - last : 0;
            last = now;
        } while (more);
        return idle;
    }

    static void daemon(Runnable of, String name) {
        Thread t = new Thread(of, name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        int n = 1 << 16;
        long start = 0, took = 0;
        for (int i = 0; i < 2000; i++) // until it is compiled
            sink = count(n);
        for (; took < 100_000_000; n *= 2) {
            start = System.nanoTime();
            sink = count(n);
            took = System.nanoTime() - start;
        }
        int most = n;
        daemon(() -> {
            for (;;)
                audit(most);
        }, "auditor");
        daemon(() -> {
            for (;;) {
                watches.acquireUninterruptibly();
                while (!counting)
                    Thread.yield();
                Thread.getAllStackTraces();
                over = true;
            }
        }, "watcher");
        long stopped = 0;
        for (int i = 0; i < 100; i++) {
            boolean stop = i % 50 == 49;
            over = false;
            long idle = order(stop);
            while (counting)
                Thread.yield();
            stopped += stop ? idle : 0;
        }
        System.out.println(stopped);
    }
}
