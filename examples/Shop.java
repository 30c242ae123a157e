// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * The program that README.md and doc/ profile: four workers serve orders for some seconds, with a mistake for each tool to find.
 * java Shop [SECONDS]
 */
public class Shop {
    static class OutOfStock extends Exception {
        private static final long serialVersionUID = 1;

        OutOfStock(String item) {
            super(item);
        }
    }

    static class Order {
        final String customer, country;
        final int[] items;

        Order(String customer, String country, int[] items) {
            this.customer = customer;
            this.country = country;
            this.items = items;
        }
    }

    static class Session {
        final String customer;
        final List<Order> orders = new ArrayList<>();
        final byte[] history = new byte[4000];

        Session(String customer) {
            this.customer = customer;
        }
    }

    /** Memory: sessions are added and never removed. */
    static class Sessions {
        final Map<String, Session> open = new HashMap<>();

        synchronized Session of(String customer) {
            return open.computeIfAbsent(customer, Session::new);
        }
    }

    /** Waiting: all workers share one lock, and each holds it while it works. */
    static class Stock {
        final int[] left = new int[1000];

        Stock() {
            Arrays.fill(left, 2);
        }

        synchronized void reserve(int item) throws OutOfStock {
            Shop.work(200);
            if (left[item]-- == 0) {
                left[item] = 2;
                throw new OutOfStock("item " + item);
            }
        }
    }

    static class Tax {
        /** A slow method: one country's rate is always looked up again. */
        static double rate(String country) throws InterruptedException {
            if (country.equals("CH"))
                Thread.sleep(20);
            return country.equals("CH") ? 0.081 : 0.2;
        }
    }

    static class Prices {
        /** CPU: sorts all prices for each item. */
        static double of(int item) {
            int[] all = new int[2000];
            for (int i = 0; i < all.length; i++)
                all[i] = i * 7919 % 10007;
            Arrays.sort(all);
            return all[item] / 100.0;
        }
    }

    static final Sessions sessions = new Sessions();
    static final Stock stock = new Stock();

    static double work(int rounds) {
        double x = 0;
        for (int i = 1; i <= rounds * 20; i++)
            x += Math.sqrt(i);
        return x;
    }

    static double serve(Order order) throws InterruptedException {
        sessions.of(order.customer).orders.add(order);
        double total = 0;
        for (int item : order.items) {
            try {
                stock.reserve(item);
                total += Prices.of(item);
            } catch (OutOfStock e) {
                total += 0;
            }
        }
        return total * (1 + Tax.rate(order.country));
    }

    public static void main(String[] args) throws InterruptedException {
        long end = System.nanoTime() + (args.length == 0 ? 10 : Integer.parseInt(args[0])) * 1_000_000_000L;
        Thread[] workers = new Thread[4];
        for (int w = 0; w < workers.length; w++) {
            Random random = new Random(w);
            workers[w] = new Thread(() -> {
                String[] countries = {"DE", "FR", "IT", "AT", "CH"};
                try {
                    while (System.nanoTime() < end)
                        serve(new Order("customer-" + random.nextInt(1_000_000), countries[random.nextInt(5)],
                            random.ints(5, 0, 1000).toArray()));
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }, "worker-" + (w + 1));
            workers[w].start();
        }
        for (Thread worker : workers)
            worker.join();
        System.out.println(sessions.open.size() + " sessions");
    }
}
