// SPDX-License-Identifier: Apache-2.0
/** Members of known names, for words that are nearly these. Works until its input ends. */
public class Misspelt {
    static int total;
    int count;

    static class Parent {
        private int hidden = 7;

        int shown() {
            return hidden;
        }
    }

    static class Child extends Parent {
        int weight;
    }

    int price(int amount) {
        int doubled = 2 * amount;
        return count += doubled; // logged
    }

    static Child f(Child c) {
        c.weight += c.shown(); // weighed
        return c;
    }

    @Deprecated
    static void old() {
        total++;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        Misspelt m = new Misspelt();
        Child c = new Child();
        while (System.in.available() == 0) {
            m.price(2);
            f(c);
            old();
            Thread.sleep(1);
        }
        System.out.println("done");
    }
}
