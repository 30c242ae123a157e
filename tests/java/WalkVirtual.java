// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that compute, at some depth, and yield now and then: WalkVirtual MILLISECONDS of
 * CPU time. Others have parked at a depth of which only the innermost frames have come back from
 * the heap when they compute. The two kinds take turns, because the VM's scheduler lets threads
 * that only yield keep the carriers for good. WalkVirtual MILLISECONDS native: they are in native
 * code most of the time instead, while the garbage collector moves what lies in the heap.
 * WalkVirtual MILLISECONDS yield: they do nothing but give up the processor at some depth and
 * return from there, so that frames are frozen and thawed.
 */
public class WalkVirtual {
    static final com.sun.management.OperatingSystemMXBean SYSTEM =
            (com.sun.management.OperatingSystemMXBean)
                    java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    static volatile long sink, end;
    static boolean yields;
    /** How often each kind of thread has computed. */
    static final AtomicIntegerArray turns = new AtomicIntegerArray(2);

    static void takeTurn(int kind) {
        while (turns.get(kind) > turns.get(1 - kind) + 20 && SYSTEM.getProcessCpuTime() < end)
            LockSupport.parkNanos(1000000);
        turns.incrementAndGet(kind);
    }

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
            takeTurn(0);
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
            takeTurn(1);
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
        if (yields) {
            Thread.yield();
            return;
        }
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
        yields = args.length > 1 && args[1].equals("yield");
        if (args.length > 1 && !yields)
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
