// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Virtual threads that lose their carriers without an event of the VM that says why: one wants its
 * monitor back after its wait has run out, and (argument "class") three need a class that another
 * thread initializes. Each is stopped until the VM says so.
 */
public class VirtualStops {
    static final Thread[] needs = new Thread[3];
    static final CountDownLatch entered = new CountDownLatch(1);
    static final Object lock = new Object();
    static boolean taken;

    static class Slow {
        static int x;
        static {
            entered.countDown();
            for (Thread t : needs)
                untilStopped(t);
            x = 1;
        }
    }

    static int touch() {
        return Slow.x;
    }

    static void untilStopped(Thread t) {
        while (t.getState() != Thread.State.WAITING && t.getState() != Thread.State.BLOCKED)
            Thread.onSpinWait();
    }

    static void waitsBriefly() {
        synchronized (lock) {
            while (!taken) {
                try {
                    lock.wait(1);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread waits = Thread.ofVirtual().name("waits").start(VirtualStops::waitsBriefly);
        while (waits.getState() != Thread.State.TIMED_WAITING)
            Thread.onSpinWait();
        synchronized (lock) {
            while (waits.getState() != Thread.State.BLOCKED)
                Thread.onSpinWait();
            taken = true;
        }
        waits.join();
        if (args.length == 0)
            return;
        for (int i = 0; i < needs.length; i++)
            needs[i] = Thread.ofVirtual().name("needs-" + i).unstarted(VirtualStops::touch);
        Thread initializes = Thread.ofPlatform().name("initializes").start(VirtualStops::touch);
        entered.await();
        for (Thread t : needs)
            t.start();
        for (Thread t : needs)
            t.join();
        initializes.join();
    }
}
