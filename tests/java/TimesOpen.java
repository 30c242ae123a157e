// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Daemons wait to the end of the program, one without having done anything and one after a task;
 * main works for 200 ms.
 */
public class TimesOpen {
    static final LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>();

    static void works(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
            continue;
    }

    static void waitsForEver() {
        synchronized (queue) {
            try {
                queue.wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void serves() {
        for (;;)
            try {
                queue.take();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
    }

    static Thread daemon(Runnable body) {
        Thread t = new Thread(body);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void until(Thread t) throws InterruptedException {
        while (t.getState() != Thread.State.WAITING)
            Thread.sleep(1);
    }

    public static void main(String[] args) throws Exception {
        Thread waits = daemon(TimesOpen::waitsForEver), serves = daemon(TimesOpen::serves);
        until(waits);
        until(serves);
        queue.put("a task");
        Thread.sleep(20);
        until(serves);
        for (int i = 0; i < 20; i++)
            works(10);
        Thread.sleep(500);
    }
}
