// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Brings about what triggers wait for, as its input says, a word per line, and prints "done WORD
 * FROM TO", in milliseconds since 1970. A step happens twenty times a second all the time: a thread
 * named step-N; "steps" prints "steps BEFORE-RUNS ...": for each the times before it was started
 * and in its run(). "request MS": a call of serve, which takes so long. "hold": a call of hold that
 * goes on until "release". "requests N MS": so many. "spin S": a processor is busy. "collect": a
 * full collection of a heap that takes a while. "deadlock". "oom". "throw N": so many objects of
 * Lost. "pace N": so many a second. "memory MB": touched and kept. "threads N", "files N": and
 * kept.
 */
public class Triggers {
    static class Lost extends RuntimeException {
        Lost() {
            this("lost");
        }

        Lost(String message) {
            super(message, null, false, false);
        }
    }

    static class LostTwice extends Lost {
    }

    static volatile long sink;
    static final List<Object> kept = new ArrayList<>();
    static final Queue<String> ran = new ConcurrentLinkedQueue<>();

    static void serve(long ms) throws InterruptedException {
        Thread.sleep(ms);
    }

    static final CountDownLatch released = new CountDownLatch(1);

    static void hold(CountDownLatch until) {
        try {
            until.await();
        } catch (InterruptedException e) {
            sink++;
        }
    }

    static void spin(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
            sink++;
    }

    static void fail(int n) {
        try {
            throw n % 2 == 0 ? new Lost() : new LostTwice();
        } catch (Lost e) {
            sink++;
        }
    }

    static void daemon(String name, Runnable run) {
        Thread t = new Thread(run, name);
        t.setDaemon(true);
        t.start();
    }

    static void steps() {
        for (int i = 0;; i++) {
            long before = System.currentTimeMillis();
            daemon("step-" + i, () -> ran.add(before + "-" + System.currentTimeMillis()));
            try {
                Thread.sleep(50);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static void lock(Object first, Object second, CountDownLatch both) {
        synchronized (first) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException e) {
                return;
            }
            synchronized (second) {
                sink++;
            }
        }
    }

    static void exhaust() {
        try {
            for (List<Object> all = new ArrayList<>();;)
                all.add(new byte[8 << 20]);
        } catch (OutOfMemoryError e) {
            sink++;
        }
    }

    /** Throws so many a second; what was late is made up for. */
    static void pace(int perSecond) {
        long from = System.nanoTime();
        for (int i = 0;; i++) {
            while (System.nanoTime() - from < i * 1000000000L / perSecond)
                LockSupport.parkNanos(2000000);
            fail(i);
        }
    }

    static void collect() {
        List<Object> all = new ArrayList<>();
        for (int i = 0; i < 400000; i++)
            all.add(new Object[] {new byte[20]});
        System.gc();
        sink += all.size();
    }

    static void act(String[] words) throws Exception {
        int n = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        switch (words[0]) {
        case "request":
            serve(n);
            break;
        case "hold":
            daemon("holder", () -> hold(released));
            break;
        case "release":
            released.countDown();
            break;
        case "requests":
            for (int i = 0; i < n; i++)
                serve(Integer.parseInt(words[2]));
            break;
        case "steps":
            System.out.println("steps " + String.join(" ", ran));
            break;
        case "spin":
            for (int i = 0; i < 64; i++)
                daemon("spinner", () -> spin(n * 1000L));
            spin(n * 1000L);
            break;
        case "collect":
            collect();
            break;
        case "deadlock":
            Object a = new Object(), b = new Object();
            CountDownLatch both = new CountDownLatch(2);
            daemon("one", () -> lock(a, b, both));
            daemon("other", () -> lock(b, a, both));
            break;
        case "oom":
            exhaust();
            break;
        case "throw":
            for (int i = 0; i < n; i++)
                fail(i);
            break;
        case "pace":
            daemon("thrower", () -> pace(n));
            break;
        case "memory":
            for (int i = 0; i < 8 * n; i++)
                kept.add(new byte[128 << 10]);
            break;
        case "threads":
            for (int i = 0; i < n; i++)
                daemon("idle", () -> {
                    while (true)
                        LockSupport.park();
                });
            break;
        case "files":
            for (int i = 0; i < n; i++)
                kept.add(new FileInputStream("/dev/null"));
            break;
        default:
            throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        daemon("stepper", Triggers::steps);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.trim().split(" ");
            long from = System.currentTimeMillis();
            act(words);
            System.out.println("done " + words[0] + " " + from + " " + System.currentTimeMillis());
        }
    }
}
