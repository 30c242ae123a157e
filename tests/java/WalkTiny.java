// SPDX-License-Identifier: Apache-2.0
/**
 * Tiny methods, called through a class, an interface and recursion: most samples fall into
 * prologues, epilogues and stubs. WalkTiny MILLISECONDS of CPU time.
 */
public class WalkTiny {
    interface Shape {
        int area(int x);
    }

    static final class Square implements Shape {
        public int area(int x) {
            return x * x;
        }
    }

    static final class Strip implements Shape {
        public int area(int x) {
            return x + 1;
        }
    }

    static final class Ring implements Shape {
        public int area(int x) {
            return x ^ 7;
        }
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static long shapes(Shape[] shapes, int rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++)
            sum += shapes[i % shapes.length].area(i);
        return sum;
    }

    static int text(int i) {
        return Integer.toString(i).hashCode()
                + "abcdefghijklmnopqrstuvwxyz".substring(i % 20).length();
    }

    public static void main(String[] args) {
        java.lang.management.ThreadMXBean clock =
                java.lang.management.ManagementFactory.getThreadMXBean();
        long end = clock.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1000000L, sum = 0;
        Shape[] shapes = {new Square(), new Strip(), new Ring()};
        while (clock.getCurrentThreadCpuTime() < end) {
            sum += fibonacci(22);
            sum += shapes(shapes, 100000);
            for (int i = 0; i < 3000; i++)
                sum += text(i);
        }
        System.out.println(sum != 42);
    }
}
