// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;

/**
 * A server on virtual threads of one carrier (-Djdk.virtualThreadScheduler.parallelism=1): two requests, while the second of which another
 * thread has the carrier. Prints for how many ns the second one waited for it, at least.
 */
public class VirtualServed {
    static volatile long occupied, left, sum;

    static void occupy() {
        occupied = System.nanoTime();
        for (long end = occupied + 300_000_000L; System.nanoTime() < end;)
            sum++;
        left = System.nanoTime();
    }

    static void request(int port, String path) throws Exception {
        HttpURLConnection c = (HttpURLConnection) URI.create("http://127.0.0.1:" + port + path).toURL().openConnection();
        if (c.getResponseCode() != 204)
            throw new IllegalStateException("status " + c.getResponseCode());
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
        request(server.getAddress().getPort(), "/first");
        Thread.ofVirtual().name("occupant").start(VirtualServed::occupy);
        while (occupied == 0)
            Thread.sleep(1);
        long sent = System.nanoTime();
        request(server.getAddress().getPort(), "/second");
        // The request comes to the server some time after it was sent.
        System.out.println(left - sent);
        Thread.sleep(300); // what the server does when it has answered
        server.stop(0);
    }
}
