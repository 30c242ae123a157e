// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that compute, at some depth, and yield now and then: WalkVirtual MILLISECONDS of CPU time. Others have parked at
 * a depth of which only the innermost frames have come back from the heap when they compute.
 */
public class WalkVirtual {
    static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    static volatile long sink, end;

    static long work(int depth) {
        if (depth > 0)
            return work(depth - 1) + 1;
        long x = 1;
        for (int i = 0; i < 3000000; i++)
            x = x * 6364136223846793005L + i;
        return x;
    }

    static void run() {
        while (SYSTEM.getProcessCpuTime() < end) {
            sink += work(30);
            Thread.yield();
        }
    }

    static long parked(int depth) {
        if (depth > 0)
            return parked(depth - 1) + 1;
        LockSupport.parkNanos(1000000);
        return computes();
    }

    static long computes() {
        long x = 1;
        while (SYSTEM.getProcessCpuTime() < end) {
            for (int i = 0; i < 3000000; i++)
                x = x * 6364136223846793005L + i;
            Thread.yield();
        }
        return x;
    }

    static void runParked() {
        sink += parked(40);
    }

    public static void main(String[] args) throws Exception {
        end = SYSTEM.getProcessCpuTime() + Long.parseLong(args[0]) * 1000000L;
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] all = new Thread[4];
        for (int i = 0; i < all.length; i++)
            all[i] = (Thread) start.invoke(null, i % 2 == 0 ? (Runnable) WalkVirtual::run : (Runnable) WalkVirtual::runParked);
        for (Thread t : all)
            t.join();
        System.out.println("done");
    }
}
