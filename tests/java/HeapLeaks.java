// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Programs that leak, each in its own way, and one that does not: HeapLeaks WAY. Says READY, then
 * waits for the end of its input.
 */
public class HeapLeaks {
    static final int MIB = 1 << 20;

    static final class Session {
        final byte[] state = new byte[1000];
    }

    static final class Request {
        final byte[] body = new byte[2000];
    }

    static final class Listener {
        final byte[] view = new byte[500];
    }

    static final class Link {
        Link next;
        final byte[] load = new byte[400];
    }

    static final class Bus {
        final List<Listener> listeners = new ArrayList<>();
    }

    /** A cache that is never emptied. */
    static final class Cache {
        static final Map<String, Session> SESSIONS = new HashMap<>();
    }

    static final Bus BUS = new Bus();
    static final LinkedBlockingQueue<Request> QUEUE = new LinkedBlockingQueue<>();
    static final ThreadLocal<Link> HISTORY = new ThreadLocal<>();
    static final List<Object> LOADERS = new ArrayList<>();
    static Object[] spread;

    /**
     * A class that keeps its loader, as the loader keeps it, and so all that its static field
     * holds.
     */
    public static final class Plugin {
        static byte[] data = new byte[100000];
    }

    static final class Loader extends ClassLoader {
        Class<?> load() throws Exception {
            String name = "HeapLeaks$Plugin";
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (InputStream in = HeapLeaks.class.getResourceAsStream(name + ".class")) {
                for (int b; (b = in.read()) >= 0;) {
                    bytes.write(b);
                }
            }
            return Class.forName(defineClass(name, bytes.toByteArray(), 0, bytes.size()).getName(), true, this);
        }

        Loader() {
            super(HeapLeaks.class.getClassLoader());
        }
    }

    static Thread worker(Runnable first) throws InterruptedException {
        final Object[] done = new Object[1];
        Thread t = new Thread(() -> {
            first.run();
            synchronized (done) {
                done[0] = done;
                done.notifyAll();
            }
            try {
                Thread.sleep(1000000000L);
            } catch (InterruptedException e) {
                return;
            }
        }, "worker-7");
        t.setDaemon(true);
        t.start();
        synchronized (done) {
            while (done[0] == null) {
                done.wait();
            }
        }
        return t;
    }

    static List<Object> leak(String way) throws Exception {
        List<Object> local = new ArrayList<>();
        switch (way) {
            case "cache":
                for (int i = 0; i < 20000; i++) {
                    Cache.SESSIONS.put("session " + i, new Session());
                }
                break;
            case "listeners":
                for (int i = 0; i < 40000; i++) {
                    BUS.listeners.add(new Listener());
                }
                break;
            case "queue":
                for (int i = 0; i < 10000; i++) {
                    QUEUE.add(new Request());
                }
                break;
            case "threadlocal":
                worker(() -> {
                    Link last = null;
                    for (int i = 0; i < 50000; i++) {
                        Link l = new Link();
                        l.next = last;
                        last = l;
                    }
                    HISTORY.set(last);
                });
                break;
            case "loaders":
                for (int i = 0; i < 200; i++) {
                    LOADERS.add(new Loader().load().getConstructor().newInstance());
                }
                break;
            case "loadersalone":
                for (int i = 0; i < 200; i++) {
                    LOADERS.add(new Loader().load().getClassLoader());
                }
                break;
            case "classes":
                for (int i = 0; i < 200; i++) {
                    LOADERS.add(new Loader().load());
                }
                break;
            case "local":
                for (int i = 0; i < 20000; i++) {
                    local.add(new Session());
                }
                break;
            case "clean":
                /* A large heap in which nothing is large: twenty holders of five per cent each. */
                Spread.fill();
                break;
            default:
                throw new IllegalArgumentException(way);
        }
        return local;
    }

    /** Twenty lists that no single object holds. */
    static final class Spread {
        static List<Object> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t;

        static void fill() throws Exception {
            for (java.lang.reflect.Field field : Spread.class.getDeclaredFields()) {
                if (field.getType() == List.class) {
                    List<Object> list = new ArrayList<>();
                    for (int x = 0; x < 1000; x++) {
                        list.add(new Session());
                    }
                    field.set(null, list);
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        List<Object> local = leak(args[0]);
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            Thread.sleep(1);
        }
        System.out.println("DONE " + local.size());
    }
}
