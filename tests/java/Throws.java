// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Exceptions whose classes, places and handlers are known; a class that comes and goes, a thread
 * with two names.
 */
public class Throws {
    static int deep(int n) {
        if (n == 0) {
            throw new IllegalStateException("at the bottom"); // explicit
        }
        return deep(n - 1);
    }

    static int divide(int a, int b) {
        return a / b; // implicit
    }

    public static class Guest {
    }

    static class Loader extends ClassLoader {
        Class<?> define() throws Exception {
            try (InputStream in = Throws.class.getResourceAsStream("Throws$Guest.class")) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                for (int b; (b = in.read()) >= 0;) {
                    bytes.write(b);
                }
                return defineClass("Throws$Guest", bytes.toByteArray(), 0, bytes.size());
            }
        }
    }

    static int cost(int n) {
        int caught = 0;
        for (int i = 0; i < n; i++) {
            try {
                deep(1);
            } catch (IllegalStateException e) {
                caught++;
            }
        }
        return caught;
    }

    static void many(AtomicInteger caught) {
        for (int i = 0; i < 1000; i++) {
            try {
                try {
                    deep(3);
                } catch (IllegalStateException e) { // inner handler
                    throw e; // thrown again
                }
            } catch (IllegalStateException e) { // outer handler
                caught.incrementAndGet();
            }
            try {
                divide(i, 0);
            } catch (ArithmeticException e) { // other handler
                caught.incrementAndGet();
            }
        }
        divide(1, 0);
    }

    static void threads() throws Exception {
        AtomicInteger caught = new AtomicInteger();
        System.setErr(new PrintStream(new ByteArrayOutputStream())); // what ends a thread is printed there
        Thread[] all = new Thread[8];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(() -> many(caught));
            all[i].start();
        }
        for (Thread t : all) {
            t.join();
        }
        System.out.println("done " + caught);
    }

    /**
     * Throws out of so many calls, until there is a line of standard input, that an exception is
     * on its way most of the time.
     */
    static void onTheWay() throws Exception {
        long caught = 0;
        System.out.println("ready");
        while (System.in.available() == 0) {
            try {
                deep(1000);
            } catch (IllegalStateException e) { // handler above a thousand calls
                caught++;
            }
        }
        System.out.println("done " + caught);
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("on the way")) {
            onTheWay();
            return;
        }
        if (args.length > 0 && args[0].equals("threads")) {
            threads();
            return;
        }
        if (args.length > 0) {
            int n = Integer.parseInt(args[0]);
            double[] best = {Double.MAX_VALUE};
            for (int round = 0; round < 10; round++) {
                long start = System.nanoTime();
                cost(n);
                best[0] = Math.min(best[0], (System.nanoTime() - start) / (double) n);
            }
            System.out.printf("%.0f%n", best[0]);
            return;
        }
        int caught = 0;
        for (int i = 0; i < 300; i++) {
            try {
                caught += deep(5);
            } catch (IllegalStateException e) { // first handler
                caught++;
            }
        }
        for (int i = 0; i < 20; i++) {
            try {
                caught += divide(i, 0);
            } catch (ArithmeticException e) { // second handler
                caught++;
            }
        }
        try {
            Class.forName("no.such.Class");
        } catch (ClassNotFoundException e) { // third handler
            caught++;
        }
        Thread t = new Thread(() -> {
            Thread.currentThread().setName("second name");
            try {
                Thread.sleep(2500);
            } catch (InterruptedException e) {
                return;
            }
            throw new UnsupportedOperationException(); // uncaught
        }, "first name");
        t.setUncaughtExceptionHandler((thread, e) -> { });
        Class<?> guest = new Loader().define();
        String name = guest.getDeclaredConstructor().newInstance().getClass().getName();
        guest = null;
        t.start();
        t.join();
        for (int i = 0; i < 4; i++) {
            System.gc();
            Thread.sleep(30);
        }
        System.out.println("done " + caught + " " + name);
    }
}
