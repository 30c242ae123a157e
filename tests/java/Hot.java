// SPDX-License-Identifier: Apache-2.0
/**
 * Programs whose profile is known. Arguments: NAME MILLISECONDS (of CPU time; of each thread that
 * works for threads) [more]. Each prints "loop_ns N", what the program took of it once it was up,
 * and "cpu_ns N", the CPU time of its main thread in all.
 *
 * counted: a counted loop without a safepoint holds 99 % of the time. inlined: `heavy` has three
 * quarters of the work and is inlined into its caller; it prints the share that it took. native:
 * threads blocked in native calls while another works. tiny: calls of methods of a few nanoseconds.
 * deep: recursion of 10,000 frames.
 */
public class Hot {
    static volatile long sink;
    static long cpuEnd, heavyNs, lightNs;
    static final java.lang.management.ThreadMXBean THREADS = java.lang.management.ManagementFactory.getThreadMXBean();

    /** Whether this thread has used its CPU time; every n-th call asks. */
    static boolean goesOn(int i, int n) {
        return i % n != 0 || THREADS.getCurrentThreadCpuTime() < cpuEnd;
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[1]);
        long begin = THREADS.getCurrentThreadCpuTime();
        cpuEnd = begin + ms * 1_000_000;
        switch (args[0]) {
        case "counted": // the clock is asked now and then: it takes as long as a thirtieth of the loop
            for (int i = 1; goesOn(i, 16); i++) {
                sink += countedLoop(i);
                sink += beside(i);
            }
            break;
        case "inlined":
            for (int i = 1; goesOn(i, 16); i++)
                sink += caller(i);
            System.out.println("heavy " + heavyNs / (double) (heavyNs + lightNs));
            break;
        case "native":
            blockThreads();
            for (int i = 1; goesOn(i, 1); i++)
                sink += countedLoop(i);
            break;
        case "tiny":
            for (int i = 1; goesOn(i, 1024); i++)
                sink += tiny(i);
            break;
        case "deep":
            for (int i = 1; goesOn(i, 1); i++)
                sink += recurse(10_000);
            break;
        case "threads":
            manyThreads(Integer.parseInt(args[2]), ms);
            break;
        case "exceptions":
            for (int i = 1; goesOn(i, 1024); i++)
                sink += thrower(20);
            break;
        default:
            throw new IllegalArgumentException(args[0]);
        }
        long end = THREADS.getCurrentThreadCpuTime();
        System.out.println("loop_ns " + (end - begin) + " cpu_ns " + end);
        if (args[0].equals("native"))
            System.exit(0);
    }

    static long countedLoop(int seed) {
        long x = seed;
        for (int i = 0; i < 2_000_000; i++)
            x = x * 31 + (x >>> 7);
        return x;
    }

    static long beside(int seed) {
        long x = seed;
        for (int i = 0; i < 20_000; i++)
            x = x * 31 + (x >>> 7);
        return x;
    }

    /** Each takes some hundred microseconds, of which reading the clock is little. */
    static long caller(int seed) {
        long x = seed;
        long begin = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < 300; i++)
            x += heavy(x + i);
        long middle = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < 300; i++)
            x += light(x - i);
        heavyNs += middle - begin;
        lightNs += THREADS.getCurrentThreadCpuTime() - middle;
        return x;
    }

    static long heavy(long x) {
        for (int i = 0; i < 760; i++)
            x = x * 31 + (x >>> 7);
        return x;
    }

    static long light(long x) {
        for (int i = 0; i < 240; i++)
            x = x * 31 + (x >>> 7);
        return x;
    }

    static void blockThreads() throws Exception {
        for (int i = 0; i < 8; i++) {
            java.net.ServerSocket socket = new java.net.ServerSocket(0);
            Thread t = new Thread(() -> {
                try {
                    socket.accept();
                } catch (java.io.IOException e) {
                    throw new RuntimeException(e);
                }
            }, "accepting-" + i);
            t.setDaemon(true);
            t.start();
        }
        Thread.sleep(100);
    }

    static long tiny(int seed) {
        long x = seed;
        for (int i = 0; i < 1000; i++)
            x = one(x) + two(x) + three(x);
        return x;
    }

    static long one(long x) {
        return x ^ two(x >>> 1);
    }

    static long two(long x) {
        return x + three(x << 1);
    }

    static long three(long x) {
        return (x & 1) == 0 ? x : x + sink;
    }

    static long recurse(int depth) {
        long x = depth;
        for (int i = 0; i < 20; i++)
            x = x * 31 + (x >>> 7);
        return depth == 0 ? x : x + recurse(depth - 1);
    }

    /**
     * One of a hundred works, the others wait and look up now and then until all work is done.
     * Prints "work_ns N", what those that work took. They seldom ask for the time: where there is
     * no timer, threads are met most where they leave the processor.
     */
    static void manyThreads(int n, long ms) throws Exception {
        java.util.concurrent.atomic.AtomicLong workNs = new java.util.concurrent.atomic.AtomicLong();
        java.util.concurrent.CountDownLatch working = new java.util.concurrent.CountDownLatch((n + 99) / 100);
        Thread[] threads = new Thread[n];
        for (int i = 0; i < n; i++) {
            boolean works = i % 100 == 0;
            threads[i] = new Thread(null, () -> {
                try {
                    if (works) {
                        while (THREADS.getCurrentThreadCpuTime() < ms * 1_000_000)
                            for (int k = 0; k < 16; k++)
                                sink += countedLoop(1);
                        workNs.addAndGet(THREADS.getCurrentThreadCpuTime());
                        working.countDown();
                    }
                    while (!working.await(500, java.util.concurrent.TimeUnit.MILLISECONDS))
                        continue;
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            }, "many-" + i, 128 * 1024);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("work_ns " + workNs);
    }

    static int thrower(int depth) {
        if (depth == 0)
            throw new IllegalStateException("thrown");
        try {
            return thrower(depth - 1);
        } catch (IllegalStateException e) {
            if (depth % 5 == 0)
                throw e;
            return depth;
        }
    }
}
