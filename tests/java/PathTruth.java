// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/**
 * A worker spins for some 300 ms and unparks main; then two threads take a lock ten times each and
 * sleep 10 ms with it: a path of which the methods are known.
 */
public class PathTruth {
    static final Object lock = new Object();
    static volatile boolean done;
    static double sink;

    static void spin(long ms) {
        long end = System.nanoTime() + ms * 1000000;
        for (int i = 1; System.nanoTime() < end; i++)
            sink += Math.sin(i);
    }

    static void wake(Thread thread) {
        done = true;
        LockSupport.unpark(thread);
    }

    static void sections() {
        for (int i = 0; i < 10; i++)
            synchronized (lock) {
                try {
                    Thread.sleep(10);
                } catch (InterruptedException e) {
                    return;
                }
            }
    }

    public static void main(String[] args) throws Exception {
        Thread main = Thread.currentThread();
        Thread worker = new Thread(() -> {
            spin(300);
            wake(main);
        }, "worker");
        worker.start();
        while (!done)
            LockSupport.park();
        Thread[] two = {new Thread(PathTruth::sections, "one"),
                        new Thread(PathTruth::sections, "two")};
        for (Thread t : two)
            t.start();
        for (Thread t : two)
            t.join();
    }
}
