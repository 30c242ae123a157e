// SPDX-License-Identifier: Apache-2.0

/** For javac of JDK 8 with -XDjsrlimit=0, which then makes `finally` a subroutine: jsr and ret, as in EachConstruct. */
public class EachJsr {
    static int sum;

    static int use(Object o) {
        return sum += o == null ? 1 : 2;
    }

    static int subroutine(int n) {
        try {
            Object o = new Object();
            synchronized (o) {
                if (n > 0)
                    return use(new int[1]);
            }
            return n;
        } finally {
            use(null);
        }
    }

    public static void main(String[] args) {
        sum = 0;
        subroutine(1);
        System.out.println(sum);
    }
}
