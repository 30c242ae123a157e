// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.ref.WeakReference;

/**
 * What is hard to trace: a class that unloads while it is traced, a method too long for a probe,
 * natives, abstract methods, a constructor that throws.
 */
public class HostileTrace {
    public static class Guest {
        public static int hello(int n) {
            return n + 1;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define() throws Exception {
            try (InputStream in = HostileTrace.class.getResourceAsStream("HostileTrace$Guest.class")) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                for (int b; (b = in.read()) >= 0;) {
                    bytes.write(b);
                }
                return defineClass("HostileTrace$Guest", bytes.toByteArray(), 0, bytes.size());
            }
        }
    }

    abstract static class Half {
        abstract int half(int n);

        Half(int n) {
            this(n > 0 ? "yes" : null, n);
        }

        Half(String s, int n) {
            if (s.length() > 2 && n == 7) {
                throw new IllegalArgumentException("seven");
            }
        }
    }

    static native int nothing(int n);

    static strictfp synchronized double wide(long a, double b, long c, double d, float e, byte f, Object... rest) {
        return a + b + c + d + e + f + rest.length;
    }

    public static void main(String[] args) throws Exception {
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            Class<?> guest = new Loader().define();
            sum += (Integer) guest.getMethod("hello", int.class).invoke(null, i);
            WeakReference<Class<?>> gone = new WeakReference<>(guest);
            guest = null;
            for (int k = 0; k < 50 && gone.get() != null; k++) {
                System.gc();
                Thread.sleep(20);
            }
        }
        for (int n : new int[] {1, 7, -1}) {
            try {
                new Half(n) {
                    int half(int m) {
                        return m / 2;
                    }
                }.half(n);
                sum++;
            } catch (IllegalArgumentException | NullPointerException e) {
                sum += 10;
            }
        }
        try {
            nothing(1);
        } catch (UnsatisfiedLinkError e) {
            sum += 100;
        }
        sum += (int) wide(1, 2, 3, 4, 5, (byte) 6, 7, 8);
        System.out.println("done " + sum);
    }
}
