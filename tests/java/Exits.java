// SPDX-License-Identifier: Apache-2.0
/** Prints one line each way and ends with the status given. */
public class Exits {
    static void unused() {
    }

    public static void main(String[] args) {
        System.out.println("out");
        System.err.println("err");
        System.exit(Integer.parseInt(args[0]));
    }
}
