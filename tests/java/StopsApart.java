// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/**
 * Collects all garbage as often as its argument says, a while apart, with so many live objects that
 * each collection stops it for a long time. Prints "ready" before that, waits for a line of its
 * input, and prints "done".
 */
public class StopsApart {
    static List<Object> live = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2000000; i++)
            live.add(new long[2]);
        System.gc();
        System.out.println("ready");
        System.in.read();
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            System.gc();
            Thread.sleep(350);
        }
        System.out.println("done");
        System.in.read();
    }
}
