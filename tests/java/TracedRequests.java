// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A web server that works for some milliseconds for each request, and a client whose requests
 * carry a traceparent.
 */
public class TracedRequests {
    static volatile long sum;

    static void work() {
        for (long end = System.nanoTime() + 10_000_000; System.nanoTime() < end;)
            for (int i = 0; i < 1000; i++)
                sum += i * sum;
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        ExecutorService workers = Executors.newFixedThreadPool(2);
        server.setExecutor(workers);
        server.createContext("/work", exchange -> {
            work();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            HttpURLConnection c =
                    (HttpURLConnection) new URL("http://127.0.0.1:" + server.getAddress().getPort()
                                                + "/work")
                            .openConnection();
            c.setRequestProperty("traceparent", args[1]);
            if (c.getResponseCode() != 200)
                throw new AssertionError(c.getResponseCode());
        }
        server.stop(0);
        workers.shutdown();
    }
}
