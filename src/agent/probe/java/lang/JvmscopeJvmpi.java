// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import sun.misc.Unsafe;

/**
 * The probe of JVMPI's method events. Virtual threads, which have no JNIEnv of their own, send none: their eetop is 0.
 * FLAGS: a byte for entries, one for exits, 0 while nobody wants them.
 */
public final class JvmscopeJvmpi {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long FLAGS = constant(0);
    private static final long EETOP = constant(1);

    private JvmscopeJvmpi() {
    }

    private static native long constant(int which);

    private static native void entered(int method, Object receiver);

    private static native void exited(int method);

    /** Calls each native method once. */
    static void bind() {
        constant(0);
        entered(-1, null);
        exited(-1);
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
}
