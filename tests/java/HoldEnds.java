// SPDX-License-Identifier: Apache-2.0

/**
 * Three rounds in which a thread holds a lock that another one wants, and for whose release by that
 * one nobody waits. Arguments: what the other one does with it, and a factor for all times of
 * holding. Prints how many ns the rounds took. "once" leaves at once and sleeps outside, in the
 * same method; "method" computes in it to the end of the method, and sleeps outside; "sleep" sleeps
 * in it, and outside too.
 */
public class HoldEnds {
    static final class Lock {
    }

    static final Object lock = new Lock();
    static volatile long sink;
    static double factor;

    static void rest(double ms) {
        try {
            Thread.sleep((long) ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void compute(double ms) {
        for (long end = System.nanoTime() + (long) (ms * 1e6); System.nanoTime() < end;)
            sink++;
    }

    static void once() {
        synchronized (lock) {
            sink++;
        }
        rest(300);
    }

    static void inside() {
        synchronized (lock) {
            compute(200 * factor);
        }
    }

    static void sleeps() {
        synchronized (lock) {
            rest(200 * factor);
        }
        rest(100);
    }

    static void round(String what) throws Exception {
        Thread holder = new Thread("holder") {
            @Override
            public void run() {
                synchronized (lock) {
                    rest(100 * factor);
                }
            }
        };
        holder.start();
        rest(20);
        switch (what) {
        case "once":
            once();
            break;
        case "method":
            inside();
            rest(100);
            break;
        default:
            sleeps();
        }
        holder.join();
    }

    public static void main(String[] args) throws Exception {
        factor = Double.parseDouble(args[1]);
        long begin = System.nanoTime();
        for (int i = 0; i < 3; i++)
            round(args[0]);
        System.out.println(System.nanoTime() - begin);
    }
}
