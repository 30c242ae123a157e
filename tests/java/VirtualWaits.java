// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that wait for each other by java.util.concurrent: a lock, a semaphore, a queue,
 * a latch, and for time alone.
 */
public class VirtualWaits {
    static final int N = 20;

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        return Thread.ofVirtual().name(name).start(() -> {
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
    }

    public static void main(String[] args) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Semaphore two = new Semaphore(2);
        CountDownLatch latch = new CountDownLatch(N);
        LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < N; i++) {
            all.add(start("L" + i, () -> {
                lock.lock();
                try {
                    Thread.sleep(5);
                } finally {
                    lock.unlock();
                }
                latch.countDown();
            }));
            all.add(start("S" + i, () -> {
                two.acquire();
                Thread.sleep(7);
                two.release();
                queue.put(1);
            }));
        }
        all.add(start("Q", () -> {
            for (int i = 0; i < N; i++)
                queue.take();
        }));
        all.add(start("D", latch::await));
        all.add(start("T", () -> new Semaphore(0).tryAcquire(30, TimeUnit.MILLISECONDS)));
        for (Thread t : all)
            t.join();
    }
}
