// SPDX-License-Identifier: Apache-2.0
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/**
 * Has the VM's thread that handles references work some times: main takes from a queue what a
 * collection has put there that another thread asks for 100 ms after main has begun to wait.
 */
public class References {
    static final int ROUNDS = 3, REST = 100;
    static volatile WeakReference<Object> dropped;

    static WeakReference<Object> drop(ReferenceQueue<Object> queue) {
        return new WeakReference<>(new Object(), queue);
    }

    static void rest(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void collect(Thread main) {
        for (int i = 0; i < ROUNDS; i++) {
            while (dropped == null || main.getState() != Thread.State.WAITING)
                rest(1);
            rest(REST);
            WeakReference<Object> waited = dropped;
            System.gc();
            while (dropped == waited)
                rest(1);
        }
    }

    public static void main(String[] args) throws Exception {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        Thread main = Thread.currentThread(), collects =
                                                      new Thread(() -> collect(main), "collects");
        collects.start();
        for (int i = 0; i < ROUNDS; i++) {
            WeakReference<Object> waited = dropped = drop(queue);
            if (queue.remove() != waited)
                throw new IllegalStateException();
            dropped = null;
        }
        System.out.println("done");
    }
}
