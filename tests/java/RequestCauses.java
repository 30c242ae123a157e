// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
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
import java.util.concurrent.locks.ReentrantLock;

/**
 * A server with a path for each cause of slowness, and its client. Of the requests of a path all but SLOW are quick; the slow ones
 * meet the cause. Each handler measures what the cause took, and the client how long the request took; both are printed as a line
 * for each path: "lock CAUSE_NS LATENCY_NS QUICK_NS", means over the slow requests and the latency of the median of all.
 */
public class RequestCauses {
    static final int REQUESTS = 120, SLOW = 2, MILLIS = 60;

    /** Since when a slow request is there that what is held will stop: on a busy machine that takes its time. */
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

    static final Store store = new Store();
    static final Audit audit = new Audit();
    static final ExecutorService reports = Executors.newSingleThreadExecutor(named("reports-"));
    static List<Object> live = new ArrayList<>();
    static volatile long sink;
    static volatile boolean slow;
    static long causeNanos;
    static int peerPort;

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

    static void spin(long nanos) {
        long end = System.nanoTime() + nanos, x = sink;
        while (System.nanoTime() < end)
            x = x * 31 + 7;
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

    static void serve(HttpServer server, String path, Cause cause) {
        server.createContext("/" + path, exchange -> handle(exchange, cause));
    }

    static void handle(HttpExchange exchange, Cause cause) throws IOException {
        long start = System.nanoTime();
        if (slow)
            arrived.countDown();
        try {
            cause.meet();
        } catch (Exception e) {
            throw new IOException(e);
        }
        if (slow)
            causeNanos += System.nanoTime() - start;
        exchange.sendResponseHeaders(200, 2);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(new byte[] {'o', 'k'});
        }
    }

    static long request(int port, String path) throws IOException {
        long start = System.nanoTime();
        HttpURLConnection c = (HttpURLConnection)
            new URL("http", InetAddress.getLoopbackAddress().getHostAddress(), port, "/" + path).openConnection();
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

    static void drive(int port, String path, String blockerName, Blocker blocker) throws Exception {
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
        quick.sort(null);
        System.out.println(path + " " + causeNanos / SLOW + " " + latency / SLOW + " " + quick.get(quick.size() / 2));
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

    public static void main(String[] args) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true"); // or each response waits 40 ms for an acknowledgement
        ServerSocket peer = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        peerPort = peer.getLocalPort();
        Thread answers = new Thread(() -> peer(peer), "peer");
        answers.setDaemon(true);
        answers.start();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(3, named("http-")));
        serve(server, "warm-up", store::read);
        serve(server, "lock", store::read);
        serve(server, "park", audit::note);
        serve(server, "queue", RequestCauses::order);
        serve(server, "sleep", RequestCauses::pause);
        serve(server, "socket", RequestCauses::ask);
        serve(server, "cpu", RequestCauses::compute);
        serve(server, "gc", RequestCauses::collect);
        server.start();
        int port = server.getAddress().getPort();
        for (int i = 0; i < 20; i++)
            request(port, "warm-up");
        if (args.length > 0) // until it is killed
            System.out.println("ready");
        do {
            drive(port, "lock", "compactor", store::compact);
        } while (args.length > 0);
        drive(port, "park", "auditor", audit::check);
        drive(port, "queue", "orders", held -> {
            Future<Integer> f = reports.submit(() -> Report.render(held));
            f.get();
        });
        drive(port, "sleep", null, null);
        drive(port, "socket", null, null);
        drive(port, "cpu", null, null);
        fill();
        drive(port, "gc", null, null);
        server.stop(0);
        System.exit(0);
    }
}
