// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Array;

/**
 * Arrays of some 2,000 classes, each made twice at each of eight places by reflection: more than
 * there is room for counters of their own. Prints how many objects of each class: ROUNDS * 8 * 2,
 * and one more at another place.
 */
public class ManyTypes {
    static final int DIMENSIONS = 250;
    static volatile Object sink;

    static Object make(int place, Class<?> c) {
        switch (place) {
        case 0:
            return Array.newInstance(c, 0);
        case 1:
            return Array.newInstance(c, 1);
        case 2:
            return Array.newInstance(c, 2);
        case 3:
            return Array.newInstance(c, 3);
        case 4:
            return Array.newInstance(c, 4);
        case 5:
            return Array.newInstance(c, 5);
        case 6:
            return Array.newInstance(c, 6);
        default:
            return Array.newInstance(c, 7);
        }
    }

    public static void main(String[] args) {
        Class<?>[] elements = {boolean.class, byte.class, char.class,  short.class,
                               int.class,     long.class, float.class, double.class};
        for (Class<?> element : elements) {
            Class<?> c = element;
            for (int d = 0; d < DIMENSIONS; d++) {
                for (int i = 0; i < 16; i++) {
                    sink = make(i % 8, c);
                }
                c = sink.getClass();
            }
        }
        System.out.println(16);
    }
}
