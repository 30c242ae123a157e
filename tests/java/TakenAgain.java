// SPDX-License-Identifier: Apache-2.0

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Two threads that take a monitor in the same method, again and again: only the first and the last
 * of the three sections of a round end with another thread waiting, and the owner works for a long
 * time between its two. Arguments: whether they "sleep" or "work" in their sections, how many
 * rounds, and for how many ms the owner works between its two. Prints four sums in ns, by the
 * program's own clock: how long the monitor was held while another thread certainly waited; the
 * same with the owner's first sections; how long it was certainly held; and how long at most.
 */
public class TakenAgain {
    static final class Lock {
    }

    static final Object lock = new Lock();
    static final Semaphore owners = new Semaphore(0), others = new Semaphore(0);
    static final AtomicLong most = new AtomicLong();
    static volatile Thread owner, other;
    static volatile long sink, left;
    static long waited, ownerWaited, first, held;
    static boolean sleeps;

    static void work(long ms) {
        for (long end = System.nanoTime() + ms * 1_000_000; System.nanoTime() < end;)
            sink++;
    }

    static void pass(long ms) {
        if (!sleeps) {
            work(ms);
            return;
        }
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Wakes the thread `parked`, and holds the lock for some ms after the thread `waiter`, if any,
     * has come to wait for it. Returns for how many ns it did after that.
     */
    static long locked(long ms, Thread parked, Semaphore wakes, Thread waiter) {
        long before = System.nanoTime(), after = 0, since, released;
        synchronized (lock) {
            since = System.nanoTime();
            released = left;
            while (parked != null && parked.getState() != Thread.State.WAITING)
                sink++;
            if (parked != null)
                wakes.release();
            for (boolean comes = false; !comes;) {
                comes = waiter == null || waiter.getState() == Thread.State.BLOCKED;
                after = System.nanoTime();
                pass(ms);
            }
            left = System.nanoTime();
            held += left - since;
            after = left - after;
            most.addAndGet(-Math.max(before, released));
        }
        most.addAndGet(System.nanoTime());
        return after;
    }

    public static void main(String[] args) throws Exception {
        sleeps = args[0].equals("sleep");
        int rounds = Integer.parseInt(args[1]);
        long between = Long.parseLong(args[2]);
        owner = new Thread(() -> {
            for (int i = 0; i < rounds; i++) {
                owners.acquireUninterruptibly();
                for (int k = 0; k < 2; k++) {
                    long ns = locked(10, other, others, k == 0 ? null : other);
                    if (k == 0) {
                        first += ns;
                        work(between);
                    } else {
                        ownerWaited += ns;
                    }
                }
            }
        }, "owner");
        other = new Thread(() -> {
            for (int i = 0; i < rounds; i++) {
                waited += locked(10, owner, owners, owner);
                others.acquireUninterruptibly();
                others.acquireUninterruptibly();
                locked(1, null, null, null);
            }
        }, "other");
        other.start();
        owner.start();
        owner.join();
        other.join();
        waited += ownerWaited;
        System.out.println(waited + " " + (waited + first) + " " + held + " " + most);
    }
}
