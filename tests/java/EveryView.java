// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A server of which every view of the page has something to show: requests with long names, locks,
 * exceptions, values.
 */
public class EveryView {
    static final String LONG = "/reports/of/every/department/that/has/a/rather/long/address";
    static final Object stock = new Object();
    static final ReentrantLock ledger = new ReentrantLock();

    static long work(int n) {
        long x = n;
        for (int i = 0; i < n * 1000; i++)
            x = x * 31 + i;
        return x;
    }

    static String answer(int id, String customer) throws Exception {
        synchronized (stock) {
            work(40);
            Thread.sleep(3);
        }
        ledger.lock();
        try {
            Thread.sleep(2);
        } finally {
            ledger.unlock();
        }
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 400; i++)
            b.append("<td>").append(customer).append(i * 0.5);
        if (id % 5 == 0)
            throw new IllegalStateException("no more of " + id);
        return b.toString();
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        server.setExecutor(pool);
        server.createContext("/", x -> {
            byte[] body;
            try {
                body = answer(x.getRequestURI().getPath().length(), "Ann").getBytes();
            } catch (Exception e) {
                body = e.getMessage().getBytes();
            }
            x.sendResponseHeaders(200, body.length);
            x.getResponseBody().write(body);
            x.close();
        });
        server.start();
        Thread[] clients = new Thread[4];
        for (int c = 0; c < clients.length; c++) {
            String path = c % 2 == 0 ? LONG : "/health/" + c;
            clients[c] = new Thread(() -> {
                for (int i = 0; i < 60; i++) {
                    try (InputStream in = new URL("http://127.0.0.1:" + server.getAddress().getPort() + path).openStream()) {
                        while (in.read() >= 0)
                            ;
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                }
            }, "client-" + c);
            clients[c].start();
        }
        for (Thread t : clients)
            t.join();
        server.stop(0);
        pool.shutdown();
    }
}
