// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** Burns CPU in spin() and makes short-lived threads until standard input ends; prints what it computed. */
public class Serves {
    static volatile long sink;
    static final List<Object> KEEP = new ArrayList<>();

    static long spin(int rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += (long) i * i ^ sum >>> 3;
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
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
            }
        }
        System.out.println("DONE " + rounds);
    }
}
