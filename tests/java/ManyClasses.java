// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Loads and runs as many small classes as the argument says, answers `ready`, and ends with status
 * 7 when a line comes.
 */
public class ManyClasses {
    public static class M00000 implements Runnable {
        static int runs;

        public void run() {
            runs++;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static byte[] bytesOf(Class<?> c) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = c.getResourceAsStream("/" + c.getName() + ".class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        return out.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        String text = new String(bytesOf(M00000.class), "ISO-8859-1");
        Loader loader = new Loader();
        for (int i = 1; i <= Integer.parseInt(args[0]); i++) {
            String name = String.format("M%05d", i);
            Class<?> c = loader.define("ManyClasses$" + name,
                                       text.replace("M00000", name).getBytes("ISO-8859-1"));
            ((Runnable) c.getDeclaredConstructor().newInstance()).run();
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.out.println("ready");
        System.in.read();
        System.exit(7);
    }
}
