// SPDX-License-Identifier: Apache-2.0
/**
 * One call of a method that allocates in a loop until a line comes on standard input, and prints
 * how many objects it has made. Another thread calls a method that allocates, so that a recording
 * holds something.
 */
public class RunsOn {
    static volatile Object kept, other;

    static void once() {
        other = new byte[16];
    }

    static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void again() {
        while (true) {
            once();
            pause();
        }
    }

    static void loop() throws Exception {
        long made = 0;
        System.out.println("ready");
        while (System.in.available() == 0) {
            kept = new byte[64];
            made++;
        }
        System.out.println(made);
    }

    static void run() throws Exception {
        loop();
    }

    static void run(int times) throws Exception {
        run();
    }

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(RunsOn::again);
        thread.setDaemon(true);
        thread.start();
        run(1);
    }
}
