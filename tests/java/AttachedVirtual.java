// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that wait or run before anything is recorded. Prints "ready"; at a line of its
 * input some of them go on, and at another one it ends. Argument: how many are parked and stay so.
 */
public class AttachedVirtual {
    static final ReentrantLock lock = new ReentrantLock();
    static final LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>();
    static volatile boolean go;

    static void waitsForTheLock() {
        lock.lock();
        lock.unlock();
    }

    static void sleeps() {
        try {
            Thread.sleep(3600000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void takes() {
        try {
            queue.take();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void spins() {
        while (!go)
            Thread.onSpinWait();
    }

    static Thread start(String name, Runnable body) {
        return Thread.ofVirtual().name(name).start(body);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        List<Thread> waiting = new ArrayList<>();
        lock.lock();
        waiting.add(start("at-the-lock", AttachedVirtual::waitsForTheLock));
        waiting.add(start("sleeps", AttachedVirtual::sleeps));
        waiting.add(start("takes", AttachedVirtual::takes));
        ExecutorService executor = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("executed-", 0).factory());
        for (int i = 0; i < n; i++)
            if (i % 2 == 0)
                waiting.add(start("parked-" + i, LockSupport::park));
            else
                executor.submit(AttachedVirtual::takes);
        for (Thread t : waiting)
            while (t.getState() != Thread.State.WAITING
                   && t.getState() != Thread.State.TIMED_WAITING)
                Thread.sleep(1);
        Thread spinning = start("spins", AttachedVirtual::spins);
        while (spinning.getState() != Thread.State.RUNNABLE)
            Thread.sleep(1);
        Thread.sleep(200);
        System.out.println("ready");
        System.in.read();
        lock.unlock();
        waiting.get(0).join();
        go = true;
        spinning.join();
        System.out.println("released");
        System.in.read();
        System.exit(0);
    }
}
