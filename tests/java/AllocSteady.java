// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Rounds of 600,000 objects of the usual kinds; prints the nanoseconds of each object in the best
 * of the last rounds.
 */
public class AllocSteady {
    static final class Point {
        final int x, y;

        Point(int x, int y) {
            this.x = x;
            this.y = y;
        }
    }

    static Object sink;

    static long round(int n) {
        long sum = 0;
        for (int i = 0; i < n; i += 12) {
            List<Object> list = new ArrayList<>();
            for (int k = 0; k < 8; k++) {
                list.add(new Point(i, k));
            }
            byte[] bytes = new byte[32 + (i & 31)];
            String s = Integer.toString(i);
            sum += list.size() + bytes.length + s.length();
            sink = list;
        }
        return sum;
    }

    public static void main(String[] args) {
        int rounds = args.length > 0 ? Integer.parseInt(args[0]) : 60;
        double best = 1e9;
        long sum = 0;
        for (int r = 0; r < rounds; r++) {
            long start = System.nanoTime();
            sum += round(600000);
            double ns = (System.nanoTime() - start) / 600000.0;
            if (r >= rounds / 2) {
                best = Math.min(best, ns);
            }
        }
        System.out.println("NS " + best + " " + sum);
    }
}
