// SPDX-License-Identifier: Apache-2.0
package java.lang;

/**
 * The probe of threads=y, for the changes of virtual threads that involve no call of a native
 * method.
 */
public final class JvmscopeThreads {
    private JvmscopeThreads() {
    }

    public static native void unpark(Thread thread);

    /**
     * The virtual thread is about to be given to the scheduler. From now on it only waits for a
     * carrier.
     */
    public static native void ready(Thread thread);

    /** Calls each native method once. */
    static void bind() {
        unpark(null);
        ready(null);
    }
}
