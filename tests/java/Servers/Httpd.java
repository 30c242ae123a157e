// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * com.sun.net.httpserver with a virtual thread for each request, where there are any: a folder
 * that it does not use, rounds, paths.
 */
public class Httpd {
    static void answer(HttpExchange exchange) throws IOException {
        Asks.handlerStart = System.nanoTime();
        Asks.serve(exchange.getRequestURI().getPath().split("/")[1], "entry");
        try (OutputStream out = exchange.getResponseBody()) {
            exchange.sendResponseHeaders(200, 6);
            out.write("answer".getBytes());
        } finally {
            Asks.handlerEnd = System.nanoTime();
        }
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        ExecutorService threads;
        try {
            threads = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor")
                              .invoke(null);
        } catch (NoSuchMethodException e) {
            threads = Executors.newFixedThreadPool(3);
        }
        server.setExecutor(threads);
        server.createContext("/", Httpd::answer);
        server.start();
        Asks.all(server.getAddress().getPort(), args[1], args[2]);
        // The client has its answer before the server's thread is done with the last request.
        threads.shutdown();
        if (!threads.awaitTermination(60, TimeUnit.SECONDS))
            throw new AssertionError("a request did not end");
        server.stop(0);
        System.exit(0);
    }
}
