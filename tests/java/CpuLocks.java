// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Two threads that never sleep and share locks, one of which guards a section that can be
 * shortened: what-if against the truth. Arguments: monitor, barrier, two or sql; the factors of the
 * section, one after the other; how many turns each thread takes. Prints System.nanoTime() before
 * and after each, when it has been compiled.
 */
public class CpuLocks {
    /** Its monitor guards the section. */
    static final class Scaled {
    }

    static final class Other {
    }

    /**
     * Runs before those that count: after them everything has been compiled, of which H2 has more.
     */
    static int warm(String mode) {
        return mode.equals("sql") ? 40 : 12;
    }

    static final Object scaled = new Scaled(), other = new Other();
    static final ReentrantLock fair = new ReentrantLock(true);
    static final CyclicBarrier barrier = new CyclicBarrier(2);
    static volatile long sink;
    static double factor;

    interface Turn {
        void take() throws Exception;
    }

    /** About a microsecond each. */
    static void work(double us) {
        long s = sink;
        for (int i = 0, n = (int) (us * 400); i < n; i++)
            s = s * 6364136223846793005L + (s >>> 29);
        sink = s;
    }

    static void section(double us) {
        synchronized (scaled) {
            work(us * factor);
        }
    }

    static void monitor() {
        work(300);
        section(500);
    }

    static void barrier() throws InterruptedException, BrokenBarrierException {
        work(200);
        section(400);
        barrier.await();
    }

    static void two() {
        work(200);
        section(500);
        synchronized (other) {
            work(200);
        }
        fair.lock();
        try {
            work(100);
        } finally {
            fair.unlock();
        }
    }

    /** Two accounts are changed and read; the journal is a section. */
    static Turn sql(int me) throws Exception {
        Connection c = DriverManager.getConnection("jdbc:h2:mem:locks;DB_CLOSE_DELAY=-1");
        PreparedStatement update =
                c.prepareStatement("update account set balance = balance + 1 where id = ?");
        PreparedStatement query =
                c.prepareStatement("select sum(balance) from account where id between ? and ?");
        int[] at = {0};
        return () -> {
            int id = me * 500 + (at[0] = (at[0] + 7) % 500);
            update.setInt(1, id);
            update.executeUpdate();
            query.setInt(1, id);
            query.setInt(2, id + 200);
            try (ResultSet r = query.executeQuery()) {
                r.next();
                sink += r.getLong(1);
            }
            section(300);
        };
    }

    static Turn turn(String mode, int me) throws Exception {
        switch (mode) {
        case "monitor": return CpuLocks::monitor;
        case "barrier": return CpuLocks::barrier;
        case "two": return CpuLocks::two;
        default: return sql(me);
        }
    }

    static void run(Turn[] turns, int n) throws Exception {
        Thread[] all = new Thread[turns.length];
        for (int t = 0; t < all.length; t++) {
            Turn turn = turns[t];
            all[t] = new Thread(() -> {
                try {
                    for (int i = 0; i < n; i++)
                        turn.take();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }, "T" + (t + 1));
        }
        for (Thread t : all)
            t.start();
        for (Thread t : all)
            t.join();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[2]);
        if (args[0].equals("sql"))
            try (Connection c = DriverManager.getConnection("jdbc:h2:mem:locks;DB_CLOSE_DELAY=-1");
                 Statement s = c.createStatement()) {
                s.execute("create table account(id int primary key, balance bigint)");
                s.execute("insert into account select x, x from system_range(0, 1999)");
            }
        Turn[] turns = {turn(args[0], 0), turn(args[0], 1)};
        factor = 0.1;
        for (int i = 0; i < warm(args[0]); i++)
            run(turns, n);
        for (String f : args[1].split(",")) {
            factor = Double.parseDouble(f);
            run(turns, n / 10);
            long begin = System.nanoTime();
            run(turns, n);
            System.out.println(begin + " " + System.nanoTime());
        }
        System.exit(0);
    }
}
