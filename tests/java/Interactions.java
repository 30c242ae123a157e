// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Every interaction of two threads once or more: start, join, notify, notifyAll, a monitor handed
 * over, an interrupt, an unpark; and a wait that runs out. A thread is woken only after it has been
 * seen waiting.
 */
public class Interactions {
    static final Object one = new Object(), all = new Object(), held = new Object(),
                        never = new Object();

    static volatile Thread joined;

    /**
     * Starts a thread that ends once main waits for its end, because a join of a thread that has
     * ended is no interaction.
     */
    static Thread start(ThreadGroup group, String name, Runnable body) {
        Thread main = Thread.currentThread();
        Thread t = new Thread(group, () -> {
            body.run();
            while (joined != Thread.currentThread() || main.getState() != Thread.State.WAITING)
                Thread.yield();
        }, name);
        t.start();
        return t;
    }

    static void join(Thread t) throws InterruptedException {
        joined = t;
        t.join();
    }

    static void await(Object lock) {
        synchronized (lock) {
            try {
                lock.wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    static void until(Thread.State state, Thread... threads) throws InterruptedException {
        for (Thread t : threads)
            while (t.getState() != state)
                Thread.sleep(1);
        Thread.sleep(5);
    }

    public static void main(String[] args) throws Exception {
        ThreadGroup waiters = new ThreadGroup("waiters"), others = new ThreadGroup("others");
        Thread notified = start(waiters, "notified", () -> await(one));
        until(Thread.State.WAITING, notified);
        synchronized (one) {
            one.notify();
        }
        join(notified);

        Thread[] awaiting = new Thread[3];
        for (int i = 0; i < awaiting.length; i++)
            awaiting[i] = start(waiters, "awaiting-" + i, () -> await(all));
        until(Thread.State.WAITING, awaiting);
        synchronized (all) {
            all.notifyAll();
        }
        for (Thread t : awaiting)
            join(t);

        Thread interrupted = start(others, "interrupted", () -> await(never));
        until(Thread.State.WAITING, interrupted);
        interrupted.interrupt();
        join(interrupted);

        CountDownLatch begun = new CountDownLatch(1);
        Thread parked = start(others, "parked", () -> {
            begun.countDown();
            LockSupport.park();
        });
        begun.await();
        until(Thread.State.WAITING, parked);
        LockSupport.unpark(parked);
        join(parked);

        Thread blocked;
        synchronized (held) {
            blocked = start(others, "blocked", () -> {
                synchronized (held) {
                    Thread.yield();
                }
            });
            until(Thread.State.BLOCKED, blocked);
        }
        join(blocked);

        synchronized (never) {
            never.wait(20);
        }
    }
}
