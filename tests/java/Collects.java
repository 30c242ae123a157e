// SPDX-License-Identifier: Apache-2.0
/** Does nothing but collect garbage a few times a second, so that its memory is that of whoever visits it. */
public class Collects {
    public static void main(String[] args) throws Exception {
        while (true) {
            Thread.sleep(200);
            System.gc();
        }
    }
}
