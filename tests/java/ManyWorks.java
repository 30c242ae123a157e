// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A method that is recorded as a request and has a thread of a pool work for it 100 times. */
public class ManyWorks {
    static volatile long sink;

    static void part() {
        long x = sink;
        for (int i = 0; i < 10000; i++)
            x = x * 31 + i;
        sink = x;
    }

    static void request(ExecutorService pool) throws Exception {
        List<Future<?>> parts = new ArrayList<>();
        for (int i = 0; i < 100; i++)
            parts.add(pool.submit(ManyWorks::part));
        for (Future<?> f : parts)
            f.get();
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        for (int i = 0; i < 3; i++)
            request(pool);
        pool.shutdown();
    }
}
