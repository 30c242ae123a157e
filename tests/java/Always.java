// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/**
 * Does a step at a time, each on a thread of its own, and prints which and when: "step NUMBER FROM
 * TO", in milliseconds since 1970. Two threads wait all the time. Argument: how many steps; 0:
 * until it is killed.
 */
public class Always {
    static volatile long sink;
    static volatile Object kept;

    static void spin(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
            sink++;
    }

    static void daemon(String name, Runnable run) {
        Thread t = new Thread(run, name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        final Object never = new Object();
        daemon("parked", () -> {
            while (true)
                LockSupport.park();
        });
        daemon("waiting", () -> {
            synchronized (never) {
                while (true)
                    try {
                        never.wait();
                    } catch (InterruptedException e) {
                        return;
                    }
            }
        });
        int steps = Integer.parseInt(args[0]);
        for (int i = 0; steps == 0 || i < steps; i++) {
            Thread t = new Thread(() -> {
                spin(4);
                for (int k = 0; k < 100; k++)
                    kept = new byte[50000];
            }, "step-" + i);
            long from = System.currentTimeMillis();
            t.start();
            t.join();
            System.out.println("step " + i + " " + from + " " + System.currentTimeMillis());
            System.out.flush();
            Thread.sleep(10);
        }
    }
}
