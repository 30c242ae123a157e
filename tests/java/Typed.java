// SPDX-License-Identifier: Apache-2.0
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/**
 * Methods and classes with annotations and interfaces; a superclass is loaded after what is below
 * it has been asked for.
 */
public class Typed {
    @Retention(RetentionPolicy.CLASS)
    @interface Timed {
        String[] names() default {};

        Timed2[] more() default {};
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface Timed2 {
        int value();

        Class<?> type() default Object.class;

        RetentionPolicy policy() default RetentionPolicy.SOURCE;
    }

    interface Shape {
        int area(int n);

        default int twice(int n) {
            return 2 * area(n);
        }
    }

    static class Base implements Shape {
        public int area(int n) {
            return n;
        }
    }

    static class Square extends Base {
        @Override
        public int area(int n) {
            return n * n;
        }
    }

    static class Other {
        @Timed(names = {"a", "b"}, more = {@Timed2(1), @Timed2(2)})
        static int first(int n) {
            return n + 1;
        }

        @Timed2(value = 3, type = String.class, policy = RetentionPolicy.CLASS)
        static int second(int n) {
            return n + 2;
        }

        static int third(int n) {
            return n + 3;
        }
    }

    @Timed2(7)
    static class Whole {
        static int one(int n) {
            return n;
        }
    }

    public static void main(String[] args) {
        int sum = new Square().twice(3) + Other.first(1) + Other.second(2) + Other.third(3)
                  + Whole.one(4) + new Base().area(5);
        System.out.println("done " + sum);
    }
}
