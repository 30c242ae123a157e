// SPDX-License-Identifier: Apache-2.0
package java.lang;

/** The probe of threads=y: unparks of virtual threads, which reach no native method. */
public final class JvmscopeThreads {
    private JvmscopeThreads() {
    }

    public static native void unpark(Thread thread);

    /** Calls each native method once. */
    static void bind() {
        unpark(null);
    }
}
