// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Methods of known shares, for MILLISECONDS of CPU time: the program takes the CPU time of each
 * call below measured() and prints what share of the whole it was, and the whole. The first fifth
 * of the time is not measured, because shares change as the methods are compiled, and samples do
 * not come at the same rate all the time on a busy machine.
 */
public class WalkShares {
    /**
     * Calls between two readings of the clock. Of a thread that another one is to interrupt, Linux
     * may do so only when a tick or a system call comes; with a reading behind each call, many
     * samples would be in the reading.
     */
    static final int TIMES = 20;

    static volatile long sink;

    static long half(int n) {
        long x = n;
        for (int i = 0; i < 500000; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static long third(int n) {
        long x = n;
        for (int i = 0; i < 300000; i++)
            x = Long.rotateLeft(x * 31 + i, 7);
        return x;
    }

    static long rest(int n) {
        long[] a = new long[4096];
        for (int i = 0; i < 120000; i++)
            a[(int) (a[i & 4095] + i * 7L) & 4095] += i ^ n;
        return a[n & 4095];
    }

    /** Adds what each method took to took[]. Returns the CPU time when it ends. */
    static long rounds(ThreadMXBean clock, long end, long[] took) {
        long t0 = clock.getCurrentThreadCpuTime();
        for (int n = 0; t0 < end; t0 = clock.getCurrentThreadCpuTime()) {
            for (int i = 0; i < TIMES; i++)
                sink += half(n + i);
            long t1 = clock.getCurrentThreadCpuTime();
            for (int i = 0; i < TIMES; i++)
                sink += third(n + i);
            long t2 = clock.getCurrentThreadCpuTime();
            for (int i = 0; i < TIMES; i++)
                sink += rest(n++);
            long t3 = clock.getCurrentThreadCpuTime();
            took[0] += t1 - t0;
            took[1] += t2 - t1;
            took[2] += t3 - t2;
        }
        return t0;
    }

    static long warmUp(ThreadMXBean clock, long end) {
        return rounds(clock, end, new long[3]);
    }

    static void measured(ThreadMXBean clock, long end, long[] took) {
        rounds(clock, end, took);
    }

    public static void main(String[] args) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long[] took = new long[3];
        long ns = Long.parseLong(args[0]) * 1000000L, begun = clock.getCurrentThreadCpuTime();
        measured(clock, warmUp(clock, begun + ns / 5) + ns - ns / 5, took);
        long whole = clock.getCurrentThreadCpuTime() - begun;
        double all = took[0] + took[1] + took[2];
        System.out.printf(java.util.Locale.ROOT, "half %.4f third %.4f rest %.4f cpu_ns %d%n",
                          took[0] / all, took[1] / all, took[2] / all, whole);
    }
}
