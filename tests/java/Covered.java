// SPDX-License-Identifier: Apache-2.0
/** Lines and branches whose coverage is known; the comments say what the test expects: R ran, N did not, n/m branches. */
public class Covered {
    static int sink; // the class initialiser has no code for this

    interface Shape {
        default int sides() {
            return 4; // R
        }
    }

    static class Square implements Shape {
        final int width;

        Square(int width) {
            super(); // R
            this.width = width; // R
        } // R
    }

    static class Unused { // N
        int never() {
            return 1; // N
        }
    }

    enum Color {
        RED, GREEN // R
    }

    static int both(int n) {
        if (n > 10) { // R 2/2
            return 1; // R
        }
        return 2; // R
    }

    static int one(int n) {
        if (n > 10) { // R 1/2
            return 1; // N
        }
        return 2; // R
    }

    static int shortCircuit(boolean a, boolean b) {
        if (a && b) { // R 2/4
            sink++; // N
        }
        return sink; // R
    }

    static int loop(int n) {
        int sum = 0; // R
        for (int i = 0; i < n; i++) { // R 2/2
            sum += i; // R
        }
        return sum; // R
    }

    static int choose(int n) {
        switch (n) { // R 2/4
            case 1:
                return 10; // R
            case 2:
                return 20; // N
            case 3:
                return 30; // N
            default:
                return 0; // R
        }
    }

    static int lookup(int n) {
        switch (n) { // R 1/3
            case 1000:
                return 1; // R
            case 50000:
                return 2; // N
            default:
                return 0; // N
        }
    }

    static int thrown(int n) {
        try {
            sink = 100 / n; // R
            sink++; // N
        } catch (ArithmeticException e) { // R
            return -1; // R
        } finally {
            sink = 5; // R
        }
        return 1; // N
    }

    /** With so many locals javac's handler covers itself. */
    static int manyLocals(int a, int b, int c, int d) {
        try {
            return a / b; // R
        } finally {
            sink = c + d; // R
        }
    }

    static String nulls(Object o) {
        return o == null ? "null" : "object"; // R 1/2
    }

    static void neverCalled() {
        System.out.println("never"); // N
        for (int i = 0; i < 3; i++) { // N 0/2
            sink++; // N
        }
    }

    static int recursive(int n) {
        return n == 0 ? 0 : 1 + recursive(n - 1); // R 2/2
    }

    static long wide(long a, double b) {
        return a > b // R 1/2
            ? a // N
            : (long) b; // R
    }

    public static void main(String[] args) {
        both(5); // R
        both(50); // R
        one(5); // R
        shortCircuit(true, false); // R
        loop(5); // R
        choose(1); // R
        choose(9); // R
        lookup(1000); // R
        thrown(0); // R
        manyLocals(4, 3, 2, 1); // R
        nulls(null); // R
        recursive(5); // R
        wide(1L, 2.5); // R
        new Square(3).sides(); // R
        Color.valueOf("RED"); // R
        Runnable r = () -> { // R
            sink = 9; // R
        }; // R
        r.run(); // R
        Runnable unused = () -> { // R
            sink = 10; // N
        }; // N
        System.out.println("done " + sink); // R
    } // R
}
