// SPDX-License-Identifier: Apache-2.0
/**
 * Two callers reach one place. The first one makes a hundred objects at the beginning, and one in
 * four thousand of the two million later ones: 600 in all, which are kept. Those of the other
 * caller are not.
 */
public class LiveSeldomStack {
    static final Node[] KEPT = new Node[600];
    static volatile Node sink;

    static class Node {
    }

    static Node make() {
        return new Node();
    }

    static Node seldom() {
        return make();
    }

    static void often() {
        sink = make();
    }

    public static void main(String[] args) {
        int n = 0;
        for (int i = -100; i < 2_000_000; i++) {
            if (i < 0 || i % 4000 == 2000)
                KEPT[n++] = seldom();
            else
                often();
        }
    }
}
