// SPDX-License-Identifier: Apache-2.0
/**
 * Throws exceptions, and waits for locks, whose classes have names of two columns per character
 * (\u6f22\u5b57) or longer than a column of a table may be.
 */
public class WideNames {
    static class \u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57 extends RuntimeException {
    }

    static class Plain extends RuntimeException {
    }

    static class WithANameThatIsLongerThanAColumnOfATableMayBeSoThatItMovesTheRest
            extends RuntimeException {
    }

    static void raise(RuntimeException e) {
        throw e;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5; i++) {
            RuntimeException wide = new \u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57();
            RuntimeException[] all = {wide, new Plain(),
                new WithANameThatIsLongerThanAColumnOfATableMayBeSoThatItMovesTheRest()};
            for (RuntimeException e : all) {
                try {
                    raise(e);
                } catch (RuntimeException caught) {
                    // as expected
                }
                Thread t = new Thread(() -> {
                    synchronized (e) {
                        try {
                            e.wait(2);
                        } catch (InterruptedException never) {
                            throw new IllegalStateException(never);
                        }
                    }
                }, i == 0 ? "\u6f22\u5b57\u6f22\u5b57-" + i : "plain-" + i);
                t.start();
                t.join();
            }
        }
        System.out.println("done");
    }
}
