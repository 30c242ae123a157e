// SPDX-License-Identifier: Apache-2.0

/** Allocates 100 arrays of 10,000 bytes and collects, as often as the argument says. */
public class SmallCollections {
    static Object sink;

    public static void main(String[] args) {
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            for (int k = 0; k < 100; k++)
                sink = new byte[10_000];
            System.gc();
        }
        System.out.println("done");
    }
}
