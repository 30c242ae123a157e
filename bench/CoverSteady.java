// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles the sources in the folder of argument 1 into that of argument 2 for argument 3 seconds; prints the median seconds of the last quarter's rounds. */
public class CoverSteady {
    public static void main(String[] args) throws Exception {
        double whole = Double.parseDouble(args[2]);
        List<Double> last = new ArrayList<>();
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        List<File> files = new ArrayList<>(Arrays.asList(new File(args[0]).listFiles((d, n) -> n.endsWith(".java"))));
        for (long begin = System.nanoTime(), start = begin; (start - begin) / 1e9 < whole;) {
            try (StandardJavaFileManager fm = javac.getStandardFileManager(null, null, null)) {
                if (!javac.getTask(new StringWriter(), fm, null, Arrays.asList("-nowarn", "-d", args[1]), null, fm.getJavaFileObjectsFromFiles(files)).call()) {
                    throw new AssertionError();
                }
            }
            long end = System.nanoTime();
            if ((start - begin) / 1e9 > whole * 3 / 4 || last.isEmpty() && (end - begin) / 1e9 > whole) {
                last.add((end - start) / 1e9);
            }
            start = end;
        }
        Collections.sort(last);
        System.out.printf("%.4f%n", last.get(last.size() / 2));
    }
}
