// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Exceptions that the native code of Method.invoke wraps, before JDK 18 for the first calls, and
 * others that Java code catches.
 */
public class ThrowsInNative {
    static class Ended extends RuntimeException {
    }

    static class Plain extends RuntimeException {
    }

    static class Again extends RuntimeException {
    }

    static int wrapped, plain, again;

    public static void ended() {
        throw new Ended();
    }

    static void wrapped(Method m) throws Exception {
        try {
            m.invoke(null);
        } catch (RuntimeException e) {
            wrapped += 100; // never runs
        } catch (InvocationTargetException e) {
            wrapped++;
        }
    }

    static void plain() {
        try {
            throw new Plain();
        } catch (Plain e) {
            plain++;
        }
    }

    /**
     * The method of the handler is on the stack twice, and only the one below native code has it
     * around its call.
     */
    public static void again(Method m, int depth) throws Exception {
        if (depth == 0)
            throw new Again();
        try {
            m.invoke(null, m, depth - 1);
        } catch (Again e) {
            again += 100; // never runs
        } catch (InvocationTargetException e) {
            again++;
        }
    }

    public static void main(String[] args) throws Exception {
        Method m = ThrowsInNative.class.getMethod("ended"),
               a = ThrowsInNative.class.getMethod("again", Method.class, int.class);
        for (int i = 0; i < 10; i++) {
            wrapped(m);
            plain();
        }
        for (int i = 0; i < 5; i++)
            again(a, 1);
        System.out.println(wrapped + " " + plain + " " + again);
    }
}
