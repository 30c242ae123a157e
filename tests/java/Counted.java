// SPDX-License-Identifier: Apache-2.0

/**
 * Known amounts in rounds, one for each line of standard input: 1,000 calls of `called`, 500 arrays
 * from `allocate`, 100 throws in `fail`; `later` runs from the second round on. With an argument,
 * calls of `left` and `right` to that depth besides.
 */
public class Counted {
    static Object kept;
    static long sum;

    static long called(long i) {
        long n = i;
        for (int k = 0; k < 3; k++)
            n = n * 31 + k;
        return n;
    }

    static void allocate() {
        for (int i = 0; i < 500; i++)
            kept = new long[16];
    }

    static void fail() {
        throw new IllegalStateException("known");
    }

    static void later() {
        sum++;
    }

    /** With `right`: 2^depth - 1 calls by as many stacks, 2^(depth - 1) of them of `left`. */
    static void left(int depth) {
        sum += depth;
        if (depth > 1) {
            left(depth - 1);
            right(depth - 1);
        }
    }

    static void right(int depth) {
        sum -= depth;
        if (depth > 1) {
            left(depth - 1);
            right(depth - 1);
        }
    }

    static void round(int number) {
        for (int i = 0; i < 1000; i++)
            sum += called(i);
        allocate();
        for (int i = 0; i < 100; i++)
            try {
                fail();
            } catch (IllegalStateException e) {
                sum++;
            }
        if (number > 1)
            later();
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        for (int number = 1, c; (c = System.in.read()) >= 0;)
            if (c == '\n') {
                if (args.length > 0)
                    left(Integer.parseInt(args[0]));
                round(number);
                System.out.println("round " + number++);
            }
    }
}
