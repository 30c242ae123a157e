// SPDX-License-Identifier: Apache-2.0
/**
 * Passes values of every kind to methods whose first argument numbers the calls, so that a test
 * knows which ones a condition selects.
 */
public class Compared {
    static int value(int number, Object o) {
        return number;
    }

    static class Above {
    }

    static class Below extends Above {
    }

    static int below(int number, Below b) {
        return number;
    }

    static int type(int number, Class<?> c) {
        return number;
    }

    static int whole(int i) {
        return i;
    }

    public static void main(String[] args) throws InterruptedException {
        Object[] values = {"\ud83d\ude00", "\ud83d", "a\0b", "str", 5, 6L, 1, true, false, null, new int[3], new Object()};
        for (int i = 0; i < values.length; i++)
            value(i, values[i]);
        below(0, new Below());
        type(0, String.class);
        type(1, int[].class);
        whole(0);
        whole(1);
        Thread named = new Thread(() -> value(100, null), "Z\u00fcrich \ud83d\ude00 <b>");
        named.start();
        named.join();
        System.out.println("done");
    }
}
