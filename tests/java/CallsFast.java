// SPDX-License-Identifier: Apache-2.0
/**
 * From the first line of input on two threads call a short method as often as they can; each line
 * is answered with how often.
 */
public class CallsFast {
    static final long[] calls = new long[32];

    static int step(int n) {
        return n * 31 + 7;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        for (int c, lines = 0; (c = System.in.read()) >= 0;) {
            if (c != '\n')
                continue;
            for (int i = 0; lines == 0 && i < 2; i++) {
                int at = i * 16; // in another cache line
                Thread t = new Thread(() -> {
                    for (int n = 0;; calls[at]++)
                        n = step(n);
                });
                t.setDaemon(true);
                t.start();
            }
            lines++;
            System.out.println(calls[0] + calls[16]);
        }
    }
}
