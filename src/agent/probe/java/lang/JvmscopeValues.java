// SPDX-License-Identifier: Apache-2.0
package java.lang;

import sun.misc.Unsafe;

/**
 * The probes of tostring=: a thread of the agent calls toString() of the program's objects. The
 * program's thread polls for the result for a limited time, without waiting for a lock of the
 * program and without giving up its carrier. After that, toString() of the class is not called
 * again, whatever the call still does.
 */
public final class JvmscopeValues {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final int IDLE = 0, ASKED = 1, WORKING = 2, ANSWERED = 3;
    private static final long LIMIT_NS = 100_000_000;
    private static final int CHARS_MAX = 1000;

    private static final Object turn = new Object();
    private static volatile Thread helper;
    private static volatile boolean taken;
    private static volatile int state;
    private static volatile Object todo;
    private static volatile String done;

    private JvmscopeValues() {
    }

    /** Records that a class's toString() did not end in time, or threw. It is not called again. */
    private static native void failed(Class<?> c, String why);

    private static native boolean isFailed(Class<?> c);

    private static void bind() {
        failed(null, null);
        isFailed(null);
    }

    /** The loop of the helper thread, which runs until another helper replaces it. */
    private static void serve() {
        Thread me = Thread.currentThread();
        state = IDLE;
        helper = me;
        while (helper == me) {
            if (state != ASKED) {
                U.park(false, 100_000_000);
                continue;
            }
            state = WORKING;
            Object o = todo;
            String s;
            try {
                s = o.toString();
                if (s == null)
                    s = "null";
                if (s.length() > CHARS_MAX)
                    s = s.substring(0, CHARS_MAX);
            } catch (Throwable t) {
                s = null;
                if (helper == me)
                    failed(o.getClass(), "threw " + t.getClass().getName());
            }
            if (helper == me) {
                done = s;
                todo = null;
                state = ANSWERED;
            }
        }
    }

    private static void leave() {
        helper = null;
    }

    static String text(Object o) {
        Thread h = helper;
        if (h == null || taken || h == Thread.currentThread() || isFailed(o.getClass()))
            return null;
        synchronized (turn) {
            if (taken || helper != h)
                return null;
            taken = true;
        }
        String s = ask(h, o);
        taken = false;
        return s;
    }

    private static String ask(Thread h, Object o) {
        long until = System.nanoTime() + LIMIT_NS;
        done = null;
        todo = o;
        state = ASKED;
        U.unpark(h);
        while (state != ANSWERED) {
            if (System.nanoTime() - until > 0) {
                helper = null; // this helper is stuck; the agent starts another
                todo = null;
                failed(o.getClass(), "did not end in 100 ms");
                return null;
            }
        }
        state = IDLE;
        return done;
    }
}
