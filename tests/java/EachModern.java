// SPDX-License-Identifier: Apache-2.0

/** The constructs that Java 8 did not have, as in EachConstruct. */
public class EachModern {
    static int sum;

    static int use(Object o) {
        return sum += o == null ? 1 : 2;
    }

    record Point(int x, int y) {
        Point {
            Object o = new Object();
            synchronized (o) {
                if (x > 0)
                    use(new int[1]);
            }
        }

        int inRecord(int n) {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
            return x + y;
        }
    }

    sealed interface Shape permits Square, Circle {
    }

    record Square(int side) implements Shape {
    }

    record Circle(int radius) implements Shape {
    }

    static int patternSwitch(Shape s) {
        Object o = new Object();
        synchronized (o) {
            return switch (s) {
                case Square(int side) when side > 100 -> -1;
                case Square q -> use(new int[1]);
                case Circle(var r) -> r;
            };
        }
    }

    interface Private {
        private void ofInterface(int n) {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
        }

        default void call(int n) {
            ofInterface(n);
        }
    }

    public static void main(String[] args) {
        sum = 0;
        use(new Point(1, 2).inRecord(1));
        patternSwitch(new Square(3));
        new Private() { }.call(1);
        System.out.println(sum + " " + new Point(3, 4));
    }
}
