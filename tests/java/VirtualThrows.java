// SPDX-License-Identifier: Apache-2.0
/** Virtual threads, N of each kind: an exception ends one, another is interrupted as it sleeps. */
public class VirtualThrows {
    static void fails() {
        throw new IllegalStateException();
    }

    static void interrupted() {
        try {
            Thread.currentThread().interrupt();
            Thread.sleep(1);
        } catch (InterruptedException e) {
            // the exception is part of the test
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread.ofVirtual()
                    .uncaughtExceptionHandler((thread, e) -> {})
                    .start(VirtualThrows::fails)
                    .join();
            Thread.startVirtualThread(VirtualThrows::interrupted).join();
        }
    }
}
