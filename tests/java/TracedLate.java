// SPDX-License-Identifier: Apache-2.0
/**
 * Waits for a line before it loads a class and calls take(int), which it then does until the next
 * line.
 */
public class TracedLate {
    static class Late {
        static String tag = "t";
    }

    static int take(int n) {
        return n + 1;
    }

    /** Is never called. */
    static int never(int n) {
        return n;
    }

    private static void untilLine() throws java.io.IOException {
        int c;
        do
            c = System.in.read();
        while (c != '\n' && c >= 0);
    }

    private static void take() {
        for (int n = Late.tag.length();; n = take(n)) {
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        untilLine();
        Thread taker = new Thread(() -> take());
        taker.setDaemon(true);
        taker.start();
        untilLine();
        System.out.println("done");
    }
}
