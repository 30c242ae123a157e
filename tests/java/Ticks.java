// SPDX-License-Identifier: Apache-2.0

/**
 * Each tick is one call of `tick`, with one array from `allocate`, one throw in `fail` and one request; after every ten it prints
 * the time and how many there have been, until it is killed. A line of `stage` more runs after each hundred.
 */
public class Ticks {
    static Object kept;
    static int stages;

    static void allocate() {
        kept = new long[16];
    }

    static void fail() {
        throw new IllegalStateException("known");
    }

    static void request() {
        kept = null;
    }

    static void stage(int number) {
        switch (number) {
        case 1:
            stages += 1;
            break;
        case 2:
            stages += 2;
            break;
        case 3:
            stages += 3;
            break;
        case 4:
            stages += 4;
            break;
        case 5:
            stages += 5;
            break;
        default:
            stages += 6;
            break;
        }
    }

    static void tick() {
        request();
        allocate();
        try {
            fail();
        } catch (IllegalStateException e) {
            stages++;
        }
    }

    public static void main(String[] args) throws Exception {
        for (int ticks = 1;; ticks++) {
            tick();
            Thread.sleep(1);
            if (ticks % 100 == 0)
                stage(ticks / 100);
            if (ticks % 10 == 0)
                System.out.println(System.currentTimeMillis() + " " + ticks);
        }
    }
}
