// SPDX-License-Identifier: Apache-2.0

/**
 * Programs whose sections, once shortened, run into what was free before: another lock ("locks"),
 * a join ("joins"), or whose sections were mostly free themselves ("own"). All times are sleeps.
 * Arguments: the program, and a factor for its shortened sections. Prints how many ns it took.
 */
public class FreeBefore {
    static final class Shortened {
    }

    static final class Other {
    }

    static final Object shortened = new Shortened(), other = new Other();
    static double factor;

    static void rest(double ms) {
        try {
            long us = (long) (ms * 1000);
            Thread.sleep(us / 1000, (int) (us % 1000) * 1000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void section(double ms) {
        rest(ms * factor);
    }

    static void locks() {
        for (int i = 0; i < 20; i++) {
            synchronized (shortened) {
                section(20);
            }
            synchronized (other) {
                rest(15);
            }
        }
    }

    static void own() {
        for (int i = 0; i < 30; i++) {
            synchronized (shortened) {
                section(20);
            }
            rest(40);
        }
    }

    static void joins() throws InterruptedException {
        for (int i = 0; i < 10; i++)
            together(new Runnable[] {() -> section(100), () -> rest(60)});
    }

    static void together(Runnable[] all) throws InterruptedException {
        Thread[] threads = new Thread[all.length];
        for (int i = 0; i < all.length; i++) {
            threads[i] = new Thread(all[i]);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
    }

    public static void main(String[] args) throws InterruptedException {
        factor = Double.parseDouble(args[1]);
        Runnable locks = FreeBefore::locks, own = FreeBefore::own;
        long start = System.nanoTime();
        if (args[0].equals("joins"))
            joins();
        else
            together(args[0].equals("own") ? new Runnable[] {own, own}
                : new Runnable[] {locks, locks, locks, locks});
        System.out.println(System.nanoTime() - start);
    }
}
