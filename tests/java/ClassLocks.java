// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Locks objects of java.lang.Class. "contend": three threads lock Store in a static synchronized
 * method and int[] in a block, 20 times each, and one waits for a notification of Waiter. "held":
 * holder owns Store, blocked waits for it, and waiting waits for a notification of Waiter, until a
 * line comes in. "deadlock": two daemon threads lock Store and int[] in both orders; ends a second
 * later, or with a second argument when a line comes in. "served": requests of which every tenth
 * waits for Store.
 */
public class ClassLocks {
    static class Store {
        static synchronized void sell() {
            rest(2);
        }

        static synchronized void sell(CountDownLatch has, CountDownLatch let)
                throws InterruptedException {
            has.countDown();
            let.await();
        }
    }

    static class Waiter {
        static boolean reported;

        static synchronized void await() throws InterruptedException {
            while (!reported)
                Waiter.class.wait();
        }

        static synchronized void report() {
            reported = true;
            Waiter.class.notifyAll();
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static void rest(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(name.startsWith("stuck"));
        t.start();
        return t;
    }

    static void buy() {
        synchronized (int[].class) {
            rest(2);
        }
    }

    static void contend() throws Exception {
        Thread[] all = new Thread[3];
        Thread waiting = start("waiting", Waiter::await);
        for (int i = 0; i < all.length; i++)
            all[i] = start("worker " + i, () -> {
                for (int n = 0; n < 20; n++) {
                    Store.sell();
                    buy();
                }
            });
        for (Thread t : all)
            t.join();
        Waiter.report();
        waiting.join();
    }

    static void held() throws Exception {
        CountDownLatch has = new CountDownLatch(1), let = new CountDownLatch(1);
        Thread holder = start("holder", () -> Store.sell(has, let));
        has.await();
        Thread blocked = start("blocked", Store::sell);
        Thread waiting = start("waiting", Waiter::await);
        while (blocked.getState() != Thread.State.BLOCKED
                || waiting.getState() != Thread.State.WAITING)
            rest(1);
        System.out.println("ready");
        System.in.read();
        let.countDown();
        Waiter.report();
        for (Thread t : new Thread[] {holder, blocked, waiting})
            t.join();
        System.out.println("released");
        System.in.read();
    }

    static void deadlock() {
        CountDownLatch both = new CountDownLatch(2);
        start("stuck 1", () -> {
            synchronized (Store.class) {
                both.countDown();
                both.await();
                buy();
            }
        });
        start("stuck 2", () -> {
            synchronized (int[].class) {
                both.countDown();
                both.await();
                Store.sell();
            }
        });
        rest(1000);
    }

    static void serve() {
        Store.sell();
    }

    /** 60 requests; every tenth waits until holder has released Store, for 30 ms. */
    static void served() throws Exception {
        for (int i = 0; i < 60; i++) {
            CountDownLatch has = new CountDownLatch(1), let = new CountDownLatch(1);
            Thread holder = i % 10 != 9 ? null : start("holder", () -> Store.sell(has, let));
            Thread releases = holder == null ? null : start("releases", () -> {
                has.await();
                rest(30);
                let.countDown();
            });
            if (holder != null)
                has.await();
            serve();
            if (holder != null) {
                holder.join();
                releases.join();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("contend"))
            contend();
        else if (args[0].equals("held"))
            held();
        else if (args[0].equals("served"))
            served();
        else
            deadlock();
        if (args.length > 1) {
            System.out.println("ready");
            System.in.read();
        }
    }
}
