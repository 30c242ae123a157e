// SPDX-License-Identifier: Apache-2.0
package java.lang;

/** Counts objects of classes for which a trigger waits, as they are constructed. */
public final class JvmscopeAlarm {
    private JvmscopeAlarm() {
    }

    private static native void count(int counter);

    /** Calls the native method once. */
    static void bind() {
        count(-1);
    }

    public static void constructed(int counter) {
        count(counter);
    }
}
