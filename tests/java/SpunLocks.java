// SPDX-License-Identifier: Apache-2.0

/**
 * SpunLocks N: two threads take turns of 20 us without a monitor and 30 us with it, N each. Prints
 * how often one of them came to the monitor while the other one had it: it spins then, where there
 * are processors, and the VM seldom tells of that.
 */
public class SpunLocks {
    static final class Monitor {
    }

    static final Object monitor = new Monitor();
    static volatile boolean had;
    static final int[] met = new int[2];

    static void spin(long ns) {
        for (long until = System.nanoTime() + ns; System.nanoTime() < until;) {
        }
    }

    static void turns(int n, int me) {
        for (int i = 0; i < n; i++) {
            spin(20_000);
            if (had)
                met[me]++;
            synchronized (monitor) {
                had = true;
                spin(30_000);
                had = false;
            }
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int n = Integer.parseInt(args[0]);
        Thread other = new Thread(() -> turns(n, 1), "other");
        other.start();
        turns(n, 0);
        other.join();
        System.out.println(met[0] + met[1]);
    }
}
