// SPDX-License-Identifier: Apache-2.0
/**
 * Sleeps of main, in this order: 5 that run out, 5 that end at once because main has interrupted
 * itself, 5 that another thread interrupts. The timeouts tell them apart: 20, 1000 and 2000 ms.
 */
public class SleepEnds {
    static boolean sleep(long ms) {
        try {
            Thread.sleep(ms);
            return true;
        } catch (InterruptedException e) {
            return false;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread main = Thread.currentThread();
        int out = 0, itself = 0, other = 0;
        for (int i = 0; i < 5; i++)
            out += sleep(20) ? 1 : 0;
        for (int i = 0; i < 5; i++) {
            main.interrupt();
            itself += sleep(1000) ? 0 : 1;
        }
        for (int i = 0; i < 5; i++) {
            Thread t = new Thread(() -> {
                while (main.getState() != Thread.State.TIMED_WAITING)
                    Thread.yield();
                main.interrupt();
            });
            t.start();
            other += sleep(2000) ? 0 : 1;
            t.join();
        }
        System.out.println(out + " " + itself + " " + other);
    }
}
