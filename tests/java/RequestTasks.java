// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Requests that hand tasks to a pool of one thread. "many N": one request hands over N tasks that
 * do nothing. "kinds N": each of N requests hands over four, one after another, of which the second
 * makes a request of its own, the third asks a server, and the last one ends its thread by an
 * exception; prints "task WAY THREAD" and when each ran.
 */
public class RequestTasks {
    static final ExecutorService pool = Executors.newSingleThreadExecutor(r -> {
        Thread t = new Thread(r);
        t.setUncaughtExceptionHandler((thread, e) -> {
        });
        return t;
    });
    static int port, sum;

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void many(int n) {
        for (int i = 0; i < n; i += 100) {
            CountDownLatch done = new CountDownLatch(1);
            for (int k = 0; k < 100; k++)
                pool.execute(() -> sum++);
            pool.execute(done::countDown);
            await(done);
        }
    }

    static void nap(long start) throws Exception {
        Thread.sleep(2);
        System.out.println("task executor " + Thread.currentThread().getName() + " " + start + " "
                           + System.nanoTime());
    }

    static void inner() throws Exception {
        Thread.sleep(1);
    }

    static void task(int what) throws Exception {
        long start = System.nanoTime();
        if (what == 1)
            inner();
        if (what == 2)
            try (InputStream in = new URL("http://127.0.0.1:" + port + "/").openStream()) {
                in.read();
            }
        nap(start);
        if (what == 3)
            throw new IllegalArgumentException("ends the thread");
    }

    static void outer() throws Exception {
        for (int i = 0; i < 4; i++) {
            int what = i;
            CountDownLatch done = new CountDownLatch(1);
            pool.execute(() -> {
                try {
                    task(what);
                } catch (RuntimeException e) {
                    throw e;
                } catch (Exception e) {
                    e.printStackTrace();
                } finally {
                    done.countDown();
                }
            });
            await(done);
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        if (args[0].equals("many")) {
            many(n);
        } else {
            HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            server.createContext("/", e -> {
                e.sendResponseHeaders(200, -1);
                e.close();
            });
            server.start();
            port = server.getAddress().getPort();
            for (int i = 0; i < n; i++)
                outer();
            server.stop(0);
        }
        pool.shutdown();
        System.out.println("done");
    }
}
