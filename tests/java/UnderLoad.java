// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;

/**
 * A program that does the same work for as long as it is asked how much it has done. Arguments:
 * CLASS ARGS. The class has a method `Runnable[] units(String[])`: what each thread does over and
 * over, a unit at a time. For every line of standard input it prints the units done, the CPU time
 * of the process and the time, both ns; at the end of input it ends.
 */
public class UnderLoad {
    /** A thread's count, on a line of the cache of its own. */
    static final class Worker extends Thread {
        final Runnable unit;
        volatile long before0, before1, before2, before3, before4, before5, before6;
        volatile long done;
        volatile long after0, after1, after2, after3, after4, after5, after6;

        Worker(Runnable unit, String name) {
            super(name);
            this.unit = unit;
            setDaemon(true);
        }

        @Override
        public void run() {
            for (;;) {
                unit.run();
                done++;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Runnable[] units = (Runnable[]) Class.forName(args[0]).getMethod("units", String[].class)
                .invoke(null, (Object) java.util.Arrays.copyOfRange(args, 1, args.length));
        Worker[] workers = new Worker[units.length];
        for (int i = 0; i < units.length; i++)
            workers[i] = new Worker(units[i], "worker-" + i);
        for (Worker w : workers)
            w.start();
        com.sun.management.OperatingSystemMXBean os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        while (asked.readLine() != null) {
            long sum = 0, cpu = os.getProcessCpuTime(), now = System.nanoTime();
            for (Worker w : workers)
                sum += w.done;
            System.out.println(sum + " " + cpu + " " + now);
        }
        System.exit(0);
    }
}
