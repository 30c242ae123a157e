// SPDX-License-Identifier: Apache-2.0
import java.math.BigInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Passes numbers that a double or a float does not hold exactly; each method gets the same five
 * longs, or four floats.
 */
public class Exact {
    long l;
    float f;

    static long a(long v) { return v; }
    static long b(long v) { return v; }
    static long c(long v) { return v; }
    static long d(long v) { return v; }
    static long e(long v) { return v; }
    static long f(long v) { return v; }
    static Object boxed(Object v) { return v; }
    static Object big(Object v) { return v; }
    static Object atomic(Object v) { return v; }
    static long back(long v) { return v; }
    static long field(Exact v) { return v.l; }
    static float g(float v) { return v; }
    static float h(float v) { return v; }
    static Object boxedFloat(Object v) { return v; }
    static float floatField(Exact v) { return v.f; }
    static float floatBack(float v) { return v; }
    static double real(double v) { return v; }

    public static void main(String[] args) {
        long two53 = 1L << 53;
        for (long v : new long[] {two53, two53 + 1, two53 + 2, Long.MAX_VALUE, Long.MIN_VALUE}) {
            Exact x = new Exact();
            x.l = v;
            a(v);
            b(v);
            c(v);
            d(v);
            e(v);
            f(v);
            boxed(v);
            big(BigInteger.valueOf(v));
            atomic(new AtomicLong(v));
            back(v);
            field(x);
        }
        for (float v : new float[] {0.1f, 0.2f, 0f, Float.POSITIVE_INFINITY}) {
            Exact x = new Exact();
            x.f = v;
            g(v); h(v); boxedFloat(v); floatField(x); floatBack(v); real(v);
        }
        real(0.1);
    }
}
