// SPDX-License-Identifier: Apache-2.0
/** Holds 100 locks at once. */
public class ManyHeld {
    static void hold(int more) {
        synchronized (new Object()) {
            if (more > 1) {
                hold(more - 1);
            }
        }
    }

    public static void main(String[] args) {
        hold(100);
    }
}
