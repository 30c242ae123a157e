// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A server on virtual threads of one carrier (-Djdk.virtualThreadScheduler.parallelism=1): two
 * requests, while the second of which another thread has the carrier until 300 ms after the request
 * has come. Prints for how many ns the second one waited for it, at least.
 */
public class VirtualServed {
    static volatile long occupied, submitted, left, sum;

    static void occupy() {
        occupied = System.nanoTime();
        while (submitted == 0 || System.nanoTime() < submitted + 300_000_000L)
            sum++;
        left = System.nanoTime();
    }

    static void request(int port, String path) throws Exception {
        HttpURLConnection c = (HttpURLConnection) URI.create("http://127.0.0.1:" + port + path)
                                      .toURL()
                                      .openConnection();
        if (c.getResponseCode() != 204)
            throw new IllegalStateException("status " + c.getResponseCode());
    }

    public static void main(String[] args) throws Exception {
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        server.setExecutor(task -> {
            if (occupied != 0)
                submitted = System.nanoTime();
            threads.execute(task);
        });
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
        request(server.getAddress().getPort(), "/first");
        Thread.ofVirtual().name("occupant").start(VirtualServed::occupy);
        while (occupied == 0)
            Thread.sleep(1);
        request(server.getAddress().getPort(), "/second");
        System.out.println(left - submitted);
        threads.shutdown();
        threads.awaitTermination(60, TimeUnit.SECONDS); // what the server does when it has answered
        server.stop(0);
    }
}
