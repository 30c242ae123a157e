// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Every text that a program can choose (names of threads, classes, methods, fields and files,
 * values, messages, properties) drives a terminal, begins a line of its own, turns the direction of
 * writing, is not text at all, or is 60,000 characters long. Prints "ready" when two of its threads
 * are deadlocked, and ends with its standard input.
 */
public class HostileTexts {
    /**
     * Without what a name of a class may not have; the rest of an escape sequence is in HOSTILE.
     */
    static final String NAME =
            "\u001b\nINJECTED\r\t\b\u009b2J\u202elive\u2066\u2028\u007f\ud83d\u6f22\u5b57 e\u0301";
    static final String HOSTILE = "\u001b]0;owned\u0007\u001b[31m" + NAME;
    static final String LONG =
            "\u6f22" + new String(new char[60000]).replace("\0", "\u0301x").substring(0, 60000);

    public static class Guest extends RuntimeException {
        public String field = HOSTILE;

        public Guest(String message) {
            super(message);
        }

        public static String called(String text, Object lock) throws Exception {
            synchronized (lock) {
                Thread.sleep(3);
            }
            for (long x = 1, until = System.nanoTime() + 100_000_000; System.nanoTime() < until;) {
                x = x * 31 + text.hashCode();
            }
            try {
                throw new Guest(text);
            } catch (Guest e) {
                return e.getMessage();
            }
        }
    }

    /** The class file of Guest with hostile text behind each of its own names. */
    static byte[] hostile() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DataInputStream in = new DataInputStream(
                     HostileTexts.class.getResourceAsStream("HostileTexts$Guest.class"))) {
            DataOutputStream to = new DataOutputStream(out);
            to.writeLong(in.readLong());
            int n = in.readUnsignedShort();
            to.writeShort(n);
            for (int i = 1; i < n; i++) {
                int tag = in.readUnsignedByte();
                to.writeByte(tag);
                if (tag == 1) {
                    String s = in.readUTF();
                    s = s.replace("HostileTexts$Guest", "HostileTexts$Guest" + NAME)
                                .replace("HostileTexts.java", "x" + HOSTILE + ".java");
                    to.writeUTF(s.equals("called") || s.equals("field") ? s + NAME : s);
                } else if (tag == 5 || tag == 6) {
                    to.writeLong(in.readLong());
                    i++;
                } else {
                    for (int k = tag == 7 || tag == 8 || tag == 16 ? 2
                                 : tag == 15                       ? 3
                                                                   : 4;
                         k > 0; k--)
                        to.writeByte(in.readByte());
                }
            }
            for (int b; (b = in.read()) >= 0;)
                to.writeByte(b);
        }
        return out.toByteArray();
    }

    static class Loader extends ClassLoader {
        Class<?> define() throws Exception {
            byte[] bytes = hostile();
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    static void locked(Object first, Object second, CountDownLatch both) {
        synchronized (first) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException e) {
                return;
            }
            synchronized (second) {
                System.out.println("no deadlock");
            }
        }
    }

    static final List<Object> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        System.setProperty("hostile" + HOSTILE, HOSTILE);
        Class<?> guest = new Loader().define();
        Object lock = guest.getConstructor(String.class).newInstance(HOSTILE), other = new Object();
        for (int i = 0; i < 200; i++) {
            kept.add(java.lang.reflect.Array.newInstance(guest, 10000));
            kept.add(new String(HOSTILE));
        }
        kept.add(lock);
        kept.add(LONG);
        String[] names = {HOSTILE, LONG, HOSTILE + LONG};
        Thread[] threads = new Thread[names.length];
        for (int i = 0; i < names.length; i++) {
            String name = names[i];
            threads[i] = new Thread(() -> {
                try {
                    for (int k = 0; k < 5; k++)
                        guest.getMethod("called" + NAME, String.class, Object.class)
                                .invoke(null, name, lock);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, name);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        CountDownLatch both = new CountDownLatch(2);
        for (int i = 0; i < 2; i++) {
            Object first = i == 0 ? lock : other, second = i == 0 ? other : lock;
            Thread t = new Thread(() -> locked(first, second, both), "deadlocked " + i + HOSTILE);
            t.setDaemon(true);
            t.start();
        }
        both.await();
        System.out.println("ready");
        while (System.in.read() >= 0)
            continue;
    }
}
