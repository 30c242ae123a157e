// SPDX-License-Identifier: Apache-2.0
/**
 * For ever: `three` does three times the work of `one`, each at the end of a recursion of ten, and
 * allocates three times as much.
 */
public class Shares {
    static volatile long sink;
    static Object last;

    static void work(int parts) {
        long sum = 0;
        for (int i = 0; i < parts * 100_000; i++)
            sum += i * 7 % 5;
        sink += sum;
        for (int i = 0; i < parts * 100; i++)
            last = new byte[1000];
    }

    static void three(int deep) {
        if (deep > 0)
            three(deep - 1);
        else
            work(3);
    }

    static void one(int deep) {
        if (deep > 0)
            one(deep - 1);
        else
            work(1);
    }

    public static void main(String[] args) {
        System.out.println("ready");
        while (true) {
            three(10);
            one(10);
        }
    }
}
