// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Objects whose retained sizes are known by their construction. Prints "READY", waits for the end
 * of its input.
 */
public class HeapHeld {
    static final class Tree {
        Tree left, right;

        Tree(int depth) {
            if (depth > 1) {
                left = new Tree(depth - 1);
                right = new Tree(depth - 1);
            }
        }
    }

    /** Two hold the same load: neither retains it. */
    static final class Half {
        byte[] load;
    }

    /** The diamond's top retains what both of its sides hold. */
    static final class Diamond {
        Half one = new Half(), two = new Half();

        Diamond() {
            one.load = two.load = new byte[100000];
        }
    }

    static final class Ring {
        Ring next;
        long[] load = new long[1000];
    }

    static final class Alone {
        byte[] load = new byte[54321];
    }

    static final Tree TREE = new Tree(12);
    static final Diamond DIAMOND = new Diamond();
    static Ring ring;
    static final List<Alone> TWICE_A = new ArrayList<>(), TWICE_B = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Ring first = new Ring(), last = first;
        for (int i = 0; i < 9; i++) {
            last.next = new Ring();
            last = last.next;
        }
        last.next = first;
        ring = first;
        first = last = null;
        Alone both = new Alone();
        TWICE_A.add(both);
        TWICE_B.add(both);
        both = null;
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            Thread.sleep(1);
        }
    }
}
