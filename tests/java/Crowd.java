// SPDX-License-Identifier: Apache-2.0
import java.nio.file.Files;
import java.nio.file.Paths;

/** More busy threads than processors: each prints what it took, and how long it had no processor, by Linux's own count, in ns. */
public class Crowd {
    static long delay() {
        try {
            return Long.parseLong(new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat"))).trim().split(" ")[1]);
        } catch (Exception e) {
            return -1;
        }
    }

    static long work(long until) {
        long x = 1;
        while (System.nanoTime() < until)
            for (int i = 0; i < 10_000; i++)
                x = x * 6364136223846793005L + i;
        return x;
    }

    static volatile long sink;

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4 * Runtime.getRuntime().availableProcessors()];
        delay();
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                long begin = System.nanoTime(), before = delay();
                sink += work(begin + 600_000_000L);
                long after = delay(), end = System.nanoTime();
                synchronized (Crowd.class) {
                    System.out.println(Thread.currentThread().getName() + " " + (end - begin) + " " + (after - before));
                }
            }, "crowd-" + t);
            threads[t].start();
        }
        for (Thread thread : threads)
            thread.join();
    }
}
