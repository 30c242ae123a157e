// SPDX-License-Identifier: Apache-2.0

/**
 * A platform thread with the empty name, and a virtual thread where there are any. Prints their
 * numbers.
 */
public class Nameless {
    static long last;

    public static void main(String[] args) throws Exception {
        Thread platform = new Thread(Nameless::call, "");
        platform.start();
        platform.join();
        try {
            ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) Nameless::call)).join();
        } catch (NoSuchMethodException e) {
            return; // before JDK 21
        }
    }

    static void call() {
        System.out.println(last = Thread.currentThread().getId()); // logged
    }
}
