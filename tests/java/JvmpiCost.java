// SPDX-License-Identifier: Apache-2.0
/** For bench/jvmpi: prints "ns X Y", the time of one operation: in the quickest of ten rounds, and in the last five with collections. */
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
            System.out.println("ns 0 0");
            return;
        }
        double best = Double.MAX_VALUE, sum = 0;
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
            double each = (System.nanoTime() - start) / (double) n;
            best = Math.min(best, each);
            sum += round < 5 ? 0 : each;
        }
        System.out.println("ns " + best + " " + sum / 5);
    }
}
