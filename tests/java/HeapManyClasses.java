// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes a heap dump with an empty array of each of 2295 classes, which are arrays of nine types
 * with 1 to 255 dimensions.
 */
public class HeapManyClasses {
    static final List<Object> held = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Class<?>[] types = {boolean.class, byte.class,  char.class,
                            double.class,  float.class, int.class,
                            long.class,    short.class, HeapManyClasses.class};
        for (Class<?> type : types)
            for (int n = 1; n <= 255; n++)
                held.add(Array.newInstance(type, new int[n]));
        ManagementFactory.getPlatformMXBeans(com.sun.management.HotSpotDiagnosticMXBean.class)
                .get(0)
                .dumpHeap(args[0], true);
    }
}
