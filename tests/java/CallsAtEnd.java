// SPDX-License-Identifier: Apache-2.0
/**
 * Argument 1 threads call work() without a pause, and go on while the VM ends with status 7 after
 * argument 2 milliseconds.
 */
public class CallsAtEnd {
    static volatile Object sink;

    static void work(int n) {
        sink = new int[n];
    }

    static void hardly(int n) {
        sink = new int[n];
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread t = new Thread(() -> {
                for (;;) {
                    work(5);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        for (int i = 0; i < 100; i++) {
            hardly(i);
        }
        Thread.sleep(Long.parseLong(args[1]));
        System.out.println("ends");
        System.exit(7);
    }
}
