// SPDX-License-Identifier: Apache-2.0

/**
 * Known live objects: 10,000 of each of two classes, made alternately with 10,000 that are dropped;
 * 100 of each of ten classes; and 10,000 that are made after five million others were dropped.
 * "waits": for a line of standard input at both ends.
 */
public class LiveKnown {
    static class First { long a; }
    static class Second { long a, b; }
    static class Dropped { long a, b, c; }
    static class Late { long a; }
    static class Few0 { }
    static class Few1 { }
    static class Few2 { }
    static class Few3 { }
    static class Few4 { }
    static class Few5 { }
    static class Few6 { }
    static class Few7 { }
    static class Few8 { }
    static class Few9 { }

    static final int AMOUNT = 10_000, FEW = 100;
    static final Object[] first = new Object[AMOUNT], second = new Object[AMOUNT],
                          late = new Object[AMOUNT], few = new Object[10 * FEW];
    static volatile Object sink;

    static Object one(int kind) {
        switch (kind) {
        case 0: return new Few0();
        case 1: return new Few1();
        case 2: return new Few2();
        case 3: return new Few3();
        case 4: return new Few4();
        case 5: return new Few5();
        case 6: return new Few6();
        case 7: return new Few7();
        case 8: return new Few8();
        default: return new Few9();
        }
    }

    static void fill() {
        for (int i = 0; i < AMOUNT; i++) {
            first[i] = new First();
            second[i] = new Second();
            sink = new Dropped();
        }
        for (int i = 0; i < few.length; i++)
            few[i] = one(i % 10);
    }

    static void fillLate() {
        for (int i = 0; i < 5_000_000; i++)
            sink = new Dropped();
        for (int i = 0; i < AMOUNT; i++)
            late[i] = new Late();
        sink = null;
    }

    public static void main(String[] args) throws Exception {
        boolean waits = args.length > 0;
        if (waits) {
            System.out.println("ready");
            System.in.read();
        }
        fill();
        fillLate();
        System.out.println("done");
        if (waits)
            System.in.read();
    }
}
