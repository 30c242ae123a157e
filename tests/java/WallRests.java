// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/** Ten threads work until something has interrupted them, as a sample does, and rest for 1.5 s at once. */
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
        for (int i = 0; i < 1000; i++)
            System.nanoTime();
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(() -> {
                works();
                rests();
            });
            all[i].start();
        }
        for (Thread t : all)
            t.join();
    }
}
