// SPDX-License-Identifier: Apache-2.0
/**
 * Calls methods so few times that no reading of a clock falls into them; with one argument, only
 * those of Small, which are never timed.
 */
public class FewCalls {
    static final class Small {
        static int next(int a) {
            return a + 1;
        }
    }

    static final class Short {
        static int sum(int n) {
            int sum = 0;
            for (int i = 0; i < n; i++)
                sum = Small.next(sum);
            return sum;
        }
    }

    public static void main(String[] args) {
        int sum = 0;
        for (int i = 0; i < 7; i++)
            sum += args.length > 0 ? Small.next(i) : Short.sum(i);
        System.out.println(sum);
    }
}
