// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;

/**
 * Work in classes that the VM makes: lambdas of every kind, reflection's accessors, a proxy. With
 * "more" it makes other lambdas first, so that numbers and addresses of the same lambdas differ
 * from a run's without. Arguments: milliseconds of CPU time, [more].
 */
public class MadeNames {
    interface Shop {
        int buy(int n);
    }

    static final List<Object> kept = new ArrayList<>();
    static volatile long sink;

    static int square(int x) {
        int sum = 0;
        for (int i = 0; i < 20_000; i++)
            sum += x * i ^ sum >> 3;
        return sum;
    }

    private final int base;

    MadeNames(Integer base) {
        this.base = square(base);
    }

    int add(int n) {
        return base + square(n);
    }

    static void others() {
        Runnable[] more = {() -> sink++, () -> sink--, () -> sink += 2, () -> sink += 3};
        for (Runnable r : more)
            r.run();
        kept.add(Proxy.newProxyInstance(MadeNames.class.getClassLoader(),
                                        new Class<?>[] {Comparable.class, Runnable.class},
                                        new InvocationHandler() { // not one more lambda
                                            public Object invoke(Object p, Method m, Object[] v) {
                                                return null;
                                            }
                                        }));
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1)
            others();
        Shop shop = (Shop) Proxy.newProxyInstance(
                MadeNames.class.getClassLoader(), new Class<?>[] {Shop.class},
                (proxy, method, values) -> square((Integer) values[0]));
        Method square = MadeNames.class.getDeclaredMethod("square", int.class);
        Random random = new Random(1);
        // CPU time: on a busy machine as many samples are taken of it.
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long end = threads.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1_000_000;
        for (int n = 0; n < 100 || threads.getCurrentThreadCpuTime() < end; n++) {
            int number = n;
            Supplier<Integer> captures = () -> square(number);
            IntUnaryOperator toStatic = MadeNames::square;
            Function<Integer, MadeNames> makes = MadeNames::new;
            MadeNames made = makes.apply(n);
            IntUnaryOperator bound = made::add;
            Supplier<Double> elsewhere = random::nextGaussian;
            if (n < 100) {
                kept.add(captures);
                kept.add(bound);
                kept.add(elsewhere);
            }
            sink += captures.get() + toStatic.applyAsInt(n) + bound.applyAsInt(n)
                    + elsewhere.get().intValue() + shop.buy(n) + (Integer) square.invoke(null, n);
        }
        System.out.println("done");
    }
}
