// SPDX-License-Identifier: Apache-2.0
import java.io.PrintStream;

/**
 * Runs another program's main to its end, says READY, and holds what it left until stdin ends.
 * Arguments: CLASS ARGS...
 */
public class Ready {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Class.forName(args[0])
                .getMethod("main", String[].class)
                .invoke(null, (Object) java.util.Arrays.copyOfRange(args, 1, args.length));
        // What finalizers and cleaners keep until they ran would come and go between a dump and a
        // histogram.
        for (int i = 0; i < 4; i++) {
            System.gc();
            Thread.sleep(50);
        }
        out.println("READY");
        while (System.in.read() >= 0)
            ;
        System.exit(0);
    }
}
