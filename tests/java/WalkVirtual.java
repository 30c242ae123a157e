// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that compute, at some depth, and yield now and then: WalkVirtual MILLISECONDS of CPU time. Others have parked at
 * a depth of which only the innermost frames have come back from the heap when they compute. WalkVirtual MILLISECONDS native: they
 * are in native code most of the time instead, while the garbage collector moves what lies in the heap.
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

    static void even(int depth) {
        if (depth > 0)
            even(depth - 1);
        else
            inNative();
    }

    static void odd(int depth) {
        if (depth > 0)
            odd(depth - 1);
        else
            inNative();
    }

    static void inNative() {
        LockSupport.parkNanos(1000000);
        long until = System.nanoTime() + 20000000;
        while (System.nanoTime() < until)
            sink = SYSTEM.getProcessCpuTime();
    }

    static void collect() {
        byte[][] kept = new byte[64][];
        for (int i = 0; SYSTEM.getProcessCpuTime() < end; i++) {
            kept[i & 63] = new byte[100000];
            if (i % 3000 == 0)
                System.gc();
        }
    }

    static void parkInTurn(int me) {
        for (int i = 0; SYSTEM.getProcessCpuTime() < end; i++)
            if (me % 2 == 0)
                even(35 + i % 5);
            else
                odd(35 + i % 5);
    }

    public static void main(String[] args) throws Exception {
        end = SYSTEM.getProcessCpuTime() + Long.parseLong(args[0]) * 1000000L;
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] all = new Thread[4];
        if (args.length > 1)
            new Thread(WalkVirtual::collect).start();
        for (int i = 0; i < all.length; i++) {
            int me = i;
            Runnable task = args.length > 1 ? (Runnable) () -> parkInTurn(me) : i % 2 == 0 ? WalkVirtual::run : WalkVirtual::runParked;
            all[i] = (Thread) start.invoke(null, task);
        }
        for (Thread t : all)
            t.join();
        System.out.println("done");
    }
}
