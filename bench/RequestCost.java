// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Requests that do nothing, and tasks that do nothing and are handed to a pool of one thread by a request: prints the CPU time of
 * their threads, in ns for each of them, as the median of some rounds.
 */
public class RequestCost {
    static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    static final int BATCH = 1000;
    static int sum;
    static volatile long worker;

    static int request(int n) {
        return n * 31 + (n >> 3);
    }

    /** Batches of tasks: the pool's thread waits until a batch is in the queue, so that both threads never want the queue's locks at once. */
    static int within(ExecutorService pool, int tasks, long[] spent) throws Exception {
        Runnable[] ready = new Runnable[tasks];
        for (int i = 0; i < tasks; i++)
            ready[i] = new Task();
        long before = threads.getCurrentThreadCpuTime() + threads.getThreadCpuTime(worker);
        for (int i = 0; i < tasks; i += BATCH) {
            CountDownLatch gate = new CountDownLatch(1), done = new CountDownLatch(1);
            pool.execute(() -> await(gate));
            for (int k = i; k < i + BATCH && k < tasks; k++)
                pool.execute(ready[k]);
            pool.execute(done::countDown);
            gate.countDown();
            done.await();
        }
        spent[0] = threads.getCurrentThreadCpuTime() + threads.getThreadCpuTime(worker) - before;
        return sum;
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static final class Task implements Runnable {
        public void run() {
            sum++;
        }
    }

    static double median(double[] of) {
        java.util.Arrays.sort(of);
        return of[of.length / 2];
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]), calls = Integer.parseInt(args[1]);
        double[] edge = new double[rounds], task = new double[rounds];
        ExecutorService pool = Executors.newFixedThreadPool(1);
        pool.submit(() -> worker = Thread.currentThread().getId()).get();
        long[] spent = new long[1];
        for (int round = 0; round < rounds; round++) {
            long before = threads.getCurrentThreadCpuTime();
            for (int i = 0; i < calls; i++)
                sum += request(i);
            edge[round] = (threads.getCurrentThreadCpuTime() - before) / (double) calls;
            within(pool, calls / 10, spent);
            task[round] = spent[0] / (double) (calls / 10);
        }
        System.out.printf(java.util.Locale.ROOT, "%.1f %.1f%n", median(edge), median(task));
        pool.shutdown();
    }
}
