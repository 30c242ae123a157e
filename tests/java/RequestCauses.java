// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A server with a path for each cause of slowness, and its client. Of the requests of a path all
 * but SLOW are quick; the slow ones meet the cause. Each handler measures what the cause took, and
 * the client how long the request took; both are printed as a line for each path: "lock CAUSE_NS
 * LATENCY_NS QUICK_NS", means over the slow requests and the latency of the median of all.
 */
public class RequestCauses {
    static final int REQUESTS = 120, SLOW = 2, MILLIS = 60;
    static final int TURNS = 50, TURN_NANOS = 200_000;
    static final int COMPETITORS = 4 * Runtime.getRuntime().availableProcessors();

    /**
     * Since when a slow request is there that what is held will stop: on a busy machine that takes
     * its time.
     */
    static volatile CountDownLatch arrived = new CountDownLatch(1);

    static final class Store {
        synchronized void compact(CountDownLatch held) throws InterruptedException {
            held.countDown();
            arrived.await();
            Thread.sleep(MILLIS + 20);
        }

        synchronized int read() {
            return 1;
        }
    }

    static final class Audit {
        final ReentrantLock lock = new ReentrantLock();

        void check(CountDownLatch held) throws InterruptedException {
            lock.lock();
            try {
                held.countDown();
                arrived.await();
                Thread.sleep(MILLIS + 20);
            } finally {
                lock.unlock();
            }
        }

        void note() {
            lock.lock();
            lock.unlock();
        }
    }

    static final class Report {
        static int render(CountDownLatch held) throws InterruptedException {
            held.countDown();
            arrived.await();
            Thread.sleep(MILLIS + 20);
            return 1;
        }
    }

    static final String[] PATHS = {"park",       "queue",      "sleep", "socket",   "cpu",
                                   "class-init", "class-load", "file",  "runnable", "gc"};
    static final java.lang.management.ThreadMXBean THREADS =
            java.lang.management.ManagementFactory.getThreadMXBean();
    static final Store store = new Store();
    static final Audit audit = new Audit();
    static final ExecutorService reports = Executors.newSingleThreadExecutor(named("reports-"));
    static List<Object> live = new ArrayList<>();
    static volatile long sink;
    static volatile boolean slow, competing;
    static final AtomicInteger running = new AtomicInteger(); // competitors that have begun
    static long causeNanos, readyNanos;
    static int peerPort;
    static File pipe;
    static RandomAccessFile pipeEnds; // both, so that opening the pipe does not block

    static ThreadFactory named(String prefix) {
        int[] number = {0};
        return task -> {
            Thread t = new Thread(task, prefix + ++number[0]);
            t.setDaemon(true);
            return t;
        };
    }

    static void fill() {
        live = new ArrayList<>();
        for (int i = 0; i < 1_500_000; i++)
            live.add(new Object[] {i, live});
    }

    /** Uses this much CPU time, however long that takes on a busy machine. */
    static void spin(long nanos) {
        long end = THREADS.getCurrentThreadCpuTime() + nanos, x = sink;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 20_000; i++)
                x = x * 31 + 7;
        }
        sink = x;
    }

    static void compute() {
        spin(slow ? MILLIS * 1_000_000L : 200_000);
    }

    static void ask() throws IOException {
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), peerPort)) {
            s.getOutputStream().write(slow ? MILLIS : 0);
            s.getInputStream().read();
        }
    }

    static void order() throws Exception {
        Callable<Integer> task = () -> 1;
        reports.submit(task).get();
    }

    static void pause() throws InterruptedException {
        if (slow)
            Thread.sleep(MILLIS);
    }

    /** Each slow request meets a class of its own, which another thread initializes. */
    static class Prices {
        static final int first = Catalog.read();
    }

    static class Taxes {
        static final int first = Catalog.read();
    }

    static final class Catalog {
        static CountDownLatch held;
        static volatile int next;

        static int read() {
            held.countDown();
            try {
                arrived.await();
                Thread.sleep(MILLIS + 20);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return 1;
        }

        static int price(int of) {
            return of == 0 ? Prices.first : Taxes.first;
        }
    }

    static void loadPrices(CountDownLatch held) {
        Catalog.held = held;
        Catalog.price(Catalog.next);
    }

    static void price() {
        if (slow)
            Catalog.price(Catalog.next++);
    }

    /** Has its own copy of a class, which it takes long to find. */
    static final class Loader extends ClassLoader {
        Loader() {
            super(RequestCauses.class.getClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try {
                Thread.sleep(MILLIS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            throw new ClassNotFoundException(name);
        }
    }

    static void plugin() {
        if (!slow)
            return;
        try {
            new Loader().loadClass("shop.Plugin");
        } catch (ClassNotFoundException e) {
            // as it should be
        }
    }

    /** Reads a pipe, into which a thread writes that takes its time. */
    static void readFile() throws IOException {
        if (!slow)
            pipeEnds.write(1);
        try (FileInputStream in = new FileInputStream(pipe)) {
            in.read();
        }
    }

    static void writeFile(CountDownLatch held) throws Exception {
        held.countDown();
        arrived.await();
        Thread.sleep(MILLIS + 20);
        pipeEnds.write(1);
    }

    static void makePipe() throws Exception {
        pipe = File.createTempFile("request", ".pipe");
        pipe.delete();
        pipe.deleteOnExit();
        if (new ProcessBuilder("mkfifo", pipe.getPath()).start().waitFor() != 0)
            throw new IOException("mkfifo");
        pipeEnds = new RandomAccessFile(pipe, "rw");
    }

    /** Computes a little, again and again, while other threads want all processors. */
    static void share() {
        long start = System.nanoTime(), used = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < (slow ? TURNS : 1); i++) {
            spin(TURN_NANOS);
            Thread.yield();
            if (slow && running.get() < COMPETITORS)
                i = 0;
        }
        if (slow)
            readyNanos += System.nanoTime() - start - (THREADS.getCurrentThreadCpuTime() - used);
        competing = false;
    }

    static void compete(CountDownLatch ready) {
        ready.countDown();
        try {
            arrived.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        running.incrementAndGet();
        for (long x = 1; competing; sink = x)
            for (int i = 0; i < 20_000; i++)
                x = x * 31 + 7;
    }

    static void startOthers(CountDownLatch held) throws InterruptedException {
        CountDownLatch ready = new CountDownLatch(COMPETITORS);
        competing = true;
        running.set(0);
        for (int i = 0; i < COMPETITORS; i++)
            new Thread(() -> compete(ready), "competitor-" + i).start();
        ready.await();
        held.countDown();
    }

    static void collect() {
        if (slow)
            System.gc();
    }

    interface Cause {
        void meet() throws Exception;
    }

    interface Blocker {
        void block(CountDownLatch held) throws Exception;
    }

    /** What a request of a path does. */
    static Cause cause(String path) {
        switch (path) {
            case "park":
                return audit::note;
            case "queue":
                return RequestCauses::order;
            case "sleep":
                return RequestCauses::pause;
            case "socket":
                return RequestCauses::ask;
            case "cpu":
                return RequestCauses::compute;
            case "gc":
                return RequestCauses::collect;
            case "class-init":
                return RequestCauses::price;
            case "class-load":
                return RequestCauses::plugin;
            case "file":
                return RequestCauses::readFile;
            case "runnable":
                return RequestCauses::share;
            default:
                return store::read;
        }
    }

    /** What blocks the slow requests of a path, on a thread of this name; null: nothing does. */
    static Blocker blocker(String path) {
        switch (path) {
            case "lock":
                return store::compact;
            case "park":
                return audit::check;
            case "queue":
                return held -> reports.submit(() -> Report.render(held)).get();
            case "class-init":
                return RequestCauses::loadPrices;
            case "file":
                return RequestCauses::writeFile;
            case "runnable":
                return RequestCauses::startOthers;
            default:
                return null;
        }
    }

    static final String[] BLOCKERS = {"lock compactor", "park auditor", "queue orders",
                                      "class-init catalog", "file archive",
                                      "runnable competitors"};

    static String blockerName(String path) {
        for (String b : BLOCKERS)
            if (b.startsWith(path + " "))
                return b.substring(path.length() + 1);
        return null;
    }

    /** The code of a request's handler. */
    static void meet(String path) throws IOException {
        long start = System.nanoTime();
        if (slow)
            arrived.countDown();
        try {
            cause(path).meet();
        } catch (Exception e) {
            throw new IOException(e);
        }
        if (slow)
            causeNanos += System.nanoTime() - start;
    }

    static void handle(HttpExchange exchange) throws IOException {
        meet(exchange.getRequestURI().getPath().substring(1));
        exchange.sendResponseHeaders(200, 2);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(new byte[] {'o', 'k'});
        }
    }

    static long request(int port, String path) throws IOException {
        long start = System.nanoTime();
        HttpURLConnection c =
                (HttpURLConnection) new URL(
                        "http", InetAddress.getLoopbackAddress().getHostAddress(), port, "/" + path)
                        .openConnection();
        try (InputStream in = c.getInputStream()) {
            while (in.read() >= 0)
                ;
        }
        return System.nanoTime() - start;
    }

    /** Begins what blocks the slow requests, on a thread of its own, or in the pool. */
    static Thread block(String name, Blocker blocker) throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        Thread t = new Thread(() -> {
            try {
                blocker.block(held);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.start();
        held.await();
        return t;
    }

    /** Asks for a path whose handler meets the cause of the given name. */
    static void drive(int port, String path, String cause) throws Exception {
        String blockerName = blockerName(cause);
        Blocker blocker = blocker(cause);
        List<Long> quick = new ArrayList<>();
        long latency = 0;
        causeNanos = 0;
        for (int i = 0; i < REQUESTS; i++) {
            if (i % (REQUESTS / SLOW) != REQUESTS / SLOW - 1) {
                quick.add(request(port, path));
                continue;
            }
            arrived = new CountDownLatch(1);
            Thread t = blocker == null ? null : block(blockerName, blocker);
            slow = true;
            latency += request(port, path);
            slow = false;
            if (t != null)
                t.join();
        }
        if (cause.equals("runnable")) // without its CPU time
            causeNanos = readyNanos;
        quick.sort(null);
        System.out.println(path + " " + causeNanos / SLOW + " " + latency / SLOW + " "
                           + quick.get(quick.size() / 2));
    }

    static void peer(ServerSocket server) {
        try {
            while (true) {
                try (Socket s = server.accept()) {
                    Thread.sleep(Math.max(s.getInputStream().read(), 0));
                    s.getOutputStream().write(1);
                }
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** The server that requests of the path "socket" ask. */
    static void startPeer() throws IOException {
        ServerSocket peer = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        peerPort = peer.getLocalPort();
        Thread answers = new Thread(() -> peer(peer), "peer");
        answers.setDaemon(true);
        answers.start();
    }

    /** Asks a server whose paths are "sync:lock", "async:lock" and the like. */
    static void driveAll(int port, String[] paths) throws Exception {
        startPeer();
        for (int i = 0; i < 20; i++)
            request(port, paths[0].split(":")[0] + ":warm-up");
        for (String path : paths) {
            String cause = path.substring(path.indexOf(':') + 1);
            if (cause.equals("gc"))
                fill();
            drive(port, path, cause);
        }
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay",
                           "true"); // or each response waits 40 ms for an acknowledgement
        startPeer();
        makePipe();
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        ExecutorService workers = Executors.newFixedThreadPool(3, named("http-"));
        server.setExecutor(workers);
        server.createContext("/", RequestCauses::handle);
        server.start();
        int port = server.getAddress().getPort();
        for (int i = 0; i < 20; i++)
            request(port, "warm-up");
        if (args.length > 0) // until it is killed
            System.out.println("ready");
        do {
            drive(port, "lock", "lock");
        } while (args.length > 0);
        for (String path : PATHS) {
            if (path.equals("gc"))
                fill();
            drive(port, path, path);
        }
        // The client has its answer before the server's thread is done with the last request.
        workers.shutdown();
        if (!workers.awaitTermination(60, TimeUnit.SECONDS))
            throw new AssertionError("a request did not end");
        server.stop(0);
        System.exit(0);
    }
}
