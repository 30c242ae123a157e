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

    public static void main(String[] args) {
        one("record", new Point(-3, "p\"q", new long[] {1, 2}));
        one("empty", new Empty());
        one("entry", Map.entry("k", 1));
        one("mapkeys", Map.of("k", 1, "l", 1).values());
        one("joiner", new StringJoiner(",").add("a").add("b"));
        System.out.println("done");
    }
}
