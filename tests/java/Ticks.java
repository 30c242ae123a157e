// SPDX-License-Identifier: Apache-2.0
import java.io.InputStream;

/**
 * Each tick is one call of `tick`, with one array from `allocate`, one throw in `fail` and one
 * request; after every ten it prints the time and how many there have been, until it is killed. A
 * line of `stage` more runs after each hundred. With an argument that many classes are loaded
 * first. With a second argument another thread computes all the time, because a tick takes so little
 * CPU time that the kernel may send no signal for it within a second.
 */
public class Ticks {
    static Object kept;
    static int stages;
    static volatile long sum;

    public static class Extra00000 implements Runnable {
        static int runs;

        public void run() {
            runs++;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    /** Classes like Extra00000 with other numbers. */
    static void load(int classes) throws Exception {
        byte[] bytes = new byte[4096];
        String text;
        try (InputStream in = Ticks.class.getResourceAsStream("Ticks$Extra00000.class")) {
            text = new String(bytes, 0, in.read(bytes), "ISO-8859-1");
        }
        Loader loader = new Loader();
        for (int i = 1; i <= classes; i++) {
            String name = String.format("Extra%05d", i);
            Class<?> c = loader.define("Ticks$" + name, text.replace("Extra00000", name).getBytes("ISO-8859-1"));
            ((Runnable) c.getDeclaredConstructor().newInstance()).run();
        }
    }

    static void allocate() {
        kept = new long[16];
    }

    static void fail() {
        throw new IllegalStateException("known");
    }

    static void request() {
        kept = null;
    }

    static void stage(int number) {
        switch (number) {
        case 1:
            stages += 1;
            break;
        case 2:
            stages += 2;
            break;
        case 3:
            stages += 3;
            break;
        case 4:
            stages += 4;
            break;
        case 5:
            stages += 5;
            break;
        default:
            stages += 6;
            break;
        }
    }

    /** Lets a thread of its own add numbers until the program ends. */
    static void compute() {
        Thread busy = new Thread(() -> {
            while (true)
                sum += sum * 31 + 1;
        }, "busy");
        busy.setDaemon(true);
        busy.start();
    }

    static void tick() {
        request();
        allocate();
        try {
            fail();
        } catch (IllegalStateException e) {
            stages++;
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0)
            load(Integer.parseInt(args[0]));
        if (args.length > 1)
            compute();
        for (int ticks = 1;; ticks++) {
            tick();
            Thread.sleep(1);
            if (ticks % 100 == 0)
                stage(ticks / 100);
            if (ticks % 10 == 0)
                System.out.println(System.currentTimeMillis() + " " + ticks);
        }
    }
}
