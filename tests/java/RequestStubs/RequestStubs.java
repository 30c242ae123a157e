// SPDX-License-Identifier: Apache-2.0
import java.time.Duration;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Callback;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.internal.connection.RealCall;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.internal.HttpChannelState;

/**
 * Requests without a network: scheduled tasks, Kafka's records, Jetty 12 and calls of OkHttp 4,
 * whose classes are stubs of the same names. Prints how many of each there were: "NAME COUNT ERRORS".
 */
public class RequestStubs {
    static final AtomicInteger cleanups = new AtomicInteger(), ticks = new AtomicInteger(),
                               nested = new AtomicInteger();

    static void nap(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Fails at last, which the JDK keeps to itself. */
    static class Cleanup implements Runnable {
        @Override
        public void run() {
            nap(2);
            if (cleanups.incrementAndGet() == 10)
                throw new IllegalStateException("asked for");
        }
    }

    static class Tick extends TimerTask {
        final CountDownLatch left;

        Tick(int n) {
            left = new CountDownLatch(n);
        }

        @Override
        public void run() {
            nap(1);
            ticks.incrementAndGet();
            left.countDown();
        }
    }

    static class Once extends Tick {
        Once() {
            super(1);
        }
    }

    static void scheduled() throws Exception {
        ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
        ScheduledFuture<?> cleanup =
                later.scheduleAtFixedRate(new Cleanup(), 0, 1, TimeUnit.MILLISECONDS);
        try {
            cleanup.get();
        } catch (java.util.concurrent.ExecutionException e) {
            // as it should be
        }
        ((Runnable) cleanup).run(); // does nothing, as when a worker has a task that is cancelled
        System.out.println("RequestStubs$Cleanup " + cleanups.get() + " 1");
        Timer timer = new Timer(true);
        Tick tick = new Tick(8);
        Once once = new Once(), never = new Once();
        timer.schedule(tick, 0, 2);
        timer.schedule(never, 1000000);
        never.cancel();
        timer.schedule(once, 3);
        tick.left.await();
        once.left.await();
        timer.cancel();
        nap(20);
        System.out.println("RequestStubs$Tick " + (ticks.get() - 1) + " 0");
        System.out.println("RequestStubs$Once 1 0");
        later.schedule(() -> submitted(later), 0, TimeUnit.MILLISECONDS).get();
        while (nested.get() < 1)
            nap(1);
        System.out.println("RequestStubs$1 1 0");
        later.shutdown();
        later.awaitTermination(10, TimeUnit.SECONDS);
    }

    /** What a task submits is work for that task's run. */
    static void submitted(ScheduledExecutorService later) {
        later.schedule(new Runnable() {
            @Override
            public void run() {
                nested.incrementAndGet();
            }
        }, 1, TimeUnit.MILLISECONDS);
    }

    static void consume() {
        KafkaConsumer consumer = new KafkaConsumer();
        for (int i = 0; i < 11; i++) {
            consumer.poll(Duration.ofMillis(1));
            nap(1);
        }
        consumer.close();
        System.out.println("process orders 6 0");
    }

    /** Has a client send a request on its own thread, and waits for the end. */
    static void ask(ExecutorService pool, String host, String trace) {
        CountDownLatch over = new CountDownLatch(1);
        new RealCall(pool, new Request(host, trace)).enqueue(new Callback() {
            @Override
            public void onFailure(java.io.IOException e) {
                over.countDown();
            }

            @Override
            public void onResponse(Response response) {
                over.countDown();
            }
        });
        try {
            over.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void serve() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Server asks = new Server((response, callback) -> {
            ask(pool, "shop", "00-00000000000000000000000000000a5c-00000000000000a5-01");
            ask(pool, "nowhere", null);
            callback.succeeded();
        });
        Server quick = new Server((response, callback) -> callback.succeeded()), late = new Server((response, callback) -> pool.execute(() -> {
            nap(2);
            response.setStatus(503);
            callback.succeeded();
        })), broken = new Server((response, callback) -> callback.failed(new IllegalStateException("asked for")));
        for (int i = 0; i < 5; i++) {
            HttpChannelState.request(quick, "GET", "/quick/" + i,
                                     "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01");
            HttpChannelState.request(late, "GET", "/late/" + i, null);
            HttpChannelState.request(broken, "POST", "/broken/" + i, null);
            HttpChannelState.request(asks, "GET", "/asks/" + i, null);
        }
        ask(pool, "of no request", null);
        pool.shutdown();
        System.out.println("GET /quick/{id} 5 0");
        System.out.println("GET /late/{id} 5 5");
        System.out.println("POST /broken/{id} 5 5");
        System.out.println("GET /asks/{id} 5 0");
    }

    public static void main(String[] args) throws Exception {
        scheduled();
        consume();
        serve();
    }
}
