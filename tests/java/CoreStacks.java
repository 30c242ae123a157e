// SPDX-License-Identifier: Apache-2.0
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that sleep, park, block at a monitor and run compiled code, each below methods of its
 * own; prints the stacks of those that wait as Java knows them ("stack NAME" and a line per frame,
 * innermost first), then "ready", and stays.
 */
public class CoreStacks {
    static final Object LOCK = new Object();
    static volatile double sink;
    static volatile int rounds;

    static double counted(int n) {
        double sum = 0;
        for (int i = 1; i < n; i++)
            sum += Math.sqrt(i) / i;
        return sum;
    }

    static void runs() {
        for (;; rounds++)
            sink += counted(5_000);
    }

    static int down(int n, int way) throws Exception {
        if (n > 0)
            return down(n - 1, way) + 1;
        if (way == 0)
            Thread.sleep(1_000_000);
        else if (way == 1)
            LockSupport.park(LOCK);
        else
            synchronized (LOCK) {
                return 1;
            }
        return 0;
    }

    static void waits(int way) {
        try {
            for (int i = 0; i < 20_000; i++)
                warm(i % 7);
            down(12, way);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    static int warm(int n) {
        return n > 0 ? warm(n - 1) + 1 : 0;
    }

    static void write(Thread t) {
        System.out.println("stack " + t.getName());
        for (StackTraceElement e : t.getStackTrace())
            System.out.println(e.getClassName() + "." + e.getMethodName() + ":" + Math.max(e.getLineNumber(), 0));
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4];
        synchronized (LOCK) {
            for (int i = 0; i < threads.length; i++) {
                int way = i;
                threads[i] = new Thread("core" + i) {
                    public void run() {
                        if (way < 3)
                            waits(way);
                        else
                            runs();
                    }
                };
                threads[i].setDaemon(true);
                threads[i].start();
            }
            Thread.State[] states = {Thread.State.TIMED_WAITING, Thread.State.WAITING, Thread.State.BLOCKED};
            for (int i = 0; i < 3; i++)
                while (threads[i].getState() != states[i])
                    Thread.sleep(10);
            while (rounds < 100_000) // compiled by then, with -Xbatch
                Thread.sleep(10);
            // With -Xbatch a thread stands still while its method is compiled again.
            CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
            long compiled;
            int before;
            do {
                compiled = compiler.getTotalCompilationTime();
                before = rounds;
                Thread.sleep(300);
            } while (rounds == before || compiler.getTotalCompilationTime() != compiled);
            for (int i = 0; i < 3; i++)
                write(threads[i]);
            System.out.println("ready");
            Thread.sleep(1_000_000);
        }
    }
}
