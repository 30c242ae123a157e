// SPDX-License-Identifier: Apache-2.0

import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * One thread takes a lock that is free, so no event says so, and another one then waits for it.
 * Arguments: what they take ("lock", "monitor", "write" or "semaphore"), how often, for how many
 * ms, and whether the threads are "platform" or "virtual". Prints two sums in ns, by the program's
 * own clock: how long the other one certainly waited while the owner had the lock, and how long at
 * most either of them had it. With "sleep" one thread sleeps that often, and the second sum is how
 * long that took; a further argument is how many calls it is in meanwhile. Before that another
 * thread sleeps once, so that the VM has what a first sleep needs.
 */
public class KnownOwner {
    static final ReentrantLock lock = new ReentrantLock();
    static final ReentrantReadWriteLock two = new ReentrantReadWriteLock();
    static final Semaphore semaphore = new Semaphore(1);
    static final Object monitor = new Object();
    static final SynchronousQueue<Long> held = new SynchronousQueue<>(),
                                        left = new SynchronousQueue<>();
    static Thread owner, waiter;
    static long least, most;
    static int ms;

    interface Body {
        void run() throws Exception;
    }

    static Thread thread(boolean virtual, String name, Body body) throws Exception {
        Runnable run = () -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
        if (!virtual)
            return new Thread(run, name);
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, run);
    }

    static boolean isQueued(String what) {
        return what.equals("lock") ? lock.hasQueuedThread(waiter)
            : what.equals("write") ? two.hasQueuedThread(waiter)
            : what.equals("monitor") || semaphore.hasQueuedThreads();
    }

    /** Called by the owner of the lock. */
    static void keep(String what) throws Exception {
        held.put(0L);
        Thread.State waits = what.equals("monitor") ? Thread.State.BLOCKED : Thread.State.WAITING;
        while (!isQueued(what) || waiter.getState() != waits)
            Thread.sleep(1);
        long since = System.nanoTime();
        Thread.sleep(ms);
        least += System.nanoTime() - since;
    }

    static void own(String what) throws Exception {
        switch (what) {
        case "lock":
            lock.lock();
            try {
                keep(what);
            } finally {
                lock.unlock();
            }
            break;
        case "write":
            two.writeLock().lock();
            keep(what);
            two.writeLock().unlock();
            break;
        case "monitor":
            synchronized (monitor) {
                keep(what);
            }
            break;
        default:
            semaphore.acquire();
            keep(what);
            semaphore.release();
        }
    }

    static void come(String what) throws Exception {
        switch (what) {
        case "lock":
            lock.lock();
            lock.unlock();
            break;
        case "write":
            two.writeLock().lock();
            two.writeLock().unlock();
            break;
        case "monitor":
            synchronized (monitor) {
                ms++;
                ms--;
            }
            break;
        default:
            semaphore.acquire();
            semaphore.release();
        }
    }

    /** Returns how long n sleeps took, in ns. */
    static long sleep(int n, int calls) throws Exception {
        if (calls > 0)
            return sleep(n, calls - 1);
        long since = System.nanoTime();
        for (int i = 0; i < n; i++)
            Thread.sleep(ms);
        return System.nanoTime() - since;
    }

    public static void main(String[] args) throws Exception {
        String what = args[0];
        int n = Integer.parseInt(args[1]);
        boolean virtual = args[3].equals("virtual");
        ms = Integer.parseInt(args[2]);
        if (what.equals("sleep")) {
            int calls = args.length > 4 ? Integer.parseInt(args[4]) : 0;
            Thread first = thread(virtual, "first", () -> Thread.sleep(1));
            first.start();
            first.join();
            owner = thread(virtual, "sleeper", () -> most = sleep(n, calls));
            owner.start();
            owner.join();
            System.out.println(1000000L * n * ms + " " + most);
            return;
        }
        owner = thread(virtual, "owner", () -> {
            for (int i = 0; i < n; i++) {
                long since = System.nanoTime();
                own(what);
                most += left.take() - since;
            }
        });
        waiter = thread(virtual, "waiter", () -> {
            for (int i = 0; i < n; i++) {
                held.take();
                come(what);
                left.put(System.nanoTime());
            }
        });
        owner.start();
        waiter.start();
        owner.join();
        waiter.join();
        System.out.println(least + " " + most);
    }
}
