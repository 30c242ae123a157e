// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;

/**
 * Prints the nanoseconds of one call of called(). Argument 1 is "burst": a few thousand calls, then a pause in which a tracer
 * can empty its buffers; or "steady": as fast as it goes.
 */
public class TraceCost {
    static int field;

    static Object called(int i, Object o) {
        field += i;
        return o;
    }

    static long round(int calls, Object o) {
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            if (called(i, o) != o) {
                throw new AssertionError();
            }
        }
        return System.nanoTime() - start;
    }

    public static void main(String[] args) throws Exception {
        boolean burst = args[0].equals("burst");
        int calls = burst ? 4000 : 4_000_000, rounds = burst ? 120 : 30;
        Object o = new Object();
        double[] ns = new double[rounds];
        for (int r = 0; r < rounds; r++) {
            ns[r] = (double) round(calls, o) / calls;
            if (burst) {
                Thread.sleep(r < 20 ? 10 : 130);
            }
        }
        double[] last = Arrays.copyOfRange(ns, rounds / 2, rounds);
        Arrays.sort(last);
        System.out.printf("%.2f%n", last[last.length / 2]);
    }
}
