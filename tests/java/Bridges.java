// SPDX-License-Identifier: Apache-2.0
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.concurrent.Callable;

/**
 * Calls methods by way of the bridges that the compiler generates: for type parameters, for a more
 * specific result, and for a public method of a class that is not public itself.
 */
public class Bridges {
    static final int CALLS = 1000;

    @Retention(RetentionPolicy.RUNTIME)
    @interface Marked {}

    static class Number implements Comparable<Number>, Callable<String>, Cloneable {
        final int value;

        Number(int value) {
            this.value = value;
        }

        @Marked
        public int compareTo(Number other) {
            return value < other.value ? -1 : value == other.value ? 0 : 1;
        }

        public String call() {
            return "number " + value;
        }

        public String call(int times) {
            return times + " times " + value;
        }
    }

    static class Base {
        public int seen(int i) {
            return i % 7;
        }
    }

    public static class Derived extends Base {}

    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] args) throws Exception {
        Comparable one = new Number(1);
        Callable<?> callable = (Callable<?>) one;
        Object two = new Number(2);
        Derived derived = new Derived();
        long sum = 0;
        for (int i = 0; i < CALLS; i++) {
            sum += one.compareTo(two) + callable.call().toString().length() + derived.seen(i);
            sum += ((Number) one).call(i).length();
        }
        System.out.println("sum " + sum);
    }
}
