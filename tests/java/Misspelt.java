// SPDX-License-Identifier: Apache-2.0
/** Members of known names, for words that are nearly these. Works until its input ends. */
public class Misspelt {
    static int total;
    int count;

    static class Parent {
        static int made = 9;
        private int hidden = 7;
        String[] names = {};

        int shown() {
            return secret();
        }

        private int secret() {
            return hidden;
        }
    }

    interface Priced {
        int cost();

        default int twice() {
            return 2 * cost();
        }
    }

    static class Child extends Parent implements Priced {
        int weight;

        public int cost() {
            return weight;
        }
    }

    static class Twin {}

    static class Other {
        static class Twin {
            int lifted;

            void lift(int by) {
                lifted += by;
            }
        }
    }

    int price(int amount) {
        int doubled = 2 * amount;
        return count += doubled; // logged
    }

    static Child f(Child c) {
        c.weight += c.shown(); // weighed
        return c;
    }

    static boolean isNone(Child c) {
        return c == null; // none
    }

    @Deprecated
    static void old() {
        total++;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        Misspelt m = new Misspelt();
        Child c = new Child();
        new Twin();
        new Other.Twin().lift(1);
        while (System.in.available() == 0) {
            m.price(2);
            f(c);
            old();
            isNone(null);
            isNone(c);
            Thread.sleep(1);
        }
        System.out.println("done");
    }
}
