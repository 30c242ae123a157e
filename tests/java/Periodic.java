// SPDX-License-Identifier: Apache-2.0

/**
 * Spends PERIOD microseconds of CPU time again and again, a quarter in `first` and the rest in
 * `second`, for MILLISECONDS in all; prints both methods' CPU time.
 */
public class Periodic {
    static final java.lang.management.ThreadMXBean THREADS =
            java.lang.management.ManagementFactory.getThreadMXBean();
    static volatile long sink;

    static long work(long until) {
        long now;
        while ((now = THREADS.getCurrentThreadCpuTime()) < until)
            for (int i = 0; i < 5_000; i++)
                sink += i;
        return now;
    }

    static long first(long until) {
        return work(until) + (sink & 0);
    }

    static long second(long until) {
        return work(until) | (sink & 0);
    }

    public static void main(String[] args) {
        long end = Long.parseLong(args[0]) * 1_000_000, period = Long.parseLong(args[1]) * 1_000;
        long at = THREADS.getCurrentThreadCpuTime(), inFirst = 0, inSecond = 0;
        for (long due = at; at < end; due += period) {
            long middle = first(due + period / 4);
            inFirst += middle - at;
            at = second(due + period);
            inSecond += at - middle;
        }
        System.out.println("first " + inFirst + " second " + inSecond + " cpu_ns " + at);
    }
}
