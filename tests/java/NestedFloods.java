// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Argument 1 threads call outer() once and wait, so that each has a part of the memory for calls.
 * Then for each line of the input main calls outer() as often as argument 2 says and prints "done".
 * outer() calls inner() twice.
 */
public class NestedFloods {
    static volatile int sum;

    static void inner(int n) {
        sum += n;
    }

    static void outer(int n) {
        inner(n);
        inner(n + 1);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]), calls = Integer.parseInt(args[1]);
        CountDownLatch called = new CountDownLatch(threads), end = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            Thread t = new Thread(() -> {
                outer(1);
                called.countDown();
                try {
                    end.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        called.await();
        System.out.println("ready");
        for (int c; (c = System.in.read()) >= 0;)
            if (c == '\n') {
                for (int i = 0; i < calls; i++)
                    outer(i);
                System.out.println("done");
            }
    }
}
