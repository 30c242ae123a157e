// SPDX-License-Identifier: Apache-2.0
/** Uses some CPU time and ends when its input does, but a shutdown hook never returns. */
public class EndsNever {
    static volatile long sum;

    public static void main(String[] args) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            System.out.println("hook");
            for (;;)
                try {
                    Thread.sleep(100_000);
                } catch (InterruptedException e) {
                    sum++;
                }
        }));
        System.out.println("ready");
        while (System.in.available() == 0)
            for (int i = 0; i < 1_000_000; i++)
                sum += i;
        System.exit(3);
    }
}
