// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles the sources in the folder of argument 1 into that of argument 2 so many times; prints the CPU seconds of its own thread in each. */
public class TimesSteady {
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[2]);
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        List<File> files = Arrays.asList(new File(args[0]).listFiles((d, n) -> n.endsWith(".java")));
        StringBuilder seconds = new StringBuilder("CPU");
        for (int r = 0; r < rounds; r++) {
            long start = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            try (StandardJavaFileManager fm = javac.getStandardFileManager(null, null, null)) {
                if (!javac.getTask(new StringWriter(), fm, null, Arrays.asList("-nowarn", "-d", args[1]), null, fm.getJavaFileObjectsFromFiles(files)).call()) {
                    throw new AssertionError();
                }
            }
            seconds.append(' ').append((ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - start) / 1e9);
        }
        System.out.println(seconds);
    }
}
