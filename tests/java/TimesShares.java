// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * TimesShares SECONDS-OF-CPU: half of the time in one heavy method, some percent in tiny ones that
 * are called by the million, the rest in forty methods of known weights, in random order and
 * portions. Prints CPU nanoseconds of the three parts, measured by the program itself (without an
 * agent they are the truth), then each of the forty's share of the steps that they did together.
 */
public class TimesShares {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static int sink;

    /** Not to be instrumented: its time is its callers'. */
    static int work(int x, int n) {
        for (int i = 0; i < n; i++)
            x = x * 31 + (x >>> 3);
        return x;
    }

    static int w00(int x, int n) { return work(x, n); }
    static int w01(int x, int n) { return work(x, n); }
    static int w02(int x, int n) { return work(x, n); }
    static int w03(int x, int n) { return work(x, n); }
    static int w04(int x, int n) { return work(x, n); }
    static int w05(int x, int n) { return work(x, n); }
    static int w06(int x, int n) { return work(x, n); }
    static int w07(int x, int n) { return work(x, n); }
    static int w08(int x, int n) { return work(x, n); }
    static int w09(int x, int n) { return work(x, n); }
    static int w10(int x, int n) { return work(x, n); }
    static int w11(int x, int n) { return work(x, n); }
    static int w12(int x, int n) { return work(x, n); }
    static int w13(int x, int n) { return work(x, n); }
    static int w14(int x, int n) { return work(x, n); }
    static int w15(int x, int n) { return work(x, n); }
    static int w16(int x, int n) { return work(x, n); }
    static int w17(int x, int n) { return work(x, n); }
    static int w18(int x, int n) { return work(x, n); }
    static int w19(int x, int n) { return work(x, n); }
    static int w20(int x, int n) { return work(x, n); }
    static int w21(int x, int n) { return work(x, n); }
    static int w22(int x, int n) { return work(x, n); }
    static int w23(int x, int n) { return work(x, n); }
    static int w24(int x, int n) { return work(x, n); }
    static int w25(int x, int n) { return work(x, n); }
    static int w26(int x, int n) { return work(x, n); }
    static int w27(int x, int n) { return work(x, n); }
    static int w28(int x, int n) { return work(x, n); }
    static int w29(int x, int n) { return work(x, n); }
    static int w30(int x, int n) { return work(x, n); }
    static int w31(int x, int n) { return work(x, n); }
    static int w32(int x, int n) { return work(x, n); }
    static int w33(int x, int n) { return work(x, n); }
    static int w34(int x, int n) { return work(x, n); }
    static int w35(int x, int n) { return work(x, n); }
    static int w36(int x, int n) { return work(x, n); }
    static int w37(int x, int n) { return work(x, n); }
    static int w38(int x, int n) { return work(x, n); }
    static int w39(int x, int n) { return work(x, n); }

    static int call(int which, int x, int n) {
        switch (which) {
        case 0: return w00(x, n);
        case 1: return w01(x, n);
        case 2: return w02(x, n);
        case 3: return w03(x, n);
        case 4: return w04(x, n);
        case 5: return w05(x, n);
        case 6: return w06(x, n);
        case 7: return w07(x, n);
        case 8: return w08(x, n);
        case 9: return w09(x, n);
        case 10: return w10(x, n);
        case 11: return w11(x, n);
        case 12: return w12(x, n);
        case 13: return w13(x, n);
        case 14: return w14(x, n);
        case 15: return w15(x, n);
        case 16: return w16(x, n);
        case 17: return w17(x, n);
        case 18: return w18(x, n);
        case 19: return w19(x, n);
        case 20: return w20(x, n);
        case 21: return w21(x, n);
        case 22: return w22(x, n);
        case 23: return w23(x, n);
        case 24: return w24(x, n);
        case 25: return w25(x, n);
        case 26: return w26(x, n);
        case 27: return w27(x, n);
        case 28: return w28(x, n);
        case 29: return w29(x, n);
        case 30: return w30(x, n);
        case 31: return w31(x, n);
        case 32: return w32(x, n);
        case 33: return w33(x, n);
        case 34: return w34(x, n);
        case 35: return w35(x, n);
        case 36: return w36(x, n);
        case 37: return w37(x, n);
        case 38: return w38(x, n);
        case 39: return w39(x, n);
        default: throw new IllegalArgumentException();
        }
    }

    static int heavy(int x, int n) {
        for (int i = 0; i < n; i++)
            x = x * 17 + (x >>> 5);
        return x;
    }

    static int tiny(int x) {
        return tinier(x) + (x >>> 2) * 7 - (x ^ 0x55);
    }

    static int tinier(int x) {
        return (x * 13 + (x >>> 4)) ^ x << 3;
    }

    static int tinies(int x, int n) {
        for (int i = 0; i < n; i++)
            x = tiny(x + i);
        return x;
    }

    static int random(int x) {
        x ^= x << 13;
        x ^= x >>> 17;
        return x ^ x << 5;
    }

    public static void main(String[] args) {
        long[] parts = new long[3], steps = new long[40];
        long start = THREADS.getCurrentThreadCpuTime(),
             end = start + (long) (Double.parseDouble(args[0]) * 1e9), now = start;
        int x = 12345, r = 2463534;
        while (now < end) {
            long before = now;
            for (int i = 0; i < 30; i++) {
                r = random(r);
                int which = (r >>> 4) % 40, n = (1 + which % 5) * (1000 + (r >>> 12) % 2000);
                x = call(which, x, n);
                steps[which] += n;
            }
            now = THREADS.getCurrentThreadCpuTime();
            parts[1] += now - before;
            before = now;
            r = random(r);
            x = heavy(x, 120000 + (r >>> 8) % 120000);
            now = THREADS.getCurrentThreadCpuTime();
            parts[0] += now - before;
            before = now;
            x = tinies(x, 6000);
            now = THREADS.getCurrentThreadCpuTime();
            parts[2] += now - before;
        }
        sink = x;
        long all = 0;
        for (long s : steps)
            all += s;
        System.out.printf("heavy %d%nforty %d%ntiny %d%n", parts[0], parts[1], parts[2]);
        for (int i = 0; i < 40; i++)
            System.out.printf("w%02d %.6f%n", i, (double) steps[i] / all);
    }
}
