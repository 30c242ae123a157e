// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Four threads end after each has made one object of a class that all of them found uninitialized,
 * and after a class failed.
 */
public class BegunTogether {
    static final CountDownLatch HERE = new CountDownLatch(4);

    static class Slow {
        long a;

        static {
            try {
                HERE.await();
                Thread.sleep(500); // until the other three wait for this class
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Fails {
        static {
            if (HERE.getCount() == 0)
                throw new IllegalStateException();
        }
    }

    static Object sink;

    static void makes() {
        HERE.countDown();
        sink = new Slow();
        try {
            sink = new Fails();
        } catch (LinkageError e) {
            // as it should be
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] all = new Thread[4];
        for (int i = 0; i < all.length; i++)
            (all[i] = new Thread(BegunTogether::makes, "maker " + i)).start();
        for (Thread t : all)
            t.join();
        System.out.println("done");
    }
}
