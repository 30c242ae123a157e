// SPDX-License-Identifier: Apache-2.0
/**
 * Calls tick with 0, 1, 2 ... and holds each call of slow for some time, until its input ends.
 * Task.run calls are counted by a type.
 */
public class TracedTicks {
    static volatile long sink;
    static volatile boolean over;

    static long tick(long i) {
        return sink += i;
    }

    static void slow(long i) throws Exception {
        Thread.sleep(20);
    }

    static void other(long i) {
        sink++;
    }

    interface Counted {
        void count(long i);
    }

    static class Task implements Counted {
        public void count(long i) {
            sink++;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread slow = new Thread(() -> {
            try {
                for (long i = 0; !over; i++)
                    slow(i);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "slow");
        Thread ticks = new Thread(() -> {
            Task task = new Task();
            try {
                for (long i = 0; !over; i++) {
                    tick(i);
                    task.count(i);
                    other(i);
                    if (i % 20 == 0)
                        Thread.sleep(1);
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "ticks");
        slow.start();
        ticks.start();
        System.out.println("ready");
        System.in.read();
        over = true;
        slow.join();
        ticks.join();
        System.out.println("done");
    }
}
