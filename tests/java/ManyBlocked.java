// SPDX-License-Identifier: Apache-2.0

/** As many threads as the argument says that are blocked at a monitor, until a line is read. */
public class ManyBlocked {
    static final Object monitor = new Object();

    static void enter() {
        synchronized (monitor) {
            monitor.notifyAll();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        synchronized (monitor) {
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(ManyBlocked::enter);
                threads[i].start();
            }
            for (Thread t : threads)
                while (t.getState() != Thread.State.BLOCKED)
                    Thread.sleep(1);
            System.out.println("ready");
            System.in.read();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("over");
    }
}
