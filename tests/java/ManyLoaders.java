// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Loads its class Body in new class loaders and lets each allocate 100 arrays at one place.
 * Argument: the number of loaders.
 */
public class ManyLoaders {
    public static class Body implements Runnable {
        static Object sink;

        @Override
        public void run() {
            for (int i = 0; i < 100; i++)
                one();
        }

        void one() {
            sink = new long[4];
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass("ManyLoaders$Body", bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = ManyLoaders.class.getResourceAsStream("ManyLoaders$Body.class")) {
            for (int b; (b = in.read()) >= 0;)
                bytes.write(b);
        }
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            ((Runnable) new Loader()
                     .define(bytes.toByteArray())
                     .getDeclaredConstructor()
                     .newInstance())
                    .run();
            if (i % 200 == 0)
                System.gc();
        }
        System.out.println("done");
    }
}
