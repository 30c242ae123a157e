// SPDX-License-Identifier: Apache-2.0
/**
 * Threads that end long before the program does: number i makes i objects, and calls a method of
 * its own once for each.
 */
public class CountedEnds {
    static volatile Object last;

    static void make() {
        last = new byte[104];
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        for (int i = 1; i <= threads; i++) {
            int n = i;
            Thread t = new Thread(() -> {
                for (int k = 0; k < n; k++)
                    make();
            }, String.format("ends-%05d", i));
            t.start();
            t.join();
        }
        Thread.sleep(Long.parseLong(args[1]));
    }
}
