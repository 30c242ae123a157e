// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles the sources in the folder of argument 1 into that of argument 2, again and again; prints the median seconds of the last ones. */
public class CoverSteady {
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[2]);
        double[] seconds = new double[rounds];
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        List<File> files = new ArrayList<>(Arrays.asList(new File(args[0]).listFiles((d, n) -> n.endsWith(".java"))));
        for (int i = 0; i < rounds; i++) {
            long start = System.nanoTime();
            try (StandardJavaFileManager fm = javac.getStandardFileManager(null, null, null)) {
                if (!javac.getTask(new StringWriter(), fm, null, Arrays.asList("-nowarn", "-d", args[1]), null, fm.getJavaFileObjectsFromFiles(files)).call()) {
                    throw new AssertionError();
                }
            }
            seconds[i] = (System.nanoTime() - start) / 1e9;
        }
        double[] last = Arrays.copyOfRange(seconds, rounds / 2, rounds);
        Arrays.sort(last);
        System.out.printf("%.3f%n", last[last.length / 2]);
    }
}
