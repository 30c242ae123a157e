// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.util.Iterator;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.Instance;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;

/** Reads a dump by VisualVM's library: "count class" a line, the roots, and every instance's class and fields touched. */
public class VisualVmHistogram {
    public static void main(String[] args) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(args[0]));
        long instances = 0, values = 0;
        for (Object o : heap.getAllClasses()) {
            JavaClass c = (JavaClass) o;
            System.out.println(c.getInstancesCount() + " " + c.getName());
        }
        for (Iterator<?> i = heap.getAllInstancesIterator(); i.hasNext(); instances++) {
            Instance o = (Instance) i.next();
            if (o.getJavaClass() == null) {
                throw new IllegalStateException("no class: " + Long.toHexString(o.getInstanceId()));
            }
            values += o.getFieldValues().size();
        }
        System.out.println("ROOTS " + heap.getGCRoots().size());
        System.out.println("INSTANCES " + instances + " VALUES " + values);
    }
}
