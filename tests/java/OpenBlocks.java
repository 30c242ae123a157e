// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Threads that are blocked at monitors. Arguments: "platform" or "virtual"; how often main holds a
 * monitor that three threads want, for 40 ms each time; how long, in ms, two threads are blocked
 * for which nobody ever leaves the monitor. The latter wait when "ready" is printed; 0: until the
 * input ends. Prints at the end how often threads have entered after a wait, for how many ms they
 * were blocked, for how many ms the two were, at least and at most, and the time.
 */
public class OpenBlocks {
    static class Shared {
    }

    static class Held {
    }

    static final Shared shared = new Shared();
    static final Held held = new Held();
    static long blocked, entered;

    static synchronized void add(long ns) {
        blocked += ns;
        entered++;
    }

    static void take() {
        long since = System.nanoTime();
        synchronized (shared) {
            add(System.nanoTime() - since);
        }
    }

    static void want() {
        synchronized (held) {
            throw new IllegalStateException("nobody leaves this monitor");
        }
    }

    static void hold(CountDownLatch begun) {
        synchronized (held) {
            begun.countDown();
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static Thread start(boolean virtual, Runnable body) throws Exception {
        if (virtual)
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                .invoke(null, body);
        Thread t = new Thread(body);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void awaitBlocked(List<Thread> threads) throws Exception {
        for (Thread t : threads)
            while (t.getState() != Thread.State.BLOCKED)
                Thread.sleep(1);
    }

    public static void main(String[] args) throws Exception {
        boolean virtual = args[0].equals("virtual");
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            List<Thread> threads = new ArrayList<>();
            synchronized (shared) {
                for (int n = 0; n < 3; n++)
                    threads.add(start(virtual, OpenBlocks::take));
                awaitBlocked(threads);
                Thread.sleep(40);
            }
            for (Thread t : threads)
                t.join();
        }
        CountDownLatch begun = new CountDownLatch(1);
        start(false, () -> hold(begun));
        begun.await();
        List<Thread> wanting = new ArrayList<>();
        long since = System.nanoTime();
        for (int n = 0; n < 2; n++)
            wanting.add(start(virtual, OpenBlocks::want));
        awaitBlocked(wanting);
        long both = System.nanoTime();
        System.out.println("ready");
        long ms = Long.parseLong(args[2]);
        if (ms > 0)
            Thread.sleep(ms);
        else
            while (System.in.read() >= 0)
                continue;
        long end = System.nanoTime();
        System.out.println(entered + " " + blocked / 1000000 + " " + 2 * (end - both) / 1000000
            + " " + 2 * (end - since) / 1000000 + " " + System.currentTimeMillis());
    }
}
