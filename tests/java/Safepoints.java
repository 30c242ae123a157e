// SPDX-License-Identifier: Apache-2.0
/** Has a safepoint as often as it can, until standard input ends. */
public class Safepoints {
    public static void main(String[] args) throws Exception {
        Thread stops = new Thread(() -> {
            for (;;)
                Thread.getAllStackTraces();
        });
        stops.setDaemon(true);
        stops.start();
        System.out.println("ready");
        while (System.in.read() >= 0)
            continue;
    }
}
