// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * Units of UnderLoad: H2 in memory, a transfer between accounts of a table that keeps its size.
 * Arguments: THREADS ROWS.
 */
public class SqlUnits {
    static final String URL = "jdbc:h2:mem:load;DB_CLOSE_DELAY=-1";

    public static Runnable[] units(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]), rows = Integer.parseInt(args[1]);
        Class.forName("org.h2.Driver");
        try (Connection c = DriverManager.getConnection(URL); Statement s = c.createStatement()) {
            s.execute(
                    "create table account(id int primary key, owner varchar(40), balance bigint, touched int)");
            s.execute("create index owner_index on account(owner)");
            s.execute(
                    "insert into account select x, 'owner-' || mod(x, 5000), x, 0 from system_range(0, "
                    + (rows - 1) + ")");
        }
        Runnable[] units = new Runnable[threads];
        for (int t = 0; t < threads; t++)
            units[t] = new Unit(t, threads, rows);
        return units;
    }

    static final class Unit implements Runnable {
        final PreparedStatement update, query;
        final int me, threads, rows;
        int at;
        long sum;

        Unit(int me, int threads, int rows) throws SQLException {
            Connection c = DriverManager.getConnection(URL);
            update = c.prepareStatement(
                    "update account set balance = balance + ?, touched = touched + 1 where id = ?");
            query = c.prepareStatement(
                    "select sum(balance), count(*) from account where owner = ?");
            this.me = me;
            this.threads = threads;
            this.rows = rows;
        }

        @Override
        public void run() {
            try {
                at = (at + 7919) % (rows / threads);
                int id = at * threads + me;
                update.setLong(1, 1);
                update.setInt(2, id);
                update.executeUpdate();
                query.setString(1, "owner-" + id % 5000);
                try (ResultSet r = query.executeQuery()) {
                    r.next();
                    sum += r.getLong(1);
                }
            } catch (SQLException e) {
                throw new RuntimeException(e);
            }
        }
    }
}
