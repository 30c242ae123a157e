// SPDX-License-Identifier: Apache-2.0
/** Burns CPU in work() for the seconds given (argument 1) on as many threads (argument 2, default 1), then prints its sum. */
public class Busy {
    static volatile long sink;

    static long work(long n) {
        long x = 1;
        for (long i = 0; i < n; i++)
            x = x * 6364136223846793005L + i;
        return x;
    }

    static void loop(long until) {
        while (System.nanoTime() < until)
            sink += work(100_000);
    }

    public static void main(String[] args) throws Exception {
        final long until = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 1;
        System.out.println("ready");
        Thread[] others = new Thread[threads - 1];
        for (int i = 0; i < others.length; i++) {
            others[i] = new Thread("busy-" + (i + 1)) {
                public void run() {
                    loop(until);
                }
            };
            others[i].start();
        }
        loop(until);
        for (Thread t : others)
            t.join();
        System.out.println("done");
    }
}
