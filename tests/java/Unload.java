// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads its class Work in new class loaders, runs it, and lets it be unloaded. Arguments:
 * MILLISECONDS [LOADERS at most].
 */
public class Unload {
    public static class Work implements Runnable {
        static volatile long sink;

        @Override
        public void run() {
            for (int i = 0; i < 300_000; i++)
                sink += step(i);
        }

        static long step(int i) {
            return Long.toString(i).hashCode();
        }
    }

    static class Loader extends ClassLoader {
        final byte[] bytes;

        Loader(byte[] bytes) {
            super(Unload.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Unload$Work") ? defineClass(name, bytes, 0, bytes.length)
                                              : super.loadClass(name, resolve);
        }
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        int most = args.length > 1 ? Integer.parseInt(args[1]) : Integer.MAX_VALUE;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = Unload.class.getResourceAsStream("Unload$Work.class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        while (System.nanoTime() < end && loaders.size() < most) {
            Loader loader = new Loader(out.toByteArray());
            ((Runnable) loader.loadClass("Unload$Work").getDeclaredConstructor().newInstance())
                    .run();
            loaders.add(new WeakReference<>(loader));
            if (loaders.size() % 5 == 0)
                System.gc();
        }
        // JDK 8's queue of compilations holds on to the classes whose methods it has yet to
        // compile.
        long gone;
        long last = System.nanoTime() + 10_000_000_000L;
        while (true) {
            System.gc();
            gone = loaders.stream().filter(r -> r.get() == null).count();
            if (gone == loaders.size() || System.nanoTime() > last)
                break;
            Thread.sleep(20);
        }
        System.out.println("unloaded " + gone + " of " + loaders.size());
    }
}
