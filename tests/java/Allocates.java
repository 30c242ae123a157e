// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** Allocates known numbers of objects at known places; keeps a known part of them. */
public class Allocates {
    static final class Small {
        long a, b;
    }

    static final List<Object> KEEP = new ArrayList<>();
    static Object sink;

    static void small(int n) {
        for (int i = 0; i < n; i++) {
            Small s = new Small();
            sink = s;
            if (i % 4 == 0) {
                KEEP.add(s);
            }
        }
    }

    static void arrays(int n) {
        for (int i = 0; i < n; i++) {
            sink = new byte[1000];
        }
    }

    static final class Shared {
        int x;
    }

    static void shared() {
        sink = new Shared();
    }

    static void often() {
        shared();
    }

    static void seldom() {
        shared();
    }

    static void sharing(int n) {
        java.util.Random random = new java.util.Random(5);
        for (int often = n * 3 / 4, seldom = n - often; often + seldom > 0;) {
            if (random.nextInt(often + seldom) < often) {
                often();
                often--;
            } else {
                seldom();
                seldom--;
            }
        }
    }

    public static void main(String[] args) {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 2000000;
        small(n);
        arrays(n / 10);
        sharing(n);
        sink = null;
        System.out.println("allocated " + KEEP.size());
    }
}
