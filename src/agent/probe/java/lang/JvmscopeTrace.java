// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probes of trace=: each thread writes what its calls were given and gave back into a ring of native memory
 * (capture/trace_ring.h has the layout), which the agent's thread empties. A ring that is full loses calls and counts them; the
 * thread never waits. Nothing here calls a method that may be traced itself.
 *
 * enter begins a record and answers where it goes on, 0 when the call is not recorded; each arg writes one value and answers the
 * next place; entered ends the record and answers the number of the call, which exit and thrown take.
 */
public final class JvmscopeTrace {
    private static final Unsafe U = Unsafe.getUnsafe();

    // Layout, as in trace_ring.h.
    private static final int HEAD = 0, LOST = 8, CALLS = 16, TAIL = 64, DATA = 128;
    private static final int SIZE = 1 << 20, RECORD_MAX = 48 << 10, SLOT_BITS = 16, CHARS_MAX = 64;
    private static final int EXIT = -1, THROWN = -2;

    private static final long SLOTS = constant(0), EETOP = constant(1), CARRIER = constant(2), TID = constant(3);

    /** Classes by number: open addressing by identity hash. What is traced keeps its classes loaded until the trace ends. */
    private static final int CLASSES = 1 << 14;
    private static final Class<?>[] classes = new Class<?>[CLASSES];

    /** By class number - 1, as fields() answers; set before the class is. */
    private static final long[][] shown = new long[CLASSES][];
    private static final long TO_STRING = -1;
    private static final int ROOM = 16 << 10; // of a record's size for what is shown of its objects

    private JvmscopeTrace() {
    }

    private static native long constant(int which);

    private static native long newRing(long eetop);

    private static native void newClass(Class<?> c, int number);

    private static native long offset(int site, Object o);

    /** What show= and tostring= ask of a class: {TO_STRING}, or type << 56 | offset of each field; null for nothing. */
    private static native long[] fields(Class<?> c, int number);

    /** Calls each native method once. */
    private static void bind() {
        constant(0);
        newRing(0);
        newClass(null, 0);
        offset(-1, null);
        fields(null, 0);
    }

    /** Forgets the classes, so that they can be unloaded. */
    private static void forget() {
        synchronized (classes) {
            for (int i = 0; i < CLASSES; i++) {
                classes[i] = null;
                shown[i] = null;
            }
        }
    }

    private static final int SITE = 1 << 24, SITES = 1 << 14;

    /** Offsets of watched fields by site: 0 is not known yet, -1 is none. */
    private static final long[] offsets = new long[SITES];

    private static long begin(Object o, int site) {
        if (o == null)
            return 0;
        long offset = offsets[site];
        if (offset == 0)
            offsets[site] = offset = offset(site, o);
        return offset > 0 ? enter(1, SITE + site) : 0;
    }

    private static long old(long p, Object o, int site, int type) {
        if (p == 0)
            return 0;
        p = arg(p, o);
        long at = offsets[site];
        return type == 'L' ? arg(p, U.getObject(o, at)) : value(p, o, at, type);
    }

    private static long value(long p, Object o, long at, int type) {
        switch (type) {
            case 'Z':
                return arg(p, U.getBoolean(o, at) ? 1 : 0);
            case 'B':
                return arg(p, U.getByte(o, at));
            case 'C':
                return arg(p, U.getChar(o, at));
            case 'S':
                return arg(p, U.getShort(o, at));
            case 'I':
                return arg(p, U.getInt(o, at));
            case 'J':
                return arg(p, U.getLong(o, at));
            case 'F':
                return arg(p, U.getFloat(o, at));
            case 'D':
                return arg(p, U.getDouble(o, at));
            default:
                return reference(p, U.getObject(o, at));
        }
    }

    /** A watched field of o (its class, when it is static) is about to be read. */
    public static void read(Object o, int site, int type) {
        entered(old(begin(o, site), o, site, type));
    }

    /** A watched field is about to be written. */
    public static void wrote(Object o, int v, int site, int type) {
        entered(arg(old(begin(o, site), o, site, type), v));
    }

    public static void wrote(Object o, long v, int site, int type) {
        entered(arg(old(begin(o, site), o, site, type), v));
    }

    public static void wrote(Object o, float v, int site, int type) {
        entered(arg(old(begin(o, site), o, site, type), v));
    }

    public static void wrote(Object o, double v, int site, int type) {
        entered(arg(old(begin(o, site), o, site, type), v));
    }

    public static void wrote(Object o, Object v, int site, int type) {
        entered(arg(old(begin(o, site), o, site, type), v));
    }

    @ForceInline
    private static long ring() {
        Thread thread = Thread.currentThread();
        long eetop = U.getLong(thread, EETOP);
        long slot = SLOTS + ((eetop * 0x9e3779b97f4a7c15L) >>> (64 - SLOT_BITS) << 4);
        return U.getLong(slot) == eetop && eetop != 0 ? U.getLong(slot + 8) : otherRing(thread, eetop);
    }

    private static long otherRing(Thread thread, long eetop) {
        if (eetop == 0) { // a virtual thread writes into its carrier's ring
            Thread carrier = CARRIER != 0 ? (Thread) U.getObjectVolatile(thread, CARRIER) : null;
            eetop = carrier != null ? U.getLongVolatile(carrier, EETOP) : 0;
            if (eetop == 0)
                return 0;
        }
        long at = (eetop * 0x9e3779b97f4a7c15L) >>> (64 - SLOT_BITS);
        for (int probes = 0; probes < 64; probes++) {
            long slot = SLOTS + (at << 4), key = U.getLong(slot);
            if (key == eetop)
                return U.getLong(slot + 8);
            if (key == 0)
                break;
            at = at + 1 & (1L << SLOT_BITS) - 1;
        }
        return newRing(eetop);
    }

    @ForceInline
    private static long begin(long ring, int kind, long call) {
        long head = U.getLong(ring + HEAD), used = head - U.getLongVolatile(null, ring + TAIL);
        if (used < 0)
            used += SIZE;
        if (used > SIZE - 2 * RECORD_MAX) {
            U.putLong(ring + LOST, U.getLong(ring + LOST) + 1);
            return 0;
        }
        long p = ring + DATA + head;
        U.putInt(p + 4, kind);
        U.putLong(p + 8, System.nanoTime());
        U.putLong(p + 16, U.getLong(Thread.currentThread(), TID));
        U.putLong(p + 24, call);
        return p + 32;
    }

    @ForceInline
    private static void end(long ring, long p) {
        long head = U.getLong(ring + HEAD), start = ring + DATA + head;
        U.putInt(start, (int) (p - start));
        head += p - start;
        U.putOrderedLong(null, ring + HEAD, head >= SIZE ? 0 : head);
    }

    /** A required test of the condition on a number, before anything is written; ops as in trace_condition.h. */
    @ForceInline
    public static int test(int wanted, double v, int op, long number) {
        double n = Double.longBitsToDouble(number);
        boolean is;
        switch (op) {
            case 1:
                is = v == n;
                break;
            case 2:
                is = v != n;
                break;
            case 3:
                is = v < n;
                break;
            case 4:
                is = v <= n;
                break;
            case 5:
                is = v > n;
                break;
            case 6:
                is = v >= n;
                break;
            default:
                is = v != 0;
        }
        return is ? wanted : 0;
    }

    @ForceInline
    public static int test(int wanted, int v, int op, long number) {
        return test(wanted, (double) v, op, number);
    }

    @ForceInline
    public static int test(int wanted, long v, int op, long number) {
        return test(wanted, (double) v, op, number);
    }

    @ForceInline
    public static int test(int wanted, float v, int op, long number) {
        return test(wanted, (double) v, op, number);
    }

    @ForceInline
    public static long enter(int wanted, int method) {
        if (wanted == 0)
            return 0;
        long ring = ring();
        if (ring == 0)
            return 0;
        long call = U.getLong(ring + CALLS) + 1;
        U.putLong(ring + CALLS, call);
        return begin(ring, method, call);
    }

    @ForceInline
    public static long entered(long p) {
        if (p == 0)
            return 0;
        long ring = ring();
        long call = U.getLong(ring + DATA + U.getLong(ring + HEAD) + 24);
        end(ring, p);
        return call;
    }

    @ForceInline
    public static long arg(long p, int v) {
        if (p == 0)
            return 0;
        U.putLong(p, v);
        return p + 8;
    }

    @ForceInline
    public static long arg(long p, long v) {
        if (p == 0)
            return 0;
        U.putLong(p, v);
        return p + 8;
    }

    @ForceInline
    public static long arg(long p, float v) {
        return arg(p, Float.floatToRawIntBits(v));
    }

    @ForceInline
    public static long arg(long p, double v) {
        return arg(p, Double.doubleToRawLongBits(v));
    }

    @ForceInline
    public static long arg(long p, Object o) {
        if (p == 0)
            return 0;
        if (o == null) {
            U.putLong(p, 0);
            return p + 8;
        }
        Class<?> c = o.getClass();
        int number = number(c);
        U.putInt(p, System.identityHashCode(o));
        U.putInt(p + 4, number);
        p += 8;
        if (c == String.class)
            return text(p, (String) o);
        int length = length(o);
        if (length >= 0) {
            U.putLong(p, length);
            return p + 8;
        }
        return number > CLASSES || shown[number - 1] == null ? p : inside(p, o, shown[number - 1]);
    }

    /** A reference without what is inside the object. */
    private static long reference(long p, Object o) {
        if (o == null) {
            U.putLong(p, 0);
            return p + 8;
        }
        Class<?> c = o.getClass();
        U.putInt(p, System.identityHashCode(o));
        U.putInt(p + 4, number(c));
        p += 8;
        if (c == String.class)
            return text(p, (String) o);
        int length = length(o);
        if (length < 0)
            return p;
        U.putLong(p, length);
        return p + 8;
    }

    /** How many fields follow, then their values; or the text of toString(), -1 for none. */
    private static long inside(long p, Object o, long[] fields) {
        long ring = ring(), start = ring + DATA + U.getLong(ring + HEAD);
        boolean room = p - start < ROOM;
        if (fields[0] == TO_STRING) {
            String s = room ? JvmscopeValues.text(o) : null;
            if (s != null)
                return text(p, s);
            U.putLong(p, 0xffffffffL);
            return p + 8;
        }
        U.putLong(p, room ? fields.length : 0);
        p += 8;
        for (int i = 0; room && i < fields.length; i++)
            p = value(p, o, fields[i] & 0xffffffffffffffL, (int) (fields[i] >>> 56));
        return p;
    }

    /** Of an array, else -1. Not by Class.isArray(), which from JDK 25 on is a method like others. */
    private static int length(Object a) {
        if (a instanceof Object[])
            return ((Object[]) a).length;
        if (a instanceof byte[])
            return ((byte[]) a).length;
        if (a instanceof int[])
            return ((int[]) a).length;
        if (a instanceof char[])
            return ((char[]) a).length;
        if (a instanceof long[])
            return ((long[]) a).length;
        if (a instanceof boolean[])
            return ((boolean[]) a).length;
        if (a instanceof double[])
            return ((double[]) a).length;
        if (a instanceof short[])
            return ((short[]) a).length;
        return a instanceof float[] ? ((float[]) a).length : -1;
    }

    /** The length, then the first characters, padded to eight bytes. */
    private static long text(long p, String s) {
        int length = s.length(), n = length < CHARS_MAX ? length : CHARS_MAX;
        U.putInt(p, length);
        U.putInt(p + 4, n);
        p += 8;
        for (int i = 0; i < n; i += 4, p += 8) {
            long four = s.charAt(i);
            for (int k = 1; k < 4 && i + k < n; k++)
                four |= (long) s.charAt(i + k) << 16 * k;
            U.putLong(p, four);
        }
        return p;
    }

    @ForceInline
    private static int number(Class<?> c) {
        int at = System.identityHashCode(c) & CLASSES - 1;
        return classes[at] == c ? at + 1 : otherNumber(c, at);
    }

    private static int otherNumber(Class<?> c, int at) {
        synchronized (classes) {
            for (int i = 0; i < 32; i++, at = at + 1 & CLASSES - 1) {
                if (classes[at] == c)
                    return at + 1;
                if (classes[at] == null) {
                    newClass(c, at + 1);
                    shown[at] = fields(c, at + 1);
                    classes[at] = c;
                    return at + 1;
                }
            }
        }
        return CLASSES + 1;
    }

    @ForceInline
    public static void exit(long call) {
        if (call != 0) {
            long ring = ring(), p = ring != 0 ? begin(ring, EXIT, call) : 0;
            if (p != 0)
                end(ring, p);
        }
    }

    @ForceInline
    public static void exit(int v, long call) {
        if (call != 0) {
            long ring = ring(), p = ring != 0 ? begin(ring, EXIT, call) : 0;
            if (p != 0)
                end(ring, arg(p, v));
        }
    }

    @ForceInline
    public static void exit(long v, long call) {
        if (call != 0) {
            long ring = ring(), p = ring != 0 ? begin(ring, EXIT, call) : 0;
            if (p != 0)
                end(ring, arg(p, v));
        }
    }

    @ForceInline
    public static void exit(float v, long call) {
        exit(Float.floatToRawIntBits(v), call);
    }

    @ForceInline
    public static void exit(double v, long call) {
        exit(Double.doubleToRawLongBits(v), call);
    }

    @ForceInline
    public static void exit(Object v, long call) {
        if (call != 0) {
            long ring = ring(), p = ring != 0 ? begin(ring, EXIT, call) : 0;
            if (p != 0)
                end(ring, arg(p, v));
        }
    }

    public static void thrown(Throwable t, long call) {
        if (call != 0) {
            long ring = ring(), p = ring != 0 ? begin(ring, THROWN, call) : 0;
            if (p != 0)
                end(ring, arg(p, t));
        }
    }
}
