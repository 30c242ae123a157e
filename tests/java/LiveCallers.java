// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Each kind of object is made at one place, which two callers reach in turn: keeps and drops. What
 * keeps gets stays alive, n objects of each kind; nothing that drops gets does, n of each kind (2n
 * of Nested, half of which have constructors that throw).
 */
public class LiveCallers {
    static class Plain {
    }

    static class Nested {
        Nested(Object inner, boolean fails) {
            if (fails)
                throw new IllegalStateException();
        }
    }

    static class Row {
    }

    static class Fixed {
    }

    static class Matrix {
    }

    static final Cloned[] ONE = {new Cloned()};

    static class Cloned {
    }

    static class Copied {
        Object self;
    }

    static final List<Object> KEPT = new ArrayList<>();
    static volatile Object sink;

    static Object make(int kind, int i) {
        switch (kind) {
        case 0:
            return new Plain();
        case 1:
            return nest(i, false);
        case 2:
            return new Row[i % 7];
        case 3:
            return new Fixed[3];
        case 4:
            return new Matrix[1][1];
        case 5:
            return ONE.clone();
        default:
            return java.lang.reflect.Array.newInstance(Copied.class, 2);
        }
    }

    /**
     * An argument makes others at the same place, before the constructor is called on a later line
     * than new.
     */
    static Nested nest(int i, boolean fails) {
        return new Nested(
            i > 0 ? drops(i) : null,
            fails);
    }

    static Object drops(int i) {
        sink = nest(0, false);
        try {
            sink = nest(-1, true);
        } catch (IllegalStateException e) {
            sink = null;
        }
        return null;
    }

    static void keeps(int kind, int i) {
        KEPT.add(make(kind, i));
    }

    static void drops(int kind, int i) {
        if (kind != 1)
            sink = make(kind, i);
    }

    public static void main(String[] args) {
        int n = Integer.parseInt(args[0]);
        // In an order that no share of the objects matches.
        for (int kind = 0; kind < 7; kind++)
            for (int i = 1; i <= n; i++) {
                keeps(kind, i);
                if (i <= n / 2) {
                    drops(kind, i);
                    drops(kind, i);
                }
            }
        sink = null;
        System.out.println("done");
    }
}
