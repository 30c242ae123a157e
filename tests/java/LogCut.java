// SPDX-License-Identifier: Apache-2.0
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * LogCut cut|write: requests 10 collections, and 30 more after each of which something is done to
 * the file in memory that the VM's log goes to: "cut" cuts it off, "write" writes two lines of
 * another form into it.
 */
public class LogCut {
    private static List<Path> logs() throws Exception {
        List<Path> found = new ArrayList<>();
        try (Stream<Path> all = Files.list(Paths.get("/proc/self/fd"))) {
            for (Path p : all.collect(Collectors.toList())) {
                if (Files.isSymbolicLink(p) && Files.exists(p)
                    && Files.readSymbolicLink(p).toString().contains("jvmscope-vm-log")) {
                    found.add(p);
                }
            }
        }
        return found;
    }

    public static void main(String[] args) throws Exception {
        Path log = logs().get(0);
        for (int i = 0; i < 10; i++) {
            System.gc();
        }
        Thread.sleep(250);
        for (int i = 0; i < 30; i++) {
            System.gc();
            try (FileOutputStream out =
                         new FileOutputStream(log.toFile(), args[0].equals("write"))) {
                if (args[0].equals("write")) {
                    out.write("no line of\nthe VM\n".getBytes(StandardCharsets.UTF_8));
                }
            }
        }
        Thread.sleep(250);
        System.gc();
    }
}
