// SPDX-License-Identifier: Apache-2.0
/**
 * Requests of the same latency with different causes, at different rates: 200 that sleep for 2 ms,
 * one after the other, and then 200,000 short ones, of which every 500th waits as long for a
 * monitor. Prints the number of requests, and how many ns all of them slept and waited for the
 * monitor.
 */
public class RequestPhases {
    static final Object lock = new Object();
    static volatile boolean held, wanted, over;
    static long slept, waited, sink;

    static void request(int kind) throws Exception {
        if (kind == 0) {
            long start = System.nanoTime();
            Thread.sleep(2);
            slept += System.nanoTime() - start;
        } else if (kind == 1) {
            long start = System.nanoTime();
            synchronized (lock) {
                waited += System.nanoTime() - start;
            }
        } else {
            for (int i = 0; i < 200; i++)
                sink = sink * 31 + i;
        }
    }

    /** Holds the monitor for 2 ms whenever the other thread is about to want it. */
    static void hold() {
        while (!over) {
            if (!wanted) {
                Thread.yield();
                continue;
            }
            synchronized (lock) {
                wanted = false;
                held = true;
                long until = System.nanoTime() + 2_000_000;
                while (System.nanoTime() < until)
                    Thread.yield();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread holder = new Thread(RequestPhases::hold, "holder");
        holder.start();
        for (int i = 0; i < 200; i++)
            request(0);
        for (int i = 0; i < 200_000; i++) {
            if (i % 500 == 499) {
                held = false;
                wanted = true;
                while (!held)
                    Thread.yield();
                request(1);
            } else {
                request(2);
            }
        }
        over = true;
        holder.join();
        System.out.println(200_200 + " " + slept + " " + waited);
    }
}
