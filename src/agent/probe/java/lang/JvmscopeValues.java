// SPDX-License-Identifier: Apache-2.0
package java.lang;

import sun.misc.Unsafe;

/**
 * The probes of tostring=: a thread of the agent calls toString() of the program's objects. The
 * program's thread waits for the result for a limited time, without waiting for a lock of the
 * program and without giving up its carrier. A class whose toString() did not end in time is not
 * asked for a while (capture/trace/objects.c), whatever the call still does.
 */
public final class JvmscopeValues {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final int IDLE = 0, ASKED = 1, WORKING = 2, ANSWERED = 3, THREW = 4;
    private static final long LIMIT_NS = 100_000_000, TURN_NS = 2 * LIMIT_NS;
    private static final long SPIN_NS = 20_000, PAUSE_NS = 1_000_000;
    private static final int CHARS_MAX = 1000;

    /** What text() returns instead of a text. */
    static final Object SLOW = new Object(), NOT_CALLED = new Object();

    private static final Object turn = new Object();
    private static volatile Thread helper;
    /** Whether another helper is about to replace one that is stuck. */
    private static volatile boolean replaced;
    private static volatile boolean taken;
    private static volatile int state;
    private static volatile Object todo;
    private static volatile String done;

    private JvmscopeValues() {
    }

    /** Records that a class's toString() threw an exception, or did not end in time (null). */
    private static native void failed(Class<?> c, String thrown);

    /** Returns whether toString() of a class is not to be called now. */
    private static native boolean rests(Class<?> c);

    /** Sleeps, and neither gives up the carrier nor takes a permit or an interrupt of the thread. */
    private static native void pause(long ns);

    private static void bind() {
        failed(null, null);
        rests(null);
        pause(0);
    }

    /** The loop of the helper thread, which runs until another helper replaces it. */
    private static void serve() {
        Thread me = Thread.currentThread();
        state = IDLE;
        helper = me;
        replaced = false;
        while (helper == me) {
            if (state != ASKED) {
                U.park(false, 100_000_000);
                continue;
            }
            state = WORKING;
            Object o = todo;
            String s;
            int answer = ANSWERED;
            try {
                Thread.interrupted(); // which the last object may have left
                s = o.toString();
                if (s == null)
                    s = "null";
                if (s.length() > CHARS_MAX)
                    s = s.substring(0, CHARS_MAX);
            } catch (Throwable t) {
                answer = THREW;
                s = t.getClass().getName();
                if (helper == me)
                    failed(o.getClass(), s);
            }
            synchronized (turn) {
                if (helper == me) {
                    done = s;
                    todo = null;
                    state = answer;
                }
            }
        }
    }

    /** Nobody waits any more for a helper. */
    private static void leave() {
        replaced = false;
        helper = null;
    }

    /**
     * Returns the text of an object, the name of the exception's class as the only element of an
     * array, SLOW, or NOT_CALLED.
     */
    static Object text(Object o) {
        Class<?> c = o.getClass();
        if (helper == Thread.currentThread() || rests(c) || !take())
            return NOT_CALLED;
        Object s = rests(c) ? NOT_CALLED : ask(helper, o);
        taken = false;
        return s;
    }

    /** Waits until no other thread's object is asked. Returns false if that takes too long. */
    private static boolean take() {
        long since = System.nanoTime();
        do {
            if (helper != null && !taken) {
                synchronized (turn) {
                    if (helper != null && !taken) {
                        taken = true;
                        return true;
                    }
                }
            } else if (helper == null && !replaced) {
                return false;
            }
        } while (goesOn(since, TURN_NS));
        return false;
    }

    /** Waits for a moment. Returns false once the limit is over. */
    private static boolean goesOn(long since, long limit) {
        long ns = System.nanoTime() - since;
        if (ns >= limit)
            return false;
        if (ns > SPIN_NS)
            pause(ns >> 3 < PAUSE_NS ? ns >> 3 : PAUSE_NS);
        return true;
    }

    private static Object ask(Thread h, Object o) {
        long since = System.nanoTime();
        if (h == null)
            return NOT_CALLED; // the recording has ended
        todo = o;
        state = ASKED;
        U.unpark(h);
        while (state < ANSWERED)
            if (!goesOn(since, LIMIT_NS) && isStuck(h)) {
                failed(o.getClass(), null);
                return SLOW;
            }
        Object s = state == THREW ? new String[] {done} : done;
        done = null;
        state = IDLE;
        return s;
    }

    /** Gives up a helper that has not answered; the agent starts another one. */
    private static boolean isStuck(Thread h) {
        synchronized (turn) {
            if (state >= ANSWERED)
                return false;
            todo = null;
            if (helper == h) {
                replaced = true;
                helper = null;
            }
            return true;
        }
    }
}
