// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;

/**
 * Objects whose toString() is slow, throws, or depends on its thread, with answers that are known.
 */
public class Texts {
    static class Slow {
        static final CountDownLatch open = new CountDownLatch(1);
        static volatile int asked;
        final int n;

        Slow(int n) {
            this.n = n;
        }

        @Override
        public String toString() {
            asked++;
            try {
                if (n == 0)
                    open.await();
            } catch (InterruptedException e) {
                return "interrupted";
            }
            return "slow " + n;
        }
    }

    static class Quick {
        @Override
        public String toString() {
            return "quick";
        }
    }

    static class Throws {
        @Override
        public String toString() {
            throw new IllegalStateException("no text");
        }
    }

    static class Interrupts {
        @Override
        public String toString() {
            boolean before = Thread.currentThread().isInterrupted();
            Thread.currentThread().interrupt();
            return "interrupted " + before;
        }
    }

    /** A text that takes 40 ms. */
    static class Sleeps {
        @Override
        public String toString() {
            try {
                Thread.sleep(40);
            } catch (InterruptedException e) {
                return "interrupted";
            }
            return "slept";
        }
    }

    /** A text that takes 20 ms of CPU time. */
    static class Burns {
        static int burn() {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            long until = threads.getCurrentThreadCpuTime() + 20_000_000;
            int turns = 0;
            while (threads.getCurrentThreadCpuTime() < until)
                turns++;
            return turns;
        }

        @Override
        public String toString() {
            return "burnt " + (burn() > 0);
        }
    }

    static int take(Object o) {
        return 1;
    }

    static Object inner(Object o) {
        return o;
    }

    static int outer(Object o) {
        return inner(o) == o ? 1 : 0;
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            for (int i = 0; i < Integer.parseInt(args[1]); i++)
                take(args[0].equals("burns") ? new Burns() : new Quick());
            return;
        }
        if (args.length > 0) {
            for (int i = 0; i < Integer.parseInt(args[0]); i++)
                outer(new Sleeps());
            return;
        }
        take(new Quick());
        take(new Throws());
        take(new Throws());
        take(new Interrupts());
        take(new Interrupts());
        take(new Slow(0));
        take(new Slow(1));
        take(new Quick());
        Slow.open.countDown();
        int before = Slow.asked;
        while (Slow.asked == before) {
            Thread.sleep(20);
            take(new Slow(2));
        }
        System.out.println(before);
    }
}
