// SPDX-License-Identifier: Apache-2.0
/** Calls one(), two() and a native method until its input ends. */
public class TracedForever {
    static int one(int n) {
        return n + 1;
    }

    static int two(int n) {
        return n + 2;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        Item item = new Item();
        for (int i = 0; !closed(); i++) {
            item.grow(i);
            if (one(i) != i + 1 || two(i) != i + 2 || java.lang.reflect.Array.getInt(new int[] {i}, 0) != i) {
                System.out.println("wrong");
            }
            Thread.sleep(1);
        }
        System.out.println("done");
    }

    static class Item {
        int size;

        void grow(int n) {
            size += n;
        }
    }

    /** No code reads or writes it. */
    static int quiet;

    private static final Thread reader = new Thread(() -> {
        try {
            System.in.read();
        } catch (java.io.IOException e) {
            // the end as well
        }
    });

    private static boolean closed() {
        if (reader.getState() == Thread.State.NEW) {
            reader.setDaemon(true);
            reader.start();
        }
        return !reader.isAlive();
    }

    enum Color { RED, GREEN { } }

    static Color shade = Color.GREEN;

    /** Neither this nor the next is ever called. */
    static Color paint(Color c) {
        return c;
    }

    static native int unlinked(int n);
}
