// SPDX-License-Identifier: Apache-2.0
import java.util.*;

/** Values of kinds that Java 8 did not have, as in Values. */
public class ModernValues {
    record Point(int x, String name, long[] all) {
        @Override
        public String toString() {
            throw new AssertionError("toString");
        }

        @Override
        public int hashCode() {
            throw new AssertionError("hashCode");
        }
    }

    record Empty() {
    }

    static void one(String what, Object o) {
    }

    public static void main(String[] args) throws Exception {
        one("record", new Point(-3, "p\"q", new long[] {1, 2}));
        one("empty", new Empty());
        one("entry", Map.entry("k", 1));
        one("mapkeys", Map.of("k", 1, "l", 1).values());
        one("joiner", new StringJoiner(",").add("a").add("b"));
        Map<String, Integer> ordered = new LinkedHashMap<>();
        for (int i = 1; i < 8; i++)
            ordered.put("k" + i, i);
        for (String view : new String[] {"KeySet", "Values", "EntrySet"}) // JDK 21 has them
            if (Runtime.version().feature() >= 21)
                one("back" + view, Class.forName("java.util.SequencedCollection")
                                           .getMethod("reversed")
                                           .invoke(LinkedHashMap.class.getMethod("sequenced" + view)
                                                           .invoke(ordered)));
        System.out.println("done");
    }
}
