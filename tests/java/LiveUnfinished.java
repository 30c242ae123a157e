// SPDX-License-Identifier: Apache-2.0
/** Makes N objects of one class at one place and keeps every second one. */
public class LiveUnfinished {
    static class Kept {
        long a, b;
    }

    static final Object[] kept = new Object[1 << 20];

    public static void main(String[] args) {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Object o = new Kept();
            if (i % 2 == 0)
                kept[i / 2] = o;
        }
        System.out.println("done");
    }
}
