// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Requests with long waits that each follow a short one, while a thread parks as often as it can,
 * so that a recording that is always on leaves short waits out. "platform N" or "virtual N":
 * threads of that kind make N requests, which are calls of serve, after a line has arrived. Prints
 * "ready", and in the end the time in ns that sleeps and parks took: "sleep NS park NS".
 */
public class BudgetedWaits {
    static final int SLEEPS = 2, SLEEP_MS = 10, PARKS = 3, PARK_MS = 4, THREADS = 2;
    static final AtomicLong slept = new AtomicLong(), parked = new AtomicLong();
    static boolean virtual;

    static void waitShortly() {
        if (virtual) {
            Thread.yield();
        } else {
            LockSupport.unpark(Thread.currentThread());
            LockSupport.park();
        }
    }

    static void serve() {
        for (int i = 0; i < SLEEPS; i++) {
            waitShortly();
            long began = System.nanoTime();
            try {
                Thread.sleep(SLEEP_MS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            slept.addAndGet(System.nanoTime() - began);
        }
        for (int i = 0; i < PARKS; i++) {
            waitShortly();
            long began = System.nanoTime(), now = began, end = began + PARK_MS * 1_000_000L;
            for (; now < end; now = System.nanoTime())
                LockSupport.parkNanos(slept, end - now); // may return at once
            parked.addAndGet(now - began);
        }
    }

    static void parkOften() {
        for (;;) {
            LockSupport.unpark(Thread.currentThread());
            LockSupport.park();
        }
    }

    static ThreadFactory factory() throws Exception {
        if (!virtual)
            return Thread::new;
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        return (ThreadFactory)
                Class.forName("java.lang.Thread$Builder").getMethod("factory").invoke(builder);
    }

    public static void main(String[] args) throws Exception {
        virtual = args[0].equals("virtual");
        int requests = Integer.parseInt(args[1]);
        Thread busy = new Thread(BudgetedWaits::parkOften, "busy");
        busy.setDaemon(true);
        busy.start();
        System.out.println("ready");
        System.in.read();
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            threads[i] = factory().newThread(() -> {
                for (int k = 0; k < requests / THREADS; k++)
                    serve();
            });
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("sleep " + slept + " park " + parked);
    }
}
