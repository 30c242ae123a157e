// SPDX-License-Identifier: Apache-2.0
import java.io.RandomAccessFile;

/**
 * Reads /dev/zero by the mebibyte for MILLISECONDS of CPU time, so that most of it is the
 * kernel's; prints "loop_ns N", what that took.
 */
public class Syscalls {
    static final java.lang.management.ThreadMXBean THREADS =
            java.lang.management.ManagementFactory.getThreadMXBean();

    public static void main(String[] args) throws Exception {
        long begin = THREADS.getCurrentThreadCpuTime(),
             end = begin + Long.parseLong(args[0]) * 1_000_000;
        byte[] bytes = new byte[1 << 20];
        try (RandomAccessFile file = new RandomAccessFile("/dev/zero", "r")) {
            while (THREADS.getCurrentThreadCpuTime() < end)
                for (int i = 0; i < 16; i++)
                    file.readFully(bytes);
        }
        System.out.println("loop_ns " + (THREADS.getCurrentThreadCpuTime() - begin) + " user_ns "
                           + THREADS.getCurrentThreadUserTime());
    }
}
