// SPDX-License-Identifier: Apache-2.0
package java.lang;

import java.lang.ref.WeakReference;
import jvmscope.Carrier;
import jvmscope.DontInline;
import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probes of exact allocation counts. Each platform thread owns an array of counters in native
 * memory (capture/alloc/alloc.h has the layout), which is found by the address of its JavaThread. A
 * virtual thread counts in the array of its carrier, which it cannot leave within a probe. So no
 * counter is shared and no count is lost. When a counter reaches a value that the agent sets, the
 * probe calls the agent to walk the stack.
 *
 * Nothing here may allocate, or call anything that does. The probes themselves are not forced into
 * their callers: C2 inlines them where the code is hot, and C1 would spend more time on compiling
 * the copies than they save.
 */
public final class JvmscopeSites {
    private static final Unsafe U = Unsafe.getUnsafe();

    // The layout is that of alloc.h.
    private static final int SLOT_COUNTERS = 8, SLOT_EXPECTED = 24, SLOT_SHIFT = 5, SLOT_BITS = 16, POINT_SHIFT = 4,
            NEXT = 8, BYTES = 16;
    private static final int CELL_OWNER = 24, CELL_SHIFT = 5;
    /**
     * A number of elements, a power of two. Larger arrays, and those that there is no room for, are
     * counted after the instruction.
     */
    private static final int LARGE = 1 << 16;
    private static final long FREE = 1;

    private static final long SLOTS = constant(0), EETOP = constant(1), MASK = constant(2);
    private static final long HEAD1 = constant(3) + MASK, HEAD2 = constant(4) + MASK, HEAD4 = constant(5) + MASK;
    private static final long HEAD8 = constant(6) + MASK, HEAD = constant(7) + MASK;
    private static final int SHIFT = (int) constant(8);
    /** The address of alloc_follow in alloc.h, which may change from one recording to the next. */
    private static final long FOLLOW = constant(9), CELLS = constant(10), PICKING = constant(11);

    // Counters of the objects that calls return, by place and class: (place + 1) << 32 | counter,
    // or 0 for no counter. Native code adds them.
    private static final int TYPES_SIZE = 1 << 14, TYPES_PROBES = 8;
    private static final WeakReference<?>[] TYPES = new WeakReference<?>[TYPES_SIZE];
    private static final long[] PLACES = new long[TYPES_SIZE];

    private JvmscopeSites() {
    }

    private static native long constant(int which);

    /**
     * Returns the slot of a thread that has none, or that must call the agent before it continues.
     */
    private static native long newSlot(long eetop);

    /**
     * Returns the counter of a place whose cell no thread owns. This is the cell, which the calling
     * thread owns from now on.
     */
    private static native long own(int point, long eetop);

    /** Counts the object here if it is the one that the VM has reported. */
    private static native void attend(Object o);

    /**
     * Walks the stack. Returns false if the object will not be created because its class could not
     * be initialised.
     */
    private static native boolean sampleStack(long counter, int point, Class<?> type);

    /** Counts an object that has no counter. */
    private static native void other(Object o, int point);

    /**
     * Makes a counter for objects of this class at a place. Its entry will be at index from or
     * after it. Returns -1 if there is no room.
     */
    private static native int place(Object o, Class<?> type, int point, int from);

    private static native void arrays(Object o, int point, int dimensions);

    private static native void pick(Object o, int point);

    private static native void hold(Object o, int point);

    private static void bind() {
        pick(null, -1);
        hold(null, -1);
        newSlot(0);
        own(0, 0);
        attend(null);
        sampleStack(0, 0, null);
        other(null, 0);
        place(null, null, 0, 0);
        arrays(null, 0, 0);
    }

    @ForceInline
    private static long home(long eetop) {
        return SLOTS + ((eetop * 0x9e3779b97f4a7c15L) >>> (64 - SLOT_BITS) << SLOT_SHIFT);
    }

    @ForceInline
    private static long slot() {
        long eetop = U.getLong(Carrier.carrier(), EETOP);
        long slot = home(eetop);
        return U.getLong(slot) == eetop ? slot : otherSlot(eetop, slot);
    }

    /** Returns the counter of a place, whichever thread owns its cell. */
    private static long counter(int point) {
        long owner = U.getLong(CELLS + ((long) point << CELL_SHIFT) + CELL_OWNER),
                eetop = U.getLong(Carrier.carrier(), EETOP);
        if (owner == eetop)
            return CELLS + ((long) point << CELL_SHIFT);
        if (owner == 0)
            return own(point, eetop);
        return U.getLong(slot() + SLOT_COUNTERS) + ((long) point << POINT_SHIFT);
    }

    private static long otherSlot(long eetop, long slot) {
        long end = SLOTS + (1L << SLOT_BITS + SLOT_SHIFT);
        for (int probes = 0; probes < 64; probes++) {
            long key = U.getLong(slot);
            if (key == eetop)
                return slot;
            if (key == FREE)
                break;
            slot += 1 << SLOT_SHIFT;
            if (slot == end)
                slot = SLOTS;
        }
        return newSlot(eetop);
    }

    /**
     * Runs before new. It has one slow path and one fast path: the values that the JIT must keep
     * across two calls would slow down the fast path.
     */
    public static void made(Class<?> type, int point) {
        long cell = CELLS + ((long) point << CELL_SHIFT), n = U.getLong(cell);
        if (U.getLong(cell + CELL_OWNER) == U.getLong(Carrier.carrier(), EETOP) && n < U.getLong(cell + NEXT))
            U.putLong(cell, n + 1);
        else
            madeElsewhere(type, point);
    }

    @DontInline
    private static void madeElsewhere(Class<?> type, int point) {
        long at = counter(point);
        long n = U.getLong(at);
        if (n < U.getLong(at + NEXT) || sampleStack(at, point, type))
            U.putLong(at, n + 1);
    }

    private static void array(long size, int length, int point) {
        long cell = CELLS + ((long) point << CELL_SHIFT), n = U.getLong(cell);
        if (U.getLong(cell + CELL_OWNER) == U.getLong(Carrier.carrier(), EETOP) && n < U.getLong(cell + NEXT)
            && (length & ~(LARGE - 1)) == 0) {
            U.putLong(cell, n + 1);
            U.putLong(cell + BYTES, U.getLong(cell + BYTES) + (size & ~MASK));
        } else {
            arrayElsewhere(size, length, point);
        }
    }

    @DontInline
    private static void arrayElsewhere(long size, int length, int point) {
        if (length >= 0 && length < LARGE)
            count(size, point);
    }

    @DontInline
    private static void count(long size, int point) {
        long at = counter(point);
        long n = U.getLong(at);
        if (n >= U.getLong(at + NEXT))
            sampleStack(at, point, null);
        U.putLong(at, n + 1);
        U.putLong(at + BYTES, U.getLong(at + BYTES) + (size & ~MASK));
    }

    @ForceInline
    public static void array1(int length, int point) {
        array(HEAD1 + length, length, point);
    }

    @ForceInline
    public static void array2(int length, int point) {
        array(HEAD2 + ((long) length << 1), length, point);
    }

    @ForceInline
    public static void array4(int length, int point) {
        array(HEAD4 + ((long) length << 2), length, point);
    }

    @ForceInline
    public static void array8(int length, int point) {
        array(HEAD8 + ((long) length << 3), length, point);
    }

    @ForceInline
    public static void array(int length, Class<?> type, int point) {
        array(HEAD + ((long) length << SHIFT), length, point);
    }

    // These run after the instruction.

    @ForceInline
    public static void large1(int length, int point) {
        if (length >= LARGE)
            count(HEAD1 + length, point);
    }

    @ForceInline
    public static void large2(int length, int point) {
        if (length >= LARGE)
            count(HEAD2 + ((long) length << 1), point);
    }

    @ForceInline
    public static void large4(int length, int point) {
        if (length >= LARGE)
            count(HEAD4 + ((long) length << 2), point);
    }

    @ForceInline
    public static void large8(int length, int point) {
        if (length >= LARGE)
            count(HEAD8 + ((long) length << 3), point);
    }

    @ForceInline
    public static void large(int length, int point) {
        if (length >= LARGE)
            count(HEAD + ((long) length << SHIFT), point);
    }

    /** A call has returned an object. */
    public static void object(Object o, int point) {
        long eetop = U.getLong(Carrier.carrier(), EETOP);
        if (U.getLong(home(eetop)) != eetop)
            attend(o);
        if (o instanceof byte[]) {
            array1(((byte[]) o).length, point);
            large1(((byte[]) o).length, point);
        } else {
            point = placeOf(o, o.getClass(), point);
            if (point < 0)
                return;
            if (o instanceof Object[]) {
                array(((Object[]) o).length, null, point);
                large(((Object[]) o).length, point);
            } else
                made(o.getClass(), point);
        }
        if (U.getInt(FOLLOW) == 0)
            constructed(o, point);
        else
            hold(o, point);
    }

    /**
     * Runs before a call of Unsafe.allocateInstance. The new object is counted after the call, not
     * by our native method.
     */
    public static void expect() {
        U.putLong(slot() + SLOT_EXPECTED, 1);
    }

    /** Runs after that call, which the JIT may have replaced with an intrinsic. */
    public static void instance(Object o, int point) {
        U.putLong(slot() + SLOT_EXPECTED, 0);
        object(o, point);
    }

    private static int placeOf(Object o, Class<?> type, int point) {
        int from = System.identityHashCode(type) * 31 + point;
        for (int i = 0; i < TYPES_PROBES; i++) {
            int at = from + i & TYPES_SIZE - 1;
            long place = PLACES[at];
            if (place == 0)
                break;
            WeakReference<?> there = (int) (place >>> 32) == point + 1 ? TYPES[at] : null;
            if (there != null && there.get() == type)
                return (int) place;
        }
        int made = place(o, type, point, from & TYPES_SIZE - 1);
        if (made < 0)
            other(o, point);
        return made;
    }

    /** Runs after a constructor's call, and for arrays, when a few of the objects are followed. */
    @ForceInline
    public static void constructed(Object o, int point) {
        if (U.getInt(PICKING) != 0)
            pick(o, point);
    }

    /** The same when every object is followed. */
    public static void follow(Object o, int point) {
        hold(o, point);
    }

    /** Runs after an instruction that creates an array of constant length. */
    @ForceInline
    public static void fixedConstructed(Object o, int point) {
        made(null, point);
        constructed(o, point);
    }

    @ForceInline
    public static void fixedFollowed(Object o, int point) {
        made(null, point);
        hold(o, point);
    }

    public static void multi(Object o, int point, int dimensions) {
        arrays(o, point, dimensions);
    }
}
