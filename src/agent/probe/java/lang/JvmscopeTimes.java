// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.DontInline;
import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probes of cpu=times, which instrumented methods call. All state is in native memory
 * (capture/times/tree.h has the layout), so that a CPU timer's signal handler can read it and no
 * garbage collector is involved. Each thread, including virtual ones, owns a tree of calls; the
 * tree's context has the node of the innermost call.
 *
 * During a normal call nothing here may call an instrumented method; those of Thread and Unsafe are
 * not instrumented.
 *
 * The probes at entry are not inlined into their callers, because compiling the copies costs more
 * than they save (doc/cpu-times.md).
 */
public final class JvmscopeTimes {
    private static final Unsafe U = Unsafe.getUnsafe();

    // The layout is that of tree.h.
    private static final int SLOT_CONTEXT = 8, SLOT_OWN = 16, SLOT_SHIFT = 5, SLOT_BITS = 16;
    private static final int VIRTUAL_CONTEXT = 8, VIRTUAL_SHIFT = 4, VIRTUAL_BITS = 17, PROBES = 64;
    private static final int CONTEXT_ROOT = 8;
    private static final int METHOD = 0, MASK = 4, CONTEXT = 8, COUNT = 16, TABLE = 24;
    private static final int TOTAL = 64, STARTED = 72, SLOWEST = 80, PARENT = 88;
    private static final int BEYOND = -3;
    private static final int METHOD_BITS = 22, EMPTY = (1 << METHOD_BITS) - 1, NODE_SHIFT = 6;
    private static final long FREE = 1;

    private static final long SLOTS = constant(0), EETOP = constant(1), CARRIER = constant(2), VIRTUALS = constant(3),
            THREAD_ID = constant(4);

    private JvmscopeTimes() {
    }

    private static native long constant(int which);

    /**
     * Returns a new slot for a platform thread, or a common one if all slots are in use or nothing
     * is recorded.
     */
    private static native long newSlot(long eetop);

    /**
     * Adds a node's child for a method and returns it. Returns the node for calls beyond the limits
     * if there is no room.
     */
    private static native long newNode(long node, int method);

    /**
     * Returns a new context, which belongs to the virtual thread of this id from now on if the id is
     * not 0.
     */
    private static native long newContext(long thread);

    /** Frees a virtual thread's context. */
    private static native void freeContext(long thread, long context);

    /** From now on a context belongs to the virtual thread of this id, which had none. */
    private static native void keepContext(long thread, long context);

    /**
     * With clock=elapsed: ends the calls between the current node and the node whose parent is to
     * be current.
     */
    private static native void unwind(long context, long parent, long now);

    /** Makes the VM link the native methods now. */
    private static void bind() {
        newSlot(0);
        newNode(0, 0);
        freeContext(0, newContext(0));
        keepContext(0, 0);
        unwind(0, 0, 0);
    }

    @ForceInline
    private static long slot() {
        Thread thread = Thread.currentThread();
        long eetop = U.getLong(thread, EETOP);
        long slot = SLOTS + ((eetop * 0x9e3779b97f4a7c15L) >>> (64 - SLOT_BITS) << SLOT_SHIFT);
        return U.getLong(slot) == eetop ? slot : otherSlot(thread, eetop);
    }

    private static long otherSlot(Thread thread, long eetop) {
        if (eetop == 0) { // a virtual thread: a local variable could hold its former carrier
            Thread carrier = CARRIER != 0 ? (Thread) U.getObjectVolatile(thread, CARRIER) : null;
            eetop = carrier != null ? U.getLongVolatile(carrier, EETOP) : 0;
            if (eetop == 0)
                return newSlot(0);
        }
        long at = (eetop * 0x9e3779b97f4a7c15L) >>> (64 - SLOT_BITS);
        for (int probes = 0; probes < 64; probes++) {
            long slot = SLOTS + (at << SLOT_SHIFT), key = U.getLong(slot);
            if (key == eetop)
                return slot;
            if (key == FREE)
                break;
            at = at + 1 & (1L << SLOT_BITS) - 1;
        }
        return newSlot(eetop);
    }

    @ForceInline
    private static long child(long node, int method) {
        long entry = U.getLong(U.getLong(node + TABLE) + ((long) (method & U.getInt(node + MASK)) << 3));
        return ((int) entry & EMPTY) == method ? entry >>> METHOD_BITS << NODE_SHIFT : otherChild(node, method);
    }

    private static long otherChild(long node, int method) {
        if (U.getInt(node + METHOD) == BEYOND)
            return node;
        long table = U.getLong(node + TABLE);
        int mask = U.getInt(node + MASK);
        for (int i = 1; i <= mask; i++) {
            long entry = U.getLong(table + ((long) (method + i & mask) << 3));
            int found = (int) entry & EMPTY;
            if (found == method)
                return entry >>> METHOD_BITS << NODE_SHIFT;
            if (found == EMPTY)
                break;
        }
        return newNode(node, method);
    }

    /** Runs at entry. Returns the caller's node, which is passed to exit. */
    @DontInline
    public static long enter(int method) {
        long context = U.getLong(slot() + SLOT_CONTEXT);
        long caller = U.getLong(context);
        long node = child(caller, method);
        U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
        U.putOrderedLong(null, context, node);
        return caller;
    }

    /**
     * Runs at every return and when an exception leaves the method. A context of 0 belongs to a
     * session that has ended.
     */
    public static void exit(long caller) {
        long context = U.getLong(caller + CONTEXT);
        if (context != 0)
            U.putOrderedLong(null, context, caller);
    }

    /**
     * Runs where an exception is caught, because a constructor whose super() threw could not
     * restore the node.
     */
    public static void caught(long caller, int method) {
        long context = U.getLong(caller + CONTEXT);
        if (context != 0)
            U.putOrderedLong(null, context, child(caller, method));
    }

    /** Counts the calls of a method that is too small to be measured separately from its caller. */
    @DontInline
    public static void count(int method) {
        long node = child(U.getLong(U.getLong(slot() + SLOT_CONTEXT)), method);
        U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
    }

    @DontInline
    public static long enterTimed(int method) {
        long context = U.getLong(slot() + SLOT_CONTEXT);
        long caller = U.getLong(context);
        long node = child(caller, method);
        U.putLong(node + COUNT, U.getLong(node + COUNT) + 1);
        U.putLong(context, node);
        U.putLong(node + STARTED, System.nanoTime());
        return caller;
    }

    public static void exitTimed(long caller) {
        long now = System.nanoTime();
        long context = U.getLong(caller + CONTEXT);
        if (context == 0)
            return;
        long node = U.getLong(context);
        if (U.getLong(node + PARENT) != caller) {
            unwind(context, caller, now);
            return;
        }
        long took = now - U.getLong(node + STARTED);
        U.putLong(node + TOTAL, U.getLong(node + TOTAL) + took);
        if (took > U.getLong(node + SLOWEST))
            U.putLong(node + SLOWEST, took);
        U.putLong(context, caller);
    }

    /** Returns the context of the virtual thread of this id, or 0. */
    private static long virtualContext(long thread) {
        long at = (thread * 0x9e3779b97f4a7c15L) >>> (64 - VIRTUAL_BITS);
        for (int i = 0; i < PROBES; i++) {
            long entry = VIRTUALS + (at << VIRTUAL_SHIFT), found = U.getLong(entry);
            if (found == thread)
                return U.getLong(entry + VIRTUAL_CONTEXT);
            if (found == 0)
                break;
            at = at + 1 & (1L << VIRTUAL_BITS) - 1;
        }
        return 0;
    }

    /**
     * A virtual thread has been mounted. From now on its carrier's slot has its context. As long as
     * the thread is being mounted or unmounted, JVM TI's functions for its stack wait for ever, so
     * nothing here may call what other probes are in: no ThreadLocal, and no allocation.
     */
    public static void mounted() {
        Thread thread = Thread.currentThread();
        long slot = otherSlot(thread, U.getLong(thread, EETOP));
        if (U.getLong(slot) == 0)
            return; // the common one
        long id = U.getLong(thread, THREAD_ID), context = virtualContext(id);
        U.putLong(slot + SLOT_CONTEXT, context != 0 ? context : newContext(id));
    }

    /**
     * A virtual thread is about to be unmounted. If no call is in progress, its context is freed.
     */
    public static void unmounting() {
        Thread thread = Thread.currentThread();
        long slot = otherSlot(thread, U.getLong(thread, EETOP));
        long context = U.getLong(slot + SLOT_CONTEXT), carriers = U.getLong(slot + SLOT_OWN);
        if (context == carriers) {
            keepCarriers(slot, context, U.getLong(thread, THREAD_ID));
            return;
        }
        U.putLong(slot + SLOT_CONTEXT, carriers);
        if (U.getLong(context) == U.getLong(context + CONTEXT_ROOT))
            freeContext(U.getLong(thread, THREAD_ID), context);
    }

    /**
     * A virtual thread that was mounted when the slot was created has made calls in the carrier's
     * context. If calls are in progress, it keeps that context and the carrier gets a new one.
     */
    private static void keepCarriers(long slot, long context, long thread) {
        if (U.getLong(context) == U.getLong(context + CONTEXT_ROOT))
            return;
        long carriers = newContext(0);
        U.putLong(slot + SLOT_OWN, carriers);
        U.putLong(slot + SLOT_CONTEXT, carriers);
        keepContext(thread, context);
    }

    /** Sets another context for the calling thread, for calibration. Returns the previous one. */
    public static long show(long context) {
        long slot = slot(), before = U.getLong(slot + SLOT_CONTEXT);
        U.putLong(slot + SLOT_CONTEXT, context);
        return before;
    }

    private static int sink;

    @ForceInline
    private static int work(int x, int steps) {
        for (int i = 0; i < steps; i++)
            x = x * 31 + (x >>> 3);
        return x;
    }

    /**
     * Calibration: runs the probes of clock=cpu around empty calls. It is called often enough to be
     * compiled. Each round has a call within a call, because the inner probe must wait for the
     * stores of the outer one; calls by one caller alone would cost less than those of programs.
     */
    public static long calibrate(int method, int rounds, int steps) {
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i += 2) {
            long caller = enter(method);
            exit(enter(method));
            exit(caller);
        }
        return System.nanoTime() - start;
    }

    /** Calibration: runs the probe of small methods. */
    public static long calibrateCount(int method, int rounds, int steps) {
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i++)
            count(method);
        return System.nanoTime() - start;
    }

    /**
     * Calibration: runs the probes of clock=elapsed around some work. Returns the time of the
     * round, and in the upper half the part that the probes measured.
     */
    public static long calibrateTimed(int method, int rounds, int steps) {
        long node = child(U.getLong(U.getLong(slot() + SLOT_CONTEXT)), method);
        long before = U.getLong(node + TOTAL), start = System.nanoTime();
        int x = sink;
        for (int i = 0; i < rounds; i++) {
            long caller = enterTimed(method);
            x = work(x + i, steps);
            exitTimed(caller);
        }
        sink = x;
        return System.nanoTime() - start | U.getLong(node + TOTAL) - before << 32;
    }

    /** Returns the time of that work without probes. */
    public static long calibrateWork(int method, int rounds, int steps) {
        long start = System.nanoTime();
        int x = sink;
        for (int i = 0; i < rounds; i++)
            x = work(x + i, steps);
        sink = x;
        return System.nanoTime() - start;
    }
}
