// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Burns CPU in spin() and makes short-lived threads until standard input ends; prints what it
 * computed. With "churn" it also loads a class of its own over and over, each time in a new class
 * loader that is then dropped; to that class this is another package.
 */
public class Serves {
    public static volatile long sink;
    static final List<Object> KEEP = new ArrayList<>();

    public static long spin(int rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += (long) i * i ^ sum >>> 3;
        }
        return sum;
    }

    public static class Work implements Runnable {
        @Override
        public void run() {
            sink = spin(1000) + new long[100].length;
        }
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(Serves.class.getClassLoader());
        }

        void runWork() throws Exception {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try (InputStream in = Serves.class.getResourceAsStream("Serves$Work.class")) {
                for (int b; (b = in.read()) >= 0;) {
                    out.write(b);
                }
            }
            ((Runnable) defineClass("Serves$Work", out.toByteArray(), 0, out.size())
                     .getDeclaredConstructor()
                     .newInstance())
                    .run();
        }
    }

    public static void main(String[] args) throws Exception {
        boolean churn = args.length > 0;
        for (int i = 0; i < 300; i++) {
            KEEP.add(new Serves());
        }
        System.out.println("READY");
        System.out.flush();
        long first = spin(100000), rounds = 0;
        while (System.in.available() == 0) {
            sink = spin(100000);
            if (sink != first) {
                throw new IllegalStateException("wrong");
            }
            if (++rounds % 100 == 0) {
                Thread t = new Thread("short");
                t.start();
                t.join();
                if (churn) {
                    new Loader().runWork();
                }
            }
        }
        System.out.println("DONE " + rounds);
    }
}
