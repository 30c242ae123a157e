// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.concurrent.locks.LockSupport;

/**
 * More busy threads than processors: each prints what it took, and how long it waited for a
 * processor and had one, by Linux's own count, in ns. "virtual": they are virtual threads, each
 * with a carrier (-Djdk.virtualThreadScheduler.parallelism).
 */
public class BusyThreads {
    /**
     * The calling thread's counts. Whoever opens or closes a file takes a lock that all threads
     * share; reading takes none.
     */
    static RandomAccessFile open() {
        try {
            return new RandomAccessFile("/proc/thread-self/schedstat", "r");
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** CPU time and delay, both at one time. */
    static long[] counts(RandomAccessFile file) {
        try {
            byte[] text = new byte[100];
            file.seek(0);
            String[] words = new String(text, 0, file.read(text)).trim().split(" ");
            return new long[] {Long.parseLong(words[0]), Long.parseLong(words[1])};
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static long work(long until) {
        long x = 1;
        while (System.nanoTime() < until)
            for (int i = 0; i < 10_000; i++)
                x = x * 6364136223846793005L + i;
        return x;
    }

    static volatile long sink;

    /** Thread.ofVirtual().name(name).unstarted(body), by reflection: this is compiled for JDK 8. */
    static Thread virtual(String name, Runnable body) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, body);
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4 * Runtime.getRuntime().availableProcessors()];
        // no locks: a path would go on with the thread that had one
        String[] results = new String[threads.length];
        counts(open());
        for (int t = 0; t < threads.length; t++) {
            int me = t;
            Runnable body = () -> {
                RandomAccessFile file = open();
                long begin = System.nanoTime();
                long[] before = counts(file);
                sink += work(begin + 400_000_000L);
                long[] after = counts(file);
                long end = System.nanoTime();
                results[me] =
                        (end - begin) + " " + (after[1] - before[1]) + " " + (after[0] - before[0]);
                // One after the other: a thread that ends takes the lock of its group, and a path
                // would go on with who had that.
                while (me > 0 && threads[me - 1].isAlive())
                    LockSupport.parkNanos(5_000_000L);
            };
            threads[t] =
                    args.length > 0 ? virtual("busy-" + t, body) : new Thread(body, "busy-" + t);
            threads[t].start();
        }
        for (int t = 0; t < threads.length; t++) {
            while (threads[t]
                           .isAlive()) // join() would hold the lock that a thread takes as it ends
                LockSupport.parkNanos(5_000_000L);
            System.out.println(threads[t].getName() + " " + results[t]);
        }
    }
}
