// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Makes many requests: "fast N" on one thread, "virtual N" concurrently on N virtual threads, "open
 * N" that never end, or "alloc N" that allocate a MiB each, half of it on another thread, while a
 * third thread allocates for no request.
 */
public class RequestsMany {
    static long sum;

    static void quick(int i) {
        sum += i;
    }

    static void slow(int naps) throws InterruptedException {
        for (int i = 0; i < naps; i++)
            Thread.sleep(2);
    }

    static void endless(CountDownLatch here) throws InterruptedException {
        here.countDown();
        Thread.sleep(Long.MAX_VALUE);
    }

    static volatile Object last;

    static void fill() {
        for (int i = 0; i < 32; i++)
            last = new byte[(16 << 10) - 16];
    }

    /** Allocates one half itself, and the other half in a task that it hands over. */
    static void large(ExecutorService pool) throws Exception {
        fill();
        pool.submit(RequestsMany::fill).get();
    }

    static void allocate(int n) throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        Thread other = new Thread(() -> {
            for (int i = 0; i < n; i++)
                fill();
        });
        other.start();
        for (int i = 0; i < n; i++) {
            large(pool);
            fill(); // for no request
        }
        other.join();
        pool.shutdown();
    }

    static Thread virtual(Runnable task) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                .invoke(null, task);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        if (args[0].equals("fast")) {
            for (int i = 0; i < n; i++) {
                quick(i);
                if (i % 100000 == 99999)
                    slow(1);
            }
        } else if (args[0].equals("alloc")) {
            allocate(n);
        } else if (args[0].equals("virtual")) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                threads.add(virtual(() -> {
                    try {
                        slow(3);
                        slow(1);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }));
            }
            for (Thread t : threads)
                t.join();
        } else {
            CountDownLatch here = new CountDownLatch(n);
            for (int i = 0; i < n; i++) {
                Thread t = new Thread(() -> {
                    try {
                        endless(here);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
                t.setDaemon(true);
                t.start();
            }
            here.await();
        }
        System.out.println("done");
    }
}
