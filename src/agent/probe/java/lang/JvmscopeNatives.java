// SPDX-License-Identifier: Apache-2.0
package java.lang;

/**
 * Binds native methods from code of the boot loader. If code of another loader binds a method of
 * the JDK, the VM prints a warning.
 */
public final class JvmscopeNatives {
    private JvmscopeNatives() {
    }

    private static native void register(Class<?> c, String name, String descriptor, long function);

    private static native void again(Class<?> c);

    static void bind() {
        register(null, null, null, 0);
        again(null);
    }

    private static void set(Class<?> c, String name, String descriptor, long function) {
        register(c, name, descriptor, function);
    }
}
