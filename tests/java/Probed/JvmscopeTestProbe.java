// SPDX-License-Identifier: Apache-2.0

/** What the probes of rewrite_pack call: count, by the number of the method. */
public class JvmscopeTestProbe {
    static final int METHODS = 1000;
    static final int[] hits = new int[METHODS], entered = new int[METHODS], left = new int[METHODS],
                       objects = new int[METHODS];
    private static final long MARK = 1L << 40;

    /** The counts, which begin anew. */
    static synchronized String take() {
        StringBuilder counts = new StringBuilder();
        for (int i = 0; i < METHODS; i++) {
            counts.append(hits[i])
                    .append('/')
                    .append(entered[i])
                    .append('/')
                    .append(left[i])
                    .append('/')
                    .append(objects[i])
                    .append(' ');
            hits[i] = entered[i] = left[i] = objects[i] = 0;
        }
        return counts.toString();
    }

    public static synchronized void hit(int method) {
        hits[method]++;
    }

    public static synchronized long enter(int method) {
        entered[method]++;
        return MARK | method;
    }

    public static synchronized void leave(long token) {
        if ((token & ~(MARK - 1)) != MARK)
            throw new AssertionError("the local was lost: " + token);
        left[(int) token]++;
    }

    public static synchronized void object(Object o, int method) {
        objects[method] += o == null ? 0 : 1;
    }
}
