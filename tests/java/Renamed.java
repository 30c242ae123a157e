// SPDX-License-Identifier: Apache-2.0
import java.util.Collections;

/** A thread that runs call(n) under several names; burn() runs for 300 ms under its last name. */
public class Renamed {
    static int call(int n) {
        return n;
    }

    static void rename(String name) {
        Thread.currentThread().setName(name);
        call(4);
    }

    static long burn() {
        long x = 0, end = System.nanoTime() + 300_000_000L;
        while (System.nanoTime() < end)
            x = x * 31 + 1;
        return x;
    }

    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> {
            call(1);
            Thread.currentThread().setName("sp\u00e4ter \ud83d\ude00");
            call(2);
            Thread.currentThread().setName("");
            call(3);
            rename("inside");
            Thread.currentThread().setName(String.join("", Collections.nCopies(50, "long ")));
            call(5);
            Thread.currentThread().setName("at-last");
            burn();
        }, "at-first");
        t.start();
        t.join();
        call(6);
        Thread.currentThread().setName("main-renamed");
        call(7);
        burn();
    }
}
