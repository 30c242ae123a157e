// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probes of JVMPI's events. Virtual threads, which have no JNIEnv of their own, send no method
 * events: their eetop is 0. FLAGS has a byte each for entries, exits, instructions and allocations,
 * which is 0 while no event of that kind is requested, and at offset 8 the number of threads that
 * contend for a monitor.
 */
public final class JvmscopeJvmpi {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long FLAGS = constant(0);
    private static final long EETOP = constant(1);
    private static final int PLAIN = 0, IF = 1, TABLE = 2, LOOKUP = 3;

    private JvmscopeJvmpi() {
    }

    private static native long constant(int which);

    private static native void entered(int method, Object receiver);

    private static native void exited(int method);

    private static native void exiting(Object monitor, int method);

    private static native void started(int method, int offset, int kind, int a, int b);

    private static native void allocated(Object object, boolean nested);

    private static native void natives(int which);

    /** Calls each native method once. */
    static void bind() {
        constant(0);
        entered(-1, null);
        exited(-1);
        exiting(null, -1);
        started(-1, 0, 0, 0, 0);
        allocated(null, false);
    }

    /**
     * Binds natives, which only code of this class's loader may do. 0 binds Thread.sleep, 1 binds
     * all.
     */
    static void bindNatives(int which) {
        natives(which);
    }

    /** The receiver is null for static methods. */
    @ForceInline
    public static void enter(int method, Object receiver) {
        if (U.getByte(FLAGS) != 0 && U.getLong(Thread.currentThread(), EETOP) != 0)
            entered(method, receiver);
    }

    @ForceInline
    public static void exit(int method) {
        if (U.getByte(FLAGS + 1) != 0 && U.getLong(Thread.currentThread(), EETOP) != 0)
            exited(method);
    }

    /** A monitor is about to be exited. null stands for the class of that method. */
    @ForceInline
    public static void exitMonitor(Object monitor, int method) {
        if (U.getInt(FLAGS + 8) != 0)
            exiting(monitor, method);
    }

    @ForceInline
    public static void create(Object object) {
        if (U.getByte(FLAGS + 3) != 0)
            allocated(object, false);
    }

    /** An array of arrays was created with its elements. */
    public static void createNested(Object object) {
        if (U.getByte(FLAGS + 3) != 0)
            allocated(object, true);
    }

    private static void start(int method, int offset, int kind, int a, int b) {
        if (U.getByte(FLAGS + 2) != 0 && U.getLong(Thread.currentThread(), EETOP) != 0)
            started(method, offset, kind, a, b);
    }

    public static void step(int method, int offset) {
        start(method, offset, PLAIN, 0, 0);
    }

    private static boolean compare(int a, int b, int relation) {
        switch (relation) { // in the order of the opcodes
        case 0:
            return a == b;
        case 1:
            return a != b;
        case 2:
            return a < b;
        case 3:
            return a >= b;
        case 4:
            return a > b;
        default:
            return a <= b;
        }
    }

    /** Called for ifeq and similar instructions. */
    public static void stepIf(int a, int relation, int method, int offset) {
        start(method, offset, IF, compare(a, 0, relation) ? 1 : 0, 0);
    }

    /** Called for if_icmpeq and similar instructions. */
    public static void stepCompare(int a, int b, int relation, int method, int offset) {
        start(method, offset, IF, compare(a, b, relation) ? 1 : 0, 0);
    }

    public static void stepSame(Object a, Object b, int relation, int method, int offset) {
        start(method, offset, IF, (a == b) == (relation == 0) ? 1 : 0, 0);
    }

    public static void stepNull(Object a, int relation, int method, int offset) {
        start(method, offset, IF, (a == null) == (relation == 0) ? 1 : 0, 0);
    }

    /** table is the number of the switch's table in the agent. */
    public static void stepTable(int key, int table, int method, int offset) {
        start(method, offset, TABLE, key, table);
    }

    public static void stepLookup(int key, int table, int method, int offset) {
        start(method, offset, LOOKUP, key, table);
    }
}
