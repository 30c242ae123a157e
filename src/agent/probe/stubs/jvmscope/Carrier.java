// SPDX-License-Identifier: Apache-2.0
package jvmscope;

/** For the compiler alone: renamed to java.lang.Thread and its native method that answers the platform thread. */
public final class Carrier {
    private Carrier() {
    }

    /** Thread.currentThread(); since JDK 21 Thread.currentCarrierThread(). */
    public static native Thread carrier();
}
