// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Random;

/**
 * A shop on an h2 database in memory: threads (argument 2, default 4) that order, look up and
 * report for seconds (argument 1).
 */
public class SqlLoad {
    static final int PRODUCTS = 5_000, CUSTOMERS = 2_000;
    static final String URL = "jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=10000";

    static void fill(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute(
                    "create table product(id int primary key, name varchar(60), price decimal(10,2), stock int)");
            s.execute(
                    "create table customer(id int primary key, name varchar(60), city varchar(40))");
            s.execute(
                    "create table orders(id identity primary key, customer int, product int, n int, at timestamp default current_timestamp)");
            s.execute("create index orders_customer on orders(customer)");
        }
        Random random = new Random(1);
        try (PreparedStatement p = c.prepareStatement("insert into product values(?, ?, ?, ?)")) {
            for (int i = 0; i < PRODUCTS; i++) {
                p.setInt(1, i);
                p.setString(2, "product " + Integer.toHexString(random.nextInt()));
                p.setDouble(3, random.nextInt(10000) / 100.0);
                p.setInt(4, 1000000);
                p.addBatch();
            }
            p.executeBatch();
        }
        try (PreparedStatement p = c.prepareStatement("insert into customer values(?, ?, ?)")) {
            for (int i = 0; i < CUSTOMERS; i++) {
                p.setInt(1, i);
                p.setString(2, "customer " + i);
                p.setString(3, "city " + random.nextInt(50));
                p.addBatch();
            }
            p.executeBatch();
        }
    }

    static void order(Connection c, Random random) throws Exception {
        try (PreparedStatement p = c.prepareStatement(
                     "insert into orders(customer, product, n) values(?, ?, ?)")) {
            p.setInt(1, random.nextInt(CUSTOMERS));
            p.setInt(2, random.nextInt(PRODUCTS));
            p.setInt(3, 1 + random.nextInt(5));
            p.executeUpdate();
        }
    }

    static long basket(Connection c, Random random) throws Exception {
        long sum = 0;
        try (PreparedStatement p = c.prepareStatement(
                     "select o.n, p.price, p.name from orders o join product p on p.id = o.product where o.customer = ? order by o.at desc")) {
            p.setInt(1, random.nextInt(CUSTOMERS));
            try (ResultSet r = p.executeQuery()) {
                while (r.next())
                    sum += r.getInt(1) * r.getString(3).length();
            }
        }
        return sum;
    }

    static long report(Connection c) throws Exception {
        try (Statement s = c.createStatement();
             ResultSet r = s.executeQuery(
                     "select city, sum(o.n * p.price) total from orders o join customer c on c.id = o.customer "
                     + "join product p on p.id = o.product where p.name like '%a%' group by city order by total desc limit 10")) {
            long rows = 0;
            while (r.next())
                rows++;
            return rows;
        }
    }

    public static void main(String[] args) throws Exception {
        final long until = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        Connection keep = DriverManager.getConnection(URL);
        fill(keep);
        final long[] done = new long[threads];
        Thread[] workers = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            final int me = t;
            workers[t] = new Thread("shop-" + (t + 1)) {
                @Override
                public void run() {
                    Random random = new Random(me);
                    try (Connection c = DriverManager.getConnection(URL)) {
                        while (System.nanoTime() < until) {
                            int what = random.nextInt(100);
                            if (what < 60)
                                order(c, random);
                            else if (what < 99)
                                basket(c, random);
                            else
                                report(c);
                            done[me]++;
                        }
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                }
            };
            workers[t].start();
        }
        long sum = 0;
        for (int t = 0; t < threads; t++) {
            workers[t].join();
            sum += done[t];
        }
        System.out.println(sum + " transactions");
    }
}
