// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Known amounts of everything that is recorded at once: calls, throws, catches, objects, waits for
 * a lock, lines that run.
 */
public class Amounts {
    static final int CALLS = 50_000, THROWS = 30, OBJECTS = 20_000, BYTES = 1000, HOLD_MS = 200;
    static final Object LOCK = new Object();
    static Object kept;
    static long sum;

    static int called(int i) {
        return i * 2; // called
    }

    static int through(int i) {
        return called(i) + 1;
    }

    static void fail(int i) {
        throw new IllegalStateException("thrown " + i); // thrown
    }

    static void passes(int i) {
        fail(i);
    }

    static void ends() {
        throw new IllegalArgumentException("nobody catches it"); // uncaught
    }

    static void allocate() {
        for (int i = 0; i < OBJECTS; i++)
            kept = new byte[BYTES];
    }

    static void seldom0() {
        for (int i = 0; i < OBJECTS / 10; i++)
            kept = new byte[BYTES];
    }

    static void seldom1() {
        for (int i = 0; i < OBJECTS / 10; i++)
            kept = new byte[BYTES];
    }

    static void seldom2() {
        for (int i = 0; i < OBJECTS / 10; i++)
            kept = new byte[BYTES];
    }

    static void hold() {
        synchronized (LOCK) {
            sleep(HOLD_MS);
        }
    }

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void never() {
        sum--;
    }

    /** Uses this much CPU time, more or less, and says how much it was. */
    static void spin(int ms) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long began = threads.getCurrentThreadCpuTime(), now = began;
        while (now < began + ms * 1_000_000L) {
            for (int i = 0; i < 10_000; i++)
                kept = null;
            now = threads.getCurrentThreadCpuTime();
        }
        System.out.println("spun " + (now - began));
    }

    /**
     * "all MS": everything, and CPU time, once for each line of standard input. No method runs
     * from one line to the next but main.
     */
    static void onDemand(int ms) throws Exception {
        for (int i = 0; i < 9; i++)
            allocate();
        spin(ms);
        main(new String[0]);
    }

    /**
     * "objects N", "calls N", "calls N wait": N of them alone; wait: until the program is killed.
     */
    static void alone(String what, int n) {
        long began = System.nanoTime();
        if (what.equals("objects"))
            for (int i = 0; i < n; i += OBJECTS)
                allocate();
        if (what.equals("objects") && n > 50 * OBJECTS) { // two megabytes each: some four samples
            seldom0();
            seldom1();
            seldom2();
        }
        else
            for (int i = 0; i < n; i++)
                sum += called(i);
        System.out.println("in " + (System.nanoTime() - began));
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("all")) {
            System.out.println("ready");
            while (System.in.read() >= 0)
                onDemand(Integer.parseInt(args[1]));
            return;
        }
        if (args.length > 0) {
            do
                alone(args[0], Integer.parseInt(args[1]));
            while (args.length > 2);
            return;
        }
        for (int i = 0; i < CALLS; i++)
            sum += i % 2 == 0 ? called(i) : through(i);
        for (int i = 0; i < THROWS; i++) {
            try {
                passes(i);
            } catch (IllegalStateException e) { // caught
                sum++;
            }
        }
        Thread ends = new Thread(Amounts::ends, "ends");
        ends.setUncaughtExceptionHandler((t, e) -> sum++);
        ends.start();
        ends.join();
        allocate();
        Thread holder = new Thread(Amounts::hold, "holder");
        holder.start();
        while (holder.getState() != Thread.State.TIMED_WAITING)
            Thread.sleep(1);
        synchronized (LOCK) {
            sum++;
        }
        holder.join();
        if (sum < 0)
            never();
        System.out.println("sum " + sum);
    }
}
