// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait, each in its own way, before anything is recorded. Prints "ready"; at each line
 * of its input it lets some of them go on and says so: first all that wait for each other, then
 * main ends.
 */
public class AttachedWaits {
    static final Object monitor = new Object(), condition = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static final LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>();
    static volatile boolean go;

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (InterruptedException e) {
                spin(5);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void spin(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
            continue;
    }

    static void until(Thread t, Thread.State... states) throws InterruptedException {
        for (;; Thread.sleep(5))
            for (Thread.State s : states)
                if (t.getState() == s)
                    return;
    }

    public static void main(String[] args) throws Exception {
        Thread has = start("has-both", () -> {
            lock.lock();
            synchronized (monitor) {
                synchronized (condition) {
                    condition.wait();
                }
            }
            lock.unlock();
        });
        until(has, Thread.State.WAITING);
        Thread[] all = {start("comes-to-the-monitor", () -> {
            synchronized (monitor) {
                spin(5);
            }
        }), start("comes-to-the-lock", () -> {
            lock.lock();
            lock.unlock();
        }), start("takes-from-a-queue-and-has-a-long-name", () -> queue.take()),
            start("polls-a-queue", () -> queue.poll(1, TimeUnit.HOURS)), start("sleeps", () -> Thread.sleep(3600000))
};
        ExecutorService pool = Executors.newFixedThreadPool(2, task -> {
            Thread t = new Thread(task, "pool");
            t.setDaemon(true);
            return t;
        });
        pool.submit(() -> 1).get();
        pool.submit(() -> 2).get();
        for (Thread t : all)
            until(t, Thread.State.BLOCKED, Thread.State.WAITING, Thread.State.TIMED_WAITING);
        start("spins", () -> {
            while (!go)
                spin(50);
        });
        System.out.println("ready");
        System.in.read();
        synchronized (condition) {
            condition.notify();
        }
        has.join();
        queue.put("one");
        queue.put("two");
        all[4].interrupt();
        go = true;
        for (Thread t : all)
            t.join();
        System.out.println("released");
        System.in.read();
    }
}
