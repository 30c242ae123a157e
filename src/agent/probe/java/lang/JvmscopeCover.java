// SPDX-License-Identifier: Apache-2.0
package java.lang;

import jvmscope.ForceInline;
import jvmscope.Stable;

/**
 * The probe of cover=y: a byte for each line start and branch edge, 1 once it was passed. What is not zero in a stable array is
 * a constant to the JIT: of a probe that was passed before its method is compiled, nothing is left in the machine code.
 */
public final class JvmscopeCover {
    private static final int CHUNK = 14; // bits

    /** By number of a point; a chunk is put in before there is code with its points. */
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
