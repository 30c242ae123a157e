// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CyclicBarrier;

/**
 * Known bytes, allocated by threads that follow each other, and by threads whose buffers
 * collections take away half used.
 */
public class AllocThreads {
    static final int SHORT = 4000, LONG = 100, AT_ONCE = 20, ROUNDS = 100, OBJECTS = 110, ROUND_OBJECTS = 60, BYTES = 1000;
    static volatile Object last;

    static void briefly() {
        for (int i = 0; i < OBJECTS; i++)
            last = new byte[BYTES];
    }

    static void round() {
        for (int i = 0; i < ROUND_OBJECTS; i++)
            last = new byte[BYTES];
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < SHORT; i += AT_ONCE)
            run(new Thread[AT_ONCE], AllocThreads::briefly);
        CyclicBarrier together = new CyclicBarrier(LONG);
        run(new Thread[LONG], () -> {
            try {
                for (int i = 0; i < ROUNDS; i++) {
                    round();
                    together.await();
                }
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    static void run(Thread[] threads, Runnable what) throws InterruptedException {
        for (int i = 0; i < threads.length; i++)
            (threads[i] = new Thread(what)).start();
        for (Thread t : threads)
            t.join();
    }
}
