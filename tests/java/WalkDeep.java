// SPDX-License-Identifier: Apache-2.0
/**
 * Runs at a given depth of recursion for some milliseconds, again and again: WalkDeep DEPTH
 * MILLISECONDS.
 */
public class WalkDeep {
    static volatile double sink;

    static double down(int depth, long end) {
        if (depth > 0)
            return down(depth - 1, end) + 1;
        double sum = 0;
        while (System.nanoTime() < end)
            for (int i = 1; i < 2000; i++)
                sum += Math.sqrt(i) / i;
        return sum;
    }

    public static void main(String[] args) {
        int depth = Integer.parseInt(args[0]);
        long end = System.nanoTime() + Long.parseLong(args[1]) * 1000000L;
        for (int i = 0; i < 3000; i++)
            sink += down(Math.min(depth, 200), 0);
        while (System.nanoTime() < end)
            sink += down(depth, System.nanoTime() + 200000000L);
    }
}
