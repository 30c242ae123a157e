// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * Requests that load a class. The last one waits for the loader's lock of the class, which is a
 * plain Object.
 */
public class LoadLocked {
    static class Loader extends ClassLoader {
        static {
            registerAsParallelCapable();
        }

        Object lockOf(String name) {
            return getClassLoadingLock(name);
        }
    }

    static final Loader loader = new Loader();

    static void serve(String name) {
        try {
            loader.loadClass(name);
        } catch (ClassNotFoundException e) {
            // there is none
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20; i++)
            serve("Missing" + i);
        CountDownLatch held = new CountDownLatch(1);
        Thread worker = new Thread(() -> {
            try {
                held.await();
            } catch (InterruptedException e) {
                throw new Error(e);
            }
            serve("Locked");
        }, "worker");
        worker.start();
        synchronized (loader.lockOf("Locked")) {
            held.countDown();
            while (worker.getState() != Thread.State.BLOCKED)
                Thread.yield();
            Thread.sleep(100);
        }
        worker.join();
    }
}
