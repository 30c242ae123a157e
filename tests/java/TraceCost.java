// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;

/**
 * Prints the nanoseconds of one call of called(). Argument 1 is "burst": a few thousand calls, then a pause in which a tracer
 * can empty its buffers; "steady": as fast as it goes; or "clock": the nanoseconds of one System.nanoTime() instead.
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

    static long clock(int calls) {
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            field += (int) System.nanoTime();
        }
        return System.nanoTime() - start;
    }

    public static void main(String[] args) throws Exception {
        boolean burst = args[0].equals("burst");
        boolean clock = args[0].equals("clock");
        int calls = burst || clock ? 4000 : 4_000_000, rounds = clock ? 200 : 30; // short rounds: few are interrupted
        Object o = new Object();
        double[] ns = new double[rounds];
        for (int r = 0; r < rounds; r++) {
            ns[r] = (double) (clock ? clock(calls) : round(calls, o)) / calls;
            if (burst) {
                Thread.sleep(r < 15 ? 10 : 110);
            }
        }
        double[] last = Arrays.copyOfRange(ns, rounds / 2, rounds);
        Arrays.sort(last);
        System.out.printf("%.2f%n", last[last.length / 2]);
    }
}
