// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that allocate in stacks up to 40 deep for so many seconds: with a small young generation
 * the VM stops them hundreds of times a second.
 */
import java.util.HashMap;
import java.util.Map;

public class WalkChurn {
    static volatile Object sink;

    static int work(int depth, Map<Integer, String> map, int i) {
        if (depth > 0)
            return work(depth - 1, map, i) + 1;
        map.put(i & 1023, "value " + i);
        sink = new int[20];
        return map.size();
    }

    public static void main(String[] args) throws InterruptedException {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Thread[] threads = new Thread[Integer.parseInt(args[1])];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                Map<Integer, String> map = new HashMap<>();
                for (int i = 0; System.nanoTime() < end; i++)
                    work(i % 40, map, i);
            });
            threads[t].start();
        }
        for (Thread thread : threads)
            thread.join();
    }
}
