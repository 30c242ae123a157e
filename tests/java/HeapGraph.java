// SPDX-License-Identifier: Apache-2.0
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.invoke.VolatileCallSite;
import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Exchanger;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * A heap with known contents: 1000 Nodes in a list of their own, 500 Leafs, arrays; garbage that
 * no dump may show.
 */
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

    static class Loader extends ClassLoader {
        boolean one = true;
    }

    /**
     * Objects that HotSpot lays out in a way of its own: with fields that Java does not see, with
     * room around them, of no fixed size.
     */
    static void ofTheVm() throws Exception {
        Class<?> object = Object.class;
        KEEP.add(new Object[] {
                new Loader(), new ForkJoinPool(1), new InternalError("one"), object.getMethods(),
                HeapGraph.class.getDeclaredFields(), HeapGraph.class.getDeclaredConstructors(),
                MethodHandles.lookup().findStatic(HeapGraph.class, "ofTheVm",
                                                  MethodType.methodType(void.class)),
                new MutableCallSite(MethodType.methodType(void.class)),
                new VolatileCallSite(MethodType.methodType(int.class)), new SoftReference<>(object),
                new Throwable("two"), new Exchanger<>(), new Thread("not started"),
                new FutureTask<>(() -> 1), new ConcurrentHashMap<>(), new LongAdder()});
        /* A worker without a task ends after two seconds, between two counts of its objects. */
        CountDownLatch begun = new CountDownLatch(1);
        ((ForkJoinPool) ((Object[]) KEEP.get(KEEP.size() - 1))[1]).execute(() -> {
            begun.countDown();
            for (;;) LockSupport.park();
        });
        begun.await();
        try {
            Class<?> walker = Class.forName("java.lang.StackWalker");
            Object all = walker.getMethod("getInstance").invoke(null);
            Function<Stream<?>, Object[]> frames = s -> s.toArray();
            KEEP.add(walker.getMethod("walk", Function.class).invoke(all, frames));
        } catch (ClassNotFoundException before9) {
            KEEP.add(before9);
        }
        try {
            Runnable park = () -> {
                for (;;)
                    deep(10);
            };
            for (int i = 0; i < 50; i++)
                KEEP.add(Thread.class.getMethod("startVirtualThread", Runnable.class)
                                 .invoke(null, park));
            Thread.sleep(200);
        } catch (NoSuchMethodException before21) {
            KEEP.add(before21);
        }
    }

    static void deep(int frames) {
        if (frames == 0)
            LockSupport.park();
        else
            deep(frames - 1);
    }

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
        ofTheVm();
        Object local = new StringBuilder("held by a local");
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            Thread.sleep(1);
        }
        System.out.println("DONE " + local);
    }
}
