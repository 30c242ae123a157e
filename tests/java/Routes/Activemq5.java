// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.jms.Connection;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * ActiveMQ's broker within this process: a listener, a loop that receives, and a listener that
 * sends.
 */
public class Activemq5 {
    static void nap() {
        try {
            Thread.sleep(2);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        int n = 8;
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(
                "vm://localhost?broker.persistent=false&broker.useJmx=false");
        Connection connection = factory.createConnection();
        connection.start();
        Session out = connection.createSession(false, Session.AUTO_ACKNOWLEDGE),
                in = connection.createSession(false, Session.AUTO_ACKNOWLEDGE),
                replies = connection.createSession(false, Session.AUTO_ACKNOWLEDGE),
                loop = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        CountDownLatch heard = new CountDownLatch(n);
        ExecutorService pool = Executors.newFixedThreadPool(1);
        MessageProducer bills = replies.createProducer(replies.createQueue("bills"));
        in.createConsumer(in.createQueue("orders.17")).setMessageListener(message -> {
            try {
                bills.send(replies.createTextMessage("a bill"));
                pool.submit(Activemq5::nap).get();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            heard.countDown();
        });
        MessageProducer orders = out.createProducer(out.createQueue("orders.17"));
        for (int i = 0; i < n; i++)
            orders.send(out.createTextMessage("an order"));
        heard.await();
        Thread receiver = new Thread(() -> {
            try {
                MessageConsumer consumer = loop.createConsumer(loop.createQueue("bills"));
                for (int i = 0; i < n; i++) {
                    consumer.receive(20000);
                    nap();
                }
                consumer.receiveNoWait();
                consumer.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "receiver");
        receiver.start();
        receiver.join();
        connection.close();
        pool.shutdown();
        System.out.println("done");
        System.exit(0);
    }
}
