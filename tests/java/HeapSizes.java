// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * A heap whose large arrays are most of its dump, with objects whose sizes depend on the layout
 * that the VM chose.
 */
public class HeapSizes {
    static class Node {
        Node next;
        int value;
        byte[] bytes;
    }

    static final class Edge extends Node {
        long[][] rows;
    }

    static final List<Object> LARGE = new ArrayList<>();
    static final List<Object> EDGES = new ArrayList<>();
    static Node head;

    public static void main(String[] args) throws Exception {
        LARGE.add(new byte[20_000_000]);
        LARGE.add(new long[3_000_000]);
        LARGE.add(new Node[1_000_000]);
        for (int i = 0; i < 5000; i++) {
            Node node = new Node();
            node.next = head;
            head = node;
        }
        for (int i = 0; i < 500; i++) {
            Edge edge = new Edge();
            edge.rows = new long[3][5];
            EDGES.add(edge);
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {
        }
    }
}
