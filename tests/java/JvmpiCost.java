// SPDX-License-Identifier: Apache-2.0
/** For bench/jvmpi: prints "ns X", the time of one operation. */
public class JvmpiCost {
    static int sink;
    static Object kept;

    /** Recursive, so that no compiler inlines it as a whole: N calls. */
    static int down(int n) {
        return n == 0 ? sink : down(n - 1) + 1;
    }

    public static void main(String[] arguments) {
        boolean call = arguments[0].equals("call");
        if (arguments[0].equals("nothing")) {
            System.out.println("ns 0");
            return;
        }
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            long start = System.nanoTime();
            int n = 0, enough = call ? 2000000 : 400000;
            while (n < enough) {
                if (call) {
                    sink = down(99) & 1;
                    n += 100;
                } else {
                    kept = new Object();
                    n++;
                }
            }
            best = Math.min(best, (System.nanoTime() - start) / (double) n);
        }
        System.out.println("ns " + best);
    }
}
