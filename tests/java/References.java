// SPDX-License-Identifier: Apache-2.0
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/** Has the VM's thread that handles references work some times; main takes what it put into a queue. */
public class References {
    static final int ROUNDS = 3;

    static WeakReference<Object> drop(ReferenceQueue<Object> queue) {
        return new WeakReference<>(new Object(), queue);
    }

    public static void main(String[] args) throws Exception {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        for (int i = 0; i < ROUNDS; i++) {
            WeakReference<Object> dropped = drop(queue);
            do
                System.gc();
            while (queue.remove(1000) != dropped);
        }
        System.out.println("done");
    }
}
