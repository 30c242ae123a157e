// SPDX-License-Identifier: Apache-2.0
/** Lines with known locals and fields, and fields whose accesses are known. */
public class Logged {
    static int total;
    static final String NAME = new String("the name");
    int count = 1;
    long wide;
    double real;
    Object ref;
    boolean flag;
    int[] numbers = {1, 2};

    static class Below extends Logged {
        int bump() {
            count += 10;
            return count;
        }
    }

    static class Shadow {
        int count = 100;

        int own() {
            return ++count;
        }
    }

    int work(int n, String text) {
        long square = (long) n * n;
        for (int i = 0; i < 2; i++) {
            total += i; // in the loop
        }
        double half = n / 2.0;
        count++;
        return (int) square + text.length(); // at the end
    }

    static int early(boolean z, char c, float f) {
        return z ? c : (int) f; // static
    }

    Logged() {
        this(3);
        ref = "made"; // constructor
    }

    Logged(int wide) {
        this.wide = wide;
    }

    public static void main(String[] args) {
        Logged l = new Logged();
        int sum = l.work(3, "abc") + l.work(4, "");
        sum += early(true, 'x', 1.5f);
        l.real = 2.5;
        l.real = l.real + 1;
        l.wide = 1L << 60;
        l.flag = true;
        l.ref = null;
        l.numbers = null;
        Below below = new Below();
        sum += below.bump() + new Shadow().own();
        Logged nothing = null;
        try {
            nothing.count = 7;
        } catch (NullPointerException e) {
            sum += e.getMessage() == null || e.getMessage().contains("assign") ? 1 : 1000;
        }
        total = sum;
        System.out.println("done " + sum);
    }
}
