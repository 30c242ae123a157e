import java.lang.management.ManagementFactory;

/**
 * Makes exceptions, whose stack traces the VM allocates, and prints what the thread allocated by
 * the VM's own counter.
 */
public class Backtraces {
    static final Object[] kept = new Object[2000];

    static int down(int depth, int i) {
        if (depth == 0) {
            kept[i % kept.length] = new IllegalStateException("x");
            return i;
        }
        return down(depth - 1, i) + 1;
    }

    public static void main(String[] args) {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        int n = Integer.parseInt(args[0]);
        long id = Thread.currentThread().getId();
        long before = threads.getThreadAllocatedBytes(id);
        for (int i = 0; i < n; i++)
            down(20, i);
        System.out.println(threads.getThreadAllocatedBytes(id) - before);
    }
}
