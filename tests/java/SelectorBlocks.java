// SPDX-License-Identifier: Apache-2.0
import java.nio.channels.Selector;

/** Threads that call Selector.wakeup without a pause; the selecting one waits to clear it. */
public class SelectorBlocks {
    static volatile boolean over;

    public static void main(String[] args) throws Exception {
        try (Selector selector = Selector.open()) {
            Thread[] callers = new Thread[4];
            for (int i = 0; i < callers.length; i++) {
                callers[i] = new Thread(() -> {
                    while (!over)
                        selector.wakeup();
                }, "caller-" + i);
                callers[i].start();
            }
            long end = System.nanoTime() + 1_500_000_000L;
            while (System.nanoTime() < end)
                selector.select(1);
            over = true;
            for (Thread t : callers)
                t.join();
        }
    }
}
