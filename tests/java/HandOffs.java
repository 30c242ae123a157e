// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Contended locks without a deadlock. Argument: how many hand-overs to another thread. Four threads
 * take two monitors and two ReentrantLocks (one fair) in one order; two take two locks each in the
 * other's order, but the second with a timeout of 60 ms, so that they wait for each other until it
 * is over; a wait with a timeout is among it. Prints what was counted.
 */
public class HandOffs {
    static final Object outer = new Object(), inner = new Object();
    static final ReentrantLock barging = new ReentrantLock(), fair = new ReentrantLock(true);
    static final AtomicLong cycles = new AtomicLong();
    static Thread lastOuter, lastBarging, lastFair;
    static long handOvers;
    static volatile boolean done;

    /** Under `outer`: what the four count belongs to it. */
    static void count(boolean changed) {
        if (changed)
            handOvers++;
    }

    static void contend(long goal) {
        Thread me = Thread.currentThread();
        long n = 0;
        while (!done) {
            boolean overBarging, overFair;
            barging.lock();
            overBarging = lastBarging != me;
            lastBarging = me;
            barging.unlock();
            fair.lock();
            overFair = lastFair != me;
            lastFair = me;
            fair.unlock();
            synchronized (outer) {
                count(lastOuter != me);
                count(overBarging);
                count(overFair);
                lastOuter = me;
                synchronized (inner) {
                    n++;
                }
                if (handOvers >= goal)
                    done = true;
                try {
                    if (n % 20000 == 0)
                        outer.wait(1);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    static void cross(ReentrantLock first, ReentrantLock second) throws InterruptedException {
        while (!done || cycles.get() < 5) {
            first.lock();
            try {
                Thread.sleep(5);
                if (second.tryLock(60, TimeUnit.MILLISECONDS))
                    second.unlock();
                else
                    cycles.incrementAndGet();
            } finally {
                first.unlock();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        long goal = Long.parseLong(args[0]);
        ReentrantLock a = new ReentrantLock(), b = new ReentrantLock();
        Thread[] all = new Thread[6];
        for (int i = 0; i < 4; i++)
            all[i] = new Thread(() -> contend(goal), "contender-" + i);
        for (int i = 4; i < 6; i++) {
            boolean one = i == 4;
            all[i] = new Thread(() -> {
                try {
                    cross(one ? a : b, one ? b : a);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, "crosser-" + i);
        }
        for (Thread t : all)
            t.start();
        for (Thread t : all)
            t.join();
        System.out.println(handOvers + " hand-overs, " + cycles + " cycles with a timeout");
    }
}
