// SPDX-License-Identifier: Apache-2.0
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * A virtual thread unparks others that keep their carriers, each of which ends at once. Such a call
 * holds a lock that the thread needs to leave its carrier, and most frames of the caller are in the
 * heap, because it has just been mounted. The argument is the number of times.
 */
public class PinnedUnparks {
    static final int DEPTH = 200;

    static void unpark(int depth, Thread thread) {
        if (depth > 0) {
            unpark(depth - 1, thread);
            return;
        }
        LockSupport.parkNanos(1);
        LockSupport.unpark(thread);
    }

    public static void main(String[] args) throws Exception {
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            Object monitor = new Object();
            Thread pinned = Thread.ofVirtual().start(() -> {
                synchronized (monitor) {
                    LockSupport.park();
                }
            });
            while (pinned.getState() != Thread.State.WAITING)
                Thread.onSpinWait();
            Thread waker = Thread.ofVirtual().start(() -> unpark(DEPTH, pinned));
            /* JDK 21 itself may lose an unpark of a thread that keeps its carrier. */
            while (!pinned.join(Duration.ofMillis(200)))
                LockSupport.unpark(pinned);
            waker.join();
        }
        System.out.println("done");
    }
}
