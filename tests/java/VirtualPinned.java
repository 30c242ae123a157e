// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/**
 * A virtual thread sleeps ten times and parks ten times, 50 ms each, in a monitor: on JDK 21 it
 * cannot leave its carrier there. Prints how many of the parks lasted, because a permit that is
 * left of the sleeps ends one at once.
 */
public class VirtualPinned {
    static final int N = 10, MS = 50;
    static int parks;

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void park() {
        long before = System.nanoTime();
        LockSupport.parkNanos(MS * 1_000_000L);
        if (System.nanoTime() - before > MS * 500_000L)
            parks++;
    }

    static synchronized void wait(boolean sleep) {
        for (int i = 0; i < N; i++) {
            if (sleep)
                sleep(MS);
            else
                park();
            Thread.yield();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread.ofVirtual()
                .name("first")
                .start(() -> sleep(1))
                .join(); // initializes the JDK's timer
        Thread.ofVirtual().name("pinned").start(() -> {
            wait(true);
            wait(false);
        }).join();
        System.out.println(parks);
    }
}
