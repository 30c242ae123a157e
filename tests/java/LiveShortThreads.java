// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Makes 200,000 objects at five places, so that not every object is followed any more, and then in
 * each of argument 1 threads, one after the other, argument 2 objects of another class at each of
 * eight places. Half of those are kept, chosen at random from argument 3 on; how many of each place
 * is printed.
 */
public class LiveShortThreads {
    static class Before {
        long a;
    }

    static class Kept {
        long a, b;
    }

    static final List<Object> kept = new ArrayList<>();
    static final int[] keptOf = new int[8];
    static Random random;
    static volatile Object last;

    static void keep(int place, Object o) {
        if (random.nextBoolean()) {
            kept.add(o);
            keptOf[place]++;
        }
        last = o;
    }

    static void make(int n) {
        for (int i = 0; i < n; i++) {
            keep(0, new Kept());
            keep(1, new Kept());
            keep(2, new Kept());
            keep(3, new Kept());
            keep(4, new Kept());
            keep(5, new Kept());
            keep(6, new Kept());
            keep(7, new Kept());
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        random = new Random(Integer.parseInt(args[2]));
        for (int i = 0; i < 40000; i++) {
            last = new Before();
            last = new Before();
            last = new Before();
            last = new Before();
            last = new Before();
        }
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread t = new Thread(() -> make(n));
            t.start();
            t.join();
        }
        last = null;
        for (int of : keptOf)
            System.out.println(of);
    }
}
