// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.util.*;
import org.graalvm.visualvm.lib.jfluid.heap.*;

/** What VisualVM's heap library says of a dump: counts of classes, sizes, and retained sizes of the objects given. */
public class HeapOracle {
    public static void main(String[] args) throws Exception {
        long start = System.nanoTime();
        Heap heap = HeapFactory.createHeap(new File(args[0]));
        HeapSummary summary = heap.getSummary();
        System.out.println("instances " + summary.getTotalLiveInstances());
        for (Object o : heap.getAllClasses()) {
            JavaClass c = (JavaClass) o;
            if (c.getInstancesCount() > 0)
                System.out.println("class " + c.getInstancesCount() + " " + c.getAllInstancesSize() + " " + c.getName());
        }
        System.out.println("time histogram " + (System.nanoTime() - start) / 1e9);
        if (args.length > 1) {
            start = System.nanoTime();
            for (String line : java.nio.file.Files.readAllLines(new File(args[1]).toPath())) {
                Instance i = heap.getInstanceByID(Long.parseLong(line.trim().substring(2), 16));
                if (i != null)
                    System.out.println("object " + line.trim() + " " + i.getSize() + " " + i.getRetainedSize() + " " + i.getJavaClass().getName());
            }
            System.out.println("time retained " + (System.nanoTime() - start) / 1e9);
        }
    }
}
