// SPDX-License-Identifier: Apache-2.0

/**
 * For some seconds, the first argument, two threads handle as many requests as they can, and a
 * third one handles one every 3 ms, each seventh of which fails. Prints the numbers of both.
 */
public class RequestsRare {
    static volatile long sum;

    static void quick(int i) {
        for (int k = 0; k < 20; k++)
            sum += i;
    }

    static void rare(int i) throws InterruptedException {
        Thread.sleep(3);
        if (i % 7 == 0)
            throw new IllegalStateException();
    }

    public static void main(String[] args) throws InterruptedException {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        long[] n = new long[3];
        Thread[] threads = new Thread[3];
        for (int t = 0; t < 3; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                for (int i = 0; System.nanoTime() < end; i++) {
                    n[own]++;
                    try {
                        if (own == 2)
                            rare(i);
                        else
                            quick(i);
                    } catch (IllegalStateException e) {
                        sum++;
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            });
            threads[t].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println(n[0] + n[1] + " " + n[2]);
    }
}
