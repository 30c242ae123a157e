// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Methods that are recorded as requests and differ in what they run: list, of which every tenth is
 * slow for a reason of its own, and order, which works on two threads and calls pay, a request
 * within it, of which every fourth is slow. Another thread works for no request.
 */
public class RequestChoice {
    static volatile long sink;
    static volatile Object last;
    static volatile boolean done;

    static void spin(long micros) {
        long end = System.nanoTime() + micros * 1000, x = sink;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 500; i++)
                x = x * 31 + i;
            last = new byte[1000];
        }
        sink = x;
    }

    static void quickly() {
        spin(2000);
    }

    static void slowly() {
        spin(30000);
    }

    static void list(int i) {
        if (i % 10 == 9)
            slowly();
        else
            quickly();
    }

    static void pay(int i) {
        spin(i % 4 == 3 ? 12000 : 4000);
    }

    static void ship() {
        spin(3000);
    }

    static void order(ExecutorService pool, int i) throws Exception {
        spin(2000);
        pay(i);
        pool.submit(RequestChoice::ship).get();
    }

    static void background() {
        while (!done) {
            spin(1000);
            Thread.yield();
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        Thread background = new Thread(RequestChoice::background, "background");
        Thread lists = new Thread(() -> {
            for (int i = 0; i < 200; i++)
                list(i);
        }, "lists");
        background.start();
        lists.start();
        for (int i = 0; i < 60; i++)
            order(pool, i);
        lists.join();
        done = true;
        background.join();
        pool.shutdown();
    }
}
