// SPDX-License-Identifier: Apache-2.0
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/**
 * Allocates as many arrays of 1,000 bytes as its argument says, and prints "collections N", the
 * number of the VM's collections.
 */
public class ManyCollections {
    static volatile Object last;

    public static void main(String[] args) {
        for (int i = Integer.parseInt(args[0]); i > 0; i--)
            last = new byte[1000];
        long n = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans())
            n += bean.getCollectionCount();
        System.out.println("collections " + n);
    }
}
