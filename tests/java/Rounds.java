// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Does the same round of calls, throws, allocations and hand-overs again and again on two threads until standard input says
 * a line or ends. Each round has one right result; a wrong one is printed. A line "?" is answered with "N rounds".
 */
public class Rounds {
    static volatile boolean over;
    static volatile long rounds;
    static final ReentrantLock lock = new ReentrantLock();
    static final Object monitor = new Object();
    long field;

    static long traced(long n, String text) {
        return n + text.length();
    }

    static int thrown(int n) {
        try {
            if (n % 2 == 0)
                throw new IllegalStateException("round");
            return 1;
        } catch (IllegalStateException e) {
            return e.getMessage().length();
        }
    }

    /** Has a constant that is not a number. It gets no probes, so the VM makes its code from its constants each time. */
    static class NotANumber {
        static double none(int n) {
            return n < 0 ? Double.NaN : -Double.NaN;
        }
    }

    static long round() throws InterruptedException {
        Rounds r = new Rounds();
        List<Object> kept = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            r.field += traced(i, "abc") + thrown(i);
            if (!Double.isNaN(NotANumber.none(i - 100)))
                r.field++;
            kept.add(new int[i % 7]);
            synchronized (monitor) {
                r.field++;
            }
            lock.lock();
            try {
                r.field++;
            } finally {
                lock.unlock();
            }
        }
        return r.field + kept.size();
    }

    static void work() {
        try {
            while (!over) {
                long result = round();
                if (result != 21700)
                    System.out.println("wrong: " + result);
                rounds++;
                Thread.sleep(1);
            }
        } catch (Throwable t) {
            System.out.println("wrong: " + t);
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = {new Thread(Rounds::work, "one"), new Thread(Rounds::work, "two")};
        for (Thread t : threads)
            t.start();
        System.out.println("ready");
        for (int c; (c = System.in.read()) == '?' || c == '\n';)
            if (c == '?')
                System.out.println(rounds + " rounds");
        over = true;
        for (Thread t : threads)
            t.join();
        System.out.println("done");
    }
}
