// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Fills the heap with about N million objects: lists, maps, strings, arrays. With a file name, it
 * lets the VM dump the heap and prints how long that took.
 */
public class BigHeap {
    static final class Node {
        Node next;
        int value;
        long[] data;
        String text;
    }

    static final List<Object> KEEP = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        int objects = (int) (Double.parseDouble(args[0]) * 1000000);
        Map<Integer, Node> map = new HashMap<>();
        KEEP.add(map);
        Node last = null;
        for (int i = 0; i < objects / 7; i++) {
            Node n = new Node();
            n.next = last;
            n.value = i;
            n.data = new long[i % 4];
            n.text = "text" + i;
            map.put(i, n);
            last = n;
        }
        if (args.length > 1) {
            Object bean = Class.forName("java.lang.management.ManagementFactory")
                .getMethod("getPlatformMXBean", Class.class)
                .invoke(null, Class.forName("com.sun.management.HotSpotDiagnosticMXBean"));
            long start = System.nanoTime();
            Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
                    .getMethod("dumpHeap", String.class, boolean.class)
                    .invoke(bean, args[1], true);
            System.out.println("DUMPED " + (System.nanoTime() - start) / 1000000);
        }
        System.out.println("END");
        System.out.flush();
    }
}
