// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Methods of known shares, for MILLISECONDS of CPU time: the program takes the CPU time of each call and prints what share of the
 * whole it was, and the whole.
 */
public class WalkShares {
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

    public static void main(String[] args) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long[] took = new long[3];
        long t0 = clock.getCurrentThreadCpuTime(), end = t0 + Long.parseLong(args[0]) * 1000000L;
        for (int n = 0; t0 < end; t0 = clock.getCurrentThreadCpuTime()) {
            sink += half(n);
            long t1 = clock.getCurrentThreadCpuTime();
            sink += third(n);
            long t2 = clock.getCurrentThreadCpuTime();
            sink += rest(n++);
            long t3 = clock.getCurrentThreadCpuTime();
            took[0] += t1 - t0;
            took[1] += t2 - t1;
            took[2] += t3 - t2;
        }
        double all = took[0] + took[1] + took[2];
        System.out.printf(java.util.Locale.ROOT, "half %.4f third %.4f rest %.4f cpu_ns %.0f%n", took[0] / all, took[1] / all,
                          took[2] / all, all);
    }
}
