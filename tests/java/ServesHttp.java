// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Executors;

/**
 * The JDK's own web server, on a free port, whose number is printed: each answer sorts some words
 * and fails some numbers, after the milliseconds that the query "wait=" asks for.
 */
public class ServesHttp {
    static String answer(String query) {
        List<String> words = new ArrayList<>();
        int refused = 0;
        for (int i = 0; i < 200; i++) {
            words.add(query + i * 7919 % 200);
            try {
                refused += Integer.parseInt(i % 20 == 0 ? "no number" : "1") & 0;
            } catch (NumberFormatException e) {
                refused++;
            }
        }
        Collections.sort(words);
        return refused + " " + words.get(0);
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            String query = String.valueOf(exchange.getRequestURI().getQuery());
            if (query.startsWith("wait="))
                try {
                    Thread.sleep(Long.parseLong(query.substring(5)));
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            byte[] body = answer(query).getBytes("UTF-8");
            exchange.sendResponseHeaders(200, body.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
