// SPDX-License-Identifier: Apache-2.0
/**
 * Threads that are always within compiled code that has done without the objects of work(). When a
 * heap walk begins, a VM since JDK 16 makes these objects, on the thread that asked for the walk.
 * JvmpiEscapes MILLISECONDS; prints "done".
 */
public class JvmpiEscapes {
    static class Pair {
        final int first, second;
        Pair(int first, int second) {
            this.first = first;
            this.second = second;
        }
    }

    static volatile int zero;
    static volatile boolean stop;

    /**
     * Takes most of the time. It calls itself, so that it is not inlined, and work() keeps its
     * objects in registers meanwhile.
     */
    static int pause(int depth) {
        if (depth > 0)
            return pause(depth - 1);
        int sum = 0;
        for (int i = 0; i < 2000; i++)
            sum += zero;
        return sum;
    }

    static int work(int n) {
        Pair one = new Pair(n, n + 1);
        Pair[] both = {one, new Pair(n, 7)};
        int sum = pause(3);
        return sum + one.first + one.second + both[1].second;
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                int sum = 0;
                while (!stop)
                    sum += work(sum);
            });
            threads[i].start();
        }
        Thread.sleep(Integer.parseInt(arguments[0]));
        stop = true;
        for (Thread each : threads)
            each.join();
        System.out.println("done");
    }
}
