// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/**
 * A virtual thread holds a monitor within the initializer of a class, in which it keeps its carrier
 * on every JDK, while a platform thread and another virtual one wait for the monitor. Prints
 * "ready" once they do, and ends at a line of its input.
 */
public class PinnedOwner {
    static final class M {
    }

    static final M monitor = new M();
    static final CountDownLatch held = new CountDownLatch(1), go = new CountDownLatch(1);

    static class Holder {
        static {
            synchronized (monitor) {
                held.countDown();
                try {
                    go.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }

        static void touch() {
        }
    }

    static void enter() {
        synchronized (monitor) {
            Thread.yield();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread holder = Thread.ofVirtual().name("holder").start(Holder::touch);
        held.await();
        while (holder.getState() != Thread.State.WAITING)
            Thread.sleep(5);
        Thread platform = new Thread(PinnedOwner::enter, "platform");
        platform.start();
        Thread virtual = Thread.ofVirtual().name("virtual").start(PinnedOwner::enter);
        while (platform.getState() != Thread.State.BLOCKED
                || virtual.getState() != Thread.State.BLOCKED)
            Thread.sleep(5);
        System.out.println("ready");
        System.in.read();
        go.countDown();
        for (Thread t : new Thread[] {holder, platform, virtual})
            t.join();
    }
}
