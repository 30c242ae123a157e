// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;
import java.util.concurrent.CountDownLatch;

/**
 * Threads that run for a fraction of the kernel's tick at a time: `Bursts N MS`. They begin when a
 * line is read, each uses MS of CPU in parts of 0.7 ms with pauses between them, and the sum of
 * what they used by their own clocks is printed in nanoseconds, without and with what they had
 * used before the line.
 */
public class Bursts {
    static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    static void burst() {
        long end = BEAN.getCurrentThreadCpuTime() + 700_000, sum = 0;
        while (BEAN.getCurrentThreadCpuTime() < end)
            for (int i = 0; i < 10_000; i++)
                sum += i * 7 % 5;
        sink += sum;
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        long each = Integer.parseInt(args[1]) * 1_000_000L;
        CountDownLatch begin = new CountDownLatch(1), done = new CountDownLatch(n),
                       end = new CountDownLatch(1);
        long[] used = new long[n], all = new long[n];
        for (int i = 0; i < n; i++) {
            int number = i;
            new Thread(() -> {
                try {
                    begin.await();
                    long before = BEAN.getCurrentThreadCpuTime();
                    Random random = new Random(
                            number); // a fixed period might keep in step with the kernel's
                    while (BEAN.getCurrentThreadCpuTime() - before < each) {
                        burst();
                        Thread.sleep(random.nextInt(4));
                    }
                    all[number] = BEAN.getCurrentThreadCpuTime();
                    used[number] = all[number] - before;
                    done.countDown();
                    end.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, "burst-" + i).start();
        }
        System.out.println("ready");
        System.in.read();
        begin.countDown();
        done.await();
        long sum = 0, whole = 0;
        for (int i = 0; i < n; i++) {
            sum += used[i];
            whole += all[i];
        }
        System.out.println(sum + " " + whole);
        System.in.read(); // the threads are still there: a recording may be stopped before they end
        end.countDown();
    }
}
