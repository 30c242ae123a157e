// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.util.Arrays;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** javac with its trees and symbols still in memory: the sources of a folder parsed and attributed. Arguments: FOLDER. */
public class Compiles {
    static Object task, trees;

    public static void main(String[] args) throws Exception {
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = javac.getStandardFileManager(null, null, null);
        File[] sources = new File(args[0]).listFiles((folder, name) -> name.endsWith(".java"));
        Arrays.sort(sources);
        task = javac.getTask(null, files, null, Arrays.asList("-nowarn", "-proc:none"), null, files.getJavaFileObjects(sources));
        // Not by name: JDK 8 has it in a jar beside the class path.
        trees = Class.forName("com.sun.source.util.JavacTask", false, task.getClass().getClassLoader()).getMethod("analyze").invoke(task);
    }
}
