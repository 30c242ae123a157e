// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Calls of virtual threads that wait in the middle of a call, so that they go on with another
 * carrier. Arguments: THREADS ROUNDS. In each round, outer calls inner twice and deep once, which
 * calls itself, and beside comes after it.
 */
public class VirtualCalls {
    static int inner(int i) {
        return i * 31;
    }

    static int deep(int n) throws Exception {
        Thread.sleep(0, 200_000);
        return n == 0 ? 0 : 1 + deep(n - 1);
    }

    static int outer(int i) throws Exception {
        int first = inner(i);
        Thread.sleep(1);
        return first + inner(i + 1) + deep(2);
    }

    static void beside(int i) {
        if (i % 2 == 1)
            throw new IllegalStateException("odd");
    }

    static void rounds(int n) {
        for (int i = 0; i < n; i++) {
            try {
                outer(i);
                beside(i);
            } catch (Exception e) {
                // half of the calls of beside end like that
            }
        }
    }

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
}
