// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayInputStream;
import java.io.InputStream;

/** Code in which JaCoCo and jvmscope see the same, in same(); and each kind of code in which they do not. */
public class CoverDiffs {
    enum Kind { ONE, TWO }

    static int same(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i % 3 == 0 ? i
                : n;
            if (i > 1 && n > 100) {
                sum++;
            }
        }
        switch (n) {
            case 1:
            case 2:
                sum += 2;
                break;
            case 9:
                sum += 9;
                break;
            default:
                sum--;
        }
        while (sum > 1000) {
            sum /= 2;
        }
        Runnable r = () -> System.out.print("");
        r.run();
        return sum;
    }

    static boolean middle(Object a, Object b) {
        return a != null
            && b != null;
    }

    static int finallyCopies(int n) {
        try {
            return n / (n - 3);
        } finally {
            n = n > 5 ? 1 : 2;
        }
    }

    static int resources(int n) throws Exception {
        try (InputStream in = new ByteArrayInputStream(new byte[n])) {
            return in.read();
        }
    }

    static int strings(String s) {
        switch (s) {
            case "a":
                return 1;
            case "b":
                return 2;
            default:
                return 3;
        }
    }

    static int enums(Kind k) {
        switch (k) {
            case ONE:
                return 1;
            default:
                return 2;
        }
    }

    static int leaves(int n) {
        int a = 1;
        a += Integer.parseInt(n > 0 ? "no number" : "1");
        return a;
    }

    static synchronized int locked(int n) {
        synchronized (CoverDiffs.class) {
            n++;
        }
        return n;
    }

    private CoverDiffs() {
    }

    public static void main(String[] args) throws Exception {
        int sum = same(2) + finallyCopies(4) + resources(3) + strings("a") + enums(Kind.ONE) + locked(1);
        try {
            leaves(1);
        } catch (NumberFormatException e) {
            sum++;
        }
        System.out.println("done " + sum + middle(null, null) + middle("", null));
    }
}
