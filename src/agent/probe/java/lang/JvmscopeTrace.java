// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probes of trace=. Each thread writes the arguments and results of its calls into a ring in
 * native memory (capture/trace/ring.h has the layout), which the agent's thread empties. When the
 * ring is full, calls are lost and counted as such; the thread never waits. Nothing here calls a
 * method that may itself be traced.
 *
 * enter begins a record and returns the address of its next value, or 0 if the call is not
 * recorded. Each arg writes one value and returns the next address. entered ends the record and
 * returns the number of the call, which is passed to exit and thrown.
 */
public final class JvmscopeTrace {
    private static final Unsafe U = Unsafe.getUnsafe();

    // The layout is that of capture/trace/ring.h.
    private static final int HEAD = 0, BASE = 8, CALLS = 16, OPEN = 24, SIZE = 32, ROOM = 36, INSIDE = 40, ASKED = 44,
            INDEX = 48, N_CHUNKS = 52, LOST = 56, LOST_SITES = 64, LOST_RESULTS = 72;
    private static final int TAIL = 128, CHUNKS = 192, DATA = 4096;
    private static final int CHUNK_BITS = 17;
    private static final long CHUNK = 1 << CHUNK_BITS, CHUNK_MEMORY = CHUNK + (48 << 10);
    private static final int RECORD = 40, READING = 32; // the size of a record without values, and a part of it
    /** The size of a record whose values took so long that it is worth reading the clock again. */
    private static final int MANY_VALUES = 128;
    private static final int RECORD_MAX = 48 << 10, SLOT_BITS = 16, CHARS_MAX = 64, NAME_MAX = 1024;
    /**
     * The room that is kept free: for a record with values, for the end of a call without its
     * result, and for such an end of each open call.
     */
    private static final int WITH_VALUES = 2 * RECORD_MAX, END = 1024, EACH_END = 48;
    private static final long NO_RING = 1;
    private static final int EXIT = -1, THROWN = -2, RENAMED = -3;

    private static final long SLOTS = constant(0), EETOP = constant(1), CARRIER = constant(2), TID = constant(3),
            THREAD_NAME = constant(4);

    /** The last name that was written into each ring, by the ring's index. */
    private static final Object[] names = new Object[1024];

    /**
     * The classes by number, in a hash table with open addressing by identity hash. The classes of
     * traced objects remain loaded until the trace ends.
     */
    private static final int CLASSES = 1 << 14;
    private static final Class<?>[] classes = new Class<?>[CLASSES];

    /**
     * The shapes (shapes.h) of objects by class number - 1; null: nothing is shown of them. An
     * element is set before that of the class.
     */
    private static final long[][] shown = new long[CLASSES][];
    // Kinds of shapes, as in shapes.h. JvmscopeContents has the others.
    private static final int FIELDS = 0, TO_STRING = -1, UNREADY = -2, VALUE = 1, NAME = 2, CLASS = 3, PARTS = 4,
            CHARS = 5, SUM = 6;
    // Why an object has no text, as in values.h.
    private static final int THREW = -2, SLOW = -3, NOT_CALLED = -4;
    private static final long OFFSET = 0xffffffffffffffL;
    /** The size of a record from which the contents of further objects are omitted. */
    private static final int SHOWN = 16 << 10, CONTENTS = 4 << 10;
    /**
     * The greatest depth of objects that are shown by their parts: an atomic may refer to itself.
     */
    private static final int DEEPEST = 4;
    /** The most elements shown of an array, a collection or a map. */
    private static final int ELEMENTS = 5;
    /** The most elements shown of the array in a number. */
    private static final int NUMBERS = 32;

    private JvmscopeTrace() {
    }

    private static native long constant(int which);

    private static native long newRing(long eetop);

    /**
     * Finds a class in the table, from a place on, or enters it with its shape. Returns its number,
     * or a number above CLASSES if there is no room. A virtual thread that waits for another thread
     * here stays on its carrier, as in ready(): if it left the carrier in the middle of a record,
     * other threads would write into the same ring.
     */
    private static native int enroll(Class<?> c, int at, Class<?>[] classes, long[][] shown);

    /**
     * Returns the shape of a class that was not linked when it was first seen, as a value itself,
     * and now has objects.
     */
    private static native long[] ready(Class<?> c, int number, long[][] shown);

    private static native long offset(int site, Object o);

    /**
     * Returns the place of a field in objects of a class: its type << 56 | its offset, or -1 if
     * there is no such field.
     */
    private static native long place(Class<?> c, int name);

    /**
     * Calls each native method once, and whatever initialises a class of the JDK, so that no probe
     * has to.
     */
    private static void bind() {
        "\u20ac".charAt(0); // StringUTF16
        Float.floatToRawIntBits(0);
        Double.doubleToRawLongBits(0);
        constant(0);
        newRing(0);
        enroll(null, 0, null, null);
        ready(null, 0, null);
        offset(-1, null);
        place(null, 0);
    }

    /** Forgets the classes, so that they can be unloaded. */
    private static void forget() {
        for (int i = 0; i < CLASSES; i++) {
            classes[i] = null;
            shown[i] = null;
            places[i] = null;
        }
        for (int i = 0; i < STATICS; i++)
            statics[i] = null;
        for (int i = 0; i < names.length; i++)
            names[i] = null;
    }

    /** As in paths.c. */
    private static final int NAMES = 256, STATICS = 64;

    /**
     * The values returned by place() by class number - 1 and number of a field's name; 0 if it was
     * not called yet.
     */
    private static final long[][] places = new long[CLASSES][];

    /**
     * The static fields that are named: their classes, which are set last, their places, and the
     * rest of the path after each field.
     */
    private static final Object[] statics = new Object[STATICS];
    private static final long[] staticPlaces = new long[STATICS];
    private static final int[][] staticRests = new int[STATICS][];

    private static long placeOf(Object o, int name) {
        Class<?> c = o.getClass();
        int number = number(c);
        if (number > CLASSES)
            return -1;
        long[] of = places[number - 1];
        if (of == null)
            places[number - 1] = of = new long[NAMES];
        long at = of[name];
        return at != 0 ? at : (of[name] = askPlace(c, name));
    }

    private static long askPlace(Class<?> c, int name) {
        long ring = asAgent();
        try {
            return place(c, name);
        } finally {
            asProgram(ring);
        }
    }

    /**
     * Marks the thread's calls as the agent's until asProgram(): what the agent calls in the VM may
     * run Java code, which must not write into the record that has begun. This may take long, so the
     * record that has begun will have the time of its values.
     */
    private static long asAgent() {
        long ring = ring();
        if (ring != 0)
            U.putInt(ring + INSIDE, 1);
        return ring;
    }

    private static void asProgram(long ring) {
        if (ring != 0) {
            U.putInt(ring + INSIDE, 0);
            U.putInt(ring + ASKED, 1);
        }
    }

    /** Stands for the object in a field that does not exist, or that is a number. */
    private static final Object NONE = new Object();

    private static Object inside(Object o, long at) {
        return at > 0 && at >>> 56 == 'L' ? U.getObject(o, at & OFFSET) : NONE;
    }

    /** Returns the place of a field of what step() returned; 0 for null. */
    private static long placeIn(Object o, int name) {
        return o == null ? 0 : o == NONE ? -1 : placeOf(o, name);
    }

    /** Returns the object in a field within a path, null, or NONE. */
    public static Object step(Object o, int name) {
        return o == null ? null : inside(o, placeIn(o, name));
    }

    /**
     * Writes the field at the end of a path: its number and type (0 if a field within the path was
     * null, 1 if there is no such field), then its value.
     */
    public static long path(long p, Object o, int path, int name) {
        return p == 0 ? 0 : pathEnd(p, o, path, placeIn(o, name));
    }

    public static long staticPath(long p, int path, int number) {
        if (p == 0)
            return 0;
        Object o = statics[number];
        long at = o == null ? -1 : staticPlaces[number];
        int[] rest = staticRests[number];
        for (int i = 0; at > 0 && i < rest.length; i++) {
            o = inside(o, at);
            at = placeIn(o, rest[i]);
        }
        return pathEnd(p, o, path, at);
    }

    private static long pathEnd(long p, Object o, int path, long at) {
        U.putInt(p, path);
        U.putInt(p + 4, at > 0 ? (int) (at >>> 56) : at == 0 ? 0 : 1);
        if (at <= 0)
            return p + 8;
        long offset = at & OFFSET;
        return value(p + 8, o, offset, (int) (at >>> 56), ELEMENTS);
    }

    private static final int SITE = 1 << 24, SITES = 1 << 14;

    /** The offsets of watched fields by site; 0 if not known yet, -1 if there is none. */
    private static final long[] offsets = new long[SITES];

    private static long begin(Object o, int site) {
        if (o == null)
            return 0;
        long offset = offsets[site];
        if (offset == 0)
            offsets[site] = offset = askOffset(site, o);
        return offset > 0 ? enter(1, SITE + site) : 0;
    }

    private static long askOffset(int site, Object o) {
        long ring = asAgent();
        try {
            return offset(site, o);
        } finally {
            asProgram(ring);
        }
    }

    private static long old(long p, Object o, int site, int type) {
        if (p == 0)
            return 0;
        p = arg(p, o);
        return value(p, o, offsets[site], type, ELEMENTS);
    }

    /** Writes the value of a field. most is the limit for an object's contents. */
    private static long value(long p, Object o, long at, int type, int most) {
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
            case '#':
                return numbers(p, U.getObject(o, at), NUMBERS);
            default:
                return object(p, U.getObject(o, at), most);
        }
    }

    /** Writes the length of an array of numbers and its first elements. */
    static long numbers(long p, Object a, int most) {
        return array(p, a, a == null ? 0 : length(a), most);
    }

    /** A watched field of o (the class, if the field is static) is about to be read. */
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
                return newRing(NO_RING); // this counts it
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
        long ring = newRing(eetop);
        if (ring != 0)
            names[U.getInt(ring + INDEX)] = null;
        return ring;
    }

    /** Writes the name of a platform thread, which calls this before it writes any record under it. */
    private static void renamed(long ring, Object name) {
        int index = U.getInt(ring + INDEX);
        Object before = names[index];
        names[index] = name; // begin() below does not call this again
        long p = name == null ? 0 : begin(ring, RENAMED, 0, allowed(ring, U.getInt(ring + ROOM)));
        if (p != 0)
            end(ring, text(p, (String) name, NAME_MAX));
        else
            names[index] = before;
    }

    /**
     * Returns the most unread bytes at which a record of a call may begin so that its end will also
     * have room.
     */
    @ForceInline
    private static long allowed(long ring, int room) {
        long ends = (U.getLong(ring + OPEN) + 1) * EACH_END, most = room >> 2;
        return room - WITH_VALUES - (ends < most ? ends : most);
    }

    @ForceInline
    private static long begin(long ring, int kind, long call, long allowed) {
        Thread thread = Thread.currentThread();
        if (THREAD_NAME != 0 && U.getLong(thread, EETOP) != 0) {
            Object name = U.getObject(thread, THREAD_NAME);
            if (name != names[U.getInt(ring + INDEX)])
                renamed(ring, name);
        }
        long head = U.getLong(ring + HEAD);
        if (head - U.getLongVolatile(null, ring + TAIL) > allowed)
            return 0;
        if ((head & CHUNK - 1) == 0 && !newChunk(ring, head))
            return 0;
        long p = U.getLong(ring + BASE) + head;
        U.putInt(ring + ASKED, 0);
        U.putInt(p + 4, kind);
        U.putLong(p + 8, System.nanoTime());
        U.putLong(p + 16, U.getLong(thread, TID));
        U.putLong(p + 24, call);
        U.putLong(p + READING, 0);
        return p + RECORD;
    }

    /**
     * Finds memory for the chunk of the stream that begins at head. If the stack overflows here, the
     * next record begins with another call of this, which finds the same chunk or one before it.
     */
    private static boolean newChunk(long ring, long head) {
        int number = (int) (head >> CHUNK_BITS) + 1, n = U.getInt(ring + N_CHUNKS);
        int read = (int) (U.getLongVolatile(null, ring + TAIL) >> CHUNK_BITS);
        for (int i = 0; i < n; i++) {
            long at = ring + CHUNKS + 4 * i;
            int there = U.getInt(at);
            if (there <= read || there == number) {
                U.putInt(at, number);
                U.putLong(ring + BASE, ring + DATA + i * CHUNK_MEMORY - head);
                return true;
            }
        }
        return false;
    }

    /** Returns where the record that has begun is. */
    @ForceInline
    private static long start(long ring) {
        return U.getLong(ring + BASE) + U.getLong(ring + HEAD);
    }

    @ForceInline
    private static void end(long ring, long p) {
        long head = U.getLong(ring + HEAD), start = U.getLong(ring + BASE) + head;
        if (p - start < RECORD || p - start > WITH_VALUES)
            return; // it belongs to another ring
        if (p - start > MANY_VALUES || U.getInt(ring + ASKED) != 0)
            U.putLong(start + READING, System.nanoTime() - U.getLong(start + 8));
        U.putInt(start, (int) (p - start));
        long next = head + (p - start);
        U.putOrderedLong(null, ring + HEAD, (next ^ head) < CHUNK ? next : next & -CHUNK);
    }

    /**
     * Evaluates a required test of the condition on a number before anything is written. op is as
     * in trace_condition.h, and the number that of its type, or the bits of a double.
     */
    @ForceInline
    public static int test(int wanted, long v, int op, long n) {
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
        return test(wanted, (long) v, op, number);
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
        if (ring == 0 || U.getInt(ring + INSIDE) != 0)
            return 0;
        long call = U.getLong(ring + CALLS) + 1;
        U.putLong(ring + CALLS, call);
        long p = begin(ring, method, call, allowed(ring, U.getInt(ring + ROOM)));
        if (p == 0)
            count(ring + (method < SITE ? LOST : LOST_SITES));
        return p;
    }

    private static void count(long counter) {
        U.putLong(counter, U.getLong(counter) + 1);
    }

    @ForceInline
    public static long entered(long p) {
        if (p == 0)
            return 0;
        long ring = ring(), start = start(ring);
        long call = U.getLong(start + 24);
        if (call != U.getLong(ring + CALLS)) { // another record was written in between
            count(ring + LOST);
            return 0;
        }
        if (U.getInt(start + 4) < SITE)
            U.putLong(ring + OPEN, U.getLong(ring + OPEN) + 1);
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
        return p == 0 ? 0 : object(p, o, ELEMENTS);
    }

    /**
     * Writes a reference: the class and identity, then the contents of the object. With most 0 the
     * object is inside another one, and its contents are only the sizes of arrays and collections
     * and the values of boxes and enums. If most is negative, the object is a part of another one,
     * at that depth.
     */
    static long object(long p, Object o, int most) {
        if (o == null) {
            U.putLong(p, 0);
            return p + 8;
        }
        Class<?> c = o.getClass();
        int number = number(c);
        U.putInt(p, System.identityHashCode(o));
        U.putInt(p + 4, number);
        p += 8;
        if (number > CLASSES)
            return p;
        if (c == String.class)
            return text(p, (String) o, CHARS_MAX);
        int length = length(o);
        if (length >= 0)
            return array(p, o, length, most > 0 && hasRoom(p, CONTENTS) ? most : 0);
        long[] shape = shape(c, number);
        return shape == null ? p : inside(p, o, shape, most);
    }

    static long[] shapeOf(Object o) {
        int number = number(o.getClass());
        return number > CLASSES ? null : shape(o.getClass(), number);
    }

    private static long[] shape(Class<?> c, int number) {
        long[] shape = shown[number - 1];
        return shape == null || shape[0] != UNREADY ? shape : readyShape(c, number);
    }

    private static long[] readyShape(Class<?> c, int number) {
        long ring = asAgent();
        try {
            return ready(c, number, shown);
        } finally {
            asProgram(ring);
        }
    }

    private static boolean hasRoom(long p, int bytes) {
        long ring = ring();
        return p - start(ring) < bytes;
    }

    private static long array(long p, Object a, int length, int most) {
        int n = length < most ? length : most;
        U.putInt(p, length);
        U.putInt(p + 4, n);
        p += 8;
        for (int i = 0; i < n; i++) {
            if (a instanceof Object[]) {
                p = object(p, ((Object[]) a)[i], 0);
            } else {
                U.putLong(p, primitive(a, i));
                p += 8;
            }
        }
        return p;
    }

    private static long primitive(Object a, int i) {
        if (a instanceof byte[])
            return ((byte[]) a)[i];
        if (a instanceof int[])
            return ((int[]) a)[i];
        if (a instanceof char[])
            return ((char[]) a)[i];
        if (a instanceof long[])
            return ((long[]) a)[i];
        if (a instanceof boolean[])
            return ((boolean[]) a)[i] ? 1 : 0;
        if (a instanceof double[])
            return Double.doubleToRawLongBits(((double[]) a)[i]);
        if (a instanceof short[])
            return ((short[]) a)[i];
        return Float.floatToRawIntBits(((float[]) a)[i]);
    }

    /** Writes what the class's shape selects (shapes.h). */
    private static long inside(long p, Object o, long[] shape, int most) {
        switch ((int) shape[0]) {
            case VALUE:
                return value(p, o, shape[1] & OFFSET, (int) (shape[1] >>> 56), 0);
            case NAME:
                return optionalText(p, (String) U.getObject(o, shape[1]));
            case CLASS:
                U.putLong(p, number((Class<?>) o));
                return p + 8;
            case PARTS:
                return fields(p, o, shape, most > -DEEPEST && hasRoom(p, SHOWN), most < 0 ? most - 1 : -1);
            case CHARS:
                return JvmscopeContents.chars(p, o, shape);
            case SUM:
                return shape[4] == 'D' ? arg(p, JvmscopeContents.sumOfDoubles(o, shape))
                        : arg(p, JvmscopeContents.sum(o, shape));
            case FIELDS:
            case TO_STRING:
                break;
            default:
                return JvmscopeContents.write(p, o, shape, most > 0 && hasRoom(p, CONTENTS) ? most : 0);
        }
        if (most <= 0)
            return p;
        boolean room = hasRoom(p, SHOWN);
        if (shape[0] == TO_STRING)
            return answer(p, room ? askText(o) : JvmscopeValues.NOT_CALLED);
        return fields(p, o, shape, room, 0);
    }

    /** Writes what JvmscopeValues.text() returned: a text, or a negative number as its length. */
    private static long answer(long p, Object s) {
        if (s instanceof String)
            return text(p, (String) s, CHARS_MAX);
        if (s instanceof String[]) {
            long next = text(p, ((String[]) s)[0], CHARS_MAX);
            U.putInt(p, THREW);
            return next;
        }
        U.putLong(p, (s == JvmscopeValues.SLOW ? SLOW : NOT_CALLED) & 0xffffffffL);
        return p + 8;
    }

    private static Object askText(Object o) {
        long ring = asAgent();
        try {
            return JvmscopeValues.text(o);
        } finally {
            asProgram(ring);
        }
    }

    /** Writes the number of fields, then their values. It is 0 if there is no room. */
    private static long fields(long p, Object o, long[] shape, boolean room, int most) {
        U.putLong(p, room ? shape.length - 1 : 0);
        p += 8;
        for (int i = 1; room && i < shape.length; i++)
            p = value(p, o, shape[i] & OFFSET, (int) (shape[i] >>> 56), most);
        return p;
    }

    private static long optionalText(long p, String s) {
        if (s != null)
            return text(p, s, CHARS_MAX);
        U.putLong(p, 0xffffffffL);
        return p + 8;
    }

    /**
     * Returns the length of an array, or -1 for any other object. It does not use Class.isArray(),
     * which is an ordinary method from JDK 25 on.
     */
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

    /** Writes the length, then the first characters, padded to eight bytes. */
    private static long text(long p, String s, int most) {
        int length = s.length(), n = length < most ? length : most;
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
        long ring = asAgent();
        try {
            return enroll(c, at, classes, shown);
        } finally {
            asProgram(ring);
        }
    }

    /**
     * Begins the end of a call. Returns its ring, which may differ from that of the call's
     * beginning, or 0 if there is none.
     */
    @ForceInline
    private static long ending() {
        long ring = ring();
        if (ring != 0) {
            long open = U.getLong(ring + OPEN);
            if (open > 0)
                U.putLong(ring + OPEN, open - 1);
            U.putInt(ring + INSIDE, 0); // if the stack overflowed before asProgram()
        }
        return ring;
    }

    /** Writes the end of a call whose result has no room. */
    private static void endBare(long ring, int kind, long call) {
        long p = begin(ring, kind, call, U.getInt(ring + SIZE) - END);
        count(ring + LOST_RESULTS);
        if (p != 0)
            end(ring, p);
    }

    @ForceInline
    public static void exit(long call) {
        if (call != 0) {
            long ring = ending(), p = ring != 0 ? begin(ring, EXIT, call, U.getInt(ring + SIZE) - END) : 0;
            if (p != 0)
                end(ring, p);
        }
    }

    @ForceInline
    public static void exit(int v, long call) {
        exit((long) v, call);
    }

    @ForceInline
    public static void exit(long v, long call) {
        if (call != 0) {
            long ring = ending(), p = ring != 0 ? begin(ring, EXIT, call, U.getInt(ring + SIZE) - END) : 0;
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
            long ring = ending(), p = ring != 0 ? begin(ring, EXIT, call, allowed(ring, U.getInt(ring + SIZE))) : 0;
            if (p != 0)
                end(ring, arg(p, v));
            else if (ring != 0)
                endBare(ring, EXIT, call);
        }
    }

    public static void thrown(Throwable t, long call) {
        if (call != 0) {
            long ring = ending(), p = ring != 0 ? begin(ring, THROWN, call, allowed(ring, U.getInt(ring + SIZE))) : 0;
            if (p != 0)
                end(ring, arg(p, t));
            else if (ring != 0)
                endBare(ring, THROWN, call);
        }
    }
}
