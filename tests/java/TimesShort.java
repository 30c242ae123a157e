// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * TimesShort THREADS STEPS AT_ONCE: so many threads, some at once, each do so many steps, and then
 * the main thread does a tenth of all of them. Begins after a line on its input. Prints the CPU
 * nanoseconds of the steps in threads, of those in the main thread, of all threads, and of these
 * what the threads had used before their first method of this class, and ends after another line.
 */
public class TimesShort {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final AtomicLong stepped = new AtomicLong(), lived = new AtomicLong();
    static final AtomicLong born = new AtomicLong();
    static volatile int sink;

    static double burn(long n) {
        double d = 1;
        for (long i = 0; i < n; i++)
            d = Math.sqrt(d + i);
        return d;
    }

    static double alone(long n) {
        double d = 1;
        for (long i = 0; i < n; i++)
            d = Math.sqrt(d + i);
        return d;
    }

    static void live(long n) {
        long start = THREADS.getCurrentThreadCpuTime();
        born.addAndGet(start);
        sink += (int) burn(n);
        stepped.addAndGet(THREADS.getCurrentThreadCpuTime() - start);
        lived.addAndGet(THREADS.getCurrentThreadCpuTime());
    }

    static void work(int n, final long steps, int atOnce) throws InterruptedException {
        long start = THREADS.getCurrentThreadCpuTime();
        Thread[] threads = new Thread[atOnce];
        for (int i = 0; i < n; i++) {
            threads[i % atOnce] = new Thread(() -> live(steps));
            threads[i % atOnce].start();
            if (i % atOnce == atOnce - 1)
                for (Thread t : threads)
                    t.join();
        }
        long middle = THREADS.getCurrentThreadCpuTime();
        sink += (int) alone(n * steps / 10);
        long end = THREADS.getCurrentThreadCpuTime();
        System.out.println(stepped + " " + (end - middle) + " " + (lived.get() + end - start)
                + " " + born);
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        System.out.println("ready");
        System.in.read();
        work(Integer.parseInt(args[0]), Long.parseLong(args[1]), Integer.parseInt(args[2]));
        System.in.read();
    }
}
