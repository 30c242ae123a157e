// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** Virtual threads with names that work and yield. Arguments: THREADS ROUNDS. */
public class Virtual {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[0]); i++)
            threads.add(Thread.ofVirtual()
                                .name("virtual-" + i)
                                .start(() -> rounds(Integer.parseInt(args[1]))));
        for (Thread t : threads)
            t.join();
        System.out.println("done");
    }

    static void rounds(int n) {
        for (int i = 0; i < n; i++) {
            long x = i;
            for (int k = 0; k < 2_000_000; k++)
                x = x * 31 + (x >>> 7);
            sink += x;
            Thread.yield();
        }
    }
}
