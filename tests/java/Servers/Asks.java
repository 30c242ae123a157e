// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URL;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The client of all servers, and what their handlers do; prints what RequestsTruth prints. */
final class Asks {
    static final ExecutorService pool = Executors.newFixedThreadPool(2, task -> {
        Thread t = new Thread(task, "own");
        t.setDaemon(true);
        return t;
    });
    static final StringBuilder truth = new StringBuilder();
    static volatile long handlerStart, handlerEnd;

    static synchronized void report(String line) {
        truth.append(line).append('\n');
    }

    static void nap(String way) {
        long start = System.nanoTime();
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        report("task " + way + " " + Thread.currentThread().getName() + " " + start + " "
             + System.nanoTime());
    }

    /** What a path does: naps, or meets the cause of slowness that is behind its colon. */
    static void serve(String way, String task) {
        int colon = way.indexOf(':');
        if (colon < 0) {
            nap(task);
            return;
        }
        try {
            RequestCauses.meet(way.substring(colon + 1));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static final int CANCELLED = 4;

    /** Three requests in one packet, before any answer; returns how many were answered. */
    static int pipelined(int port) throws IOException {
        StringBuilder text = new StringBuilder();
        for (String path : new String[] {"/sync/1", "/sync/2", "/async/3"})
            text.append("GET ")
                    .append(path)
                    .append(" HTTP/1.1\r\nHost: here\r\n")
                    .append(path.equals("/async/3") ? "Connection: close\r\n" : "")
                    .append("\r\n");
        try (Socket s = new Socket("127.0.0.1", port)) {
            s.setSoTimeout(10_000);
            s.getOutputStream().write(text.toString().getBytes());
            StringBuilder answers = new StringBuilder();
            for (int c; answers.toString().split("answer", -1).length <= 3
                        && (c = s.getInputStream().read()) >= 0;)
                answers.append((char) c);
            return answers.toString().split("answer", -1).length - 1;
        }
    }

    /** Clients that reset their connections while the handler works. */
    static void cancelled(int port) throws Exception {
        for (int i = 0; i < 2 * CANCELLED; i++) {
            handlerStart = handlerEnd = 0;
            try (Socket s = new Socket("127.0.0.1", port)) {
                s.getOutputStream().write(("GET " + (i % 2 == 0 ? "/sync/" : "/async/") + i
                                           + " HTTP/1.1\r\nHost: here\r\n\r\n")
                                                  .getBytes());
                while (handlerStart == 0)
                    Thread.sleep(1);
                s.setSoLinger(true, 0);
            }
            while (handlerEnd == 0)
                Thread.sleep(1);
        }
        Thread.sleep(300);
    }

    /**
     * A pool whose only thread renders a report of nobody's, and lets all others wait, until the
     * client has its answer.
     */
    static final ExecutorService reports = Executors.newSingleThreadExecutor(task -> {
        Thread t = new Thread(task, "reports-1");
        t.setDaemon(true);
        return t;
    });
    static volatile boolean rendering;

    static void render() {
        try {
            while (rendering)
                Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Waits for a task behind the report for as long as it wants to, and cancels it; returns
     * whether it was cancelled.
     */
    static boolean giveUp() {
        Future<?> task = reports.submit(() -> nap("none"));
        try {
            task.get(100, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            return task.cancel(true);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        return false;
    }

    /** Requests that are given up while a task of theirs waits, or that nobody answers in time. */
    static void late(int port, String paths) throws Exception {
        for (int i = 0; i < 3; i++) {
            for (String way : paths.split(",")) {
                rendering = true;
                Future<?> report = reports.submit(Asks::render);
                ask(port, way, "/" + way + "/" + (1000 + i));
                rendering = false;
                report.get();
                reports.submit(() -> { }).get();
            }
        }
        System.out.print(truth);
    }

    /**
     * rounds: their number, "hostile", "late", or "causes", where the paths are "sync:lock" or
     * "async:lock".
     */
    static void all(int port, String rounds, String paths) throws Exception {
        if (rounds.equals("hostile")) {
            int answered = pipelined(port);
            cancelled(port);
            System.out.println("answered " + answered);
        } else if (rounds.equals("late"))
            late(port, paths);
        else if (rounds.equals("causes"))
            RequestCauses.driveAll(port, paths.split(","));
        else
            all(port, Integer.parseInt(rounds), paths);
    }

    /** The body comes when the server has read the head and asked for it, however late that is. */
    static void post(HttpURLConnection c) throws IOException {
        byte[] body = "a body".getBytes();
        c.setDoOutput(true);
        c.setRequestProperty("Expect", "100-continue");
        c.setFixedLengthStreamingMode(body.length);
        try (OutputStream out = c.getOutputStream()) {
            out.write(body);
        }
    }

    static void ask(int port, String way, String path) {
        int status = 0;
        handlerStart = handlerEnd = 0;
        long start = System.nanoTime();
        try {
            HttpURLConnection c =
                    (HttpURLConnection) new URL("http://127.0.0.1:" + port + path + "?secret=1")
                            .openConnection();
            c.setRequestProperty("traceparent",
                                 String.format("00-%032x-%016x-01", start, start + 1));
            if (way.equals("post"))
                post(c);
            status = c.getResponseCode();
            try (InputStream in = status < 400 ? c.getInputStream() : c.getErrorStream()) {
                while (in.read() >= 0) {
                }
            }
        } catch (IOException e) {
            System.out.println(e);
        }
        report("request " + path + " " + status + " " + start + " " + System.nanoTime() + " "
             + handlerStart + " " + handlerEnd);
    }

    static void all(int port, int rounds, String paths) {
        for (int i = 0; i < rounds; i++) {
            for (String way : paths.split(",")) {
                ask(port, way, "/" + way + "/" + (1000 + i));
            }
        }
        System.out.print(truth);
        System.out.println("done");
        System.out.flush();
    }
}
