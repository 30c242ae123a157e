// SPDX-License-Identifier: Apache-2.0
/** Burns CPU in work() for the seconds given (argument 1) on as many threads (argument 2, default 1), and until each has had argument 3 s of CPU. */
public class Busy {
    static volatile long sink;

    static long work(long n) {
        long x = 1;
        for (long i = 0; i < n; i++)
            x = x * 6364136223846793005L + i;
        return x;
    }

    /** How much CPU time each thread uses here at least, in ns, and the bean that measures it. */
    static long least;
    static java.lang.management.ThreadMXBean bean;

    static void loop(long until) {
        // Only the CPU time from here on counts: the main thread has started the VM before.
        long enough = least > 0 ? bean.getCurrentThreadCpuTime() + least : 0;
        while (System.nanoTime() < until || least > 0 && bean.getCurrentThreadCpuTime() < enough)
            sink += work(100_000);
    }

    public static void main(String[] args) throws Exception {
        final long until = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 1;
        if (args.length > 2) {
            least = (long) (Double.parseDouble(args[2]) * 1e9);
            bean = java.lang.management.ManagementFactory.getThreadMXBean();
        }
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
