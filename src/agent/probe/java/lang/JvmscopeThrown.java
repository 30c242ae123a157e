// SPDX-License-Identifier: Apache-2.0
package java.lang;

import sun.misc.Unsafe;

/**
 * The probes of exceptions=counts. thrown runs before each throw in the code and counts the
 * exception as not seen to be caught; caught runs where a handler begins and where an exception
 * ends its thread. The handler identifies the throw by the last exception that its thread threw. An
 * exception that was thrown otherwise (by an instruction, the VM or native code) is counted in the
 * handler, by the innermost frame of its stack trace as the VM keeps it. The counts are in native
 * memory. Each site caches the counts that it has used, so that a count usually takes one array
 * look-up and one addition.
 */
public final class JvmscopeThrown {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long LAST = constant(0), TID = constant(1), BACKTRACE = constant(2);
    private static final int THREADS = 1 << 14, SITES = 1 << 16, KNOWN_MAX = 24;
    /**
     * The values of probes.c for an exception whose handler was not seen so far, and for one that
     * has no handler.
     */
    private static final int NOT_SEEN = 0, NOWHERE = -1;

    /**
     * For each site three elements per count: the exception's class, null or the class that threw,
     * and {what else identifies the count, its address}.
     */
    private static final Object[][] counts = new Object[SITES][];

    private JvmscopeThrown() {
    }

    private static native long constant(int which);

    /**
     * Returns the address of the count of a class from a throw to a handler, or 0 if there is none.
     */
    private static native long find(Class<?> c, int from, int to);

    /**
     * Returns that of an exception whose throw is not in the code, or is not known. The address
     * is negated if the agent's own frames are the first ones of its stack trace.
     */
    private static native long findImplicit(Class<?> c, Throwable t, int to);

    private static void bind() {
        constant(0);
        find(null, 0, 0);
        findImplicit(null, null, 0);
    }

    /** Forgets the classes, so that they can be unloaded. */
    private static void forget() {
        for (int i = 0; i < SITES; i++)
            counts[i] = null;
    }

    private static long known(int site, Class<?> c, Object by, long what) {
        Object[] known = counts[site];
        for (int i = 0; known != null && i < known.length; i += 3) {
            if (known[i] == c && known[i + 1] == by) {
                long[] row = (long[]) known[i + 2];
                if (row != null && row[0] == what)
                    return row[1];
            }
        }
        return 0;
    }

    private static long keep(int site, Class<?> c, Object by, long what, long address) {
        Object[] known = counts[site];
        int n = known == null ? 0 : known.length;
        if (n < KNOWN_MAX && address != 0) {
            Object[] more = new Object[n + 3];
            for (int i = 0; i < n; i++)
                more[i] = known[i];
            more[n] = c;
            more[n + 1] = by;
            more[n + 2] = new long[] {what, address};
            counts[site] = more;
        }
        return address;
    }

    private static long of(int site, Class<?> c, int from, int to) {
        long address = known(site, c, null, from);
        return address != 0 ? address : keep(site, c, null, from, find(c, from, to));
    }

    private static void add(long address, long n) {
        if (address != 0)
            U.getAndAddLong(null, address, n);
    }

    public static void thrown(Throwable t, int site) {
        if (t == null)
            return;
        try {
            long address = of(site, t.getClass(), site, NOT_SEEN);
            if (address == 0)
                return; // the handler must not subtract what was not counted
            long tid = U.getLong(Thread.currentThread(), TID), last = LAST + ((tid & THREADS - 1) << 4);
            U.putLong(last, tid << 24 | site);
            U.putInt(last + 8, System.identityHashCode(t));
            add(address, 1);
        } catch (Throwable e) {
            // the stack overflowed, or memory ran out
        }
    }

    /** A handler begins. With site 0 there is no handler, so the exception ends its thread. */
    public static void caught(Throwable t, int site) {
        try {
            long tid = U.getLong(Thread.currentThread(), TID), last = LAST + ((tid & THREADS - 1) << 4);
            long thrown = U.getLong(last);
            Class<?> c = t.getClass();
            if (thrown != 0 && thrown >>> 24 == tid && U.getInt(last + 8) == System.identityHashCode(t)) {
                int from = (int) thrown & 0xffffff;
                if (from == 0 && site == 0)
                    return; // a group of threads has called its parent
                U.putLong(last, site == 0 ? tid << 24 : 0);
                if (from != 0)
                    add(of(from, c, from, NOT_SEEN), -1);
                add(of(site, c, from, site == 0 ? NOWHERE : site), 1);
            } else {
                if (site == 0) {
                    U.putLong(last, tid << 24);
                    U.putInt(last + 8, System.identityHashCode(t));
                }
                add(implicit(t, c, site), 1);
            }
        } catch (Throwable e) {
            // the stack overflowed, or memory ran out
        }
    }

    private static long implicit(Throwable t, Class<?> c, int site) {
        long address = implicitOf(t, c, site);
        return address < 0 ? -address : address;
    }

    private static long implicitOf(Throwable t, Class<?> c, int site) {
        Object trace = BACKTRACE > 0 ? U.getObject(t, BACKTRACE) : null;
        if (!(trace instanceof Object[]) || ((Object[]) trace).length < 3)
            return findImplicit(c, t, site);
        Object methods = ((Object[]) trace)[0], places = ((Object[]) trace)[1], classes = ((Object[]) trace)[2];
        if (!(methods instanceof short[]) || !(places instanceof int[]) || !(classes instanceof Object[]))
            return findImplicit(c, t, site);
        Object by = ((Object[]) classes)[0];
        long what = (long) ((short[]) methods)[0] << 32 | ((int[]) places)[0] & 0xffffffffL;
        long address = by == null ? 0 : known(site, c, by, what);
        if (address != 0)
            return address;
        address = findImplicit(c, t, site);
        // A frame of a probe does not identify the place: the probe has many callers.
        return address < 0 ? address : keep(site, c, by, what, address);
    }
}
