// SPDX-License-Identifier: Apache-2.0
/** Twenty virtual threads that are mounted a thousand times and allocate; prints the rounds. */
public class VirtualRounds {
    static int rounds;

    static synchronized void round(Object o) {
        rounds += o != null ? 1 : 0;
    }

    static void work() {
        for (int i = 0; i < 50; i++) {
            round(new Object());
            try {
                Thread.sleep(2);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[20];
        for (int k = 0; k < threads.length; k++)
            threads[k] = Thread.ofVirtual().name("v" + k).start(VirtualRounds::work);
        for (Thread t : threads)
            t.join();
        System.out.println("rounds " + rounds);
    }
}
