// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Array;

/**
 * Native methods (tests/agents/trace_jni.c) of every type, with known answers: TracedNative
 * LIBRARY.
 */
public class TracedNative {
    static native long many(int a, long b, float c, double d, byte e, short f, char g, boolean h,
                            Object i, double j, double k, double l, float m, double n, double o,
                            double p, int q, long r, float s, String t, int[] u);

    native String hello(String s, int n);

    static native void fails(int n);

    static native boolean no();

    static native byte bytes();

    static native char chars();

    static native short shorts();

    static native float floats(float x);

    static native double doubles(double x);

    static native Object same(Object o);

    static synchronized native int locked(int n);

    static native int calls(int n);

    static int back(int n) {
        return n == 0 ? 0 : calls(n - 1) + 1;
    }

    public static void main(String[] args) {
        System.load(args[0]);
        System.out.println(many(-1, 1L << 60, 1.5f, 2.5, (byte) -3, (short) -4, 'c', true, null,
                                3.5, 4.5, 5.5, 6.5f, 7.5, 8.5, 9.5, 77, -88, 10.5f, "t",
                                new int[3]));
        System.out.println(new TracedNative().hello("x", 3));
        try {
            fails(5);
        } catch (IllegalStateException e) {
            System.out.println(e.getMessage() + " " + e.getStackTrace()[0].getMethodName() + " "
                               + e.getStackTrace().length);
        }
        System.out.println(no() + " " + bytes() + " " + (int) chars() + " " + shorts() + " "
                           + floats(2) + " " + doubles(3) + " " + same("s") + " " + locked(4) + " "
                           + back(3));
        try {
            Array.getByte(new byte[1], 3);
        } catch (ArrayIndexOutOfBoundsException e) {
            System.out.println("out of bounds");
        }
        Array.setDouble(new double[2], 1, 2.5);
    }
}
