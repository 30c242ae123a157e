// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import javax.tools.ToolProvider;

/**
 * Compiles programs, each from one file into a folder that appears when it is complete. Arguments: options of javac. Standard
 * input: a line with the file and the folder for each. What does not compile is left out.
 */
public class CompileAll {
    public static void main(String[] args) throws IOException {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            Path out = Path.of(words[1]);
            if (Files.exists(out))
                continue;
            Files.createDirectories(out.getParent());
            Path made = Files.createTempDirectory(out.getParent(), "new-");
            made.toFile().setReadable(true, false);
            made.toFile().setExecutable(true, false);
            List<String> options = new ArrayList<>(List.of(args));
            options.addAll(List.of("-cp", made.toString(), "-d", made.toString(), words[0]));
            int status = ToolProvider.getSystemJavaCompiler().run(null, OutputStream.nullOutputStream(), OutputStream.nullOutputStream(), options.toArray(new String[0]));
            try {
                if (status == 0)
                    Files.move(made, out);
            } catch (FileSystemException e) {
                // a test has compiled it meanwhile
            }
            if (Files.exists(made))
                delete(made.toFile());
        }
    }

    static void delete(File f) {
        File[] inside = f.listFiles();
        for (File i : inside == null ? new File[0] : inside)
            delete(i);
        f.delete();
    }
}
