// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

/** H2 in memory under two threads of SQL. Arguments: ROWS. */
public class SqlRows {
    public static void main(String[] args) throws Exception {
        int rows = Integer.parseInt(args[0]);
        Class.forName("org.h2.Driver");
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:load;DB_CLOSE_DELAY=-1");
             Statement s = c.createStatement()) {
            s.execute(
                    "create table account(id int primary key, owner varchar(40), balance bigint, touched int)");
            s.execute("create index owner_index on account(owner)");
        }
        Thread[] threads = new Thread[2];
        long[] sums = new long[threads.length];
        for (int t = 0; t < threads.length; t++) {
            int me = t;
            threads[t] = new Thread(() -> {
                try {
                    sums[me] = work(me, rows / threads.length);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "sql-" + t);
            threads[t].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("sum " + (sums[0] + sums[1]));
    }

    static long work(int me, int rows) throws Exception {
        long sum = 0;
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:load");
             PreparedStatement insert =
                     c.prepareStatement("insert into account values(?, ?, ?, 0)");
             PreparedStatement update = c.prepareStatement(
                     "update account set balance = balance + ?, touched = touched + 1 where id = ?");
             PreparedStatement query = c.prepareStatement(
                     "select sum(balance), count(*) from account where owner = ?")) {
            for (int i = 0; i < rows; i++) {
                int id = i * 2 + me;
                insert.setInt(1, id);
                insert.setString(2, "owner-" + id % 5000);
                insert.setLong(3, id);
                insert.executeUpdate();
                update.setLong(1, i);
                update.setInt(2, (i / 2) * 2 + me);
                update.executeUpdate();
                if (i % 4 == 0) {
                    query.setString(1, "owner-" + id % 5000);
                    try (ResultSet r = query.executeQuery()) {
                        r.next();
                        sum += r.getLong(1);
                    }
                }
            }
        }
        return sum;
    }
}
