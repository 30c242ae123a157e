// SPDX-License-Identifier: Apache-2.0

/** What the probes of rewrite_pack call: counts. */
public class JvmscopeTestProbe {
    static long hits, entered, left, objects, open;

    public static synchronized void hit(int at) {
        hits++;
    }

    public static synchronized long enter(int at) {
        entered++;
        open++;
        return at;
    }

    public static synchronized void leave(long at) {
        left++;
        open--;
        if (at != 1234567)
            throw new AssertionError("the local was lost: " + at);
    }

    public static synchronized void object(Object o) {
        objects += o == null ? 0 : 1;
    }
}
