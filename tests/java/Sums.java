// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import java.util.zip.CRC32;

/**
 * Calls methods of the JDK "rounds" times each, in the thread sums: the JIT replaces others of
 * their names.
 */
public class Sums {
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Thread t = new Thread(() -> {
            CRC32 crc = new CRC32();
            int equal = 0;
            for (int i = 0; i < rounds; i++) {
                crc.update(i);
                crc.update(new byte[] {1, 2, 3});
                crc.update(new byte[] {1, 2, 3}, 1, 1);
                equal += Arrays.equals(new boolean[] {true}, new boolean[] {true}) ? 1 : 0;
            }
            System.out.println(equal);
        }, "sums");
        t.start();
        t.join();
    }
}
