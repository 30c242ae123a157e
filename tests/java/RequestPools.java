// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.sql.Connection;
import java.sql.Statement;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;

/**
 * A server whose requests take a connection of a pool that has one. For the slow ones somebody else
 * has it for a while. Prints a line for each pool: "hikari NS", how long all slow requests waited
 * for it.
 */
public class RequestPools {
    static final int REQUESTS = 120, SLOW = 2, MILLIS = 60;
    static long waited;
    static volatile boolean slow;
    static volatile CountDownLatch arrived;

    static void report(DataSource pool, CountDownLatch held) throws Exception {
        try (Connection c = pool.getConnection()) {
            held.countDown();
            arrived.await(); // on a busy machine the request takes its time
            Thread.sleep(MILLIS + 20);
        }
    }

    static void order(DataSource pool) throws Exception {
        long start = System.nanoTime();
        if (slow)
            arrived.countDown();
        try (Connection c = pool.getConnection(); Statement s = c.createStatement()) {
            if (slow)
                waited += System.nanoTime() - start;
            s.execute("SELECT 1");
        }
    }

    static void serve(HttpServer server, String path, DataSource pool) {
        server.createContext("/" + path, exchange -> {
            try {
                order(pool);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
    }

    static void request(int port, String path) throws Exception {
        HttpURLConnection c =
                (HttpURLConnection) new URL(
                        "http", InetAddress.getLoopbackAddress().getHostAddress(), port, "/" + path)
                        .openConnection();
        try (InputStream in = c.getInputStream()) {
            while (in.read() >= 0)
                ;
        }
    }

    static void drive(int port, String path, DataSource pool) throws Exception {
        waited = 0;
        for (int i = 0; i < REQUESTS; i++) {
            Thread reporter = null;
            if (i % (REQUESTS / SLOW) == REQUESTS / SLOW - 1) {
                CountDownLatch held = new CountDownLatch(1);
                arrived = new CountDownLatch(1);
                reporter = new Thread(() -> {
                    try {
                        report(pool, held);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                }, "reporter");
                reporter.start();
                held.await();
                slow = true;
            }
            request(port, path);
            slow = false;
            if (reporter != null)
                reporter.join();
        }
        System.out.println(path + " " + waited);
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:hikari");
        config.setMaximumPoolSize(1);
        config.setPoolName("orders");
        HikariDataSource hikari = new HikariDataSource(config);
        BasicDataSource dbcp = new BasicDataSource();
        dbcp.setUrl("jdbc:h2:mem:dbcp");
        dbcp.setMaxTotal(1);
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        ExecutorService workers = Executors.newFixedThreadPool(3);
        server.setExecutor(workers);
        serve(server, "hikari", hikari);
        serve(server, "dbcp", dbcp);
        serve(server, "warm-up-hikari", hikari);
        serve(server, "warm-up-dbcp", dbcp);
        server.start();
        int port = server.getAddress().getPort();
        for (int i = 0; i < 20; i++) {
            request(port, "warm-up-hikari");
            request(port, "warm-up-dbcp");
        }
        drive(port, "hikari", hikari);
        drive(port, "dbcp", dbcp);
        // The client has its answer before the server's thread is done with the last request.
        workers.shutdown();
        if (!workers.awaitTermination(60, TimeUnit.SECONDS))
            throw new AssertionError("a request did not end");
        System.exit(0);
    }
}
