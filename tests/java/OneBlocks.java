// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * The thread "main" holds a monitor while it uses 400 ms of CPU time; the threads "blocked-0" to
 * "blocked-2" want it and do nothing else.
 */
public class OneBlocks {
    static volatile long sink;

    static synchronized void want() {
        sink++;
    }

    static synchronized void hold(Thread[] wanting) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (Thread t : wanting)
            t.start();
        for (Thread t : wanting)
            while (t.getState() != Thread.State.BLOCKED)
                Thread.yield();
        long end = threads.getCurrentThreadCpuTime() + 400_000_000;
        while (threads.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 1000; i++)
                sink += i;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] wanting = new Thread[3];
        for (int i = 0; i < wanting.length; i++)
            wanting[i] = new Thread(OneBlocks::want, "blocked-" + i);
        hold(wanting);
        for (Thread t : wanting)
            t.join();
    }
}
