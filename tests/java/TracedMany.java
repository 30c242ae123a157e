// SPDX-License-Identifier: Apache-2.0
/**
 * More calls than one page contains: 9000 of outer with two of inner each, then 500 of late, which
 * throws, on a thread of its own.
 */
public class TracedMany {
    static volatile int sink;

    static int inner(int i) {
        return sink += i;
    }

    static int outer(int i) {
        return inner(i) + inner(-i);
    }

    static void late() {
        throw new IllegalStateException();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 9000; i++)
            outer(i);
        Thread t = new Thread(() -> {
            for (int i = 0; i < 500; i++)
                try {
                    late();
                } catch (IllegalStateException e) {
                    sink++;
                }
        }, "later");
        t.start();
        t.join();
    }
}
