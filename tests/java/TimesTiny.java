// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * TimesTiny CALLS STEPS [MILLISECONDS]: calls two methods of a nanosecond or two so often, and does
 * so many steps in a heavy one. Prints the CPU nanoseconds of both parts, which are the truth where
 * there is no agent, and sleeps at the end.
 */
public class TimesTiny {
    static int tiny(int x) {
        return inner(x) + (x >>> 2) * 7 - (x ^ 0x55);
    }

    static int inner(int x) {
        return (x * 13 + (x >>> 4)) ^ x << 3;
    }

    static int heavy(int x, int steps) {
        for (int i = 0; i < steps; i++)
            x = x * 17 + (x >>> 5);
        return x;
    }

    static int loop(int calls) {
        int x = 1;
        for (int i = 0; i < calls; i++)
            x = tiny(x);
        return x;
    }

    public static void main(String[] args) throws InterruptedException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long start = threads.getCurrentThreadCpuTime();
        int x = loop(Integer.parseInt(args[0]));
        long middle = threads.getCurrentThreadCpuTime();
        x += heavy(x, Integer.parseInt(args[1]));
        long end = threads.getCurrentThreadCpuTime();
        System.out.println((middle - start) + " " + (end - middle) + (x == 42 ? " " : ""));
        if (args.length > 2)
            Thread.sleep(Long.parseLong(args[2]));
    }
}
