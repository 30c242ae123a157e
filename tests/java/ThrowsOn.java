// SPDX-License-Identifier: Apache-2.0

/**
 * Exceptions that are thrown on: by a handler, a finally block, a monitor's exit,
 * try-with-resources. Argument: how often each.
 */
public class ThrowsOn {
    static class Plain extends RuntimeException {}
    static class Rethrown extends RuntimeException {}
    static class Finally extends RuntimeException {}
    static class Method extends RuntimeException {}
    static class Block extends RuntimeException {}
    static class Resource extends RuntimeException {}
    static class Either extends RuntimeException {}

    static int caught;

    static void plain() { throw new Plain(); }

    static void rethrown() { try { throw new Rethrown(); } catch (Rethrown e) { throw e; } }

    static void through() { try { throw new Finally(); } finally { caught += 0; } }

    static synchronized void method() { throw new Method(); }

    static void block() { synchronized (ThrowsOn.class) { throw new Block(); } }

    static void resource() { try (Guard g = new Guard()) { throw new Resource(); } catch (Resource e) { throw e; } }

    static void either(int i) { if (i % 2 == 0) throw new Either(); else throw new Either(); }

    static class Guard implements AutoCloseable {
        public void close() {}
    }

    static void call(int which, int i) {
        switch (which) {
            case 0: plain(); break;
            case 1: rethrown(); break;
            case 2: through(); break;
            case 3: method(); break;
            case 4: block(); break;
            case 5: resource(); break;
            default: either(i);
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < Integer.parseInt(args[0]); i++)
            for (int which = 0; which < 7; which++)
                try {
                    call(which, i);
                } catch (RuntimeException e) {
                    caught++;
                }
        System.out.println(caught);
    }
}
