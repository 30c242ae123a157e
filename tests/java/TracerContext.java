// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Threads whose tracer publishes a trace, one that publishes nothing, and one whose pointer leads
 * nowhere. Arguments: the library, the milliseconds of CPU time for which each thread computes.
 */
public class TracerContext {
    static native void enter(int trace, int span);
    static native void leave();
    static native void nowhere();

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile double sink;
    static int millis;

    static void spin() {
        long end = THREADS.getCurrentThreadCpuTime() + millis * 1_000_000L;
        double x = 1;
        while (THREADS.getCurrentThreadCpuTime() < end)
            for (int i = 0; i < 100_000; i++)
                x = Math.sqrt(x + i);
        sink = x;
    }

    /** Computes within a span, and as long outside of it. */
    static void work(int number) {
        enter(number, 16 + number);
        inSpan();
        leave();
        outside();
    }

    static void inSpan() {
        spin();
    }

    static void outside() {
        spin();
    }

    static void astray() {
        nowhere();
        spin();
    }

    public static void main(String[] args) throws Exception {
        millis = Integer.parseInt(args[1]);
        System.loadLibrary(args[0]);
        Thread[] all = {new Thread(() -> work(1), "one"), new Thread(() -> work(2), "two"),
                        new Thread(TracerContext::astray, "astray"),
                        new Thread(TracerContext::outside, "without")};
        for (Thread t : all)
            t.start();
        for (Thread t : all)
            t.join();
        System.out.println("done");
    }
}
