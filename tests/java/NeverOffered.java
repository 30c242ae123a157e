// SPDX-License-Identifier: Apache-2.0
/**
 * Makes objects whose constructor's call is not followed by a probe, because the argument is
 * stored meanwhile.
 */
public class NeverOffered {
    static volatile Object sink;

    static class Inner {
    }

    static class Outer {
        Outer(Object inner) {
        }
    }

    static void make(int n) {
        Object inner;
        for (int i = 0; i < n; i++)
            sink = new Outer(inner = new Inner());
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        System.in.read();
        make(1000);
        System.out.println("done");
        System.in.read();
    }
}
