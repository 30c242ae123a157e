// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/** A program whose threads, classes and objects are known, for jvmscope inspect. */
public class Inspected {
    static class Base {
        protected long big = Long.MAX_VALUE;
        String text = "caf\u00e9 \ud83d\ude00";
    }

    static class Known extends Base implements Runnable {
        static int counter = 42;
        static final double RATIO = Double.NaN;
        int number = 7;
        char letter = 'x';
        boolean yes = true;
        Integer box = 1234;
        int[] numbers = {1, 2, 3};
        String quoted = "a \"b\\c\n";
        Object[] things = {"one", null, this};

        public void run() {
        }

        int hot(int x) {
            return x * 31 + number;
        }
    }

    static class NeverInitialized {
        static Object value = new Object();
    }

    static final Object lock = new Object();
    static Object nothing;
    static double tenth = 0.1;
    static float third = 1 / 3f;
    static Known[] kept = new Known[5];

    static void waiting(int depth, String argument) {
        if (depth > 0) {
            waiting(depth - 1, argument);
            return;
        }
        synchronized (lock) {
            int local = 99;
            while (local == 99) {
                LockSupport.park();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new Known();
        }
        int sum = 0;
        for (int i = 0; i < 2_000_000; i++) {
            sum += kept[i % 5].hot(i);
        }
        Class<?> c = Class.forName("Inspected$NeverInitialized", false, Inspected.class.getClassLoader());
        ThreadGroup group = new ThreadGroup("the group");
        Thread holder = new Thread(group, () -> waiting(3, "hello"), "holder");
        holder.setDaemon(true);
        holder.start();
        while (holder.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        Thread blocked = new Thread(group, () -> {
            synchronized (lock) {
                System.out.println("never");
            }
        }, "blocked");
        blocked.setDaemon(true);
        blocked.start();
        while (blocked.getState() != Thread.State.BLOCKED) {
            Thread.sleep(1);
        }
        System.out.println("ready");
        System.in.read();
        System.gc();
        System.out.println("collected " + (sum == 0 ? "" : "") + c.getName());
        System.in.read();
        System.out.println("done " + kept.length);
    }
}
