// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * So many virtual threads sleep without a carrier, the first argument, for so many ms, the second.
 * Prints "asleep" when they do, and at the end for how many ms they slept, all together.
 */
public class WallVirtual {
    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        long ms = Long.parseLong(args[1]);
        AtomicLong slept = new AtomicLong();
        CountDownLatch asleep = new CountDownLatch(n);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < n; i++)
            all.add(Thread.ofVirtual().start(() -> {
                long began = System.nanoTime();
                asleep.countDown();
                try {
                    Thread.sleep(ms);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                slept.addAndGet(System.nanoTime() - began);
            }));
        asleep.await();
        System.out.println("asleep");
        for (Thread t : all)
            t.join();
        System.out.println(slept.get() / 1000000);
    }
}
