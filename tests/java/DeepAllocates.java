// SPDX-License-Identifier: Apache-2.0
/** Recursion 2,000 calls deep that makes an object in each of them. Argument: how often. */
public class DeepAllocates {
    static final class Link {
        final Link before;
        final int depth;

        Link(Link before, int depth) {
            this.before = before;
            this.depth = depth;
        }
    }

    static Link deeper(Link l) {
        return l.depth == 2000 ? l : deeper(new Link(l, l.depth + 1));
    }

    public static void main(String[] args) {
        long sum = 0;
        for (int i = 0, n = Integer.parseInt(args[0]); i < n; i++) {
            sum += deeper(new Link(null, 0)).depth;
        }
        System.out.println("sum " + sum);
    }
}
