// SPDX-License-Identifier: Apache-2.0

/** Its main method never returns, because it ends the program. */
public class Exits {
    public static void main(String[] args) {
        System.exit(0);
    }
}
