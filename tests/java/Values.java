// SPDX-License-Identifier: Apache-2.0
import java.lang.ref.*;
import java.nio.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

/**
 * Values of every kind that a trace shows; what each method was given is known. No method of a
 * value may be called.
 */
public class Values {
    enum Color {
        RED, GREEN {
            @Override
            int bits() {
                return 2;
            }
        };

        int bits() {
            return 1;
        }

        @Override
        public String toString() {
            throw new AssertionError("called by the trace");
        }
    }

    /** Everything that a careless reader would call. */
    static class Touchy extends ArrayList<Object> {
        @Override
        public int size() {
            throw new AssertionError("size");
        }

        @Override
        public Iterator<Object> iterator() {
            throw new AssertionError("iterator");
        }
    }

    static class Silent extends RuntimeException {
        Silent(String message) {
            super(message);
        }

        @Override
        public String getMessage() {
            throw new AssertionError("getMessage");
        }
    }

    static class Worker extends Thread {
        Worker() {
            super("w \"1\"");
        }

        @Override
        public String toString() {
            throw new AssertionError("toString");
        }
    }

    static class Held extends WeakReference<Object> {
        Held(Object o) {
            super(o);
        }

        @Override
        public Object get() {
            throw new AssertionError("get");
        }
    }

    static class Order {
        static int limit = 7;
        int id = 42;
        String[] lines = {"a", "b"};
        Order next;

        int total(int n) {
            return n + id;
        }
    }

    static Object one(String what, Object o) {
        return o;
    }

    static double real(double d, float f) {
        return d;
    }

    static void fail(int n) {
        if (n > 0)
            throw new Silent(n == 1 ? "no \"room\"" : n == 2 ? "" : null);
    }

    static void changing(Map<Object, Object> map, List<Object> list) {
    }

    /** Reads collections that another thread changes meanwhile. */
    static void race() throws Exception {
        Map<Object, Object> map = new HashMap<>(), tree = new TreeMap<>();
        List<Object> list = new ArrayList<>(), linked = new LinkedList<>();
        AtomicBoolean done = new AtomicBoolean();
        Thread writer = new Thread(() -> {
            for (int i = 0; i < 200_000 && !done.get(); i++) {
                map.put(i & 255, i);
                map.remove(i * 7 & 255);
                tree.put(i & 63, i);
                tree.remove(i * 5 & 63);
                list.add(i);
                linked.add(i);
                if (list.size() > 50) {
                    list.clear();
                    linked.clear();
                }
            }
        });
        writer.start();
        for (int i = 0; i < 2000; i++) {
            changing(map, list);
            changing(tree, linked);
        }
        done.set(true);
        writer.join();
    }

    static void references() {
        one("weakref", new WeakReference<>("w"));
        one("softref", new SoftReference<>(new ArrayList<>(Arrays.asList(1))));
        Reference<Object> cleared = new WeakReference<>("c");
        cleared.clear();
        one("cleared", cleared);
        one("weaksub", new Held("h"));
        one("atomicref", new AtomicReference<>());
    }

    static void buffers() {
        ByteBuffer bytes = ByteBuffer.allocate(10);
        ((Buffer) bytes).position(2);
        ((Buffer) bytes).limit(5);
        one("bytes", bytes);
        one("direct", ByteBuffer.allocateDirect(8));
        one("chars", CharBuffer.allocate(3));
    }

    static void futures() {
        CompletableFuture<Object> failed = new CompletableFuture<>();
        failed.completeExceptionally(new Silent("f"));
        one("pending", new CompletableFuture<>());
        one("completed", CompletableFuture.completedFuture("v\"1\""));
        one("nothing", CompletableFuture.completedFuture(null));
        one("failed", failed);
        FutureTask<Object> ran = new FutureTask<>(() -> 7), cancelled = new FutureTask<>(() -> 7), threw = new FutureTask<>(() -> {
            throw new Silent("t");
        });
        one("task", new FutureTask<>(() -> 7));
        ran.run();
        one("ran", ran);
        threw.run();
        one("threw", threw);
        cancelled.cancel(false);
        one("cancelled", cancelled);
        one("latch", new CountDownLatch(3));
        one("semaphore", new Semaphore(4));
    }

    public static void main(String[] args) throws Exception {
        one("int", 5);
        one("long", 1L << 60);
        one("char", 'x');
        one("true", true);
        one("double", 0.1);
        one("enum", Color.RED);
        one("body", Color.GREEN);
        one("class", String.class);
        one("intclass", int.class);
        one("arrayclass", int[][].class);
        one("thread", new Thread("worker-7"));
        one("subthread", new Worker());
        one("group", new ThreadGroup("g"));
        one("method", Values.class.getDeclaredMethod("fail", int.class));
        one("field", Order.class.getDeclaredField("id"));
        one("constructor", ArrayList.class.getDeclaredConstructor());
        one("frame", new StackTraceElement("a.B", "m", "B.java", 12));
        one("parameter", Values.class.getDeclaredMethod("fail", int.class).getParameters()[0]);
        references();
        buffers();
        futures();
        one("optional", Optional.of("a\nb"));
        one("empty", Optional.empty());
        one("opt5", OptionalInt.of(5));
        one("ints", new int[] {1, 2, 3, 4, 5, 6, 7});
        one("doubles", new double[] {0.5, 1});
        one("strings", new String[] {"a", null, "c\"d"});
        one("nested", new int[][] {{1}, {2, 3}});
        one("array", new ArrayList<>(Arrays.asList(1, "two", Color.RED, null)));
        one("many", new ArrayList<>(Collections.nCopies(100, 9)));
        one("aslist", Arrays.asList(1, 2));
        one("linked", new LinkedList<>(Arrays.asList(1, 2)));
        one("deque", deque());
        one("vector", new Vector<>(Arrays.asList(1, 2)));
        one("cow", new CopyOnWriteArrayList<>(Arrays.asList(1, 2)));
        one("unmodifiable", Collections.unmodifiableList(new ArrayList<>(Arrays.asList(1, 2))));
        one("singleton", Collections.singletonList("s"));
        one("emptylist", Collections.emptyList());
        Map<Object, Object> map = new HashMap<>(), ordered = new LinkedHashMap<>(), tree = new TreeMap<>(), chm = new ConcurrentHashMap<>();
        for (Map<Object, Object> m : Arrays.asList(map, tree, chm))
            m.put("k", 1);
        for (int i = 10; i > 0; i--)
            ordered.put(i, "v" + i);
        for (int i = 0; i < 10; i++)
            tree.put("k" + i, i);
        Map<Color, Object> enums = new EnumMap<>(Color.class);
        enums.put(Color.GREEN, 2);
        one("map", map);
        one("ordered", ordered);
        one("tree", tree);
        one("chm", chm);
        one("enummap", enums);
        one("enumset", EnumSet.allOf(Color.class));
        one("set", new HashSet<>(Arrays.asList("x")));
        one("treeset", new TreeSet<>(Arrays.asList(3, 1, 2)));
        one("keys", map.keySet());
        one("treekeys", tree.keySet());
        one("values", map.values());
        one("entries", map.entrySet());
        one("chmvalues", chm.values());
        one("linkedvalues", Collections.unmodifiableCollection(ordered.values()));
        one("entrieskeys", Collections.unmodifiableMap(map).keySet());
        one("level", java.util.logging.Level.INFO);
        DoubleAdder sum = new DoubleAdder();
        sum.add(0.5);
        sum.add(2);
        one("sum", sum);
        one("lone", "a\ud800b\udc00");
        one("half", '\ud800');
        Map<Object, Object> weak = new WeakHashMap<>();
        weak.put("k", 1);
        one("weak", weak);
        one("entry", new AbstractMap.SimpleEntry<>("k", 1));
        one("node", map.entrySet().iterator().next());
        one("queue", new LinkedBlockingQueue<>(Arrays.asList(1, 2)));
        one("lockfree", new ConcurrentLinkedQueue<>(Collections.nCopies(7, 3)));
        Map<Object, Object> skips = new ConcurrentSkipListMap<>();
        for (int i = 3; i > 0; i--)
            skips.put(i, "v" + i);
        one("skips", skips);
        one("skipset", new ConcurrentSkipListSet<>(Arrays.asList(3, 1, 2)));
        one("sublist", new ArrayList<>(Arrays.asList(1, 2, 3, 4)).subList(1, 4).subList(1, 3));
        one("copies", Collections.nCopies(7, "c"));
        BitSet bits = new BitSet();
        bits.set(3);
        bits.set(64, 66);
        one("bits", bits);
        one("nobits", new BitSet());
        one("atomic", new AtomicInteger(8));
        one("reference", new AtomicReference<>("r"));
        Touchy touchy = new Touchy();
        touchy.add("t");
        touchy.add(touchy);
        one("touchy", touchy);
        Object[] cycle = new Object[1];
        cycle[0] = cycle;
        one("cycle", cycle);
        one("joiner", new java.util.StringJoiner(",").add("a").add("b"));
        one("quoted", "a\"b\\c\nd");
        String huge = new String(new char[1 << 20]).replace('\0', 'h');
        one("huge", huge);
        one("hugebuilder", new StringBuilder(huge));
        one("hugeinside", Arrays.asList(huge, "like... (5000)"));
        one("like", "like... (5000)");
        one("exception", new Silent("why"));
        real(0.1, 0.1f);
        real(2, 1e30f);
        for (int n = 0; n < 4; n++) {
            try {
                fail(n);
            } catch (Silent e) {
                // known
            }
        }
        Order order = new Order();
        order.next = new Order();
        for (int i = 1; i <= 3; i++)
            order.total(i);
        race();
        System.out.println("done");
    }

    static Object deque() {
        ArrayDeque<Object> d = new ArrayDeque<>(4);
        for (int i = 0; i < 6; i++) {
            d.add(i);
            if (i > 2)
                d.poll();
        }
        return d;
    }
}
