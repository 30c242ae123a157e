// SPDX-License-Identifier: Apache-2.0
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * Parks with many stacks, each of which its timeout names: of NS + N ns, bit k of N is 1 where the
 * k-th call was b. Arguments: how often three times; NS.
 */
public class ParkPlaces {
    static final int BITS = 6;
    static long sink, shortest;

    static void go(int n, int depth) {
        if (depth == BITS)
            LockSupport.parkNanos(shortest + n);
        else if ((n >> depth & 1) == 0)
            a(n, depth);
        else
            b(n, depth, sink, depth * 3L);
    }

    static void a(int n, int depth) {
        go(n, depth + 1);
    }

    /** With a larger frame. */
    static void b(int n, int depth, long x, long y) {
        long z = x * 31 + y;
        go(n, depth + 1);
        sink += z ^ x ^ y;
    }

    public static void main(String[] args) {
        Random random = new Random(1);
        shortest = Long.parseLong(args[1]);
        for (int i = 0, rounds = Integer.parseInt(args[0]); i < rounds; i++)
            for (int n = random.nextInt(1 << BITS), k = 0; k < 3; k++)
                go(n, 0);
    }
}
