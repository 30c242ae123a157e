// SPDX-License-Identifier: Apache-2.0
package java.lang;

/** Counts objects of classes for which a trigger waits, as they are constructed. */
public final class JvmscopeAlarm {
    private JvmscopeAlarm() {
    }

    private static native void count(int counter, boolean thrown);

    /** Calls the native method once. */
    static void bind() {
        count(-1, false);
    }

    /** Counts an object. made is null where the object cannot be passed. */
    public static void constructed(Object made, int counter) {
        count(counter, made == null || made instanceof Throwable);
    }
}
