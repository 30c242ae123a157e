// SPDX-License-Identifier: Apache-2.0
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;

/**
 * Prints the median of the nanoseconds of one call of called() as the last word. Argument 1 is
 * "burst": a few thousand calls, then a pause in which a tracer can empty its buffers; "steady": as
 * fast as it goes; or "clock": the nanoseconds of one System.nanoTime() instead. "burst" first
 * prints the median of the page faults of a round, the fewest nanoseconds of one System.nanoTime()
 * in as many rounds, and the fewest of a call.
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

    /** Returns how many page faults this thread has had. */
    static double faults() throws Exception {
        String stat = new String(Files.readAllBytes(Paths.get("/proc/thread-self/stat")));
        return Double.parseDouble(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[7]);
    }

    /** Returns the second half of the values in ascending order. */
    static double[] last(double[] values) {
        double[] last = Arrays.copyOfRange(values, values.length / 2, values.length);
        Arrays.sort(last);
        return last;
    }

    public static void main(String[] args) throws Exception {
        boolean burst = args[0].equals("burst");
        boolean clock = args[0].equals("clock");
        int calls = burst || clock ? 4000 : 4_000_000,
            rounds = clock ? 200 : 30; // short rounds: few are interrupted
        Object o = new Object();
        double[] ns = new double[rounds], clocks = new double[rounds], faults = new double[rounds];
        for (int r = 0; r < rounds; r++) {
            double before = burst ? faults() : 0;
            ns[r] = (double) (clock ? clock(calls) : round(calls, o)) / calls;
            if (burst) {
                faults[r] = faults() - before;
                clocks[r] = (double) clock(calls) / calls;
                Thread.sleep(r < 15 ? 10 : 110);
            }
        }
        ns = last(ns);
        if (burst) {
            faults = last(faults);
            System.out.printf("%.0f %.2f %.2f ", faults[faults.length / 2], last(clocks)[0], ns[0]);
        }
        System.out.printf("%.2f%n", ns[ns.length / 2]);
    }
}
