// SPDX-License-Identifier: Apache-2.0
/**
 * Objects whose fields and texts are known, and such whose toString() throws, loops or waits for a
 * lock that the caller holds.
 */
public class Shown {
    static class Base {
        final long id;

        Base(long id) {
            this.id = id;
        }
    }

    static class Point extends Base {
        int x = 3;
        double y = 2.5;
        char c = 'z';
        boolean flag = true;
        String name = "a \"point\"";
        int[] numbers = {1, 2};
        Point next;

        Point(Point next) {
            super(1L << 40);
            this.next = next;
        }
    }

    static class Nice {
        @Override
        public String toString() {
            return inner(7) + " nice";
        }

        static String inner(int n) {
            return "n=" + n;
        }
    }

    static class Throws {
        @Override
        public String toString() {
            throw new IllegalStateException("no text");
        }
    }

    static volatile long spins;

    static class Loops {
        @Override
        public String toString() {
            while (true) {
                spins++;
            }
        }
    }

    static final Object lock = new Object();

    static class Waits {
        @Override
        public String toString() {
            synchronized (lock) {
                return "waited";
            }
        }
    }

    static class Nothing {
        @Override
        public String toString() {
            return null;
        }
    }

    static Object take(Object o) {
        return o;
    }

    public static void main(String[] args) throws Exception {
        take(new Point(new Point(null)));
        for (int i = 0; i < 3; i++) {
            take(new Nice());
            take(new Throws());
            take(new Nothing());
        }
        take(new Loops());
        synchronized (lock) {
            take(new Waits());
        }
        Thread.sleep(500); // the agent's thread comes round ten times a second
        for (int i = 0; i < 3; i++) {
            take(new Loops());
            synchronized (lock) {
                take(new Waits());
            }
        }
        Thread.sleep(500);
        take(new Nice());
        long before = spins;
        Thread.sleep(100);
        System.out.println("done " + (spins == before));
    }
}
