// SPDX-License-Identifier: Apache-2.0
package java.lang;

/**
 * The last of the VM's shutdown hooks. When it runs, garbage collectors still work; at VMDeath they
 * no longer do.
 */
public final class JvmscopeEnding implements Runnable {
    private JvmscopeEnding() {
    }

    private static native void ending(boolean now);

    /** Calls the native method once. */
    static void bind() {
        ending(false);
    }

    @Override
    public void run() {
        ending(true);
    }
}
