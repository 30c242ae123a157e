// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/**
 * Works until its input ends. "speed" prints the nanoseconds of its fastest portion of work out of
 * some hundred; "gc" collects; "retransform" has another agent put code into this class and take it
 * back.
 */
public class TimesServer {
    static volatile boolean over;
    static volatile long fastest = Long.MAX_VALUE;
    static int sink;

    static int step(int x) {
        int y = x * 31 + (x >>> 3);
        return twice(y ^ y << 7) + twice(x);
    }

    static int twice(int x) {
        return x + (x >>> 1);
    }

    static int portion(Map<Integer, Integer> map, int x) {
        for (int i = 0; i < 100000; i++)
            x = step(x + i);
        for (int i = 0; i < 2000; i++)
            map.merge(x + i & 1023, 1, Integer::sum);
        return x;
    }

    static void serve() {
        Map<Integer, Integer> map = new HashMap<>();
        while (!over) {
            long start = System.nanoTime();
            sink = portion(map, sink);
            fastest = Math.min(fastest, System.nanoTime() - start);
        }
    }

    static native int retransform(boolean change); // tests/agents/retransform_agent.c

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(TimesServer::serve);
        worker.start();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("gc")) {
                System.gc();
                System.gc();
            } else if (line.equals("retransform")) {
                int error = retransform(true);
                Thread.sleep(200); // the VM compiles the new code, as it does during a recording
                error |= retransform(false);
                Thread.sleep(200);
                System.out.println(error);
                continue;
            } else {
                fastest = Long.MAX_VALUE;
                Thread.sleep(500);
            }
            System.out.println(fastest);
        }
        over = true;
        worker.join();
    }
}
