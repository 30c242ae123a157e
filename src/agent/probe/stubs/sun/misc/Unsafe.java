// SPDX-License-Identifier: Apache-2.0
package sun.misc;

/**
 * What the probes use of the JDK's class of this name, for the compiler alone; on JDK 9+ renamed to
 * jdk.internal.misc.Unsafe.
 */
public abstract class Unsafe {
    public static Unsafe getUnsafe() {
        return null;
    }

    public native byte getByte(long address);

    public native int getInt(long address);

    public native void putByte(long address, byte x);

    public native void putInt(long address, int value);

    public native long getLong(long address);

    public native void putLong(long address, long value);

    public native boolean getBoolean(Object o, long offset);

    public native byte getByte(Object o, long offset);

    public native char getChar(Object o, long offset);

    public native short getShort(Object o, long offset);

    public native int getInt(Object o, long offset);

    public native float getFloat(Object o, long offset);

    public native double getDouble(Object o, long offset);

    public native long getLong(Object o, long offset);

    /** Named getReference since JDK 12. */
    public native Object getObject(Object o, long offset);

    public native long getLongVolatile(Object o, long offset);

    /** Named getReferenceVolatile since JDK 12. */
    public native Object getObjectVolatile(Object o, long offset);

    /** Named putLongRelease since JDK 9. */
    public native void putOrderedLong(Object o, long offset, long value);

    /** Named compareAndSetLong since JDK 10. */
    public native boolean compareAndSwapLong(Object o, long offset, long expected, long value);

    public native long getAndAddLong(Object o, long offset, long n);

    public native void park(boolean absolute, long ns);

    public native void unpark(Object thread);

    public native long objectFieldOffset(java.lang.reflect.Field field);
}
