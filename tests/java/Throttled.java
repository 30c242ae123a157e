// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;

/**
 * Throttled MS N: after a line of its input serves N requests, each of which computes for MS
 * milliseconds of CPU time. Prints how long they took together, and how much CPU time, in ns.
 */
public class Throttled
{
    private static volatile long sink;

    public static void serve(long ns)
    {
        long began = cpu();
        while (cpu() - began < ns)
            for (int i = 0; i < 10_000; i++)
                sink += i * sink ^ i;
    }

    private static long cpu()
    {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] args) throws Exception
    {
        serve(50_000_000);
        System.out.println("ready");
        System.in.read();
        long began = System.nanoTime(), used = cpu();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            serve(Long.parseLong(args[0]) * 1_000_000);
            Thread.sleep(1);
        }
        System.out.println((System.nanoTime() - began) + " " + (cpu() - used));
    }
}
