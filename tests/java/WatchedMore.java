// SPDX-License-Identifier: Apache-2.0
/** A field of type char, one that a subclass inherits, and a line of a method. */
public class WatchedMore {
    char letter = 'a';
    int number;

    static class Sub extends WatchedMore {
        int own;

        void set() {
            number = 5;
            own = number;
        }
    }

    static int next(int n) {
        int more = n + 1;
        return more; // logged
    }

    public static void main(String[] args) {
        WatchedMore w = new WatchedMore();
        w.letter = '\'';
        new Sub().set();
        System.out.println("done " + (next(next(250)) + 9));
    }
}
