// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.locks.LockSupport;

/**
 * Does, as fast as it can, what costs a recorder most, compared with what it costs the program.
 * "waits N": N threads want a monitor that each holds for a moment; "parks N": N threads park
 * without waiting; "requests N": N threads call a method that counts as a request and does little;
 * "served N": the same, but N threads together 100,000 times a second; "threads N": N threads do
 * nothing while four others use a monitor; "hands 2": two threads wake each other by notify; "reads
 * N": N threads read from sockets whose other ends answer after 200 us; "quiet N": no bomb, but
 * requests that N threads begin every 200 ms. Prints "did WORK CPU" each second: how much it has
 * done and its CPU time in ms; with a third argument it ends after so many seconds and prints "all
 * WORK".
 */
public class Bomb {
    static final class Count {
        volatile long done, p1, p2, p3, p4, p5, p6, p7;
    }

    static final Object lock = new Object();
    static long shared;
    static volatile boolean over;

    static long request(long n) {
        for (int i = 0; i < 20; i++)
            n = n * 31 + (n >>> 7);
        return n;
    }

    static int pause;

    static long spin(long n, int times) {
        for (int i = 0; i < times; i++)
            n = n * 31 + (n >>> 7);
        return n;
    }

    /**
     * How often spin has to calculate for a thread to make its part of 100,000 requests a second;
     * without a clock while it does.
     */
    static int pauseOf(int threads) {
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 200; i++) {
            long began = System.nanoTime();
            shared = spin(i, 20_000);
            best = Math.min(best, System.nanoTime() - began);
        }
        return (int) (20_000 * threads * 10_000L / best);
    }

    static void serve(long n) {
        shared = spin(request(n), pause);
    }

    static void nap() {
        try {
            Thread.sleep(200);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void hand() {
        synchronized (lock) {
            lock.notify();
            try {
                lock.wait(10);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /**
     * Each of the two ends of a connection, on a thread of its own, answers the other one after
     * 200 us, to the end of the program.
     */
    static SocketChannel connected() {
        try {
            ServerSocketChannel server =
                    ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
            SocketChannel one = SocketChannel.open(server.getLocalAddress()),
                          other = server.accept();
            server.close();
            start("answers", () -> {
                for (;;)
                    read(other);
            });
            one.write(ByteBuffer.allocate(1));
            return one;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void read(SocketChannel from) {
        try {
            ByteBuffer b = ByteBuffer.allocate(1);
            from.read(b);
            for (long end = System.nanoTime() + 200_000; System.nanoTime() < end;)
                shared++;
            b.flip();
            from.write(b);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void run(String mode, Count c) {
        Thread me = Thread.currentThread();
        SocketChannel channel = mode.equals("reads") ? connected() : null;
        for (long n = 1; !over; n++) {
            if (mode.equals("waits") || mode.equals("threads")) {
                synchronized (lock) {
                    shared = request(shared + n);
                }
            }
            if (mode.equals("parks")) {
                LockSupport.unpark(me);
                LockSupport.park();
            }
            if (mode.equals("requests") || mode.equals("quiet"))
                shared = request(n);
            if (mode.equals("served"))
                serve(n);
            if (mode.equals("quiet"))
                nap();
            if (mode.equals("hands"))
                hand();
            if (mode.equals("reads"))
                read(channel);
            c.done++;
        }
    }

    static Thread start(String name, Runnable r) {
        Thread t = new Thread(null, r, name, 128 << 10);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static long sum(Count[] counts) {
        long done = 0;
        for (Count c : counts)
            done += c.done;
        return done;
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[1]);
        boolean sitting = args[0].equals("threads");
        Count[] counts = new Count[sitting ? 4 : n];
        for (int i = 0; sitting && i < n; i++)
            start("sits-" + i, LockSupport::park);
        pause = args[0].equals("served") ? pauseOf(n) : 0;
        Thread[] workers = new Thread[counts.length];
        for (int i = 0; i < counts.length; i++) {
            Count c = counts[i] = new Count();
            workers[i] = start("works-" + i, () -> run(args[0], c));
        }
        com.sun.management.OperatingSystemMXBean os =
                (com.sun.management.OperatingSystemMXBean)
                        java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        System.out.println("ready");
        for (int left = args.length > 2 ? Integer.parseInt(args[2]) : Integer.MAX_VALUE; left > 0;
             left--) {
            Thread.sleep(1000);
            System.out.println("did " + sum(counts) + " " + os.getProcessCpuTime() / 1000000);
        }
        over = true;
        for (Thread t : workers)
            t.join();
        System.out.println("all " + sum(counts));
    }
}
