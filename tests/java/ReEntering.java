// SPDX-License-Identifier: Apache-2.0

/**
 * Two threads that have been notified and wait to get their monitor back, which main holds: it has
 * left the monitor once, so that one of them has woken up, and was faster than that one. Argument:
 * "platform" or "virtual". Prints "ready"; at a line of its input main leaves the monitor, waits
 * until the threads have got it, prints "left" and for how many ms main has held the monitor since
 * "ready", and the threads compute until the input ends.
 */
public class ReEntering {
    static final class Bell {
        int waiting, back;
        volatile boolean over;

        void listen() {
            synchronized (this) {
                waiting++;
                try {
                    wait();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                back++;
            }
            while (!over)
                continue;
        }

        synchronized int count() {
            return waiting + back;
        }

        void until(int n) throws InterruptedException {
            while (count() < n)
                Thread.sleep(1);
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

    public static void main(String[] args) throws Exception {
        for (boolean done = false; !done;) {
            Bell bell = new Bell();
            Thread[] threads = new Thread[2];
            for (int i = 0; i < threads.length; i++)
                threads[i] = start(args[0].equals("virtual"), bell::listen);
            bell.until(2);
            long since = 0;
            synchronized (bell) {
                bell.notifyAll();
            }
            synchronized (bell) {
                done = bell.back == 0;
                for (Thread t : threads)
                    while (done && t.getState() != Thread.State.BLOCKED)
                        Thread.sleep(1);
                since = System.nanoTime();
                if (done) {
                    System.out.println("ready");
                    System.in.read();
                }
            }
            bell.until(4);
            if (done) {
                System.out.println("left " + (System.nanoTime() - since) / 1000000);
                while (System.in.read() >= 0)
                    continue;
            }
            bell.over = true;
        }
    }
}
