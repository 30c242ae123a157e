// SPDX-License-Identifier: Apache-2.0
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
