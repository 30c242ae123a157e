// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.apache.commons.dbcp2.BasicDataSource;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;

/**
 * Requests that use an h2 database through four pools of connections, and call a web server in
 * six ways: rounds.
 */
public class Elsewhere {
    static final CloseableHttpClient apache = HttpClients.createDefault();
    static final OkHttpClient okhttp = new OkHttpClient();
    static int port;

    static void order(DataSource pool, int i) throws Exception {
        try (Connection c = pool.getConnection()) {
            c.setAutoCommit(false);
            try (PreparedStatement p = c.prepareStatement(
                         "SELECT name FROM goods WHERE id = ? AND name <> 'secret'")) {
                p.setInt(1, i);
                try (ResultSet r = p.executeQuery()) {
                    r.next();
                }
            }
            try (Statement s = c.createStatement()) {
                s.executeUpdate("UPDATE goods SET name = 'secret " + i + "' WHERE id IN (1, 2, " + i
                                + ")");
                try {
                    s.execute("SELECT nothing FROM nowhere WHERE id = " + i);
                } catch (SQLException e) {
                    // there is no such table
                }
            }
            c.commit();
        }
    }

    /** As a tracer of the program would send it: the path's letter stands for the span. */
    static String traceparent(String letter) {
        return "00-0af7651916cd43dd8448eb211c80319c-" + letter.repeat(16) + "-01";
    }

    static void enqueue(Request request) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        okhttp.newCall(request).enqueue(new Callback() {
            @Override
            public void onFailure(Call call, IOException e) {
                over.countDown();
            }

            @Override
            public void onResponse(Call call, Response response) throws IOException {
                response.close();
                over.countDown();
            }
        });
        over.await();
    }

    static void call() throws Exception {
        HttpURLConnection c =
                (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/a?secret=1")
                        .openConnection();
        c.setRequestProperty("traceparent", traceparent("a"));
        try (InputStream in = c.getInputStream()) {
            while (in.read() >= 0) {
            }
        }
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/b"))
                                      .header("traceparent", traceparent("b"))
                                      .build();
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        HttpRequest later = HttpRequest.newBuilder(URI.create("http://127.0.0.4:" + port + "/e"))
                                    .header("traceparent", traceparent("e"))
                                    .build();
        HttpClient client = HttpClient.newHttpClient();
        client.sendAsync(later, HttpResponse.BodyHandlers.ofString()).get();
        try {
            client.sendAsync(HttpRequest.newBuilder(URI.create("http://127.0.0.5:1/")).build(),
                             HttpResponse.BodyHandlers.discarding(), null)
                    .join();
        } catch (CompletionException e) {
            // nobody listens there
        }
        HttpGet get = new HttpGet("http://127.0.0.2:" + port + "/c?secret=1");
        get.setHeader("traceparent", traceparent("c"));
        try (CloseableHttpResponse response = apache.execute(get)) {
            response.getEntity().getContent().read();
        }
        Request.Builder ok = new Request.Builder()
                                     .url("http://127.0.0.3:" + port + "/d?secret=1")
                                     .header("traceparent", traceparent("d"));
        try (Response response = okhttp.newCall(ok.build()).execute()) {
            response.body().bytes();
        }
        enqueue(new Request.Builder()
                        .url("http://127.0.0.6:" + port + "/f?secret=1")
                        .header("traceparent", traceparent("f"))
                        .build());
        enqueue(new Request.Builder().url("http://127.0.0.7:1/").build()); // nobody listens there
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.start();
        port = server.getAddress().getPort();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:shop");
        config.setMaximumPoolSize(1);
        HikariDataSource hikari = new HikariDataSource(config);
        BasicDataSource dbcp = new BasicDataSource();
        dbcp.setUrl("jdbc:h2:mem:shop");
        dbcp.setMaxTotal(1);
        try (Connection c = hikari.getConnection(); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR)");
            s.execute("INSERT INTO goods VALUES (1, 'a'), (2, 'b')");
        }
        org.apache.tomcat.dbcp.dbcp2.BasicDataSource tomcatDbcp =
                new org.apache.tomcat.dbcp.dbcp2.BasicDataSource();
        tomcatDbcp.setUrl("jdbc:h2:mem:shop");
        tomcatDbcp.setMaxTotal(1);
        org.apache.tomcat.jdbc.pool.DataSource tomcat =
                new org.apache.tomcat.jdbc.pool.DataSource();
        tomcat.setUrl("jdbc:h2:mem:shop");
        tomcat.setDriverClassName("org.h2.Driver");
        tomcat.setMaxActive(1);
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            order(hikari, 10 + i);
            order(dbcp, 10 + i);
            order(tomcatDbcp, 10 + i);
            order(tomcat, 10 + i);
            call();
        }
        hikari.close();
        dbcp.close();
        tomcatDbcp.close();
        tomcat.close();
        server.stop(0);
        System.out.println("done");
        System.exit(0); // the clients' threads go on
    }
}
