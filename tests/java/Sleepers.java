// SPDX-License-Identifier: Apache-2.0
/**
 * Starts as many threads at once as an argument says, once for each argument; each sleeps for a
 * second. Prints for each argument its number and the milliseconds that all its threads together
 * slept. The threads of argument 70 are called s70-0, s70-1, ...
 */
public class Sleepers {
    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            int count = Integer.parseInt(arg);
            long[] slept = new long[count];
            Thread[] threads = new Thread[count];
            for (int i = 0; i < count; i++) {
                int at = i;
                threads[i] = new Thread(() -> {
                    long began = System.nanoTime();
                    try {
                        Thread.sleep(1000);
                    } catch (InterruptedException e) {
                        return;
                    }
                    slept[at] = System.nanoTime() - began;
                }, "s" + count + "-" + i);
                threads[i].start();
            }
            long sum = 0;
            for (int i = 0; i < count; i++) {
                threads[i].join();
                sum += slept[i];
            }
            System.out.println(count + " " + sum / 1_000_000);
        }
    }
}
