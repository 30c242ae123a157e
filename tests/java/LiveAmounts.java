// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Keeps objects of several classes in amounts from one to the argument (a power of ten), and drops
 * as many of others: the small amounts first, and one more object of a class of its own at the very
 * end. Second argument: "waits" for a line of standard input at both ends, and drops many times the
 * heap of arrays.
 */
public class LiveAmounts {
    static class Kept0 { long a; }
    static class Kept1 extends Kept0 { }
    static class Kept2 extends Kept0 { }
    static class Kept3 extends Kept0 { }
    static class Kept4 extends Kept0 { }
    static class Kept5 extends Kept0 { }
    static class Kept6 extends Kept0 { }
    static class Dropped0 { long a, b; }
    static class Dropped1 extends Dropped0 { }
    static class Dropped2 extends Dropped0 { }
    static class Dropped3 extends Dropped0 { }
    static class Dropped4 extends Dropped0 { }
    static class Dropped5 extends Dropped0 { }
    static class Dropped6 extends Dropped0 { }
    static class Last { long a; }

    static final List<Object> kept = new ArrayList<>(2000000);
    static volatile Object sink;

    static Object keep(int power) {
        switch (power) {
        case 0: return new Kept0();
        case 1: return new Kept1();
        case 2: return new Kept2();
        case 3: return new Kept3();
        case 4: return new Kept4();
        case 5: return new Kept5();
        default: return new Kept6();
        }
    }

    static Object drop(int power) {
        switch (power) {
        case 0: return new Dropped0();
        case 1: return new Dropped1();
        case 2: return new Dropped2();
        case 3: return new Dropped3();
        case 4: return new Dropped4();
        case 5: return new Dropped5();
        default: return new Dropped6();
        }
    }

    static void end() {
        sink = null;
        kept.add(new Last());
    }

    static void waste() {
        for (int i = 0; i < 1500000; i++)
            sink = new byte[1000];
    }

    public static void main(String[] args) throws Exception {
        int largest = Integer.parseInt(args[0]);
        boolean waits = args.length > 1;
        if (waits) {
            System.out.println("ready");
            System.in.read();
        }
        fill(largest);
        if (waits)
            waste();
        end();
        System.out.println("done");
        if (waits)
            System.in.read();
    }

    static void fill(int largest) {
        for (int power = 0, amount = 1; amount <= largest; power++, amount *= 10)
            for (int i = 0; i < amount; i++) {
                kept.add(keep(power));
                sink = drop(power);
            }
    }
}
