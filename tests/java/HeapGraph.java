// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** A heap with known contents: 1000 Nodes in a list of their own, 500 Leafs, arrays; garbage that no dump may show. */
public class HeapGraph {
    static class Node {
        Node next;
        Object other;
        int value = 7;
        long big = -2;
        byte small = 1;
    }

    static final class Leaf extends Node {
        char letter = 'x';
        double number = 1.5;
        boolean yes = true;
        float half = 0.5f;
        short few = 3;
    }

    static final class Garbage {
        final byte[] bytes = new byte[100];
    }

    static Node head;
    static final List<Object> KEEP = new ArrayList<>();
    static final int NUMBER = 42;
    static Object nothing;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 1000; i++) {
            Node n = new Node();
            n.next = head;
            n.other = i % 2 == 0 ? new Leaf() : null;
            head = n;
        }
        Leaf[] leaves = new Leaf[10];
        leaves[3] = (Leaf) head.next.other;
        KEEP.add(leaves);
        KEEP.add(new int[][] {{1, 2}, {3}});
        KEEP.add(new char[] {'a', 'b'});
        KEEP.add(Thread.currentThread());
        for (int i = 0; i < 5000; i++) {
            nothing = new Garbage();
        }
        nothing = null;
        Object local = new StringBuilder("held by a local");
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            Thread.sleep(1);
        }
        System.out.println("DONE " + local);
    }
}
