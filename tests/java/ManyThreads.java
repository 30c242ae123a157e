// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Pairs of threads that take turns by wait and notify: ManyThreads THREADS ROUNDS, for recordings
 * of any size.
 */
public class ManyThreads {
    static void turns(Object lock, int[] turn, int me, int rounds, CountDownLatch ready) {
        ready.countDown();
        try {
            ready.await();
            for (int i = 0; i < rounds; i++) {
                synchronized (lock) {
                    while (turn[0] != me)
                        lock.wait();
                    turn[0] = 1 - me;
                    lock.notify();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int n = Integer.parseInt(args[0]), rounds = Integer.parseInt(args[1]);
        Thread[] threads = new Thread[n];
        CountDownLatch ready = new CountDownLatch(n);
        int[][] turn = new int[n / 2][1];
        for (int i = 0; i < n; i++) {
            int[] pair = turn[i / 2];
            int me = i % 2;
            threads[i] = new Thread(null, () -> turns(pair, pair, me, rounds, ready), "pair-" + i / 2 + (me == 0 ? "a" : "b"), 1 << 17);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
    }
}
