// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Threads whose names are parts of others or match them as patterns, each of which calls a
 * recursive method; and before them two of the same name, one of which runs during a call of the
 * other.
 */
public class TracedThreads {
    static final String[] NAMES = {"w-1", "a*b?[c]", "w-10", "aXXb1[c]", "w-11"};
    static volatile int sink;

    static int recur(int n) {
        sink++;
        return n == 0 ? 0 : other(n) + 1;
    }

    static int other(int n) {
        return recur(n - 1);
    }

    static void step() {
        sink++;
    }

    static void brief() {
        step();
    }

    static void hold(CountDownLatch started, CountDownLatch done) {
        started.countDown();
        try {
            done.await();
        } catch (InterruptedException e) {
            throw new Error(e);
        }
        step();
    }

    static void run(String name, Runnable what) throws InterruptedException {
        Thread t = new Thread(what, name);
        t.start();
        t.join();
    }

    public static void main(String[] args) throws InterruptedException {
        CountDownLatch started = new CountDownLatch(1), done = new CountDownLatch(1);
        Thread holder = new Thread(() -> hold(started, done), "same");
        holder.start();
        started.await();
        run("same", () -> brief());
        done.countDown();
        holder.join();
        for (String name : NAMES)
            run(name, () -> {
                for (int i = 0; i < 300; i++)
                    recur(9);
            });
    }
}
