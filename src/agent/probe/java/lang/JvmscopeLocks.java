// SPDX-License-Identifier: Apache-2.0
package java.lang;

import java.lang.ref.WeakReference;

/**
 * The probes of locks=, which run when a monitor is about to be entered, has been entered, or is
 * about to be released. A table shows whether the class of the object was requested. The table is
 * replaced as a whole when a class appears that is not in it, and it keeps no class alive.
 */
public final class JvmscopeLocks {
    private static final int LEAST = 128, CLASSES_MAX = 1 << 13, UNKNOWN = -1;

    /**
     * Two elements for each class, at the index of its hash or after it: a reference to the class,
     * and an array of the constant of its instances in the recording, and of that of its object.
     * Each constant is 0 if it was not requested, and UNKNOWN before it is needed.
     */
    private static volatile Object[] table = new Object[LEAST];

    private JvmscopeLocks() {
    }

    private static native long constant(Class<?> c, boolean object);

    private static native void arrive(int object);

    private static native void enter(long c, int object, int site);

    private static native void leave(long c, int object);

    /** Calls each native method once. */
    static void bind() {
        constant(null, false);
        arrive(0);
        enter(0, 0, 0);
        leave(0, 0);
        constantOf(Object.class);
        constantOf(new Object());
        forget();
    }

    private static void forget() {
        table = new Object[LEAST];
    }

    private static void put(Object[] to, Object key, Object value) {
        int mask = to.length - 1, i = System.identityHashCode(((WeakReference<?>) key).get()) << 1 & mask;
        while (to[i] != null)
            i = i + 2 & mask;
        to[i] = key;
        to[i + 1] = value;
    }

    private static long[] add(Class<?> c) {
        long[] constants = {UNKNOWN, UNKNOWN};
        Object[] from = table;
        int live = 1, size = LEAST;
        for (int i = 0; i < from.length; i += 2)
            if (from[i] != null)
                live++;
        while (size < live << 3)
            size <<= 1;
        if (live > CLASSES_MAX)
            size = LEAST;
        Object[] to = new Object[size];
        for (int i = 0; i < from.length && live <= CLASSES_MAX; i += 2)
            if (from[i] != null && ((WeakReference<?>) from[i]).get() != null)
                put(to, from[i], from[i + 1]);
        put(to, new WeakReference<Class<?>>(c), constants);
        table = to;
        return constants;
    }

    private static long[] constantsOf(Class<?> c) {
        Object[] t = table;
        for (int mask = t.length - 1, i = System.identityHashCode(c) << 1 & mask; t[i] != null; i = i + 2 & mask)
            if (((WeakReference<?>) t[i]).get() == c)
                return (long[]) t[i + 1];
        return add(c);
    }

    private static long constantOf(Object lock) {
        boolean object = lock instanceof Class;
        Class<?> c = object ? (Class<?>) lock : lock.getClass();
        long[] constants = constantsOf(c);
        int which = object ? 1 : 0;
        long constant = constants[which];
        return constant != UNKNOWN ? constant : (constants[which] = constant(c, object));
    }

    public static void arriving(Object lock) {
        try {
            if (constantOf(lock) != 0)
                arrive(System.identityHashCode(lock));
        } catch (Throwable e) {
            // the stack overflowed, memory ran out, or monitorenter had null
        }
    }

    public static void entered(Object lock, int site) {
        try {
            long c = constantOf(lock);
            if (c != 0)
                enter(c, System.identityHashCode(lock), site);
        } catch (Throwable e) {
            // the stack overflowed, or memory ran out
        }
    }

    public static void leaving(Object lock) {
        try {
            long c = constantOf(lock);
            if (c != 0)
                leave(c, System.identityHashCode(lock));
        } catch (Throwable e) {
            // the stack overflowed, memory ran out, or monitorexit had null
        }
    }
}
