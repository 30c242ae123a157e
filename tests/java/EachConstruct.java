// SPDX-License-Identifier: Apache-2.0
import java.util.function.*;

/**
 * One method for each class of construct; each has a line, a branch that is taken, a call, an allocation of an object and of an array,
 * and a monitor, once. Run once, by main.
 */
public class EachConstruct {
    static int sum;

    static int use(Object o) {
        return sum += o == null ? 1 : 2;
    }

    static class Initialised {
        static int at = sum;

        static {
            Object o = new Object();
            synchronized (o) {
                if (sum >= 0)
                    use(new int[1]);
            }
        }
    }

    static class Base {
        Base(Object o) {
            use(o);
        }
    }

    static class BeforeSuper extends Base {
        BeforeSuper(int n) {
            super(n > 0 ? new int[use(new Object())] : null);
        }
    }

    static class AfterSuper extends Base {
        AfterSuper(int n) {
            super(null);
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
        }
    }

    static class Thrown extends Base {
        Thrown(int n) {
            super(null);
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    throw new IllegalStateException("" + use(new int[1]));
            }
        }
    }

    interface Shape {
        default void byDefault(int n) {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
        }

        static void ofInterface(int n) {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
        }
    }

    enum Constant {
        ONE {
            @Override
            void body(int n) {
                Object o = new Object();
                synchronized (o) {
                    if (n > 0)
                        use(new int[1]);
                }
            }
        };

        abstract void body(int n);
    }

    abstract static class Abstract implements Shape {
        void concrete(int n) {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    use(new int[1]);
            }
        }
    }

    static synchronized void isSynchronized(int n) {
        Object o = new Object();
        synchronized (o) {
            if (n > 0)
                use(new int[1]);
        }
    }

    static void tableSwitch(int n) {
        Object o = new Object();
        synchronized (o) {
            switch (n) {
            case 0: break;
            case 1: use(new int[1]); break;
            case 2: use(null); break;
            default: return;
            }
        }
    }

    static void lookupSwitch(int n) {
        Object o = new Object();
        synchronized (o) {
            switch (n) {
            case -1000: return;
            case 1: use(new int[1]); break;
            case 1000000: use(null); break;
            }
        }
    }

    static void nestedFinally(int n) {
        try {
            try {
                Object o = new Object();
                synchronized (o) {
                    if (n > 0)
                        throw new IllegalStateException();
                }
            } finally {
                use(new int[1]);
            }
        } catch (IllegalStateException e) {
            use(e);
        }
    }

    static void exceptionalExit(int n) {
        Object o = new Object();
        synchronized (o) {
            if (n > 0) {
                use(new int[1]);
                ((int[]) o)[0] = 1;
            }
        }
    }

    static int loopAtEntry(int n) {
        do {
            Object o = new Object();
            synchronized (o) {
                n -= new int[1].length;
            }
        } while (n > 0 && use(null) > 0);
        return n;
    }

    static class Worker implements Runnable {
        @Override
        public void run() {
            Object o = new Object();
            synchronized (o) {
                if (sum > 0)
                    use(new int[1]);
            }
        }
    }

    static void onThread() throws Exception {
        Thread t;
        try { // JDK 21 and later
            t = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, new Worker());
        } catch (NoSuchMethodException e) {
            t = new Thread(new Worker());
            t.start();
        }
        t.join();
    }

    public static void main(String[] args) throws Exception {
        int n = 1;
        sum = 0;
        use(Initialised.at);
        new BeforeSuper(n);
        new AfterSuper(n);
        try {
            new Thrown(n);
        } catch (IllegalStateException e) {
            use(e);
        }
        new Abstract() { }.byDefault(n);
        new Abstract() { }.concrete(n);
        Shape.ofInterface(n);
        Constant.ONE.body(n);
        isSynchronized(n);
        tableSwitch(n);
        lookupSwitch(n);
        nestedFinally(n);
        try {
            exceptionalExit(n);
        } catch (ClassCastException e) {
            use(e);
        }
        loopAtEntry(n);
        IntConsumer lambda = k -> {
            Object o = new Object();
            synchronized (o) {
                if (k > 0)
                    use(new int[1]);
            }
        };
        lambda.accept(n);
        onThread();
        System.out.println(sum);
    }
}
