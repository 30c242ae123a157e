// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Calls a method a hundred times of a class that is defined without a name, as some template
 * engines define theirs.
 */
public class Unnamed {
    public static class Body implements Runnable {
        static Object last;

        @Override
        public void run() {
            last = new long[16];
            if (last == null)
                throw new IllegalStateException();
        }
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        Class<?> define(byte[] file) {
            return defineClass((String) null, file, 0, file.length);
        }
    }

    static byte[] read(String name) throws Exception {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try (InputStream in = Unnamed.class.getResourceAsStream(name)) {
            for (int b; (b = in.read()) >= 0;)
                all.write(b);
        }
        return all.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        Runnable body = (Runnable) new Loader()
                                .define(read("Unnamed$Body.class"))
                                .getConstructor()
                                .newInstance();
        Runnable lambda =
                () -> body.run(); // JDK 8 makes an anonymous class of it, which also has no name
        for (int i = 0; i < 100; i++)
            lambda.run();
        System.out.println("done " + body.getClass().getName());
    }
}
