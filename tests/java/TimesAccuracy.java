// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * One piece of work, called in five shapes: TimesAccuracy CALLS, with -Dsteps=N steps of work per
 * call. Makes all calls twice, for the JIT to compile them, prints "warm", waits for a line, makes
 * them again, and prints for each shape the method that does the work, calls, nanoseconds per call
 * by the program's own clock (mean and best), and elapsed time by CPU time of the loop (1 on a
 * machine that has time for it). Run without an agent it tells the truth.
 */
public class TimesAccuracy {
    /**
     * Not final: JDK 8 would write the steps of a constant number out as one piece, and move that
     * behind a probe at return.
     */
    static int steps = Integer.getInteger("steps", 10);
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static int sink;

    static int straight(int x) {
        for (int i = 0; i < steps; i++)
            x = x * 31 + (x >>> 3);
        return x;
    }

    static int outer(int x) {
        return middle(x);
    }

    static int middle(int x) {
        return nested(x);
    }

    static int nested(int x) {
        for (int i = 0; i < steps; i++)
            x = x * 31 + (x >>> 3);
        return x;
    }

    static int recursive(int x, int depth) {
        for (int i = 0; i < steps; i++)
            x = x * 31 + (x >>> 3);
        return depth == 0 ? x : recursive(x, depth - 1);
    }

    static class Op {
        int virtual(int x) {
            return x;
        }
    }

    static class Worker extends Op {
        @Override
        int virtual(int x) {
            for (int i = 0; i < steps; i++)
                x = x * 31 + (x >>> 3);
            return x;
        }
    }

    static class Other extends Worker {
    }

    static final Op[] OPS = {new Worker(), new Other(), new Worker(), new Other()};

    static final RuntimeException RARE = new RuntimeException(null, null, false, false) {
    };

    static int throwing(int x) {
        for (int i = 0; i < steps; i++)
            x = x * 31 + (x >>> 3);
        if ((x & 0xffff) == 0x1234)
            throw RARE;
        return x;
    }

    static int loop(int shape, int n, int x) {
        switch (shape) {
        case 0:
            for (int i = 0; i < n; i++)
                x = straight(x + i);
            break;
        case 1:
            for (int i = 0; i < n; i++)
                x = outer(x + i);
            break;
        case 2:
            for (int i = 0; i < n; i += 8)
                x = recursive(x + i, 7);
            break;
        case 3:
            for (int i = 0; i < n; i++)
                x = OPS[i & 3].virtual(x + i);
            break;
        default:
            for (int i = 0; i < n; i++)
                try {
                    x = throwing(x + i);
                } catch (RuntimeException e) {
                    x++;
                }
        }
        return x;
    }

    /** Calls one shape: its row. */
    static String measure(String name, int shape, int chunk) {
        long cpu = THREADS.getCurrentThreadCpuTime(), start = System.nanoTime();
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 100; i++) {
            long from = System.nanoTime();
            sink = loop(shape, chunk, sink + i);
            best = Math.min(best, System.nanoTime() - from);
        }
        double elapsed = System.nanoTime() - start;
        return String.format("%s %d %.3f %.3f %.2f", name, 100 * chunk, elapsed / 100 / chunk,
                             (double) best / chunk,
                             elapsed / (THREADS.getCurrentThreadCpuTime() - cpu));
    }

    public static void main(String[] args) throws java.io.IOException {
        int chunk = Integer.parseInt(args[0]) / 100 / 8 * 8;
        String[] names = {"straight", "nested", "recursive", "virtual", "throwing"},
                 rows = new String[5];
        for (int pass = 0; pass < 3; pass++) {
            if (pass == 2) {
                System.out.println("warm");
                System.in.read();
            }
            for (int shape = 0; shape < 5; shape++)
                rows[shape] = measure(names[shape], shape, chunk);
        }
        for (String row : rows)
            System.out.println(row);
    }
}
