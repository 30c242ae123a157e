// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Virtual threads that sleep 20 ms each in one monitor, one after the other. Argument: how many.
 */
public class VirtualMonitors {
    static final Object MONITOR = new Object();

    static void hold() {
        synchronized (MONITOR) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[0]); i++)
            all.add(Thread.ofVirtual().name("v" + i).start(VirtualMonitors::hold));
        for (Thread t : all)
            t.join();
    }
}
