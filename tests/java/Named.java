// SPDX-License-Identifier: Apache-2.0
/** A thread, a method, a class and a lock each have a name that is a part of another's. */
public class Named {
    static class Lock {}

    static class LockMore {}

    static final Object LOCK = new Lock(), LOCK_MORE = new LockMore();
    static volatile long sink;

    static class Work {
        static void spin() {
            Named.spin();
        }
    }

    static class WorkMore {
        static void spin() {
            Named.spin();
        }
    }

    static void spin() {
        long end = System.nanoTime() + 20_000_000;
        while (System.nanoTime() < end)
            sink++;
    }

    static void call() {
        synchronized (LOCK) {
            sink++;
        }
        Work.spin();
    }

    static void callMore() {
        synchronized (LOCK_MORE) {
            sink++;
        }
        WorkMore.spin();
    }

    static void repeat(Runnable what) {
        for (int i = 0; i < 15; i++)
            what.run();
    }

    public static void main(String[] args) throws InterruptedException {
        Thread one = new Thread(() -> repeat(Named::call), "worker-1");
        Thread ten = new Thread(() -> repeat(Named::callMore), "worker-10");
        synchronized (LOCK) {
            synchronized (LOCK_MORE) {
                one.start();
                ten.start();
                Thread.sleep(100);
            }
        }
        one.join();
        ten.join();
    }
}
