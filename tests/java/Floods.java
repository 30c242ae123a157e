// SPDX-License-Identifier: Apache-2.0
/** Calls work() a million times a second for argument 1 seconds; prints how many calls there were and the slowest millisecond's worth. */
public class Floods {
    static int work(int n) {
        return n + 1;
    }

    public static void main(String[] args) {
        long start = System.nanoTime(), end = start + Integer.parseInt(args[0]) * 1_000_000_000L, slowest = 0, calls = 0;
        int sum = 0;
        for (long due = start; due < end; due += 1_000_000) {
            while (System.nanoTime() < due) {
                Thread.yield();
            }
            long before = System.nanoTime();
            for (int i = 0; i < 1000; i++) {
                sum = work(sum);
            }
            calls += 1000;
            slowest = Math.max(slowest, System.nanoTime() - before);
        }
        System.out.println(calls + " " + sum + " " + slowest / 1000);
    }
}
