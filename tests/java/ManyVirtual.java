// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.ReentrantLock;

/**
 * Argument 1 virtual threads sleep and take a lock by turns. Every 50 ms the main thread prints the
 * milliseconds since the line before.
 */
public class ManyVirtual {
    static final ReentrantLock lock = new ReentrantLock();
    static long turns;

    static void live() {
        for (;;) {
            try {
                Thread.sleep(200);
            } catch (InterruptedException e) {
                return;
            }
            lock.lock();
            try {
                turns++;
            } finally {
                lock.unlock();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++)
            Thread.ofVirtual().start(ManyVirtual::live);
        for (long before = System.nanoTime();;) {
            Thread.sleep(50);
            long now = System.nanoTime();
            System.out.println((now - before) / 1000000);
            before = now;
        }
    }
}
