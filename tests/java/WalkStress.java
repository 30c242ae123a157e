// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Everything that makes walking hard, at once: classes that come and go, exceptions, null checks,
 * deep recursion and stack overflows, method handles, native code, virtual threads, threads by the
 * hundred. WalkStress MILLISECONDS THREADS.
 */
public class WalkStress {
    static volatile boolean stop;
    static volatile long sink;
    static volatile Object nothing;
    static final AtomicLong rounds = new AtomicLong();

    /** Loaded again and again, each time by a loader of its own. */
    public static class Guest implements LongUnaryOperator {
        public long applyAsLong(long x) {
            long sum = 0;
            for (int i = 0; i < 2000; i++)
                sum += step(x, i);
            LongUnaryOperator f = y -> y + x;
            return f.applyAsLong(sum);
        }

        static long step(long x, int i) {
            return (x ^ i) * 31;
        }
    }

    static final class Loader extends ClassLoader {
        final byte[] bytes;

        Loader(byte[] bytes) {
            super(WalkStress.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.endsWith("$Guest")) {
                Class<?> known = findLoadedClass(name);
                return known != null ? known : defineClass(name, bytes, 0, bytes.length);
            }
            return super.loadClass(name, resolve);
        }
    }

    static byte[] guestBytes() throws Exception {
        try (InputStream in = WalkStress.class.getResourceAsStream("WalkStress$Guest.class")) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] b = new byte[4096];
            for (int n; (n = in.read(b)) > 0;)
                out.write(b, 0, n);
            return out.toByteArray();
        }
    }

    static void unload() throws Exception {
        byte[] bytes = guestBytes();
        for (int i = 0; !stop; i++) {
            LongUnaryOperator f = (LongUnaryOperator) new Loader(bytes)
                                          .loadClass("WalkStress$Guest")
                                          .getDeclaredConstructor()
                                          .newInstance();
            for (int k = 0; k < 50; k++)
                sink += f.applyAsLong(k);
            if (i % 200 == 0)
                System.gc();
            rounds.incrementAndGet();
        }
    }

    static int fail(int depth) {
        if (depth == 0)
            throw new IllegalStateException("x");
        return fail(depth - 1) + 1;
    }

    static void exceptions() {
        while (!stop) {
            try {
                sink += fail(20);
            } catch (IllegalStateException e) {
                sink += e.getStackTrace().length;
            }
            try {
                sink += nothing.hashCode();
            } catch (NullPointerException e) {
                sink++;
            }
            try {
                sink += new int[3][3][(int) (sink & 1)][5].length;
            } catch (RuntimeException e) {
                sink++;
            }
            rounds.incrementAndGet();
        }
    }

    static long deep(long n) {
        return n == 0 ? 1 : deep(n - 1) + (n & 3);
    }

    static long endless(long n) {
        return endless(n + 1) + 1;
    }

    static void recursion() {
        for (int i = 0; !stop; i++) {
            sink += deep(5000);
            if (i % 50 == 0) {
                try {
                    sink += endless(0);
                } catch (StackOverflowError e) {
                    sink++;
                }
            }
            rounds.incrementAndGet();
        }
    }

    static void natives() {
        byte[] data = new byte[20000], out = new byte[30000];
        while (!stop) {
            CRC32 crc = new CRC32();
            crc.update(data);
            Deflater d = new Deflater(1);
            d.setInput(data);
            d.finish();
            d.deflate(out);
            d.end();
            System.arraycopy(out, 0, data, 0, data.length);
            sink += crc.getValue() + new String(data, 0, 500).hashCode();
            try {
                sink += (Integer) Method.class.getMethod("hashCode")
                                .invoke(WalkStress.class.getDeclaredMethod("natives"));
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
            rounds.incrementAndGet();
        }
    }

    static void streams() {
        while (!stop) {
            List<Integer> list = new ArrayList<>();
            for (int i = 0; i < 300; i++)
                list.add(i ^ 5);
            sink += list.stream()
                            .map(x -> x + 1)
                            .filter(x -> x % 3 != 0)
                            .sorted()
                            .mapToLong(x -> x)
                            .sum();
            rounds.incrementAndGet();
        }
    }

    static void sleeper() {
        try {
            for (int i = 0; i < 20 && !stop; i++)
                Thread.sleep(100);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Virtual threads where there are any; by reflection, since this is compiled for release 8. */
    static void virtual() throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        while (!stop) {
            List<Thread> list = new ArrayList<>();
            for (int i = 0; i < 50; i++)
                list.add((Thread) start.invoke(null, (Runnable) () -> parked(20)));
            for (Thread t : list)
                t.join();
            rounds.incrementAndGet();
        }
    }

    static long parked(int depth) {
        if (depth > 0)
            return parked(depth - 1) + 1;
        for (int i = 0; i < 5; i++) {
            Thread.yield();
            sink += deep(50);
        }
        return 0;
    }

    interface Job {
        void run() throws Exception;
    }

    static Thread start(Job job) {
        Thread t = new Thread(() -> {
            try {
                job.run();
            } catch (Throwable e) {
                e.printStackTrace();
                System.exit(3);
            }
        });
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + Long.parseLong(args[0]);
        int threads = Integer.parseInt(args[1]);
        List<Thread> jobs = new ArrayList<>();
        for (Job j : new Job[] {WalkStress::unload, WalkStress::exceptions, WalkStress::recursion,
                                WalkStress::natives, WalkStress::streams, WalkStress::virtual})
            jobs.add(start(j));
        while (System.currentTimeMillis() < end) {
            List<Thread> sleepers = new ArrayList<>();
            for (int i = 0; i < threads && System.currentTimeMillis() < end; i++)
                sleepers.add(start(WalkStress::sleeper));
            Thread.sleep(Math.max(1, Math.min(1500, end - System.currentTimeMillis())));
            for (Thread t : sleepers)
                t.join();
        }
        stop = true;
        for (Thread t : jobs)
            t.join();
        System.out.println("done " + (rounds.get() > 0));
    }
}
