// SPDX-License-Identifier: Apache-2.0
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.util.function.IntFunction;

/**
 * A hidden class throws 10 exceptions that it catches, 20 that leave it, and catches 30 that a
 * lambda throws. Then compiled code throws ArithmeticException; the argument is how often.
 */
public class HiddenThrows {
    static final Runnable THROWING = () -> {
        throw new IndexOutOfBoundsException();
    };

    static class Hidden implements IntFunction<Object> {
        @Override
        public Object apply(int i) {
            try {
                throw new IllegalStateException();
            } catch (IllegalStateException e) {
                if (i >= 10)
                    throw new UnsupportedOperationException();
                return e;
            }
        }
    }

    static class Catcher implements IntFunction<Object> {
        @Override
        public Object apply(int i) {
            try {
                THROWING.run();
            } catch (IndexOutOfBoundsException e) {
                return e;
            }
            return null;
        }
    }

    @SuppressWarnings("unchecked")
    static IntFunction<Object> hide(Class<?> c) throws Exception {
        try (InputStream in = HiddenThrows.class.getResourceAsStream(c.getName() + ".class")) {
            Lookup lookup = MethodHandles.lookup().defineHiddenClass(in.readAllBytes(), true,
                                                                     Lookup.ClassOption.NESTMATE);
            return (IntFunction<Object>) lookup.lookupClass()
                    .getDeclaredConstructor()
                    .newInstance();
        }
    }

    static int divide(int by) {
        try {
            return 1 / by;
        } catch (ArithmeticException e) {
            return 0;
        }
    }

    public static void main(String[] args) throws Exception {
        IntFunction<Object> hidden = hide(Hidden.class), catcher = hide(Catcher.class);
        for (int i = 0; i < 10; i++)
            hidden.apply(i);
        int left = 0;
        for (int i = 10; i < 30; i++) {
            try {
                hidden.apply(i);
            } catch (UnsupportedOperationException e) {
                left++;
            }
        }
        for (int i = 0; i < 30; i++)
            catcher.apply(i);
        for (int i = Integer.parseInt(args[0]); i > 0; i--)
            left += divide(0);
        System.out.println("left " + left);
    }
}
