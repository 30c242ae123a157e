// SPDX-License-Identifier: Apache-2.0
/**
 * Uses half a second of CPU time, then ends the way that the argument names: exit, halt or throw.
 */
public class Ends {
    static volatile long sink;

    public static void main(String[] args) {
        java.lang.management.ThreadMXBean threads =
                java.lang.management.ManagementFactory.getThreadMXBean();
        while (threads.getCurrentThreadCpuTime() < 500_000_000L)
            for (int i = 0; i < 1000; i++)
                sink += i;
        System.out.println("before");
        switch (args[0]) {
        case "exit":
            System.exit(7);
        case "halt":
            Runtime.getRuntime().halt(7);
        default:
            throw new IllegalStateException("the end");
        }
    }
}
