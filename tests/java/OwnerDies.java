// SPDX-License-Identifier: Apache-2.0
/** Five threads have a monitor for which main waits, and end when they leave it. */
public class OwnerDies {
    static final Object LOCK = new Object();
    static int entered;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5; i++) {
            Thread owner = new Thread("owner-" + i) {
                @Override
                public void run() {
                    synchronized (LOCK) {
                        try {
                            Thread.sleep(60);
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    }
                }
            };
            owner.start();
            while (owner.getState() != Thread.State.TIMED_WAITING)
                Thread.sleep(1);
            synchronized (LOCK) {
                entered++;
            }
            owner.join();
        }
    }
}
