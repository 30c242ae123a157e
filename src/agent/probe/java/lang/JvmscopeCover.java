// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import jvmscope.Stable;

/**
 * The probe of cover=y. There is a byte for each line start and branch edge, which becomes 1 when
 * it is first passed. The JIT treats an element of a stable array as a constant once it is not
 * zero, so it compiles nothing for a probe that has already been passed.
 */
public final class JvmscopeCover {
    private static final int CHUNK = 14; // bits

    /**
     * Indexed by the number of a point. A chunk is added before the code that contains its points
     * is loaded.
     */
    @Stable
    private static final byte[][] PASSED = new byte[1 << 26 - CHUNK][];

    private JvmscopeCover() {
    }

    static void bind() {
    }

    @ForceInline
    public static void hit(int point) {
        byte[] passed = PASSED[point >>> CHUNK];
        if (passed[point & (1 << CHUNK) - 1] == 0) {
            passed[point & (1 << CHUNK) - 1] = 1;
        }
    }
}
