// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;

/**
 * Requests that are slow because they read memory whose pages are still on a slow disk: a mapped
 * file, of which each slow request reads PAGES pages that nobody has read before. Prints "FAULTS
 * LACKED_NS DELAY_NS LATENCY_NS", sums over the slow requests: major page faults; for how long the
 * thread, which waits for nothing else, did not run, by its CPU time; and the most that it then
 * lacked a processor instead of a page, by Linux's count.
 */
public class RequestFaults {
    static final int REQUESTS = 60, SLOW = 3, PAGE = 4096, PAGES = 4;
    static final Path COUNT = Paths.get("/proc/thread-self/schedstat");
    static final Path STAT = Paths.get("/proc/thread-self/stat");
    static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    /** A field of Linux's figures of the thread, or 0 where it may not read them. */
    static long number(Path file, int field) throws IOException {
        if (System.getenv("LD_PRELOAD") != null)
            return 0;
        String text = new String(Files.readAllBytes(file), StandardCharsets.US_ASCII).trim();
        return Long.parseLong(text.substring(text.lastIndexOf(')') + 1).trim().split(" ")[field]);
    }

    static void spin(long nanos) {
        long end = threads.getCurrentThreadCpuTime() + nanos, x = sink;
        while (threads.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 2_000; i++)
                x = x * 31 + 7;
        }
        sink = x;
    }

    /** The request. */
    static void serve(ByteBuffer memory, int first, int pages) {
        order(memory, first, pages);
    }

    /** Computes, and reads a byte of each of these pages. */
    static void order(ByteBuffer memory, int first, int pages) {
        spin(2_500_000);
        long sum = 0;
        for (int i = 0; i < pages; i++)
            sum += memory.get((first + i) * PAGE);
        sink += sum;
    }

    public static void main(String[] args) throws Exception {
        long faults = 0, lacked = 0, ready = 0, took = 0;
        ByteBuffer memory;
        try (FileChannel file = FileChannel.open(Paths.get(args[0]), StandardOpenOption.READ)) {
            memory = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
        }
        // The agent examines a thread exactly once it has seen that it has page faults.
        order(memory, 0, 1);
        int next = 1;
        for (int i = 0; i < REQUESTS; i++) {
            boolean slow = i % (REQUESTS / SLOW) == REQUESTS / SLOW - 1;
            Thread.sleep(1);
            long faulted = number(STAT, 9), delayed = number(COUNT, 1);
            long start = System.nanoTime(), used = threads.getCurrentThreadCpuTime();
            serve(memory, next, slow ? PAGES : 0);
            long ns = System.nanoTime() - start, cpu = threads.getCurrentThreadCpuTime() - used;
            delayed = number(COUNT, 1) - delayed;
            if (!slow)
                continue;
            next += PAGES;
            faults += number(STAT, 9) - faulted;
            took += ns;
            lacked += ns - cpu;
            ready += delayed;
        }
        System.out.println(faults + " " + lacked + " " + ready + " " + took);
    }
}
