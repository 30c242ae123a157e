// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Eighteen programs whose critical path is known. Arguments: the number of the program, and what
 * else it takes (factors of a section, for what-if against the truth). Prints System.nanoTime()
 * before and after, by how much the machine was late, and how long its sections waited for their
 * lock and had it (`blocked` and `inside`), ns; and how often one waited for another thread's
 * (`handed`).
 */
public class ThreadPrograms {
    static final Object lock = new Object();
    /** 0 while everything is run once to load its classes, then 1. */
    static double scale;

    /**
     * Whether the machine kept the program's threads waiting since it began, ns, at most: how much
     * later than asked a sleep ended; how late a thread ran that was started, or that joined one
     * which has ended; how long one took from a wait to the next.
     */
    static final AtomicLong late = new AtomicLong();

    /** When the calling thread went on after its last wait; 0: it has had none. */
    static final ThreadLocal<long[]> since = ThreadLocal.withInitial(() -> new long[1]);
    static volatile long started, ended;

    static void late(long ns) {
        late.accumulateAndGet(ns, Math::max);
    }

    static void goesOn() {
        since.get()[0] = System.nanoTime();
    }

    /** The calling thread may wait now. */
    static void waits() {
        if (since.get()[0] != 0)
            late(System.nanoTime() - since.get()[0]);
    }

    static void sleep(double ms) {
        try {
            waits();
            long ns = Math.round(ms * scale * 1e6), begin = System.nanoTime();
            Thread.sleep(ns / 1000000, (int) (ns % 1000000));
            late(System.nanoTime() - begin - ns);
            goesOn();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread thread(String name, Body body) {
        return new Thread(() -> {
            late(System.nanoTime() - started);
            goesOn();
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
            ended = System.nanoTime();
        }, name);
    }

    static void startAll(Iterable<Thread> threads) {
        started = System.nanoTime();
        for (Thread t : threads)
            t.start();
    }

    static void joinAll(Iterable<Thread> threads) throws InterruptedException {
        for (Thread t : threads)
            t.join();
        late(System.nanoTime() - ended);
        goesOn();
    }

    /**
     * All sections: how long was waited for the lock, and how long it was had by those that waited
     * for it or let others wait. In program 6: the turns of Pong, and those of Ping.
     */
    static final AtomicLong blocked = new AtomicLong(), inside = new AtomicLong();
    static final AtomicInteger waiting = new AtomicInteger(), handed = new AtomicInteger();
    static Thread owner;

    static void section(double ms) {
        waits();
        long before = System.nanoTime();
        waiting.incrementAndGet();
        synchronized (lock) {
            goesOn();
            long begin = System.nanoTime();
            waiting.decrementAndGet();
            sleep(ms);
            blocked.addAndGet(begin - before);
            if (owner != Thread.currentThread() && begin - before > 1000000)
                handed.incrementAndGet();
            owner = Thread.currentThread();
            if (begin - before > 1000000 || waiting.get() > 0)
                inside.addAndGet(System.nanoTime() - begin);
        }
    }

    static void a(double ms) {
        sleep(ms);
    }

    static void b(double ms) {
        sleep(ms);
    }

    static void c(double ms) {
        sleep(ms);
    }

    static void p1(double factor) throws Exception {
        List<Thread> all = List(thread("A", () -> a(50)), thread("B", () -> b(120 * factor)),
                                thread("C", () -> c(80)));
        startAll(all);
        joinAll(all);
    }

    static void p2() throws Exception {
        Thread a = thread("A", () -> {
            sleep(30);
            List<Thread> b = List(thread("B", () -> sleep(40)));
            waits();
            startAll(b);
            joinAll(b);
            sleep(20);
        });
        startAll(List(a));
        joinAll(List(a));
    }

    static void p3(double factor) throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 4; i++)
            all.add(thread("T" + (i + 1), () -> {
                for (int k = 0; k < 5; k++)
                    section(10 * factor);
            }));
        startAll(all);
        joinAll(all);
    }

    static void p4(double factor) throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 2; i++)
            all.add(thread("T" + (i + 1), () -> {
                for (int k = 0; k < 10; k++) {
                    sleep(10);
                    section(30 * factor);
                }
            }));
        startAll(all);
        joinAll(all);
    }

    static final class LockB {
    }

    static void p5() throws Exception {
        List<Thread> all = new ArrayList<>();
        Object other = new LockB();
        for (int i = 0; i < 4; i++)
            all.add(thread("T" + (i + 1), () -> section(40)));
        all.add(thread("M", () -> {
            for (int k = 0; k < 10; k++) {
                synchronized (other) {
                    sleep(30);
                }
            }
        }));
        startAll(all);
        joinAll(all);
    }

    static void p6() throws Exception {
        boolean[] first = {true};
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            boolean mine = i == 1; // Pong waits when Ping comes
            all.add(thread(mine ? "Ping" : "Pong", () -> {
                for (int k = 0; k < 50; k++) {
                    waits();
                    synchronized (lock) {
                        while (first[0] != mine)
                            lock.wait();
                        goesOn();
                        long begin = System.nanoTime();
                        sleep(4);
                        (mine ? inside : blocked).addAndGet(System.nanoTime() - begin);
                        first[0] = !mine;
                        lock.notify();
                    }
                }
            }));
        }
        startAll(all);
        joinAll(all);
    }

    static void p7(double factor) throws Exception {
        LinkedBlockingQueue<Integer> ab = new LinkedBlockingQueue<>(),
                                     bc = new LinkedBlockingQueue<>();
        List<Thread> all = List(thread("A", () -> {
            for (int i = 0; i < 20; i++) {
                a(5);
                ab.put(i);
            }
        }), thread("B", () -> {
            for (int i = 0; i < 20; i++) {
                waits();
                int item = ab.take();
                goesOn();
                b(15 * factor);
                bc.put(item);
            }
        }), thread("C", () -> {
            for (int i = 0; i < 20; i++) {
                waits();
                bc.take();
                goesOn();
                c(8);
            }
        }));
        startAll(all);
        joinAll(all.subList(2, 3)); // C ends last; if main came late from B's end, C's would be
                                    // over and not on the path
    }

    static void p8() throws Exception {
        Thread early = thread("Early", () -> {
            synchronized (lock) {
                lock.notify();
            }
        });
        startAll(List(early));
        joinAll(List(early));
        synchronized (lock) {
            lock.wait(scale == 0 ? 1 : 100);
        }
    }

    static void p9() throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 8; i++)
            all.add(thread("W" + (i + 1), () -> {
                synchronized (lock) {
                    waits();
                    waiting.incrementAndGet();
                    lock.wait();
                    goesOn();
                    waiting.decrementAndGet();
                    sleep(10);
                }
            }));
        startAll(all);
        do
            Thread.sleep(50);
        while (waiting.get() < 8); // on a busy machine a thread comes late, and would wait for ever
        synchronized (lock) {
            lock.notifyAll();
        }
        joinAll(all);
    }

    static final class L1 {
    }

    static final class L2 {
    }

    /**
     * Waits until each of the others has its first lock too: without that a late one would find
     * both free.
     */
    static void meet(CountDownLatch others) {
        others.countDown();
        try {
            if (!others.await(60, TimeUnit.SECONDS))
                throw new IllegalStateException("the others did not come");
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void inOrder(Object first, Object second, CountDownLatch others) {
        synchronized (first) {
            meet(others);
            sleep(50);
            synchronized (second) {
                sleep(1);
            }
        }
    }

    static void inOrder(ReentrantLock first, ReentrantLock second, CountDownLatch others) {
        first.lock();
        meet(others);
        sleep(50);
        second.lock();
    }

    /**
     * Deadlocks: of two monitors, of three, of a monitor and a lock, and several of two threads
     * each. The program ends after a while.
     */
    static void p10(String which, int ms) throws Exception {
        List<Thread> all = new ArrayList<>();
        Object l1 = new L1(), l2 = new L2(), l3 = new Object();
        ReentrantLock held = new ReentrantLock();
        CountDownLatch holding = new CountDownLatch(which.equals("three") ? 3 : 2);
        if (which.equals("three")) {
            all.add(thread("A", () -> inOrder(l1, l2, holding)));
            all.add(thread("B", () -> inOrder(l2, l3, holding)));
            all.add(thread("C", () -> inOrder(l3, l1, holding)));
        } else if (which.equals("mixed")) {
            all.add(thread("A", () -> {
                synchronized (l1) {
                    meet(holding);
                    sleep(50);
                    held.lock();
                }
            }));
            all.add(thread("B", () -> {
                held.lock();
                meet(holding);
                sleep(50);
                synchronized (l1) {
                    sleep(1);
                }
            }));
        } else if (which.equals("virtual")) {
            all.add(virtual("A", () -> inOrder(l1, l2, holding)));
            all.add(virtual("B", () -> inOrder(l2, l1, holding)));
        } else if (which.startsWith("several")) {
            ReentrantLock other = new ReentrantLock();
            CountDownLatch locking = new CountDownLatch(2), unseen = new CountDownLatch(2);
            Object l4 = new L1();
            all.add(thread("A", () -> inOrder(l1, l2, holding)));
            all.add(thread("B", () -> inOrder(l2, l1, holding)));
            all.add(thread("C", () -> inOrder(held, other, locking)));
            all.add(thread("D", () -> inOrder(other, held, locking)));
            if (which.equals("several-virtual")) {
                all.add(virtual("E", () -> inOrder(l3, l4, unseen)));
                all.add(virtual("F", () -> inOrder(l4, l3, unseen)));
            }
        } else {
            all.add(thread("A", () -> inOrder(l1, l2, holding)));
            all.add(thread("B", () -> inOrder(l2, l1, holding)));
        }
        for (Thread t : all)
            t.setDaemon(true);
        startAll(all);
        holding.await();
        sleep(ms);
    }

    static void p11(boolean fair) throws Exception {
        ReentrantLock held = new ReentrantLock(fair);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 2; i++)
            all.add(thread("T" + (i + 1), () -> {
                for (int k = 0; k < 10; k++) {
                    waits();
                    held.lock();
                    goesOn();
                    try {
                        sleep(20);
                    } finally {
                        held.unlock();
                    }
                }
            }));
        startAll(all);
        joinAll(all);
    }

    static void p12() throws Exception {
        CountDownLatch latch = new CountDownLatch(8);
        List<Thread> all = new ArrayList<>();
        for (int i = 1; i <= 8; i++) {
            int ms = 10 * i;
            all.add(thread("W" + i, () -> {
                sleep(ms);
                latch.countDown();
            }));
        }
        startAll(all);
        latch.await();
    }

    static void p13(String which) throws Exception {
        if (which.equals("future")) {
            CompletableFuture<Integer> first = CompletableFuture.supplyAsync(() -> {
                sleep(40);
                return 1;
            });
            first.thenApply(x -> {
                sleep(20);
                return x + 1;
            }).join();
            return;
        }
        ExecutorService pool = Executors.newFixedThreadPool(2);
        for (int i = 0; i < 5; i++)
            pool.execute(() -> sleep(30));
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
    }

    static void p14(double factor) throws Exception {
        int[][] rows = {{10, 20, 30}, {30, 10, 20}, {20, 30, 10}, {40, 10, 10}};
        CyclicBarrier barrier = new CyclicBarrier(3);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            int column = i;
            all.add(thread("T" + (i + 1), () -> {
                for (int[] row : rows) {
                    if (column == 0)
                        a(row[column] * factor);
                    else
                        sleep(row[column]);
                    waits();
                    barrier.await();
                    goesOn();
                }
            }));
        }
        startAll(all);
        joinAll(all);
    }

    static void p15() throws Exception {
        Thread t = thread("T", () -> {
            try {
                Thread.sleep(10000);
            } catch (InterruptedException e) {
                goesOn();
                sleep(20);
            }
        });
        startAll(List(t));
        sleep(60);
        t.interrupt();
        joinAll(List(t));
    }

    static void p16() throws Exception {
        Semaphore two = new Semaphore(2);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 6; i++)
            all.add(thread("T" + (i + 1), () -> {
                waits();
                two.acquire();
                goesOn();
                sleep(30);
                two.release();
            }));
        startAll(all);
        joinAll(all);
    }

    static void p17() throws Exception {
        ReentrantReadWriteLock held = new ReentrantReadWriteLock();
        CountDownLatch reading = new CountDownLatch(4);
        List<Thread> all = new ArrayList<>();
        for (int ms : new int[] {20, 40, 60, 80})
            all.add(thread("R" + ms, () -> {
                waits();
                held.readLock().lock();
                goesOn();
                reading.countDown();
                sleep(ms);
                held.readLock().unlock();
            }));
        all.add(thread("W", () -> {
            waits();
            reading.await();
            held.writeLock().lock();
            goesOn();
            sleep(30);
            held.writeLock().unlock();
        }));
        startAll(all);
        joinAll(all.subList(4, 5)); // W ends last, see program 7
    }

    static void p18() throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 100; i++)
            all.add(virtual("V" + i, () -> {
                section(5);
                ended = System.nanoTime();
            }));
        startAll(all);
        joinAll(all);
    }

    /** Thread.ofVirtual().name(name).unstarted(body), by reflection: this is compiled for JDK 8. */
    static Thread virtual(String name, Runnable body) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, body);
    }

    private static List<Thread> List(Thread... threads) {
        return java.util.Arrays.asList(threads);
    }

    static void run(String[] args) throws Exception {
        String which = args.length > 1 ? args[1] : "";
        double factor = which.matches("[0-9.]+") ? Double.parseDouble(which) : 1;
        switch (Integer.parseInt(args[0])) {
        case 1: p1(factor); break;
        case 2: p2(); break;
        case 3: p3(factor); break;
        case 4: p4(factor); break;
        case 5: p5(); break;
        case 6: p6(); break;
        case 7: p7(factor); break;
        case 8: p8(); break;
        case 9: p9(); break;
        case 10: p10(which, args.length > 2 ? Integer.parseInt(args[2]) : 600); break;
        case 11: p11(!which.equals("unfair")); break;
        case 12: p12(); break;
        case 13: p13(which); break;
        case 14: p14(factor); break;
        case 15: p15(); break;
        case 16: p16(); break;
        case 17: p17(); break;
        case 18: p18(); break;
        default: throw new IllegalArgumentException(args[0]);
        }
    }

    static void timed(String... args) throws Exception {
        late.set(0);
        blocked.set(0);
        inside.set(0);
        handed.set(0);
        goesOn();
        long begin = System.nanoTime();
        run(args);
        long end = System.nanoTime();
        if (scale > 0)
            System.out.println(String.join(" ", args) + " " + begin + " " + end + " " + late + " "
                               + blocked + " " + inside + " " + handed);
        sleep(5);
    }

    /** Each of PROGRAM:FACTOR. */
    static void factors(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            String[] one = args[i].split(":");
            timed(one[0], one[1]);
        }
    }

    static void all(String[] args) throws Exception {
        if (args[0].equals("all"))
            programs(args[1]);
        else
            factors(args);
    }

    public static void main(String[] args) throws Exception {
        boolean all = args[0].equals("all") || args[0].equals("factors");
        if (all)
            all(args);
        else if (!args[0].equals("10"))
            run(args);
        scale = 1;
        sleep(20);
        if (all)
            all(args);
        else
            timed(args);
    }

    static void programs(String kind) throws Exception {
        for (int i = 1; i <= (kind.equals("virtual") ? 18 : 17); i++) {
            if (i != 10)
                timed(String.valueOf(i));
        }
        timed("11", "unfair");
        timed("13", "future");
    }
}
