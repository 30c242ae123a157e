// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/**
 * Does a known amount of everything that can be captured, then ends the way that the argument
 * names: return, exit or halt. `wait` ends as `exit` does, when it reads a line from
 * standard input. A hook of its own and a daemon thread that still works are part of it. KEPT
 * objects of one class are kept, and ten times as many of another are dropped.
 */
public class Endings {
    static final int KEPT = 10000;

    static class Kept {
        int a;
    }

    static class Dropped {
        long a;
    }

    static class Only {
        long a;
    }

    static final List<Object> kept = new ArrayList<>();
    static final Object lock = new Object();
    static volatile Object sink;
    static volatile long sum;

    static long called(int n) {
        return sum += n;
    }

    static void work() {
        kept.add(new Only());
        for (int i = 0; i < KEPT; i++)
            kept.add(new Kept());
        for (int i = 0; i < 10 * KEPT; i++)
            sink = new Dropped();
        for (int i = 0; i < 20000; i++)
            called(i);
        for (int i = 0; i < 100; i++)
            try {
                throw new IllegalStateException("thrown");
            } catch (IllegalStateException e) {
                sink = e;
            }
        long start = System.nanoTime();
        while (System.nanoTime() - start < 50_000_000)
            called(1);
    }

    static void contend() throws InterruptedException {
        Thread other = new Thread(() -> {
            synchronized (lock) {
                called(1);
            }
        });
        synchronized (lock) {
            other.start();
            Thread.sleep(20);
        }
        other.join();
    }

    static void daemon() {
        while (true) {
            synchronized (lock) {
                sink = new byte[100];
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        Thread daemon = new Thread(Endings::daemon);
        daemon.setDaemon(true);
        daemon.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        if (args[0].equals("wait")) {
            System.out.println("ready");
            in.readLine();
        }
        work();
        contend();
        System.out.println("worked");
        if (args[0].equals("wait")) {
            in.readLine();
            System.exit(7);
        }
        if (args[0].equals("exit"))
            System.exit(7);
        if (args[0].equals("halt"))
            Runtime.getRuntime().halt(8);
    }
}
