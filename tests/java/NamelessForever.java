// SPDX-License-Identifier: Apache-2.0
/** A platform thread with the empty name works until standard input ends. Prints its number. */
public class NamelessForever {
    static long last;

    static void fail(long n) {
        throw new IllegalStateException("no " + n);
    }

    static void call(long n) {
        last = n; // logged
        try {
            fail(n);
        } catch (IllegalStateException e) {
            last++;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(() -> {
            for (long n = 0; n < Long.MAX_VALUE; n++) {
                call(n);
                try {
                    Thread.sleep(5);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, "");
        worker.setDaemon(true);
        worker.start();
        System.out.println(worker.getId());
        System.in.read();
    }
}
