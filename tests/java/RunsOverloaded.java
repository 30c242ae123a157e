// SPDX-License-Identifier: Apache-2.0
/** Two methods of one name that run until the input ends. */
public class RunsOverloaded {
    static int hold(String s, long[] n) throws Exception {
        return hold(s.length() + n.length);
    }

    static int hold(int n) throws Exception {
        System.out.println("ready");
        return n + System.in.read();
    }

    public static void main(String[] args) throws Exception {
        hold("a", new long[2]);
    }
}
