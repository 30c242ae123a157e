// SPDX-License-Identifier: Apache-2.0
/**
 * Two methods that overflow the stack in turn, "rounds" times each, and allocate, throw and
 * compute meanwhile.
 */
public class Overflow {
    static Object kept;
    static long sum;

    static void first(int depth) {
        kept = new byte[16];
        first(depth + 1);
        sum++;
    }

    static void second(int depth) {
        kept = new long[1];
        second(depth + 1);
        sum--;
    }

    static int overflows(boolean isFirst) {
        try {
            if (isFirst)
                first(0);
            else
                second(0);
            return 0;
        } catch (StackOverflowError e) {
            return 1;
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        int[] n = new int[2];
        Thread deep = new Thread(null, () -> {
            for (int i = 0; i < rounds; i++) {
                n[0] += overflows(true);
                n[1] += overflows(false);
            }
        }, "deep", 256 * 1024);
        deep.start();
        deep.join();
        System.out.println(n[0] + " " + n[1]);
    }
}
