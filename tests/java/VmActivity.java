// SPDX-License-Identifier: Apache-2.0
/**
 * Makes the VM do things of its own: collections, safepoints of other operations, and, with "late" as
 * the second argument, safepoints to which a thread in a counted loop is late.
 * Its last line is the time.
 * VmActivity SECONDS [late | ROUNDS]: the loops last that long, and this many rounds at least, or 30,
 * so that a slow machine has its collections too.
 */
public class VmActivity {
    private static final Object[] kept = new Object[2000];
    private static volatile long sink;

    private interface Shape {
        int area(int n);
    }

    private static class Square implements Shape {
        public int area(int n) {
            return n * n;
        }
    }

    private static class Circle implements Shape {
        public int area(int n) {
            return n * 3;
        }
    }

    private static class Point implements Shape {
        public int area(int n) {
            return n - 1;
        }
    }

    /** A loop that HotSpot compiles without a safepoint in it. */
    private static long countsLong(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i ^ (sum >>> 3);
            sum *= 31;
        }
        return sum;
    }

    /** Each new class of shapes makes compiled code of this method invalid. */
    private static int areas(Shape shape, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum = shape.area(sum + i);
        return sum;
    }

    private static void deoptimize() {
        for (Shape shape : new Shape[] {new Square(), new Circle(), new Point()})
            for (int i = 0; i < 3000; i++)
                sink += areas(shape, 1000);
    }

    private static void allocate(long milliseconds, int rounds) throws InterruptedException {
        long until = System.nanoTime() + milliseconds * 1_000_000;
        for (int i = 0, round = 1; System.nanoTime() < until || round <= rounds; round++) {
            for (int k = 0; k < 3000; k++)
                kept[i++ % kept.length] = new byte[10_000];
            if (round % 10 == 0)
                System.gc();
            if (round % 3 == 0)
                Thread.getAllStackTraces();
            Thread.sleep(2);
        }
    }

    public static void main(String[] args) throws Exception {
        Thread counter = null;
        boolean late = args.length > 1 && args[1].equals("late");
        deoptimize();
        if (late) {
            for (int i = 0; i < 20; i++)
                sink += countsLong(100_000);
            counter = new Thread("the counter") {
                public void run() {
                    while (!Thread.currentThread().isInterrupted())
                        sink += countsLong(60_000_000);
                }
            };
            counter.start();
        }
        allocate((long) (1000 * Double.parseDouble(args[0])),
                args.length > 1 && !late ? Integer.parseInt(args[1]) : 30);
        if (counter != null) {
            counter.interrupt();
            counter.join();
        }
        System.out.println("ends " + System.nanoTime()); // by the clock of the VM's log
    }
}
