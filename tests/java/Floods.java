// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Calls work() a million times a second for argument 1 seconds; prints how many calls there were,
 * their sum, the slowest millisecond's worth of calls in microseconds, the most CPU time that one
 * took, and how often the thread waited for something (Linux's voluntary switches). What is between
 * the two is time in which another thread had the processor.
 */
public class Floods {
    static int work(int n) {
        return n + 1;
    }

    static long waits() throws Exception {
        String status = new String(Files.readAllBytes(Paths.get("/proc/thread-self/status")),
                                   StandardCharsets.US_ASCII);
        int at = status.indexOf("\nvoluntary_ctxt_switches:") + 25;
        return Long.parseLong(status.substring(at, status.indexOf('\n', at)).trim());
    }

    public static void main(String[] args) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        threads.getCurrentThreadCpuTime();
        waits();
        long waited = waits();
        long start = System.nanoTime(), end = start + Integer.parseInt(args[0]) * 1_000_000_000L,
             slowest = 0, most = 0, calls = 0;
        int sum = 0;
        for (long due = start; due < end; due += 1_000_000) {
            while (System.nanoTime() < due) {
                Thread.yield();
            }
            long used = threads.getCurrentThreadCpuTime(), before = System.nanoTime();
            for (int i = 0; i < 1000; i++) {
                sum = work(sum);
            }
            calls += 1000;
            slowest = Math.max(slowest, System.nanoTime() - before);
            most = Math.max(most, threads.getCurrentThreadCpuTime() - used);
        }
        System.out.println(calls + " " + sum + " " + slowest / 1000 + " " + most / 1000 + " "
                           + (waits() - waited));
    }
}
