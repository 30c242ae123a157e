// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.locks.LockSupport;

/**
 * Fills a recording of what threads wait for: for each number on standard input, two threads park
 * as often without waiting, and "done" is printed.
 */
public class Fills {
    static void parks(long n) {
        Thread me = Thread.currentThread();
        for (; n > 0; n--) {
            LockSupport.unpark(me);
            LockSupport.park();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            long n = Long.parseLong(line);
            Thread other = new Thread(() -> parks(n), "other");
            other.start();
            parks(n);
            other.join();
            System.out.println("done");
        }
    }
}
