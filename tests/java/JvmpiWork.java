// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.concurrent.locks.LockSupport;

/**
 * The program under the JVMPI test agent. Each argument names a scenario; each prints "NAME KEY
 * VALUE" lines.
 */
public class JvmpiWork {
    static native long ask(String what, Object object, long number);

    native double many(int a, long b, double c, float d, byte e, Object f, short g, double h,
                       boolean i, char j, double k, float l, double m, double n, float o, double p,
                       double q, long r);

    static native long thrown(int i);

    static native Object itself(Object o);

    static class Marker {
        byte b = 1;
        short s = 0x0203;
        char c = 0x0405;
        int i = 0x06070809;
        long l = 0x0a0b0c0d0e0f1011L;
        float f = 1.5f;
        double d = -2.5;
        boolean z = true;
        Object o;
        static int counted = 77;
    }

    static class Sub extends Marker implements Runnable {
        int own = 5;

        public void run() {
        }
    }

    static int sink;

    static void say(String key, long value) {
        System.out.println("work " + key + " " + value);
    }

    static void leaf(int i) {
        sink += i;
    }

    static void thrower(int i) throws Exception {
        if (i >= 0)
            throw new Exception();
    }

    void instance() {
        sink++;
    }

    static void loop(int n) {
        for (int i = 0; i < n; i++) {
            leaf(i);
            try {
                if (i % 10 == 0)
                    thrower(i);
            } catch (Exception expected) {
                sink++;
            }
        }
    }

    static void methods() throws Exception {
        long before = ask("leaf entries", null, 0), exits = ask("leaf exits", null, 0);
        loop(50000);
        say("leaf_entries", ask("leaf entries", null, 0) - before);
        say("leaf_exits", ask("leaf exits", null, 0) - exits);
        say("thrower_entries", ask("thrower entries", null, 0));
        say("thrower_exits", ask("thrower exits", null, 0));
        JvmpiWork object = new JvmpiWork();
        long seen = ask("receiver", object, 0);
        for (int i = 0; i < 100; i++)
            object.instance();
        say("receiver", ask("receiver", object, 0) - seen);
        ask("disable", null, 1);
        ask("disable", null, 3);
        before = ask("leaf entries", null, 0);
        if (ask("disable", null, 2) == 0)
            loop(1000);
        say("leaf_disabled", ask("leaf entries", null, 0) - before);
        ask("enable", null, 1);
        loop(1000);
        say("leaf_enabled", ask("leaf entries", null, 0) - before);
        ask("disable", null, 1);
    }

    /** Entries and exits of one method in this thread while `work` runs, n of each: 1. */
    static long calls(String method, long n, Runnable work) {
        if (ask("count calls", method, 0) != 0)
            return -1;
        work.run();
        long seen = ask("counted calls", null, 0);
        return seen == n * 1000001 ? 1 : seen;
    }

    /**
     * Methods without code of their own to instrument, and classes that take part in every event.
     */
    static void natives() {
        final JvmpiWork o = new JvmpiWork();
        final int[] wrong = new int[1];
        say("native_many", calls("JvmpiWork.many", 30000, new Runnable() {
            public void run() {
                for (int i = 0; i < 30000; i++) {
                    double got = o.many(i, -7L, 0.5, 1.25f, (byte) -3, o, (short) 300, -2.0, true,
                                        'x', 1e3, 2.5f, 3.5, 4.5, 5.5f, 6.5, 7.5, 1L << 33);
                    double want = 1 + 2. * i + 3. * -7 + 5 * .5 + 7 * 1.25 + 11 * -3 + 13 * 300
                                  + 17 * -2. + 19 + 23 * 'x' + 29 * 1e3 + 31 * 2.5 + 37 * 3.5
                                  + 41 * 4.5 + 43 * 5.5 + 47 * 6.5 + 53 * 7.5 + 59. * (1L << 33);
                    if (got != want)
                        wrong[0]++;
                }
            }
        }));
        say("native_wrong", wrong[0]);
        say("native_thrown", calls("JvmpiWork.thrown", 1000, new Runnable() {
            public void run() {
                for (int i = 0; i < 1000; i++) {
                    try {
                        thrown(i);
                        wrong[0]++;
                    } catch (IllegalStateException e) {
                        if (!e.getMessage().equals(i % 2 == 0 ? "even" : "odd"))
                            wrong[0]++;
                    }
                }
            }
        }));
        say("native_object", calls("JvmpiWork.itself", 1000, new Runnable() {
            public void run() {
                for (int i = 0; i < 1000; i++)
                    if (itself(wrong) != wrong)
                        wrong[0]++;
            }
        }));
        say("native_results", wrong[0]);
        say("native_of_jdk", calls("java.lang.Runtime.freeMemory", 20000, new Runnable() { // bound before there was an agent
            public void run() {
                for (int i = 0; i < 20000; i++)
                    if (Runtime.getRuntime().freeMemory() <= 0)
                        wrong[0]++;
            }
        }));
        say("thread_method", calls("java.lang.Thread.getName", 20000, new Runnable() {
            public void run() {
                for (int i = 0; i < 20000; i++)
                    sink += Thread.currentThread().getName().length();
            }
        }));
        kept[0] = new Marker(); // its class is there
        say("object_constructor", calls("java.lang.Object.<init>", 30001, new Runnable() {
            public void run() {
                for (int i = 0; i < 30000; i++)
                    kept[0] = new Object();
                kept[0] = new Marker(); // calls it as well
            }
        }));
        say("object_method", calls("java.lang.Object.toString", 1, new Runnable() {
            public void run() {
                o.toString();
            }
        }));
    }

    static class LoadedByWorker {
    }

    static void meet() {
        sink++;
    }

    /** Section 1.5 of the specification: what comes in which thread, and when. */
    static void rules() throws Exception {
        ask("rule thread", "the worker", 0);
        ask("rule class", "JvmpiWork$LoadedByWorker", 0);
        final long[] here = new long[1];
        Thread worker = new Thread("the worker") {
            public void run() {
                kept[0] = new Marker();
                kept[0] = new LoadedByWorker();
                here[0] = ask("rule here", null, 0);
            }
        };
        worker.start();
        worker.join();
        say("rule_here", here[0]);
        for (int i = 0; i < 500 && ask("rule ended", null, 0) == 0; i++)
            Thread.sleep(10); // join comes back before the event
        say("rule_ended", ask("rule ended", null, 0));
        Thread[] all = new Thread[2];
        ask("rule meet", null, 0);
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread() {
                public void run() {
                    meet();
                }
            };
            all[i].start();
        }
        for (Thread t : all)
            t.join();
        say("rule_concurrent", ask("rule meet", null, 0));
        say("rule_requests", ask("rule requests", new Marker(), 0));
        say("rule_creates", ask("rule creates", null, 0));
        for (int i = 0; i < 100; i++)
            kept[0] = new Marker();
        kept[0] = null;
        say("rule_collects", ask("rule collects", null, 0));
        say("rule_disables", ask("rule disables", null, 0));
        final java.util.Vector<Object[]> lasts = new java.util.Vector<Object[]>();
        for (int i = 0; i < 4; i++) {
            start("busy " + i, Thread.State.RUNNABLE, new Runnable() {
                public void run() {
                    Object[] last = new Object[1];
                    lasts.add(last); // so that compiled code makes the objects
                    while (!stop)
                        last[0] = new int[7];
                }
            });
        }
        say("rule_suspends", ask("rule suspends", null, 0));
        say("rule_suspended_dumps", ask("rule suspended dumps", null, 0));
        stop = true;
    }

    /**
     * Carriers that wait for work have entered the methods of ForkJoinWorkerThread.run down to park
     * and left all others, however many virtual threads they carried: fewer than 30 are open in
     * each, and none less than none.
     */
    static long idleNesting() throws Exception {
        long deepest = 0, seen = 0;
        for (int tries = 0; tries < 500; tries++) {
            deepest = seen = 0;
            for (int i = 0;; i++) {
                long n = ask("nesting of", null, i);
                if (n == -1000000)
                    break;
                seen += n != 0 ? 1 : 0;
                deepest = n < 0 ? 1000 - n : Math.max(deepest, n);
            }
            if (seen > 0 && deepest < 30)
                return 1;
            Thread.sleep(10);
        }
        return deepest * 1000 + seen;
    }

    static Object[] kept = new Object[1];

    /**
     * Requests objects by the ids that OBJECT_ALLOC reported: at once, of another thread, in a
     * dump, after a collection.
     */
    static void reported() throws Exception {
        int first = (int) ask("markers", null, 0), n = 3000;
        Object[] young = new Object[n];
        Runnable make = () -> {
            for (int i = 0; i < n; i++)
                if (young[i] == null
                    && (i < n / 2 || Thread.currentThread().getName().equals("maker")))
                    young[i] = new Marker();
        };
        make.run();
        Thread maker = new Thread(make, "maker");
        maker.start();
        maker.join();
        int known = 0;
        for (int i : new int[] {0, 1, n / 2 - 1, n / 2, n - 2, n - 1})
            known += ask("reported", young[i], first + i);
        say("reported_young", known);
        say("reported_in_dump", ask("heap reported", null, first + 700));
        Object between = new Marker();
        ask("gc", null, 0);
        known = (int) ask("reported", between, first + n);
        for (int i = 0; i < n; i++)
            known += ask("reported", young[i], first + i);
        say("reported_old", known);
    }

    static void objects() throws Exception {
        reported();
        long before = ask("markers", null, 0);
        for (int i = 0; i < 20000; i++)
            kept[0] = new Marker();
        say("markers", ask("markers", null, 0) - before);
        before = ask("markers", null, 0);
        for (int i = 0; i < 3000; i++) {
            kept[0] = new byte[i * 53 % 100000]; // now and then it does not fit into the rest of
                                                 // the thread's buffer
            for (int k = 0; k < 3; k++)
                kept[0] = new Marker();
        }
        say("markers_behind_arrays", ask("markers", null, 0) - before);
        for (int i = 0; i < 10; i++)
            kept[0] = new int[12345];
        say("int_arrays", ask("int arrays", null, 0));
        kept[0] = null;
        ask("gc", null, 0);
        say("markers_freed", ask("markers freed", null, 0));
        ask("gc disable", null, 0);
        ask("gc disable", null, 0);
        kept[0] = new Marker();
        kept[0] = null;
        ask("gc enable", null, 0);
        long held = ask("count", null, 5);
        System.gc();
        Thread.sleep(300);
        say("frees_while_disabled", ask("count", null, 5) - held);
        ask("gc enable", null, 0);
        ask("gc", null, 0);
        say("frees_after_enable", ask("count", null, 5) - held > 0 ? 1 : 0);
        say("gc_pairs", ask("count", null, 60) - ask("count", null, 61));
        say("gcs", ask("count", null, 60) > 1 ? 1 : 0);
        say("used_objects", ask("used objects", null, 0) > 1000 ? 1 : 0);
    }

    /** The VM ends while threads are suspended that make objects. */
    static void left() throws Exception {
        for (int i = 0; i < 3; i++) {
            Thread t = new Thread(new Runnable() {
                public void run() {
                    for (;;)
                        made = new Object[2];
                }
            }, "left " + i);
            t.setDaemon(true);
            t.start();
            long answer, until = System.nanoTime() + 20_000_000_000L;
            do {
                Thread.sleep(20);
                answer = ask("suspend one", "left " + i, 0);
            } while (answer == -999
                     && System.nanoTime() < until); // the agent has not heard of the thread yet
            say("left_" + i, answer);
        }
    }

    static volatile Object made;

    static void ids() {
        Object o = new Object();
        int named = 0;
        long id = ask("id", o, 0);
        say("id_stable",
            id != 0 && id == ask("id", o, 0) && id != ask("id", new Object(), 0) ? 1 : 0);
        say("id_null", ask("id", null, 0));
        say("id_back", ask("same", o, id));
        say("id_unknown", ask("same", null, 0x7ffffff1));
        say("request_alloc", ask("request", o, 4));
        say("request_bad", ask("request bad id", null, 4));
        say("request_class", ask("request", JvmpiWork.class, 42));
        say("request_array_class", ask("request", int[].class, 42));
        for (Class<?> c :
             new Class<?>[] {boolean.class, byte.class, char.class, double.class, float.class,
                             int.class, long.class, short.class, void.class})
            named += ask("request", c, 42) == 0 && ask("class known", c.getName(), 0) == 0 ? 1 : 0;
        say("primitive_classes_by_name", named);
        say("request_class_of_object", ask("request", o, 42));
        Object[] noThreads = {o,
                              "text",
                              new int[3],
                              new Thread[1],
                              Thread.class,
                              new Thread(),
                              Thread.currentThread().getThreadGroup()};
        long refused = 0;
        for (Object each : noThreads)
            refused += ask("request", each, 33) == -1 ? 1 : 0;
        say("request_thread_of_object", refused);
        say("null_arguments", ask("null arguments", null, 0));
        say("request_thread", ask("request", Thread.currentThread(), 33));
        say("request_entry", ask("request", null, 1));
        say("requested", ask("requested", null, 4) * 100 + ask("requested", null, 42) * 10
                                 + ask("requested", null, 33));
        say("enable_dump", ask("enable", null, 37) * 100 + ask("enable", null, 50) * 10
                                   + ask("disable", null, 59));
        say("enable_move",
            ask("enable", null, 6) + ask("enable", null, 48) + ask("enable", null, 49));
        say("enable_none", ask("enable", null, 20) * 100 + ask("enable", null, 62) * 10
                                   + ask("enable", null, 2001));
        say("enable_negative", ask("enable", null, -5));
        say("versions", ask("versions", null, 0));
        say("class_known", ask("class known", "JvmpiWork$Sub", 0));
        say("class_of_leaf", ask("class of leaf", null, 0));
    }

    static volatile boolean stop;

    static final int PARK_LINE = 403; // where parked() calls park()

    static void parked() {
        while (!stop)
            LockSupport.park();
    }

    static volatile int spins;

    static void spin() {
        while (!stop)
            spins++;
    }

    /** Starts a thread and waits until it has come to the state given. */
    static Thread start(String name, Thread.State state, Runnable r) throws Exception {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
        for (int i = 0; i < 1000 && t.getState() != state; i++)
            Thread.sleep(10);
        return t;
    }

    /** Waits until the agent has counted so many of an event of the watched monitor. */
    static long counted(int event, long n) throws Exception {
        for (int i = 0; i < 1000 && ask("watched", null, event) < n; i++)
            Thread.sleep(10);
        return ask("watched", null, event);
    }

    static long ownTrace() {
        return ask("own trace", "main", 64);
    }

    static void threads() throws Exception {
        final Object monitor = new Object();
        Thread parked = start("parked", Thread.State.WAITING, new Runnable() {
            public void run() {
                parked();
            }
        });
        start("spinning", Thread.State.RUNNABLE, new Runnable() {
            public void run() {
                spin();
            }
        });
        while (spins == 0)
            Thread.sleep(10);
        synchronized (monitor) {
            start("blocked", Thread.State.BLOCKED, new Runnable() {
                public void run() {
                    synchronized (monitor) {
                        sink++;
                    }
                }
            });
            say("status_blocked", ask("status", "blocked", 0));
            say("monitor_dump", ask("monitor dump", monitor, 0));
            say("monitor_traces", ask("monitor traces", null, 0) >= 4 ? 1 : 0);
        }
        waiting();
        say("status_parked", ask("status", "parked", 0));
        say("status_spinning", ask("status", "spinning", 0));
        say("suspend", ask("suspend", "spinning", 0));
        say("status_suspended", ask("status", "spinning", 0));
        Thread.sleep(50);
        int before = spins;
        Thread.sleep(100);
        say("suspended_runs", spins == before ? 0 : 1);
        ask("resume", "spinning", 0);
        for (int i = 0; i < 500 && spins == before; i++)
            Thread.sleep(10);
        say("resumed_runs", spins != before ? 1 : 0);
        ask("suspend one", "spinning", 0);
        say("has_run", ask("has run", "spinning", 0));
        Thread.sleep(50);
        before = spins;
        Thread.sleep(100);
        say("suspended_one_runs", spins == before ? 0 : 1);
        say("resume_list", ask("resume list", "spinning", 0));
        for (int i = 0; i < 500 && spins == before; i++)
            Thread.sleep(10);
        say("resumed_list_runs", spins != before ? 1 : 0);
        ask("suspend one", "parked", 0);
        ask("resume", "parked", 0);
        ask("suspend one", "parked", 0);
        say("has_run_parked", ask("has run", "parked", 0));
        ask("resume", "parked", 0);
        say("thread_object", ask("thread object", "parked", 0) == ask("id", parked, 0) ? 1 : 0);
        long trace = ask("trace", "parked", 64);
        say("trace",
            trace > 0 && trace % 100000 / 10000 > 0 && trace % 10000 == PARK_LINE ? 1 : trace);
        say("trace_depth", ask("trace", "parked", 1) / 100000);
        long own = ownTrace();
        say("own_trace", own % 100000);
        say("storage", ask("storage", null, 0));
        say("system_thread", ask("system thread", null, 0));
        say("ending", ask("rule ending", null, 0));
        long cpu = ask("cpu", null, 0), time = System.nanoTime();
        while (System.nanoTime() - time < 50000000)
            sink++;
        cpu = ask("cpu", null, 0) - cpu;
        say("cpu", cpu > 100000 && cpu < 60000000 ? 1 : cpu);
        parked.interrupt();
        stop = true;
    }

    static void monitors() throws Exception {
        final Object monitor = new Object();
        long id = ask("watch", monitor, 0);
        Thread t;
        synchronized (monitor) {
            t = start("contender", Thread.State.BLOCKED, new Runnable() {
                public void run() {
                    synchronized (monitor) {
                        sink++;
                    }
                }
            });
            say("enter", counted(54, 1));
            say("not_entered", ask("watched", null, 55));
        }
        t.join();
        say("entered", ask("watched", null, 55));
        synchronized (monitor) {
            monitor.wait(70);
        }
        say("wait_timeout", ask("wait timeout", null, 0));
        say("wait_object", ask("waited on", null, 0) == id ? 1 : 0);
        long waited = ask("waited", null, 0);
        say("waited", waited >= 69 && waited < 1000 ? 1 : waited);
        say("sleep_object_null", ask("sleeps", null, 0) >= 0 ? 1 : 0);
        Thread.sleep(70);
        say("sleeps", ask("sleeps", null, 0));
        waited = ask("slept", null, 0);
        say("slept", waited >= 69 && waited < 5000 ? 1 : waited);
        Thread me = Thread.currentThread();
        me.interrupt();
        try {
            Thread.sleep(5000);
            say("interrupted", 0);
        } catch (InterruptedException e) {
            say("interrupted", 1);
        }
        say("raw_dump", ask("raw dump", null, 0));
        say("raw_dump_waiting", ask("raw dump", null, 1));
        say("raw", ask("raw", null, 0));
        say("raw_silent", ask("raw silent", null, 0));
    }

    /**
     * Contends for a monitor that `hold` holds while `during` runs, and counts the exits that are
     * reported.
     */
    static long exits(final Object monitor, Runnable hold) throws Exception {
        ask("watch", monitor, 0);
        entrant = new Thread() {
            public void run() {
                synchronized (monitor) {
                    sink++;
                }
            }
        };
        hold.run();
        entrant.join();
        return ask("watched", null, 56);
    }

    static Thread entrant;

    static void contendNow() {
        entrant.start();
        while (entrant.getState() != Thread.State.BLOCKED)
            Thread.yield();
        try {
            counted(54, 1);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    synchronized void synchronizedMethod() {
        contendNow();
    }

    synchronized int synchronizedThrower() {
        contendNow();
        throw new IllegalStateException();
    }

    static synchronized void synchronizedStatic() {
        contendNow();
    }

    static void exits() throws Exception {
        final JvmpiWork o = new JvmpiWork();
        say("exit_block", exits(o, new Runnable() {
            public void run() {
                synchronized (o) {
                    contendNow();
                }
            }
        }));
        say("exit_nested", exits(o, new Runnable() {
            public void run() {
                synchronized (o) {
                    contendNow();
                    synchronized (o) { // this exit is not the last
                        sink++;
                    }
                    if (ask("watched", null, 56) != 0)
                        sink = -1000000000;
                }
            }
        }) + (sink < 0 ? 100 : 0));
        say("exit_method", exits(o, new Runnable() {
            public void run() {
                o.synchronizedMethod();
            }
        }));
        say("exit_thrown", exits(o, new Runnable() {
            public void run() {
                try {
                    o.synchronizedThrower();
                } catch (IllegalStateException expected) {
                    sink++;
                }
            }
        }));
        say("exit_static", exits(JvmpiWork.class, new Runnable() {
            public void run() {
                synchronizedStatic();
            }
        }));
        say("exit_wait", exits(o, new Runnable() {
            public void run() {
                synchronized (o) {
                    contendNow();
                    try {
                        o.wait(300); // free here, not contended at the end
                    } catch (InterruptedException e) {
                        sink++;
                    }
                }
            }
        }));
        say("exit_uncontended", exits(o, new Runnable() {
            public void run() {
                synchronized (o) {
                    sink++;
                }
                entrant.start();
            }
        }));
    }

    static int steps(int n, Object o) {
        int r = 0;
        if (n > 3)
            r++;
        if (o == null)
            r++;
        if (o == JvmpiWork.class)
            r++;
        if (n == 0)
            r++;
        switch (n) {
        case 10:
        case 11:
        case 12:
        case 13:
            r += 2;
        }
        switch (n) {
        case 1:
        case 1000:
        case 100000:
            r += 3;
        }
        return r;
    }

    static void compiled() throws Exception {
        for (int i = 0; i < 500 && ask("leaf compiled", null, 0) == 0; i++)
            loop(5000);
        say("leaf_compiled", ask("leaf compiled", null, 0) > 0 ? 1 : 0);
        for (int i = 0; i < 200 && ask("count", null, 8) == 0; i++) {
            Runnable r = (Runnable) new Loader()
                                 .define(bytesOf("JvmpiWork$Hot"))
                                 .getDeclaredConstructor()
                                 .newInstance();
            for (int k = 0; k < 3000; k++)
                r.run();
            r = null;
            System.gc();
        }
        say("unloaded_code", ask("count", null, 8) > 0 ? 1 : 0);
    }

    public static class Hot implements Runnable {
        int n;

        public void run() {
            for (int i = 0; i < 50; i++)
                n += i ^ n;
        }
    }

    static void instructions() {
        steps(12, null); // no branch but `o == class` jumps over its increment
        ask("steps", null, 0);
        ask("disable", null, 9);
        steps(1000, null);
        say("steps", ask("steps", null, 0));
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass(null, b, 0, b.length);
        }
    }

    public static class Unloadable {
    }

    static byte[] bytesOf(String name) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = JvmpiWork.class.getResourceAsStream(name + ".class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        return out.toByteArray();
    }

    static void classes() throws Exception {
        for (int i = 0; i < 10; i++)
            new Loader()
                    .define(bytesOf("JvmpiWork$Unloadable"))
                    .getDeclaredConstructor()
                    .newInstance();
        kept[0] = null;
        for (int i = 0; i < 5 && ask("unloaded", null, 0) < 9; i++)
            ask("gc", null, 0);
        say("unloaded", ask("unloaded", null, 0));
        System.out.println("work patched " + Patched.text());
    }

    static class Patched {
        static String text() {
            return "patch me now";
        }
    }

    static void dumps() {
        Sub sub = new Sub();
        sub.o = sub;
        say("heap_0", ask("heap level", sub, 0));
        say("heap_3", ask("heap level", sub, 3));
        say("instance", ask("object dump", sub, 0));
        say("instance_length", ask("object dump length", null, 0));
        say("own_first", ask("object dump byte", null, 24));
        say("ints", ask("object dump", new int[] {1, 0x01020304}, 0));
        say("ints_length", ask("object dump length", null, 0));
        say("ints_last", ask("object dump byte", null, 21));
        say("array", ask("object dump", new String[3], 0));
        say("array_length", ask("object dump length", null, 0));
        say("class", ask("object dump", Marker.class, 0));
        say("dump_bad", ask("request bad id", null, 50));
    }

    /**
     * What a monitor dump says of a monitor: a million for each entry of its owner, a thousand for
     * each that enters, one for each that waits.
     */
    static void waiting() throws Exception {
        final Object monitor = new Object();
        Thread[] waiters = new Thread[3], entrants = new Thread[2];
        for (int i = 0; i < waiters.length; i++)
            waiters[i] = start("waits", Thread.State.WAITING, () -> {
                synchronized (monitor) {
                    try {
                        monitor.wait();
                    } catch (InterruptedException e) {
                        throw new RuntimeException(e);
                    }
                }
            });
        say("parties_waiting", ask("monitor parties", monitor, 0));
        synchronized (monitor) {
            say("parties_owned", ask("monitor parties", monitor, 0));
            monitor.notify();
            monitor.notify();
            int blocked = 0;
            while (blocked < 2) {
                blocked = 0;
                for (Thread t : waiters)
                    blocked += t.getState() == Thread.State.BLOCKED ? 1 : 0;
            }
            say("parties_notified", ask("monitor parties", monitor, 0));
            for (int i = 0; i < entrants.length; i++)
                entrants[i] = start("enters", Thread.State.BLOCKED, () -> {
                    synchronized (monitor) {
                        kept[2] = null;
                    }
                });
            say("parties_entering", ask("monitor parties", monitor, 0));
            monitor.notifyAll();
            while (waiters[0].getState() != Thread.State.BLOCKED
                   || waiters[1].getState() != Thread.State.BLOCKED
                   || waiters[2].getState() != Thread.State.BLOCKED)
                Thread.yield();
            say("parties_all_entering", ask("monitor parties", monitor, 0));
        }
        for (Thread t : waiters)
            t.join();
        for (Thread t : entrants)
            t.join();
    }

    static void storm() throws Exception {
        Thread[] all = new Thread[64];
        for (int i = 0; i < all.length; i++) {
            final int seed = i;
            all[i] = new Thread("storm " + i) {
                public void run() {
                    for (int k = 0; k < 300; k++) {
                        loop(20);
                        kept[0] = new Marker();
                        synchronized (JvmpiWork.class) {
                            sink++;
                        }
                        if (seed % 16 == 0 && k % 50 == 0)
                            ask(k % 100 == 0 ? "disable" : "enable", null,
                                new int[] {1, 3, 4, 54}[seed / 16]);
                        if (seed == 5 && k % 100 == 0)
                            ask("gc", null, 0);
                        if (seed == 7 && k % 60 == 0)
                            ask("monitor dump", JvmpiWork.class, 0);
                    }
                }
            };
            all[i].start();
        }
        for (Thread t : all)
            t.join();
        say("storm", 1);
    }

    /** For agents other than the test's: asks nothing. */
    static void contend() throws Exception {
        Thread[] all = new Thread[4];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread() {
                public void run() {
                    for (int k = 0; k < 20; k++) {
                        synchronized (JvmpiWork.class) {
                            LockSupport.parkNanos(2000000);
                        }
                    }
                }
            };
            all[i].start();
        }
        for (Thread t : all)
            t.join();
    }

    /**
     * 10,000 virtual threads that change carriers: no method event of theirs, and what carriers
     * enter they leave.
     */
    static void virtual() throws Exception {
        final java.util.concurrent.CountDownLatch done =
                new java.util.concurrent.CountDownLatch(10000);
        Runnable body = new Runnable() {
            public void run() {
                loop(5);
                LockSupport.parkNanos(1000);
                loop(5);
                done.countDown();
            }
        };
        java.lang.reflect.Method start =
                Thread.class.getMethod("startVirtualThread", Runnable.class);
        long before = ask("leaf entries", null, 0);
        for (int i = 0; i < 10000; i++)
            start.invoke(null, body);
        done.await();
        say("virtual_leaf", ask("leaf entries", null, 0) - before);
        say("virtual_nesting", idleNesting());
    }

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("jvmpitest");
        for (String a : arguments) {
            switch (a) {
            case "methods":
                methods();
                break;
            case "natives":
                natives();
                break;
            case "rules":
                rules();
                break;
            case "objects":
                objects();
                break;
            case "ids":
                new Sub().run();
                ids();
                break;
            case "threads":
                threads();
                break;
            case "monitors":
                monitors();
                break;
            case "compiled":
                compiled();
                break;
            case "raw":
                say("raw_rules", ask("raw rules", null, 0));
                break;
            case "references":
                say("references", ask("references", new Object(), 0));
                break;
            case "signals":
                say("signals", ask("signals", null, 0));
                break;
            case "exits":
                exits();
                break;
            case "instructions":
                instructions();
                break;
            case "classes":
                classes();
                break;
            case "dumps":
                dumps();
                break;
            case "storm":
                storm();
                break;
            case "contend":
                contend();
                break;
            case "virtual":
                virtual();
                break;
            case "exit":
                ask("exit", null, 7);
                break;
            case "exit late":
                ask("exit at end", null, 7);
                break;
            case "first":
                for (int i = 0; i < 1000; i++)
                    kept[0] = new Marker();
                say("first", ask("markers", null, 0));
                break;
            case "left":
                left();
                break;
            case "hello":
                System.out.println("hello");
                break;
            }
        }
    }
}
