// SPDX-License-Identifier: Apache-2.0
/**
 * Makes a million objects of each of two classes. Every second constructor of the first class
 * throws, and the other objects are kept. Of the second class, the constructor's argument is
 * another object of the same place, three times in four, and all are kept.
 */
public class LiveThrows {
    static final int AMOUNT = 1_000_000;
    static final RuntimeException THROWN =
            new RuntimeException("every second", null, false, false) {};

    static class Half {
        Half(int i) {
            if (i % 2 == 0)
                throw THROWN;
        }
    }

    static class Nested {
        final Nested inner;

        Nested(Nested inner) {
            this.inner = inner;
        }
    }

    static Nested nested(int depth) {
        return new Nested(depth > 0 ? nested(depth - 1) : null);
    }

    static Half[] halves = new Half[AMOUNT];
    static Nested[] nested = new Nested[AMOUNT / 4];

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < AMOUNT; i++) {
            try {
                halves[i] = new Half(i);
            } catch (RuntimeException e) {
                if (e != THROWN)
                    throw e;
            }
        }
        for (int i = 0; i < nested.length; i++)
            nested[i] = nested(3);
    }
}
