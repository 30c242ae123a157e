// SPDX-License-Identifier: Apache-2.0
package java.lang;

import sun.misc.Unsafe;

/**
 * Reads the sizes and first elements of the JDK's collections, maps and optionals for
 * JvmscopeTrace. It reads fields at their offsets and calls no method of the object, so no code of
 * the program runs. Another thread may change the object in the meantime, so every loop has a limit
 * and every value read is checked for null. capture/trace/shapes.c makes the shapes.
 *
 * It writes the size (-1 if unknown), the number of elements that follow, and these elements.
 */
final class JvmscopeContents {
    private static final Unsafe U = Unsafe.getUnsafe();

    // Kinds of shapes and their flags, as in shapes.h.
    private static final int WRAP = 7, ARRAY = 8, RING = 9, HASH = 10, CHAIN = 11, TREE = 12, FIXED = 13, BITS = 14,
            PAIRS = 15;
    private static final int COPIES = 17, WINDOW = 18, BIT_SET = 19;
    private static final int MAP = 1, SKIP_NULL = 2, KEYS = 4, WIDE_SIZE = 8, VALUES = 128;
    private static final int IS_MAP = 1 << 30, ONLY_VALUES = 1 << 29;
    private static final int STEPS_MAX = 512, CHARS_MAX = 64, WRAPPED_MAX = 8;

    /** The object that ImmutableCollections uses for an absent element; null if it uses null. */
    private static Object nothing;

    private JvmscopeContents() {
    }

    /** Finds the offsets of the fields. It is called before there are any probes. */
    private static native void learn();

    private static void bind() {
        learn();
    }

    /**
     * Writes the contents of the object, or of the object that it wraps. The shape of a window,
     * which is a part of another list, has the size, that list under one of two names, and the
     * number of elements that precede the window.
     */
    static long write(long p, Object o, long[] s, int most) {
        boolean keys = false, values = false, reversed = false;
        int from = 0, size = -1;
        for (int i = 0; i < WRAPPED_MAX && o != null && s != null && (s[0] == WRAP || s[0] == WINDOW); i++) {
            keys |= (s[1] & KEYS) != 0;
            values |= (s[1] & VALUES) != 0;
            if (s[0] == WRAP && s.length > 3 && s[3] > 0)
                reversed ^= U.getBoolean(o, s[3]);
            if (s[0] == WINDOW) {
                size = size < 0 ? sizeOf(o, s) : size;
                from += U.getInt(o, s[5]);
            }
            o = U.getObject(o, s[0] == WRAP ? s[2] : s[3] < 0 ? s[4] : s[3]);
            s = o == null ? null : JvmscopeTrace.shapeOf(o);
        }
        boolean known = o != null && s != null && s[0] > WRAP && s[0] != WINDOW;
        U.putInt(p, -1);
        U.putInt(p + 4, !known || (s[1] & MAP) == 0 || keys ? 0 : values ? ONLY_VALUES : IS_MAP);
        int n = size >= 0 && size < most ? size : most;
        long end = known && from >= 0 ? elements(p, o, s, n, from, reversed) : p + 8;
        U.putInt(p + 4, U.getInt(p + 4) & ~ONLY_VALUES);
        if (size >= 0)
            U.putInt(p, size);
        return end;
    }

    /**
     * Writes elements. from is the number of elements of a list that precede those to be written.
     */
    private static long elements(long start, Object o, long[] s, int most, int from, boolean reversed) {
        switch ((int) s[0]) {
            case ARRAY:
                return array(start, o, s, most, from);
            case RING:
                return ring(start, o, s, most);
            case HASH:
                return hash(start, o, s, most);
            case CHAIN:
                return chain(start, o, s, most, from, reversed);
            case TREE:
                return tree(start, o, s, most);
            case FIXED:
                return fixed(start, o, s, most, from);
            case BITS:
                return bits(start, o, s, most);
            case PAIRS:
                return pairs(start, o, s, most);
            case COPIES:
                return copies(start, o, s, most);
            case BIT_SET:
                return bitSet(start, o, s, most);
            default:
                return JvmscopeTrace.numbers(start, U.getObject(o, s[2]), most);
        }
    }

    /**
     * Returns the sum of a long and its cells. The shape has the offsets of the long, of the cells,
     * and of the long in a cell.
     */
    static long sum(Object o, long[] s) {
        long sum = U.getLong(o, s[1]);
        Object[] cells = (Object[]) U.getObject(o, s[2]);
        for (int i = 0; cells != null && i < cells.length && i < STEPS_MAX; i++)
            sum += cells[i] == null ? 0 : U.getLong(cells[i], s[3]);
        return sum;
    }

    /** Returns the same of longs that are the bits of doubles. */
    static double sumOfDoubles(Object o, long[] s) {
        double sum = U.getDouble(o, s[1]);
        Object[] cells = (Object[]) U.getObject(o, s[2]);
        for (int i = 0; cells != null && i < cells.length && i < STEPS_MAX; i++)
            sum += cells[i] == null ? 0 : U.getDouble(cells[i], s[3]);
        return sum;
    }

    /**
     * Writes the first characters of an array. The shape has the offsets of the array, of the used
     * length and of the coder, or -1.
     */
    static long chars(long p, Object o, long[] s) {
        Object a = U.getObject(o, s[1]);
        boolean wide = s[3] >= 0 && U.getByte(o, s[3]) != 0;
        int used = s[2] < 0 ? Integer.MAX_VALUE : U.getInt(o, s[2]);
        int there = a instanceof char[] ? ((char[]) a).length
                : a instanceof byte[] ? ((byte[]) a).length >> (wide ? 1 : 0) : -1;
        int length = used < there ? used : there, n = length < 0 ? 0 : length < CHARS_MAX ? length : CHARS_MAX;
        U.putInt(p, length);
        U.putInt(p + 4, n);
        p += 8;
        for (int i = 0; i < n; i += 4, p += 8) {
            long four = 0;
            for (int k = 0; k < 4 && i + k < n; k++)
                four |= (long) charAt(a, i + k, wide) << 16 * k;
            U.putLong(p, four);
        }
        return p;
    }

    private static char charAt(Object a, int i, boolean wide) {
        if (a instanceof char[])
            return ((char[]) a)[i];
        byte[] bytes = (byte[]) a;
        return (char) (wide ? bytes[2 * i] & 0xff | bytes[2 * i + 1] << 8 : bytes[i] & 0xff);
    }

    private static boolean isFull(long start, int most) {
        return (U.getInt(start + 4) & ~(IS_MAP | ONLY_VALUES)) >= most;
    }

    private static long put(long start, long p, Object key, Object value) {
        int n = U.getInt(start + 4);
        U.putInt(start + 4, n + 1);
        if ((n & ONLY_VALUES) != 0)
            return JvmscopeTrace.object(p, value, 0);
        p = JvmscopeTrace.object(p, key, 0);
        return (n & IS_MAP) != 0 ? JvmscopeTrace.object(p, value, 0) : p;
    }

    private static int sizeOf(Object o, long[] s) {
        if (s[2] < 0)
            return -1;
        long size = (s[1] & WIDE_SIZE) != 0 ? U.getLong(o, s[2]) : U.getInt(o, s[2]);
        return size < 0 ? 0 : size > Integer.MAX_VALUE ? Integer.MAX_VALUE : (int) size;
    }

    private static Object at(Object node, long offset) {
        return offset < 0 ? null : U.getObject(node, offset);
    }

    /**
     * The shape has the size or -1, and the array. A sparse array has nulls between its elements;
     * in a map's array, keys and values alternate.
     */
    private static long array(long start, Object o, long[] s, int most, int from) {
        Object[] a = (Object[]) U.getObject(o, s[3]);
        long p = start + 8;
        int length = a == null ? 0 : a.length, size = sizeOf(o, s), step = (s[1] & MAP) != 0 ? 2 : 1;
        boolean sparse = (s[1] & SKIP_NULL) != 0;
        U.putInt(start, size < 0 ? length : size);
        int end = sparse || size < 0 || size > length ? length : size;
        if (end - from > STEPS_MAX)
            end = from + STEPS_MAX;
        for (int i = from; i <= end - step && !isFull(start, most); i += step)
            if (!sparse || a[i] != null)
                p = put(start, p, a[i], step == 2 ? a[i + 1] : null);
        return p;
    }

    /**
     * The shape has the size or -1, the array, the index of the first element, and the index after
     * the last element.
     */
    private static long ring(long start, Object o, long[] s, int most) {
        Object[] a = (Object[]) U.getObject(o, s[3]);
        long p = start + 8;
        int length = a == null ? 0 : a.length, from = U.getInt(o, s[4]), size = sizeOf(o, s);
        if (size < 0) {
            size = U.getInt(o, s[5]) - from;
            size += size < 0 ? length : 0;
        }
        if (size > length)
            size = length;
        U.putInt(start, size);
        for (int i = 0; i < size && from >= 0 && from < length && !isFull(start, most);
                i++, from = from + 1 == length ? 0 : from + 1)
            p = put(start, p, a[from], null);
        return p;
    }

    /**
     * The shape has the size, the table, and the key, value and next node of a node; for a
     * concurrent map also the cells of its size and the value of a cell.
     */
    private static long hash(long start, Object o, long[] s, int most) {
        Object[] table = (Object[]) U.getObject(o, s[3]), cells = s[7] < 0 ? null : (Object[]) U.getObject(o, s[7]);
        long p = start + 8, size = sizeOf(o, s);
        if (cells != null && s[8] > 0) {
            size = U.getLong(o, s[2]); // may be negative without the cells
            for (int i = 0; i < cells.length && i < STEPS_MAX; i++)
                size += cells[i] == null ? 0 : U.getLong(cells[i], s[8]);
        }
        U.putInt(start, size < 0 ? 0 : size > Integer.MAX_VALUE ? Integer.MAX_VALUE : (int) size);
        int length = table == null ? 0 : table.length;
        for (int i = 0, steps = 0; i < length && steps < STEPS_MAX && !isFull(start, most); i++, steps++) {
            for (Object node = table[i]; node != null && steps < STEPS_MAX && !isFull(start, most); steps++) {
                Object key = U.getObject(node, s[4]);
                if (key != null || (s[1] & SKIP_NULL) == 0)
                    p = put(start, p, key, at(node, s[5]));
                node = U.getObject(node, s[6]);
            }
        }
        return p;
    }

    /**
     * The shape has the size, or -1 if the nodes are counted unless the chain is long; the first
     * node; and the next node, key, and value or -1 of a node. If "first" is an object that holds
     * the first node, then that field follows, and the value's field in other JDKs or -1. For the
     * reversed order, the last node and the node's previous node follow.
     */
    private static long chain(long start, Object o, long[] s, int most, int from, boolean reversed) {
        long p = start + 8;
        U.putInt(start, sizeOf(o, s));
        boolean back = reversed && s.length > 10;
        Object node = U.getObject(o, back ? s[9] : s[3]);
        long value = s[6], following = back ? s[10] : s[4];
        if (s.length > 8 && s[7] > 0) {
            node = node == null ? null : U.getObject(node, s[7]);
            value = value < 0 ? s[8] : value;
        }
        int counted = 0, steps = 0;
        for (; node != null && steps < STEPS_MAX && (s[2] < 0 || !isFull(start, most)); steps++) {
            Object key = U.getObject(node, s[5]), next = U.getObject(node, following);
            if (key != null || (s[1] & SKIP_NULL) == 0) {
                if (counted++ >= from && !isFull(start, most))
                    p = put(start, p, key, at(node, value));
            }
            node = next == node ? null : next;
        }
        if (s[2] < 0 && node == null)
            U.putInt(start, counted);
        return p;
    }

    /** The shape has the size, the root, and the left, right, parent, key and value of a node. */
    private static long tree(long start, Object o, long[] s, int most) {
        long p = start + 8;
        int steps = 0;
        U.putInt(start, sizeOf(o, s));
        Object node = U.getObject(o, s[3]);
        for (Object left; node != null && (left = U.getObject(node, s[4])) != null && steps < STEPS_MAX; steps++)
            node = left;
        while (node != null && steps++ < STEPS_MAX && !isFull(start, most)) {
            p = put(start, p, U.getObject(node, s[7]), at(node, s[8]));
            Object next = U.getObject(node, s[5]);
            if (next != null) {
                for (Object left; (left = U.getObject(next, s[4])) != null && steps < STEPS_MAX; steps++)
                    next = left;
            } else {
                for (next = U.getObject(node, s[6]); next != null && U.getObject(next, s[5]) == node
                        && steps < STEPS_MAX; steps++) {
                    node = next;
                    next = U.getObject(node, s[6]);
                }
            }
            node = next;
        }
        return p;
    }

    /**
     * The shape has the fields themselves. With SKIP_NULL, the elements end before the first that
     * is null or marks an empty place.
     */
    private static long fixed(long start, Object o, long[] s, int most, int from) {
        long p = start + 8;
        int n = 0, step = (s[1] & MAP) != 0 ? 2 : 1;
        for (int i = 2; i + step <= s.length; i += step, n++) {
            Object first = U.getObject(o, s[i]);
            if ((s[1] & SKIP_NULL) != 0 && (first == null || first == nothing))
                break;
            if (n >= from && !isFull(start, most))
                p = put(start, p, first, step == 2 ? U.getObject(o, s[i + 1]) : null);
        }
        U.putInt(start, n);
        return p;
    }

    /** The shape has the bits, a long, and the array of the objects that the bits stand for. */
    private static long bits(long start, Object o, long[] s, int most) {
        Object[] a = (Object[]) U.getObject(o, s[3]);
        long bits = U.getLong(o, s[2]), p = start + 8;
        int n = 0;
        for (int i = 0; i < 64 && a != null && i < a.length; i++) {
            if ((bits >>> i & 1) == 0)
                continue;
            n++;
            if (!isFull(start, most))
                p = put(start, p, a[i], null);
        }
        U.putInt(start, n);
        return p;
    }

    /**
     * The shape has the size, the array of keys, and the array of values, whose elements are null
     * where there is no value.
     */
    private static long pairs(long start, Object o, long[] s, int most) {
        Object[] keys = (Object[]) U.getObject(o, s[3]), values = (Object[]) U.getObject(o, s[4]);
        long p = start + 8;
        U.putInt(start, sizeOf(o, s));
        for (int i = 0; keys != null && values != null && i < keys.length && i < values.length && !isFull(start, most);
                i++)
            if (values[i] != null)
                p = put(start, p, keys[i], values[i]);
        return p;
    }

    /** The shape has the size, and the element that is at every index. */
    private static long copies(long start, Object o, long[] s, int most) {
        long p = start + 8;
        int size = sizeOf(o, s);
        U.putInt(start, size);
        for (int i = 0; i < size && !isFull(start, most); i++)
            p = put(start, p, U.getObject(o, s[3]), null);
        return p;
    }

    /**
     * The shape has the words and the number of words in use. The elements are the numbers of the
     * bits that are set.
     */
    private static long bitSet(long start, Object o, long[] s, int most) {
        long[] words = (long[]) U.getObject(o, s[2]);
        int used = words == null ? 0 : U.getInt(o, s[3]), set = 0;
        long p = start + 8;
        for (int i = 0; i < used && i < words.length && i < STEPS_MAX; i++) {
            for (long rest = words[i]; rest != 0; rest &= rest - 1, set++) {
                if (isFull(start, most))
                    continue;
                U.putInt(start + 4, U.getInt(start + 4) + 1);
                U.putLong(p, i * 64L + bitsBelow(rest));
                p += 8;
            }
        }
        U.putInt(start, used > STEPS_MAX ? -1 : set);
        return p;
    }

    /**
     * Returns the number of the lowest set bit. The methods of Long are not called because they may
     * be traced.
     */
    private static int bitsBelow(long bits) {
        int n = 0;
        for (; (bits & 1) == 0; bits >>>= 1)
            n++;
        return n;
    }
}
