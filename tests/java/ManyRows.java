// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * More threads, classes of locks, places of exceptions and of allocations than the tables of the
 * page show rows at first: each of 150 threads has a class of its own that blocks and waits, throws
 * and allocates. An argument is the number of such classes, of which the others run in main.
 */
public class ManyRows {
    static final int ROWS = 150;

    /** Copied under other names. */
    public static class Row00000 implements Runnable {
        static Object kept;
        final AtomicInteger thrown = new AtomicInteger();

        public void run() {
            try {
                kept = new int[1000];
                throw new IllegalStateException();
            } catch (IllegalStateException e) {
                thrown.incrementAndGet();
            }
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static String bytesOf(Class<?> c) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = c.getResourceAsStream("/" + c.getName() + ".class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        return out.toString("ISO-8859-1");
    }

    /**
     * The holder lets the other thread begin to block before it releases the lock. No thread's name
     * is a part of another's, so that --thread selects a single one.
     */
    static void contend(Object lock, String other) throws Exception {
        Thread blocked = new Thread(() -> {
            synchronized (lock) {
                lock.notify();
            }
        }, other);
        synchronized (lock) {
            blocked.start();
            while (blocked.getState() != Thread.State.BLOCKED)
                Thread.yield();
            lock.wait(60_000);
        }
        blocked.join();
    }

    public static void main(String[] args) throws Exception {
        String text = bytesOf(Row00000.class);
        Loader loader = new Loader();
        CountDownLatch done = new CountDownLatch(ROWS);
        int classes = args.length > 0 ? Integer.parseInt(args[0]) : ROWS;
        for (int i = 1; i <= classes; i++) {
            String name = String.format("Row%05d", i), other = String.format("Other%05d", i);
            Runnable row = (Runnable) loader
                .define("ManyRows$" + name, text.replace("Row00000", name).getBytes("ISO-8859-1"))
                .getDeclaredConstructor()
                .newInstance();
            if (i > ROWS) {
                row.run();
                continue;
            }
            new Thread(() -> {
                try {
                    row.run();
                    contend(row, other);
                } catch (Exception e) {
                    throw new Error(e);
                } finally {
                    done.countDown();
                }
            }, name).start();
        }
        done.await();
    }
}
