// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Ten threads work until something has interrupted them, as a sample does, and rest for 1.5 s at
 * once. Prints the time in ns from the moments in which they were started to the ends of their
 * work: on a busy machine they wait for a processor meanwhile.
 */
public class WallRests {
    static void works() {
        for (long last = System.nanoTime(), now; ; last = now) {
            now = System.nanoTime();
            if (now - last > 4000)
                return;
        }
    }

    static void rests() {
        for (long end = System.nanoTime() + 1_500_000_000L; System.nanoTime() < end;)
            LockSupport.parkNanos(end - System.nanoTime());
    }

    public static void main(String[] args) throws Exception {
        Thread[] all = new Thread[10];
        AtomicLong busy = new AtomicLong();
        for (int i = 0; i < 1000; i++)
            System.nanoTime();
        for (int i = 0; i < all.length; i++) {
            long began = System.nanoTime();
            all[i] = new Thread(() -> {
                works();
                busy.addAndGet(System.nanoTime() - began);
                rests();
            });
            all[i].start();
        }
        for (Thread t : all)
            t.join();
        System.out.println(busy);
    }
}
