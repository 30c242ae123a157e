// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;

/**
 * What an agent's tables find hard: JvmpiContract THREADS LOADERS [LEFT]. Ends with "right" and a
 * sum that does not depend on chance, while LEFT daemon threads go on.
 */
public class JvmpiContract {
    static class NeverMade { int field; static int statics; }
    interface NeverUsed { int x = 3; }
    enum Colour { RED, GREEN }

    /** Loaded again by each loader, and dropped with it. */
    public static class Dropped implements Callable<Integer> {
        static final Object[] HELD = new Object[10];
        final int[] values = new int[5];
        final Dropped[] nothing = new Dropped[2];
        public Integer call() {
            HELD[0] = this;
            IntUnaryOperator add = x -> x + values.length;
            Runnable unused = () -> values[0]++;
            unused.run();
            return add.applyAsInt(values[0]);
        }
    }

    static class Loader extends ClassLoader {
        final byte[] code;
        Loader(byte[] code) {
            super(JvmpiContract.class.getClassLoader());
            this.code = code;
        }
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("JvmpiContract$Dropped") ? found(name)
                                                        : super.loadClass(name, resolve);
        }
        private synchronized Class<?> found(String name) {
            Class<?> c = findLoadedClass(name);
            return c != null ? c : defineClass(name, code, 0, code.length);
        }
    }

    static byte[] read(InputStream in) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] some = new byte[4096];
        for (int n; (n = in.read(some)) > 0; )
            out.write(some, 0, n);
        return out.toByteArray();
    }

    static int loaders(int n) throws Exception {
        byte[] code = read(JvmpiContract.class.getResourceAsStream("JvmpiContract$Dropped.class"));
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Class<?> c = new Loader(code).loadClass("JvmpiContract$Dropped");
            sum += (Integer) ((Callable<?>) c.getDeclaredConstructor().newInstance()).call();
            if (i % 50 == 49)
                System.gc();
        }
        return sum;
    }

    static final Object lock = new Object();
    static synchronized int contend(AtomicInteger n) throws Exception {
        synchronized (lock) {
            if (n.get() % 16 == 0)
                lock.wait(1);
            return n.incrementAndGet();
        }
    }

    static int threads(int n) throws Exception {
        AtomicInteger sum = new AtomicInteger();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Thread t = new Thread(() -> {
                try {
                    contend(sum);
                    Thread.sleep(1);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "short " + i);
            t.start();
            all.add(t);
            if (all.size() == 100) {
                for (Thread each : all)
                    each.join();
                all.clear();
            }
        }
        for (Thread each : all)
            each.join();
        return sum.get();
    }

    static int objects(int n) throws Exception {
        Map<String, Object> kept = new HashMap<>();
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Object[] some = {new NeverMade[3],
                             new NeverUsed[i % 5],
                             new int[2][3][4],
                             new Colour[] {Colour.RED},
                             new Object[1][0],
                             new byte[i % 700],
                             Arrays.copyOf(new long[9], 20),
                             "text".toCharArray().clone(),
                             new NeverUsed[2][2],
                             "a" + i,
                             Integer.valueOf(i * 1000)};
            kept.put("k" + i % 500, some);
            sum += some.length + Arrays.hashCode((Object[]) some[3]) * 0;
            synchronized (Arrays.copyOf(some, 3)) {
                sum++;
            }
            try {
                if (i % 100 == 0)
                    throw new IllegalStateException("" + i);
            } catch (IllegalStateException e) {
                sum += e.getStackTrace().length > 0 ? 1 : 1000;
            }
        }
        Runnable proxy = (Runnable) Proxy.newProxyInstance(JvmpiContract.class.getClassLoader(),
                                                           new Class<?>[] {Runnable.class},
                                                           (p, m, a) -> null);
        proxy.run();
        Method m = JvmpiContract.class.getDeclaredMethod("twice", int.class);
        for (int i = 0; i < 40; i++)
            sum += (Integer) m.invoke(null, i);
        return sum;
    }

    static int twice(int i) {
        return 2 * i;
    }

    /**
     * Virtual threads that change their carriers: 0, or how many went wrong. On JDK 21 alone: JDK
     * 25 crashes when FollowReferences meets a virtual thread whose constructor has not set its
     * continuation (JvmtiEnvBase::is_vthread_alive).
     */
    static int virtual(int n) throws Exception {
        if (!System.getProperty("java.specification.version").equals("21"))
            return 0;
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        AtomicInteger done = new AtomicInteger();
        List<Thread> all = new ArrayList<>();
        Runnable work = () -> {
            try {
                Thread.sleep(2);
                contend(done);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        };
        for (int i = 0; i < n; i++)
            all.add((Thread) start.invoke(null, work));
        for (Thread each : all)
            each.join();
        return n - done.get();
    }

    static native void references();
    static native void attach(int pairs);

    static final AtomicInteger ATTACHED = new AtomicInteger();
    static final int ATTACHES = 3; // also in jvmpi_contract.c

    /** Called by each thread that has attached itself. */
    static void attached() {
        ATTACHED.incrementAndGet();
    }

    /**
     * Threads attach themselves, and wait now and then for the locks that Thread's constructor and
     * its group need. Returns how many failed.
     */
    static int attach(int pairs, ThreadGroup group) throws Exception {
        Thread holder = new Thread(() -> {
            while (ATTACHED.get() < 2 * ATTACHES * pairs) {
                synchronized (group) {
                    synchronized (Thread.class) {
                        pause();
                    }
                }
                pause();
            }
        }, "holder");
        holder.setDaemon(true);
        holder.start();
        attach(pairs);
        return 2 * ATTACHES * pairs - ATTACHED.get();
    }

    static void pause() {
        try {
            Thread.sleep(2);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    /** A thread that replaces global references until the VM ends. */
    static void refer() {
        System.loadLibrary("jvmpicontract");
        Thread t = new Thread(() -> {
            for (;;) {
                references();
                try {
                    Thread.sleep(1);
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            }
        }, "references");
        t.setDaemon(true);
        t.start();
    }

    /** Threads that go on making objects, classes and threads while the VM ends. */
    static void leave(int n) throws Exception {
        byte[] code = read(JvmpiContract.class.getResourceAsStream("JvmpiContract$Dropped.class"));
        AtomicInteger running = new AtomicInteger();
        for (int i = 0; i < n; i++) {
            Thread t = new Thread(() -> {
                Object[] kept = new Object[1000];
                for (int k = 0; ; k++) {
                    try {
                        kept[k % kept.length] = new Loader(code)
                                                        .loadClass("JvmpiContract$Dropped")
                                                        .getDeclaredConstructor()
                                                        .newInstance();
                        for (int j = 0; j < 100; j++)
                            kept[(k + j) % kept.length] = new Object[] {new byte[j], "a" + j};
                        Thread inner = new Thread(() -> Thread.yield(), "inner");
                        inner.start();
                        inner.join();
                    } catch (Exception e) {
                        throw new RuntimeException(e);
                    }
                    if (k == 2)
                        running.incrementAndGet();
                }
            }, "left " + i);
            t.setDaemon(true);
            t.start();
        }
        while (running.get() < n)
            Thread.sleep(1);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]), loaders = Integer.parseInt(args[1]);
        int[] part = new int[1];
        refer();
        Thread beside = new Thread(() -> {
            try {
                part[0] = loaders(loaders);
            } catch (Exception e) {
                e.printStackTrace();
            }
        }, "loaders");
        beside.start();
        int sum = attach(5 + threads / 100, Thread.currentThread().getThreadGroup());
        sum += threads(threads) + objects(2000) + virtual(threads);
        beside.join();
        leave(args.length > 2 ? Integer.parseInt(args[2]) : 0);
        System.out.println("right " + (sum - threads) + " " + (part[0] - 6 * loaders));
    }
}
