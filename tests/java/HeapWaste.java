// SPDX-License-Identifier: Apache-2.0
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Known waste: texts twice, collections that are empty or sparse, arrays of one value; values of
 * every kind. READY, then waits.
 */
public class HeapWaste {
    enum Colour { RED, GREEN }

    /** Every instance has the same hash. */
    static final class Clash {
        final int n;

        Clash(int n) {
            this.n = n;
        }

        @Override
        public int hashCode() {
            return 42;
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Clash && ((Clash) o).n == n;
        }
    }

    static final class OnlySoft {
        final byte[] b = new byte[3000];
    }

    static final class OnlyWeak {
    }

    static final class Shown {
        final Integer boxed = 4711;
        final Double real = 2.5;
        final Double tenth = 0.1, sum = 0.1 + 0.2;
        final Float third = 1 / 3f;
        final double pi = Math.PI;
        final float thousandth = 0.001f;
        final Character letter = 'q';
        final Boolean yes = true;
        final AtomicLong counter = new AtomicLong(99);
        final Colour colour = Colour.GREEN;
        final Class<?> type = Clash.class;
        final URL url;
        final Thread thread = new Thread("sleeper");
        final StringBuilder text = new StringBuilder("built of parts");
        final List<Object> list = new ArrayList<>();
        final String quoted = "a \"b\" \\ c\n";
        final StringBuilder quoting = new StringBuilder("say \"b\"");
        final Character apostrophe = '\'';
        final byte[] bytes = {'x', '"', 'y'};
        final String wide = "\u043f\u0440\u0438\u0432\u0435\u0442";
        final java.util.Date date = new java.util.Date(1000000000000L);
        final java.math.BigInteger big = new java.math.BigInteger("123456789012345678901234567890");
        final java.util.UUID uuid = new java.util.UUID(0x0123456789abcdefL, 0x8123456789abcdefL);

        Shown() throws Exception {
            url = new URL("http://example.org/index.html");
            list.add(this);
        }
    }

    static final class Keeper extends HashMap<Object, Object> {
    }

    static final List<Object> KEEP = new ArrayList<>();
    static Shown shown;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 50; i++) {
            KEEP.add(new String("a text that is there fifty times".toCharArray()));
        }
        for (int i = 0; i < 30; i++) {
            KEEP.add(new Keeper());
        }
        Keeper bad = new Keeper();
        for (int i = 0; i < 7; i++) {
            bad.put(new Clash(i), "x");
        }
        KEEP.add(bad);
        long[] constant = new long[5000];
        java.util.Arrays.fill(constant, 7);
        Object[] sparse = new Object[4000];
        for (int i = 0; i < 4000; i += 40) {
            sparse[i] = KEEP;
        }
        int[] oversized = new int[3000];
        for (int i = 0; i < 100; i++) {
            oversized[i] = i + 1;
        }
        KEEP.add(constant);
        KEEP.add(sparse);
        KEEP.add(oversized);
        KEEP.add(new SoftReference<>(new OnlySoft()));
        KEEP.add(new PhantomReference<>(KEEP, new ReferenceQueue<Object>()));
        shown = new Shown();
        OnlyWeak weak = new OnlyWeak();
        KEEP.add(new WeakReference<>(shown));
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            Thread.sleep(1);
        }
        System.out.println("DONE " + weak);
    }
}
