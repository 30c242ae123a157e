// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait for conditions of their own making, in two queues, and idly in a pool. */
public class Conditions {
    static class Mailbox {
        final ReentrantLock lock = new ReentrantLock();
        final Condition full = lock.newCondition(), empty = lock.newCondition();

        void put() throws Exception {
            lock.lock();
            try {
                full.await(50, TimeUnit.MILLISECONDS);
            } finally {
                lock.unlock();
            }
        }

        void get() throws Exception {
            lock.lock();
            try {
                empty.await();
            } finally {
                lock.unlock();
            }
        }

        void fill() {
            lock.lock();
            empty.signal();
            lock.unlock();
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static final LinkedBlockingQueue<Integer> orders = new LinkedBlockingQueue<>(),
                                              mails = new LinkedBlockingQueue<>();
    static final ArrayBlockingQueue<Integer> jobs = new ArrayBlockingQueue<>(1);

    static void takeOrder() throws Exception {
        orders.take();
    }

    static void takeMail() throws Exception {
        mails.take();
    }

    static void takeJob() throws Exception {
        jobs.take();
    }

    static Thread start(Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        Mailbox box = new Mailbox();
        ExecutorService pool = Executors.newFixedThreadPool(2);
        for (int i = 0; i < 2; i++)
            pool.submit(() -> { });
        Thread[] all = {start(Conditions::takeOrder), start(Conditions::takeMail),
                        start(Conditions::takeJob), start(box::put), start(box::get)};
        for (Thread t : all)
            while (t.getState() != Thread.State.WAITING
                   && t.getState() != Thread.State.TIMED_WAITING && t.isAlive())
                Thread.sleep(1);
        Thread.sleep(100);
        orders.add(1);
        mails.add(1);
        jobs.add(1);
        while (all[4].isAlive()) {
            box.fill();
            Thread.sleep(1);
        }
        for (Thread t : all)
            t.join();
        pool.shutdownNow();
    }
}
