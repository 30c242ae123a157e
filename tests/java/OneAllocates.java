// SPDX-License-Identifier: Apache-2.0
/** For half a second main allocates, and the thread "spins" computes and allocates nothing. */
public class OneAllocates {
    static volatile long sink;
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        final long until = System.nanoTime() + 500_000_000L;
        Thread spins = new Thread("spins") {
            public void run() {
                for (long x = 1; System.nanoTime() < until; x = x * 31 + 7)
                    sink = x;
            }
        };
        spins.start();
        while (System.nanoTime() < until)
            kept = new byte[1 << 16];
        spins.join();
    }
}
