// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Makes a million objects at each of six places and keeps one of fifty, so that estimates of how
 * many live rest on few of them.
 */
public class LiveSeldom {
    static final List<Object> kept = new ArrayList<>();
    static volatile Object sink;

    static class Made {
        long a, b;
    }

    static Object make0() {
        return new Made();
    }

    static Object make1() {
        return new Made();
    }

    static Object make2() {
        return new Made();
    }

    static Object make3() {
        return new Made();
    }

    static Object make4() {
        return new Made();
    }

    static Object make5() {
        return new Made();
    }

    static Object make(int place) {
        switch (place) {
        case 0: return make0();
        case 1: return make1();
        case 2: return make2();
        case 3: return make3();
        case 4: return make4();
        default: return make5();
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 6_000_000; i++) {
            sink = make(i % 6);
            if (i / 6 % 50 == 7)
                kept.add(sink);
        }
        System.out.println(kept.size());
    }
}
