// SPDX-License-Identifier: Apache-2.0
/**
 * Does nothing but collect garbage a few times a second, so that memory that is added belongs to
 * what attaches to it.
 */
public class Collects {
    public static void main(String[] args) throws Exception {
        while (true) {
            Thread.sleep(200);
            System.gc();
        }
    }
}
