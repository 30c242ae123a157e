// SPDX-License-Identifier: Apache-2.0

/**
 * Tiny methods in five shapes of calls, and two readings of the clock with nothing between; prints
 * for each calls and nanoseconds per call, best of the rounds after a warm-up.
 */
public class TimesMicro {
    static int sink;

    static int leaf(int x) {
        int y = x * 31 + (x >>> 3);
        return y ^ y << 7;
    }

    static int outer(int x) {
        return middle(x) + 1;
    }

    static int middle(int x) {
        return leaf(x + 3) + leaf(x);
    }

    static int recursive(int n) {
        return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
    }

    interface Op {
        int apply(int x);
    }

    static final Op[] OPS = {new Op() {
        public int apply(int x) {
            return x * 17 + (x >>> 2) ^ x;
        }
    }, new Op() {
        public int apply(int x) {
            return x * 13 + (x >>> 5) ^ x;
        }
    }, new Op() {
        public int apply(int x) {
            return x * 11 + (x >>> 1) ^ x;
        }
    }};

    static int thrower(int x) {
        if (x % 1000 == 0)
            throw RARE;
        return x * 7 + (x >>> 4);
    }

    static final RuntimeException RARE = new RuntimeException(null, null, false, false) {
    };

    static int shape(int which, int n) {
        int s = 0;
        switch (which) {
        case 0:
            for (int i = 0; i < n; i++)
                s += leaf(s + i);
            break;
        case 1:
            for (int i = 0; i < n / 4; i++)
                s += outer(s + i);
            break;
        case 2:
            s = recursive(27);
            break;
        case 3:
            for (int i = 0; i < n; i++)
                s += OPS[i % 3].apply(s + i);
            break;
        case 5:
            for (int i = 0; i < n; i++)
                s += (int) (System.nanoTime() - System.nanoTime());
            break;
        default:
            for (int i = 0; i < n; i++)
                try {
                    s += thrower(i);
                } catch (RuntimeException e) {
                    s++;
                }
        }
        return s;
    }

    public static void main(String[] a) {
        int n = 1000000, rounds = a.length > 0 ? Integer.parseInt(a[0]) : 30;
        long[] best = new long[6], calls = {n, n, 832040, n, n, n};
        for (int r = 0; r < rounds; r++)
            for (int k = 0; k < best.length; k++) {
                long start = System.nanoTime();
                sink += shape(k, n);
                long took = System.nanoTime() - start;
                if (r == 0 || took < best[k])
                    best[k] = took;
            }
        String[] names = {"leaf", "nested", "recursive", "virtual", "throwing", "clock"};
        for (int k = 0; k < best.length; k++)
            System.out.printf("%s %d %.2f%n", names[k], calls[k], best[k] / (double) calls[k]);
    }
}
