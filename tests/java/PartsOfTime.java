// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/** Threads that sleep while they hold a contended lock, wait to be notified, and are unparked. */
public class PartsOfTime {
    static final class Shelf {}

    static final class Bell {}

    static final Shelf shelf = new Shelf();
    static final Bell bell = new Bell();
    static volatile boolean over;
    static boolean listening;

    static void take(int ms) {
        synchronized (shelf) {
            sleep(ms);
        }
    }

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void listen() {
        synchronized (bell) {
            while (!over) {
                listening = true;
                try {
                    bell.wait(10000);
                } catch (InterruptedException e) {
                    return;
                }
                sleep(1);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] takers = new Thread[3];
        for (int k = 0; k < takers.length; k++) {
            int ms = 5 + k;
            takers[k] = new Thread(() -> {
                for (int i = 0; i < 40; i++) {
                    take(ms);
                    if (i % 10 == 9)
                        sleep(3);
                }
            }, "taker-" + k);
        }
        Thread listener = new Thread(PartsOfTime::listen, "listener");
        Thread parked = new Thread(() -> {
            while (!over)
                LockSupport.park();
        }, "parked");
        listener.start();
        parked.start();
        for (Thread t : takers)
            t.start();
        for (int i = 0; i < 60; i++) {
            sleep(7);
            /* Each notification ends a wait, so that none depends on whether an earlier one did. */
            synchronized (bell) {
                if (listening)
                    bell.notify();
                listening = false;
            }
            LockSupport.unpark(parked);
        }
        for (Thread t : takers)
            t.join();
        over = true;
        synchronized (bell) {
            bell.notifyAll();
        }
        LockSupport.unpark(parked);
        listener.join();
        parked.join();
    }
}
