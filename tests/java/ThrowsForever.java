// SPDX-License-Identifier: Apache-2.0
/**
 * Until its input ends, throws what main, a method that has just been called, and nothing catches.
 */
public class ThrowsForever {
    static void thrower(String kind) {
        switch (kind) {
            case "outer":
                throw new IllegalStateException(); // for main
            case "inner":
                throw new UnsupportedOperationException(); // for a new frame
            default:
                throw new IllegalArgumentException(); // for nothing
        }
    }

    static void catches() {
        try {
            thrower("inner");
        } catch (UnsupportedOperationException e) { // inner handler
            return;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((t, e) -> { });
        Thread reader = new Thread(() -> {
            try {
                System.in.read();
            } catch (java.io.IOException e) {
                // the end as well
            }
        });
        reader.setDaemon(true);
        reader.start();
        System.out.println("ready");
        while (reader.isAlive()) {
            try {
                thrower("outer");
            } catch (IllegalStateException e) { // outer handler
                catches();
            }
            Thread dies = new Thread(() -> thrower("nothing"));
            dies.start();
            dies.join();
            Thread.sleep(1);
        }
        System.out.println("done");
    }
}
