// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Native methods throw, N times each, so that the VM compiles the calls: what an exception's first
 * frame is, and the line of its handler, do not depend on that. Arguments: LIBRARY N.
 */
public class ThrowsByNatives {
    static int n, caught;

    static class Plain {
        Object copy() throws CloneNotSupportedException {
            return super.clone();
        }
    }

    static native void created();

    static void interrupted() {
        for (int i = 0; i < n; i++)
            try {
                Thread.currentThread().interrupt();
                Thread.sleep(1);
            } catch (InterruptedException e) {
                caught++;
            }
    }

    static void jni() {
        for (int i = 0; i < n; i++)
            try {
                created();
            } catch (java.util.NoSuchElementException e) {
                caught++;
            }
    }

    static void newArray() {
        for (int i = 0; i < n; i++)
            try {
                Array.newInstance(int.class, -1);
            } catch (NegativeArraySizeException e) {
                caught++;
            }
    }

    static void copied() {
        for (int i = 0; i < n; i++)
            try {
                System.arraycopy(new int[2], 0, new int[1], 0, 2);
            } catch (ArrayIndexOutOfBoundsException e) {
                caught++;
            }
    }

    static void notified() {
        Object lock = new Object();
        for (int i = 0; i < n; i++)
            try {
                lock.notify();
            } catch (IllegalMonitorStateException e) {
                caught++;
            }
    }

    static void cloned() {
        Plain plain = new Plain();
        for (int i = 0; i < n; i++)
            try {
                plain.copy();
            } catch (CloneNotSupportedException e) {
                caught++;
            }
    }

    public static void fails() {
        throw new IllegalStateException();
    }

    static void reflected() throws Exception {
        Method m = ThrowsByNatives.class.getMethod("fails");
        for (int i = 0; i < n; i++)
            try {
                m.invoke(null);
            } catch (InvocationTargetException e) {
                caught++;
            }
    }

    static void plain(RuntimeException created) {
        for (int i = 0; i < n; i++)
            try {
                throw created;
            } catch (RuntimeException e) {
                caught++;
            }
    }

    static native RuntimeException made(int number);

    static RuntimeException make(int number) {
        return made(number);
    }

    /** Throws at the bytecode that has the same number as the call in make. */
    static void raise(RuntimeException made) {
        throw made;
    }

    static void raised() {
        for (int i = 0; i < n; i++)
            try {
                raise(make(i));
            } catch (java.util.ConcurrentModificationException e) {
                caught++;
            }
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        n = Integer.parseInt(args[1]);
        interrupted();
        jni();
        newArray();
        copied();
        notified();
        cloned();
        reflected();
        raised();
        plain(new UnsupportedOperationException());
        System.out.println(caught);
    }
}
