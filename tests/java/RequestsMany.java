// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Many requests: "fast N" on one thread, "virtual N" on as many virtual threads at once, "open N" that never end. */
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

    static Thread virtual(Runnable task) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        if (args[0].equals("fast")) {
            for (int i = 0; i < n; i++) {
                quick(i);
                if (i % 100000 == 99999)
                    slow(1);
            }
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
