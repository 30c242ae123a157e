// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;

/**
 * A web server, and a client that asks for each path in turn, `rounds` times. Prints what is true:
 * "request PATH STATUS" with when the client began and ended and when the handler did, and "task
 * WAY THREAD" with when it ran, in System.nanoTime(). With "silent" as third argument it prints
 * nothing of that.
 */
public class RequestsTruth {
    static final ExecutorService pool = Executors.newFixedThreadPool(2),
                                 one = Executors.newSingleThreadExecutor(),
                                 others = Executors.newFixedThreadPool(2);
    static final ForkJoinPool forks = new ForkJoinPool(2);
    static final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
    static final Timer timer = new Timer(true);
    /** It has no queue, and is given the same task again and again. */
    static final ExecutorService narrow =
            new ThreadPoolExecutor(1, 1, 1, TimeUnit.DAYS, new SynchronousQueue<>());
    static final Semaphore ran = new Semaphore(0);
    static final Runnable again = () -> {
        nap("executor");
        ran.release();
    };
    static final ForkJoinPool busyFork = new ForkJoinPool(1);
    static final CountDownLatch end = new CountDownLatch(1);
    static Never never = new Never();

    static class Never extends TimerTask {
        public void run() {
            nap("never");
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static final StringBuilder truth = new StringBuilder();
    static volatile long handlerStart, handlerEnd;

    static boolean silent;

    static synchronized void report(String line) {
        if (!silent)
            truth.append(line).append('\n');
    }

    static String nap(String way) {
        long start = System.nanoTime();
        try {
            Thread.sleep(2);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        report("task " + way + " " + Thread.currentThread().getName() + " " + start + " "
             + System.nanoTime());
        return way;
    }

    static class Halves extends RecursiveTask<Integer> {
        final int n;

        Halves(int n) {
            this.n = n;
        }

        protected Integer compute() {
            if (n == 1) {
                nap("fork-join");
                return 1;
            }
            Halves left = new Halves(n / 2), right = new Halves(n / 2);
            left.fork();
            return right.compute() + left.join();
        }
    }

    static class Shop {
        /** Named by the option. */
        static int order(int n) {
            return n == 0 ? nap("none").length() : order(n - 1);
        }

        static void refuse() {
            throw new IllegalArgumentException("refused");
        }
    }

    static int handle(String way) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        switch (way) {
            case "plain":
                Thread.sleep(5);
                break;
            case "executor":
                pool.submit((Callable<String>) () -> nap("executor")).get();
                pool.invokeAll(java.util.Arrays.<Callable<String>>asList(
                        () -> nap("executor"), () -> nap("executor")));
                break;
            case "queue": {
                CountDownLatch submitted = new CountDownLatch(1);
                one.submit(() -> {
                    submitted.await();
                    return nap("executor");
                });
                java.util.concurrent.Future<String> second = one.submit(() -> nap("executor"));
                submitted.countDown();
                second.get();
                break;
            }
            case "cancelled": {
                CountDownLatch over = new CountDownLatch(1);
                one.execute(() -> await(over));
                ForkJoinTask<?> forked = busyFork.submit(() -> nap("never"));
                java.util.concurrent.Future<String> second = one.submit(() -> nap("never"));
                timer.schedule(never, 1_000_000);
                long start = System.nanoTime();
                try {
                    second.get(20, TimeUnit.MILLISECONDS);
                } catch (TimeoutException e) {
                    report("waited " + (System.nanoTime() - start));
                }
                second.cancel(true);
                forked.cancel(true);
                never.cancel();
                never = new Never();
                over.countDown();
                break;
            }
            case "rejected":
                for (boolean taken = false, refused = false; !taken;) {
                    // The pool has no queue, so it takes the same task only after it has refused
                    // it.
                    CountDownLatch over = new CountDownLatch(1);
                    if (!refused)
                        narrow.execute(() -> await(over));
                    try {
                        narrow.execute(again);
                        taken = true;
                    } catch (RejectedExecutionException e) {
                        refused = true;
                    }
                    over.countDown();
                    Thread.sleep(1);
                }
                ran.acquire();
                break;
            case "fork-join":
                forks.invoke(new Halves(4));
                break;
            case "stream":
                forks.submit(() -> IntStream.range(0, 4).parallel().forEach(i -> nap("fork-join")))
                        .get();
                break;
            case "future":
                // The second stage runs where the first one ends, in a pool that knows nothing of
                // the request.
                CompletableFuture<String> first = new CompletableFuture<>();
                CompletableFuture<String> stage = first.thenApply(x -> nap("future"));
                others.execute(() -> {
                });
                complete(first);
                stage.get();
                break;
            case "async-future":
                CompletableFuture.supplyAsync(() -> nap("executor"), pool)
                        .thenApplyAsync(x -> nap("executor"), pool)
                        .thenApplyAsync(x -> nap("fork-join"), forks)
                        .get();
                break;
            case "thread": {
                Thread t = new Thread(() -> nap("thread"), "named");
                t.start();
                t.join();
                break;
            }
            case "timer":
                timer.schedule(new TimerTask() {
                    public void run() {
                        nap("timer");
                        done.countDown();
                    }
                }, 3);
                done.await();
                break;
            case "schedule":
                later.schedule(() -> nap("timer"), 3, TimeUnit.MILLISECONDS).get();
                break;
            case "method":
                Shop.order(3);
                break;
            case "thrown":
                Shop.refuse();
                break;
            case "virtual":
                virtual(() -> nap("thread")).join();
                break;
            case "structured":
                structured();
                break;
            case "error":
                return 503;
            default:
                return 404;
        }
        return 200;
    }

    /** Since JDK 21; a platform thread otherwise. */
    static Thread virtual(Runnable task) throws Exception {
        try {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, task);
        } catch (NoSuchMethodException e) {
            Thread t = new Thread(task);
            t.start();
            return t;
        }
    }

    /**
     * Two subtasks of a StructuredTaskScope, whose interface differs between JDKs, or of two
     * threads where there is none.
     */
    static void structured() throws Exception {
        Callable<String> task = () -> nap("thread");
        Class<?> type;
        try {
            type = Class.forName("java.util.concurrent.StructuredTaskScope");
        } catch (ClassNotFoundException e) {
            virtual(() -> nap("thread")).join();
            return;
        }
        Object scope;
        try {
            scope = type.getMethod("open").invoke(null);
        } catch (NoSuchMethodException e) {
            scope = type.getConstructor().newInstance();
        }
        for (int i = 0; i < 2; i++)
            type.getMethod("fork", Callable.class).invoke(scope, task);
        type.getMethod("join").invoke(scope);
        type.getMethod("close").invoke(scope);
    }

    /** By a thread that has never worked for the request. */
    static final java.util.concurrent.SynchronousQueue<CompletableFuture<String>> toComplete =
            new java.util.concurrent.SynchronousQueue<>();

    static void complete(CompletableFuture<String> f) throws Exception {
        toComplete.put(f);
    }

    static void answer(HttpExchange exchange) throws java.io.IOException {
        handlerStart = System.nanoTime();
        String path = exchange.getRequestURI().getPath();
        int status;
        try {
            status = handle(path.split("/")[1]);
        } catch (RuntimeException e) {
            exchange.close();
            throw e;
        } catch (Exception e) {
            throw new java.io.IOException(e);
        }
        byte[] body = "answer".getBytes("UTF-8");
        exchange.sendResponseHeaders(status, body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
            handlerEnd = System.nanoTime();
        }
    }

    static void ask(int port, String path) {
        int status = 0;
        handlerStart = handlerEnd = 0;
        long start = System.nanoTime();
        try {
            HttpURLConnection c =
                    (HttpURLConnection) new URL("http://127.0.0.1:" + port + path + "?secret=1")
                            .openConnection();
            c.setRequestProperty("traceparent",
                                 String.format("00-%032x-%016x-01", start, start + 1));
            status = c.getResponseCode();
            try (InputStream in = status < 400 ? c.getInputStream() : c.getErrorStream()) {
                while (in.read() >= 0) {
                }
            }
        } catch (java.io.IOException e) {
            // the handler has thrown
        }
        report("request " + path + " " + status + " " + start + " " + System.nanoTime() + " "
             + handlerStart + " " + handlerEnd);
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        silent = args.length > 2 && args[2].equals("silent");
        Thread completer = new Thread(() -> {
            try {
                while (true)
                    toComplete.take().complete("done");
            } catch (InterruptedException e) {
                // the end
            }
        }, "completer");
        completer.setDaemon(true);
        completer.start();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        ExecutorService workers = Executors.newFixedThreadPool(2);
        server.setExecutor(workers);
        server.createContext("/", RequestsTruth::answer);
        server.start();
        busyFork.execute(() -> await(end));
        System.out.println("ready");
        System.out.flush();
        if (args.length > 2)
            System.in.read();
        for (int i = 0; i < rounds; i++)
            for (String way : args[1].split(","))
                ask(server.getAddress().getPort(), "/" + way + "/" + (1000 + i));
        System.out.print(truth);
        System.out.println("done");
        System.out.flush();
        if (args.length > 2)
            System.in.read();
        server.stop(0);
        end.countDown();
        for (ExecutorService e :
             new ExecutorService[] {narrow, busyFork, workers, pool, one, others, forks, later})
            e.shutdown();
    }
}
