// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * For traces of the whole JDK. Each round uses many parts of the JDK, calls step() STEPS times and
 * prints the results. The argument is the number of rounds; without it, each line of standard input
 * starts a round.
 */
public class TracedWhole {
    static final int STEPS = 100, THREADS = 2;

    /** Its class is used as a value before it is initialized. Its initializer prints a line. */
    static class Late {
        static final BigInteger SUM = new BigInteger("5").add(BigInteger.TEN);
        static {
            System.out.println("late");
        }
        final Class<?> itself = Late.class;
    }

    static int step(int n, Object o) {
        if (n % 100 == 99)
            throw new IllegalStateException("step " + n);
        return n + (o == null ? 0 : 1);
    }

    static Object[] values(int n) throws Exception {
        Map<String, Object> map = new TreeMap<>(Collections.reverseOrder());
        map.put("\u00e9\u20ac\ud83d\ude00", new BigDecimal("1.50"));
        map.put("n", BigInteger.valueOf(n));
        return new Object[] {
                null,
                n,
                'x',
                2.5,
                1.5f,
                "text " + n,
                "\u20ac",
                map,
                new ArrayList<>(map.keySet()),
                Optional.of(n),
                Thread.State.NEW,
                String.class,
                int[][].class,
                new int[] {n},
                Thread.currentThread(),
                new StringBuilder("b").append(n),
                Class.forName("java.math.MathContext", false, null),
                Class.forName("TracedWhole$Late", false, TracedWhole.class.getClassLoader())};
    }

    static String work(int round) throws Exception {
        int sum = 0, thrown = 0;
        List<String> texts = new ArrayList<>();
        for (int n = 0; n < STEPS; n++) {
            Object[] all = values(n);
            try {
                sum += step(n, all[n % all.length]);
            } catch (IllegalStateException e) {
                thrown++;
                texts.add(e.getMessage());
            }
        }
        Map<String, Integer> lengths = new HashMap<>();
        texts.forEach(t -> lengths.merge(t.substring(0, 4), t.length(), Integer::sum));
        Method max = Math.class.getMethod("max", int.class, int.class);
        return sum + " " + thrown + " " + lengths + " " + max.invoke(null, 3, round) + " "
                + new BigDecimal("1e3").pow(5).toBigInteger().bitLength();
    }

    static void round(int round) throws Exception {
        System.out.println(work(round));
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < THREADS; i++)
            results.add(pool.submit(() -> work(round)));
        for (Future<String> f : results)
            System.out.println(f.get());
        pool.shutdown();
        System.out.println(new Late().itself == Late.class ? Late.SUM : "?");
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        int rounds = args.length == 0 ? Integer.MAX_VALUE : Integer.parseInt(args[0]);
        System.out.println("ready");
        for (int i = 0; i < rounds && (args.length > 0 || System.in.read() == '\n'); i++)
            round(i);
        System.exit(7);
    }
}
