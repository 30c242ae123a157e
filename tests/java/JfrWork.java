// SPDX-License-Identifier: Apache-2.0
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * Work of many kinds for JDK Flight Recorder: allocation, contended locks, parks, exceptions,
 * files. Argument: milliseconds.
 */
public class JfrWork {
    static final Object LOCK = new Object();
    static int sum;

    static void work(long end) {
        Random random = new Random(1);
        while (System.nanoTime() < end) {
            HashMap<Integer, byte[]> map = new HashMap<>();
            for (int i = 0; i < 2000; i++)
                map.put(random.nextInt(), new byte[random.nextInt(200)]);
            synchronized (LOCK) {
                sum += map.size();
                LockSupport.parkNanos(12000000);
            }
            try {
                Files.readAllBytes(Paths.get("/no/such/file"));
            } catch (Exception expected) {
                sum++;
            }
            LockSupport.parkNanos(15000000);
        }
    }

    public static void main(String[] arguments) throws Exception {
        final long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000L;
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread("worker \u00e4 \ud83d\ude00 " + i) {
                public void run() {
                    work(end);
                }
            };
            threads[i].start();
        }
        System.out.println("ready");
        for (Thread thread : threads)
            thread.join();
        System.gc();
    }
}
