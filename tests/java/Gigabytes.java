// SPDX-License-Identifier: Apache-2.0
/** Allocates arrays of 64 MB, argument 1 of them, and keeps none. */
public class Gigabytes {
    static byte[] last;

    public static void main(String[] args) {
        for (int i = Integer.parseInt(args[0]); i > 0; i--)
            last = new byte[64 << 20];
    }
}
