// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.util.Arrays;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * javac with its trees and symbols still in memory: the sources of a folder parsed and attributed.
 * Arguments: FOLDER.
 */
public class Compiles {
    static Object task, trees;

    public static void main(String[] args) throws Exception {
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        analyze(javac, javac.getStandardFileManager(null, null, null), args[0]);
    }

    /**
     * Units of UnderLoad: all sources of a folder, parsed and attributed. Arguments: FOLDER
     * THREADS.
     */
    public static Runnable[] units(String[] args) {
        Runnable[] units = new Runnable[Integer.parseInt(args[1])];
        for (int i = 0; i < units.length; i++) {
            JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
            StandardJavaFileManager files = javac.getStandardFileManager(null, null, null);
            units[i] = () -> {
                try {
                    analyze(javac, files, args[0]);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            };
        }
        return units;
    }

    private static void analyze(JavaCompiler javac, StandardJavaFileManager files, String folder)
            throws Exception {
        File[] sources = new File(folder).listFiles((in, name) -> name.endsWith(".java"));
        Arrays.sort(sources);
        Object task = javac.getTask(null, files, null, Arrays.asList("-nowarn", "-proc:none"), null,
                                    files.getJavaFileObjects(sources));
        // Not by name: JDK 8 has it in a jar that is not on the class path.
        Object trees = Class.forName("com.sun.source.util.JavacTask", false,
                                     task.getClass().getClassLoader())
                               .getMethod("analyze")
                               .invoke(task);
        Compiles.task = task;
        Compiles.trees = trees;
    }
}
