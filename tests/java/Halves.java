// SPDX-License-Identifier: Apache-2.0

/** Does other known amounts in its second half than in its first, with a pause in between. */
public class Halves {
    static final int EARLY = 30, LATE = 12, THROWN_EARLY = 20, THROWN_LATE = 7, BLOCKS = 5,
                     PAUSE_MS = 1200;
    static final Object LOCK = new Object(), IDLE = new Object();
    static final Thread MAIN = Thread.currentThread();
    static int thrown;
    static volatile boolean done, held;

    static void askEarly() {
        sleep(2);
    }

    static void askLate() {
        sleep(3);
    }

    /** The first half ends during this call. */
    static void pause() {
        sleep(PAUSE_MS);
    }

    static void fail(RuntimeException e) {
        try {
            throw e;
        } catch (IllegalStateException expected) {
            thrown++;
        }
    }

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void idle() {
        synchronized (IDLE) {
            while (!done) {
                try {
                    IDLE.wait();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
        }
    }

    static void hold() {
        synchronized (LOCK) {
            held = true;
            while (MAIN.getState() != Thread.State.BLOCKED)
                sleep(1);
            sleep(20);
        }
    }

    /** Waits for a lock that another thread holds. */
    static void block() throws InterruptedException {
        held = false;
        Thread holder = new Thread(Halves::hold, "holder");
        holder.start();
        while (!held)
            sleep(1);
        synchronized (LOCK) {
            thrown = 0;
        }
        holder.join();
    }

    public static void main(String[] args) throws InterruptedException {
        Thread idle = new Thread(Halves::idle, "idle");
        idle.start();
        for (int i = 0; i < EARLY; i++)
            askEarly();
        for (int i = 0; i < THROWN_EARLY; i++)
            fail(new IllegalStateException());
        pause();
        for (int i = 0; i < LATE; i++)
            askLate();
        for (int i = 0; i < THROWN_LATE; i++)
            fail(new IllegalStateException());
        for (int i = 0; i < BLOCKS; i++)
            block();
        synchronized (IDLE) {
            done = true;
            IDLE.notifyAll();
        }
        idle.join();
    }
}
