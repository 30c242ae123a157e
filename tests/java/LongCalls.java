// SPDX-License-Identifier: Apache-2.0

/** Two threads call a method of 700 ms again and again, and main computes, until it is killed. */
public class LongCalls {
    static volatile long sum;

    static void hold() throws InterruptedException {
        Thread.sleep(700);
    }

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            Thread t = new Thread(() -> {
                try {
                    while (true)
                        hold();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        System.out.println("ready");
        while (true)
            sum = sum * 31 + 1;
    }
}
