// SPDX-License-Identifier: Apache-2.0
/** Java below native code below Java: WalkNative LIBRARY MILLISECONDS of CPU time. */
public class WalkNative {
    static volatile double sink;

    static native int sort(Runnable r, int n);

    static native long burn(long n);

    static void inner() {
        double sum = 0;
        for (int i = 1; i < 60000; i++)
            sum += Math.sqrt(i) / i;
        sink += sum;
    }

    static void outer(int n) {
        sink += sort(WalkNative::inner, n & 63);
        sink += burn(150000);
    }

    public static void main(String[] args) {
        System.load(args[0]);
        java.lang.management.ThreadMXBean clock =
                java.lang.management.ManagementFactory.getThreadMXBean();
        long end = clock.getCurrentThreadCpuTime() + Long.parseLong(args[1]) * 1000000L;
        for (int i = 0; clock.getCurrentThreadCpuTime() < end; i++)
            outer(i);
        System.out.println("done");
    }
}
