// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that wait while the only carrier is pinned: "unmounted" parked before, "pinned" parks with the carrier (in a
 * class's initializer, which pins on every JDK), and "starved" is ready but has no carrier. Prints "ready"; at a line of its
 * input the pinned one goes on.
 */
public class PinnedVirtual {
    static final ReentrantLock lock = new ReentrantLock();
    static volatile boolean go, arrived;

    static class Pins {
        static {
            arrived = true;
            parksPinned();
        }
        static void touch() {}
    }

    static void parksPinned() {
        while (!go)
            LockSupport.park(lock);
    }

    static void parksUnmounted() {
        while (!go)
            LockSupport.park();
    }

    static void spins(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
            Thread.onSpinWait();
    }

    static Thread start(String name, Runnable body) {
        return Thread.ofVirtual().name(name).start(body);
    }

    public static void main(String[] args) throws Exception {
        Thread unmounted = start("unmounted", PinnedVirtual::parksUnmounted);
        while (unmounted.getState() != Thread.State.WAITING)
            Thread.sleep(1);
        Thread pinned = start("pinned", Pins::touch);
        while (!arrived || pinned.getState() != Thread.State.WAITING)
            Thread.sleep(1);
        Thread starved = start("starved", () -> spins(50));
        Thread.sleep(100);
        System.out.println("ready");
        System.in.read();
        go = true;
        LockSupport.unpark(unmounted);
        Thread.sleep(50);
        LockSupport.unpark(pinned);
        unmounted.join();
        pinned.join();
        starved.join();
        System.out.println("released");
        System.in.read();
        System.exit(0);
    }
}
