// SPDX-License-Identifier: Apache-2.0
/**
 * Allocates as many arrays of 1 MiB as the first argument says and keeps none; sleeps the second
 * one's ms after each.
 */
public class Humongous {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        for (int i = 0; i < n; i++) {
            sink = new byte[1 << 20];
            if (args.length > 1)
                Thread.sleep(Long.parseLong(args[1]));
        }
        System.out.println("done");
    }
}
