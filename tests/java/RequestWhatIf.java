// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * So many requests to /order that sleep, of which one in twenty waits for a latch as well, unless
 * the second argument is "without". Requests to /warm come first, so that those that count find all
 * classes loaded and all connections made.
 */
public class RequestWhatIf {
    static final int WARM = 100, CLIENTS = 8, BASE = 60, EXTRA = 240;

    static void ask(ExecutorService clients, URL url, int requests) throws Exception {
        Future<?>[] all = new Future<?>[requests];
        for (int i = 0; i < requests; i++)
            all[i] = clients.submit(() -> {
                try (InputStream in = url.openStream()) {
                    return in.read();
                }
            });
        for (Future<?> f : all)
            f.get();
    }

    public static void main(String[] args) throws Exception {
        int requests = Integer.parseInt(args[0]);
        boolean without = args.length > 1;
        System.setProperty("sun.net.httpserver.nodelay", "true");
        AtomicInteger handled = new AtomicInteger();
        ExecutorService workers = Executors.newFixedThreadPool(2 * CLIENTS),
                        clients = Executors.newFixedThreadPool(CLIENTS);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(workers);
        server.createContext("/", exchange -> {
            try {
                boolean order = exchange.getRequestURI().getPath().equals("/order");
                Thread.sleep(order ? BASE : 1);
                if (order && !without && handled.incrementAndGet() % 20 == 0)
                    new CountDownLatch(1).await(EXTRA, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            exchange.sendResponseHeaders(200, 2);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write("ok".getBytes());
            }
        });
        server.start();
        String root = "http://127.0.0.1:" + server.getAddress().getPort();
        ask(clients, new URL(root + "/warm"), WARM);
        ask(clients, new URL(root + "/order"), requests);
        // A client has its answer before the server's thread is done with the request.
        workers.shutdown();
        if (!workers.awaitTermination(60, TimeUnit.SECONDS))
            throw new AssertionError("a request did not end");
        server.stop(0);
        clients.shutdown();
        System.out.println("done");
        System.exit(0);
    }
}
