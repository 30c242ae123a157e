// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles the sources in the folder of argument 1 into that of argument 2 for argument 3 seconds; prints the median of the last quarter's rounds, CPU seconds of the thread that compiles. */
public class CoverSteady {
    public static void main(String[] args) throws Exception {
        double whole = Double.parseDouble(args[2]);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        List<Double> last = new ArrayList<>();
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        List<File> files = new ArrayList<>(Arrays.asList(new File(args[0]).listFiles((d, n) -> n.endsWith(".java"))));
        for (long begin = System.nanoTime(), now = begin; (now - begin) / 1e9 < whole || last.isEmpty(); now = System.nanoTime()) {
            long used = threads.getCurrentThreadCpuTime();
            try (StandardJavaFileManager fm = javac.getStandardFileManager(null, null, null)) {
                if (!javac.getTask(new StringWriter(), fm, null, Arrays.asList("-nowarn", "-d", args[1]), null, fm.getJavaFileObjectsFromFiles(files)).call()) {
                    throw new AssertionError();
                }
            }
            if ((now - begin) / 1e9 > whole * 3 / 4) {
                last.add((threads.getCurrentThreadCpuTime() - used) / 1e9);
            }
        }
        Collections.sort(last);
        System.out.printf("%.4f%n", last.get(last.size() / 2));
    }
}
