// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Costs a recorder as much as it can: threads that wait for one monitor, allocate and compute.
 * Burns SECONDS IDLE: until the thread that computes has had so much CPU time, besides IDLE threads
 * that do nothing. Prints "ready", and at the end "cpu NS allocated BYTES" of the thread that
 * computes, whose CPU time ends up in compute(), and of the bytes that it allocated in allocate().
 */
public class Burns {
    static final Object lock = new Object();
    static volatile long sink;
    static volatile boolean done;
    static Object kept;

    static void compute(long ns) {
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        while (bean.getCurrentThreadCpuTime() < ns)
            for (int i = 0; i < 10000; i++)
                sink = sink * 31 + i;
    }

    static void contend() {
        while (!done)
            synchronized (lock) {
                sink++;
            }
    }

    static long allocate() {
        long bytes = 0;
        while (!done)
            for (int i = 0; i < 1000; i++, bytes += 1016)
                kept = new byte[1000];
        return bytes;
    }

    static Thread start(Runnable run) {
        Thread t = new Thread(null, run, "burns", 1 << 17);
        t.setDaemon(true);
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        long ns = (long) (1e9 * Double.parseDouble(args[0]));
        for (int i = 0; i < Integer.parseInt(args[1]); i++)
            start(() -> {
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException e) {
                    sink++;
                }
            });
        System.out.println("ready");
        long[] figures = new long[2];
        Thread[] all = new Thread[5];
        for (int i = 2; i < all.length; i++)
            all[i] = start(() -> contend());
        all[0] = start(() -> {
            compute(ns);
            figures[0] = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            done = true;
        });
        all[1] = start(() -> figures[1] = allocate());
        for (Thread t : all)
            t.join();
        System.out.println("cpu " + figures[0] + " allocated " + figures[1]);
    }
}
