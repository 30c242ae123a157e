// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Makes, for as long as it runs, what a recorder might keep for ever: class loaders with a class of
 * a new name each, whose method is run for a while, waits for its object and throws an exception,
 * and threads of new names that contend for a monitor. Prints "rounds N" each second. Arguments:
 * the rounds a second, 0: as many as it can; the threads of a round, 2 when not given.
 */
public class Churns {
    public static class M00000000 implements Runnable {
        static long sink;

        public void run() {
            for (int i = 0; i < 5_000; i++)
                sink = sink * 31 + i;
            Object[] kept = new Object[100];
            for (int i = 0; i < kept.length; i++)
                kept[i] = new byte[1000];
            synchronized (this) {
                try {
                    wait(1); // a stack and a monitor of the class
                } catch (InterruptedException e) {
                    return;
                }
            }
            throw new IllegalStateException(String.valueOf(sink + kept.length));
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static final Object lock = new Object();
    static long caught;

    static void work(Runnable r) {
        synchronized (lock) {
            try {
                r.run();
            } catch (IllegalStateException e) {
                caught++;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = Churns.class.getResourceAsStream("/Churns$M00000000.class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        String text = new String(out.toByteArray(), "ISO-8859-1");
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 2;
        long rate = Long.parseLong(args[0]), began = System.nanoTime(), reported = began;
        System.out.println("ready");
        for (long n = 1;; n++) {
            String name = String.format("M%08d", n);
            Class<?> c = new Loader().define(
                    "Churns$" + name, text.replace("M00000000", name).getBytes("ISO-8859-1"));
            Runnable r = (Runnable) c.getDeclaredConstructor().newInstance();
            Thread[] threads = new Thread[count];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> work(r), "churn-" + n + "-" + i);
                threads[i].start();
            }
            for (Thread t : threads)
                t.join();
            if (n % 2000 == 0)
                System.gc();
            long now = System.nanoTime();
            if (now - reported > 1_000_000_000L) {
                System.out.println("rounds " + n);
                reported = now;
            }
            if (rate > 0 && now - began < n * 1_000_000_000L / rate)
                Thread.sleep((n * 1_000_000_000L / rate - (now - began)) / 1_000_000 + 1);
        }
    }
}
