// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;

/** Runs out of memory three times and goes on. */
public class Exhausts {
    static final class Filler {
        final byte[] bytes = new byte[50000];
    }

    public static void main(String[] args) {
        int caught = 0;
        for (int i = 0; i < 3; i++) {
            List<Filler> fillers = new ArrayList<>();
            try {
                while (true) {
                    fillers.add(new Filler());
                }
            } catch (OutOfMemoryError e) {
                fillers = null;
                caught++;
            }
        }
        System.out.println("caught " + caught);
    }
}
