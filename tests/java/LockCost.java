// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What an event of threads=y costs. Arguments: `notify`, `park` (an unpark and a park that does not
 * wait) or `contended`, a count, and how many frames lie below. The first two print ns for each
 * event, steady, of one thread; contended hands a fair lock over between three threads, each time
 * to one that waits for it, and prints ms and hand-overs a second.
 */
public class LockCost {
    static final Object monitor = new Object();
    static long sink;

    static long deep(int frames, String mode, int n) throws Exception {
        if (frames > 0)
            return deep(frames - 1, mode, n) + 1;
        Thread me = Thread.currentThread();
        if (mode.equals("notify")) {
            synchronized (monitor) {
                for (int i = 0; i < n; i++)
                    monitor.notify();
            }
        } else {
            for (int i = 0; i < n; i++) {
                LockSupport.unpark(me);
                LockSupport.park();
            }
        }
        return 0;
    }

    static void work(int n) {
        long s = sink;
        for (int i = 0; i < n; i++)
            s = s * 31 + i;
        sink = s;
    }

    static void contended(int n, int frames) throws Exception {
        ReentrantLock fair = new ReentrantLock(true);
        Thread[] all = new Thread[3];
        AtomicInteger running = new AtomicInteger(all.length);
        long begin = System.nanoTime();
        for (int t = 0; t < all.length; t++) {
            all[t] = new Thread(() -> below(frames, () -> {
                for (int i = 0; i < n / all.length; i++) {
                    fair.lock();
                    try {
                        work(11000);
                        while (running.get() > 1 && !fair.hasQueuedThreads())
                            Thread.yield();
                    } finally {
                        fair.unlock();
                    }
                }
                running.decrementAndGet();
            }));
            all[t].start();
        }
        for (Thread t : all)
            t.join();
        double s = (System.nanoTime() - begin) / 1e9;
        System.out.println(s * 1e3 + " " + n / s);
    }

    /**
     * Units of UnderLoad: a fair lock, handed over to one of the others that wait for it.
     * Arguments: THREADS WORK FRAMES.
     */
    public static Runnable[] units(String[] args) {
        int work = Integer.parseInt(args[1]), frames = Integer.parseInt(args[2]);
        ReentrantLock fair = new ReentrantLock(true);
        Runnable[] units = new Runnable[Integer.parseInt(args[0])];
        for (int t = 0; t < units.length; t++)
            units[t] = () -> below(frames, () -> {
                fair.lock();
                try {
                    work(work);
                    while (!fair.hasQueuedThreads())
                        Thread.yield();
                } finally {
                    fair.unlock();
                }
            });
        return units;
    }

    static void below(int frames, Runnable r) {
        if (frames > 0)
            below(frames - 1, r);
        else
            r.run();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]), frames = Integer.parseInt(args[2]);
        if (args[0].equals("contended")) {
            contended(n, frames);
            return;
        }
        int events = args[0].equals("notify") ? 1 : 2;
        for (int i = 0; i < 5; i++)
            deep(frames, args[0], n / 10);
        long begin = System.nanoTime();
        deep(frames, args[0], n);
        System.out.println((System.nanoTime() - begin) / (double) n / events);
    }
}
