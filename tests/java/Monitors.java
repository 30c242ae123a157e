// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that contend for two monitors and, with "park", for a ReentrantLock; prints the time that
 * each blocked, that of a wait, the longest at the first monitor, and what the VM says was blocked
 * at monitors, in ms. The second argument is how often each does so (8).
 */
public class Monitors {
    static final class First {
    }

    static final class Second {
    }

    static final Object FIRST = new First(), SECOND = new Second();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final AtomicLong FIRST_NS = new AtomicLong(), SECOND_NS = new AtomicLong(),
                            LOCK_NS = new AtomicLong();
    static final AtomicLong LONGEST_NS = new AtomicLong(), BLOCKED_MS = new AtomicLong();

    static void first() throws InterruptedException {
        long before = System.nanoTime();
        synchronized (FIRST) {
            long ns = System.nanoTime() - before;
            FIRST_NS.addAndGet(ns);
            LONGEST_NS.accumulateAndGet(ns, Math::max);
            Thread.sleep(20);
        }
    }

    static void second() throws InterruptedException {
        long before = System.nanoTime();
        synchronized (SECOND) {
            SECOND_NS.addAndGet(System.nanoTime() - before);
            Thread.sleep(5);
        }
    }

    static void locked() throws InterruptedException {
        long before = System.nanoTime();
        LOCK.lock();
        try {
            LOCK_NS.addAndGet(System.nanoTime() - before);
            Thread.sleep(20);
        } finally {
            LOCK.unlock();
        }
    }

    public static void main(String[] args) throws Exception {
        boolean park = args.length > 0 && args[0].equals("park");
        int times = args.length > 1 ? Integer.parseInt(args[1]) : 8;
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        bean.setThreadContentionMonitoringEnabled(true);
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread("worker " + i) {
                @Override
                public void run() {
                    try {
                        for (int k = 0; k < times; k++) {
                            first();
                            second();
                        }
                        for (int k = 0; park && k < times; k++) {
                            locked();
                        }
                        BLOCKED_MS.addAndGet(bean.getThreadInfo(getId()).getBlockedTime());
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }
            };
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        Object waited = new Second();
        long before = System.nanoTime();
        synchronized (waited) {
            waited.wait(50);
        }
        long wait = System.nanoTime() - before;
        System.out.println(FIRST_NS.get() / 1000000 + " " + SECOND_NS.get() / 1000000 + " "
                           + LOCK_NS.get() / 1000000 + " " + wait / 1000000 + " "
                           + LONGEST_NS.get() / 1000000 + " " + BLOCKED_MS.get());
    }
}
