// SPDX-License-Identifier: Apache-2.0
/**
 * Passes objects whose fields have known values: the numbers show which calls a condition on
 * fields selects.
 */
public class Reached {
    static class Base {
        private final int level;
        Base next;
        String name;
        static long turn = 100;
        static Base last;
        static String tag = "t";
        static byte small = 1;

        Base(int level) {
            this.level = level;
            name = level == 3 ? null : "n" + level;
        }

        int take(int i, Object o) {
            return i + level; // a line
        }
    }

    static class Below extends Base {
        final int[] parts = {1, 2, 3};
        final Integer boxed;

        Below(int level) {
            super(level);
            boxed = level + 1000;
        }
    }

    static int plain(int i, Base b) {
        return i;
    }

    static Boolean boxes(Byte b, Character c, Long l) {
        return b != null;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 10; i++) {
            Base b = i % 2 == 0 ? new Below(i) : new Base(i);
            b.next = i < 5 ? new Below(10 * i) : null;
            Base.turn = 100 + i;
            Base.last = i < 8 ? b : null;
            if (b.take(i, b.next) + plain(i, i == 9 ? null : b) != 3 * i)
                System.out.println("wrong");
        }
        boxes((byte) 7, 'x', null);
        System.out.println("done");
    }
}
