// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Field;

/** Writes a field by reflection, and with an argument by an instruction as well. */
public class WatchedUnseen {
    int x;

    public static void main(String[] args) throws Exception {
        WatchedUnseen w = new WatchedUnseen();
        Field f = WatchedUnseen.class.getDeclaredField("x");
        for (int i = 0; i < 10; i++)
            f.setInt(w, i);
        for (String arg : args)
            w.x = arg.length();
        System.out.println("done");
    }
}
