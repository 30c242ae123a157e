// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * 64 threads that call, allocate, contend, wait and start others, for tests/agents/jvmpi_stress.c;
 * knows what it computes.
 */
public class JvmpiStress {
    static final Object[] LOCKS = new Object[4];
    static long total;
    static int[] kept;

    static int add(int a, int b) {
        return a + b;
    }

    static int work(int seed, int rounds) throws Exception {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 20; k++)
                sum = add(sum, k);
            kept = new int[i % 50 + 1];
            Object lock = LOCKS[(seed + i) % LOCKS.length];
            synchronized (lock) {
                total++;
                if (i % 100 == 50)
                    lock.wait(1);
                lock.notifyAll();
            }
            if (i % 150 == 0) {
                Thread t = new Thread("short " + seed) {
                    public void run() {
                        add(1, 2);
                    }
                };
                t.start();
                t.join();
            }
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        int n = 64;
        final int rounds = Integer.parseInt(arguments[0]);
        final int[] sums = new int[n];
        final CountDownLatch done = new CountDownLatch(n);
        for (int i = 0; i < LOCKS.length; i++)
            LOCKS[i] = new Object();
        for (int i = 0; i < n; i++) {
            final int seed = i;
            new Thread("worker " + i) {
                public void run() {
                    try {
                        sums[seed] = work(seed, rounds);
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                    done.countDown();
                }
            }.start();
        }
        done.await();
        int right = 0;
        for (int sum : sums)
            if (sum == rounds * 190)
                right++;
        System.out.println("right " + right + " total " + total);
        for (int i = 0; i < 8; i++) { // they go on while the VM ends
            Thread daemon = new Thread("daemon") {
                public void run() {
                    try {
                        for (;;)
                            work(1, 1000);
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                }
            };
            daemon.setDaemon(true);
            daemon.start();
        }
        Thread.sleep(100);
    }
}
