// SPDX-License-Identifier: Apache-2.0
/** One call of a method that allocates in a loop until a line comes on standard input, and prints how many objects it has made. */
public class RunsOn {
    static volatile Object kept;

    static void loop() throws Exception {
        long made = 0;
        System.out.println("ready");
        while (System.in.available() == 0) {
            kept = new byte[64];
            made++;
        }
        System.out.println(made);
    }

    public static void main(String[] args) throws Exception {
        loop();
    }
}
