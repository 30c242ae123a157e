// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that are ready while another one has the only carrier
 * (-Djdk.virtualThreadScheduler.parallelism=1). Prints for each: its name, for how many ns it was
 * ready at least, and at most. Argument: "open" ends the program while they still have no carrier;
 * otherwise the occupant lets go after that many ms.
 */
public class VirtualReady {
    interface Body {
        void run() throws Exception;
    }

    /** A thread is woken at some time between these two, by System.nanoTime(). */
    static class Woken {
        volatile long from, to;

        void within(Runnable wakes) {
            from = System.nanoTime();
            wakes.run();
            to = System.nanoTime();
        }

        /** By a timer that begins now, which a busy machine may serve late. */
        void after(long ms) {
            from = System.nanoTime() + ms * 1_000_000;
            to = from + 50_000_000;
        }
    }

    static final List<Thread> THREADS = new ArrayList<>();
    static final List<String> LINES = new ArrayList<>();
    static volatile long occupied, left;
    static long sum;

    /** Waits in some way and is woken while the carrier is occupied. */
    static void start(String name, Woken woken, Body wait) {
        Thread t = Thread.ofVirtual().name(name).start(() -> {
            try {
                wait.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
            long now = System.nanoTime();
            synchronized (LINES) {
                LINES.add(name + " " + (now - woken.to) + " " + (now - woken.from));
            }
        });
        THREADS.add(t);
    }

    static void occupy(long ms) {
        occupied = System.nanoTime();
        for (long end = occupied + ms * 1_000_000; System.nanoTime() < end;)
            sum++;
        left = System.nanoTime();
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        boolean open = args[0].equals("open");
        long ms = open ? 3_600_000 : Long.parseLong(args[0]);
        boolean unmounts = Runtime.version().feature() >= 24; // at monitors
        Woken parked = new Woken(), taken = new Woken(), locked = new Woken(),
              entered = new Woken(), notified = new Woken(), slept = new Woken(),
              timed = new Woken(), yielded = new Woken();
        LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
        ReentrantLock lock = new ReentrantLock();
        Object monitor = new Object(), waits = new Object();
        CountDownLatch held = new CountDownLatch(1), release = new CountDownLatch(1);
        Thread holder = new Thread(() -> {
            lock.lock();
            locked.within(() -> {
                entered.within(() -> {
                    synchronized (monitor) {
                        held.countDown();
                        await(release);
                        entered.from = System.nanoTime();
                    }
                });
                locked.from = System.nanoTime();
                lock.unlock();
            });
        }, "holder");
        holder.start();
        held.await();
        start("parked", parked, LockSupport::park);
        start("taken", taken, queue::take);
        start("locked", locked, () -> {
            lock.lock();
            lock.unlock();
        });
        if (unmounts) {
            start("entered", entered, () -> {
                synchronized (monitor) {
                    sum++;
                }
            });
            start("notified", notified, () -> {
                synchronized (waits) {
                    waits.wait();
                }
            });
        }
        pause(150);
        // All four follow each other on the only carrier, so that the occupant has it when the
        // timers run out, however late main is.
        Thread occupant = Thread.ofVirtual().name("occupant").unstarted(() -> occupy(ms));
        Thread.ofVirtual().name("first").start(() -> {
            start("slept", slept, () -> {
                slept.after(60);
                Thread.sleep(60);
            });
            start("timed", timed, () -> {
                timed.after(70);
                LockSupport.parkNanos(70_000_000);
            });
            start("yielded", yielded, () -> {
                occupant.start();
                yielded.after(0);
                Thread.yield();
            });
        });
        while (occupied == 0)
            pause(1);
        pause(80); // the two timers have run out by now
        parked.within(() -> LockSupport.unpark(THREADS.get(0)));
        taken.within(() -> queue.add(1));
        if (unmounts)
            notified.within(() -> {
                synchronized (waits) {
                    waits.notify();
                }
            });
        release.countDown();
        if (open) {
            pause(300);
            System.exit(0);
        }
        for (Thread t : THREADS)
            t.join();
        LINES.forEach(System.out::println);
    }
}
