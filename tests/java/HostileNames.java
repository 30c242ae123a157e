// SPDX-License-Identifier: Apache-2.0

/** Names and values that would be markup, are 64 KiB long, or are not text at all. */
public class HostileNames {
    static final String MARKUP =
            "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>";

    static String say(String what) {
        return what + "!";
    }

    public static void main(String[] args) throws InterruptedException {
        String[] names = {MARKUP, "long-" + new String(new char[65531]).replace('\0', 'x'),
                          "half a pair \ud83d", "nul\0 and bell\7", ""};
        Thread[] threads = new Thread[names.length];
        for (int i = 0; i < names.length; i++) {
            threads[i] = new Thread(() -> {
                try {
                    Thread.sleep(30);
                } catch (InterruptedException e) {
                    return;
                }
                say(MARKUP);
            }, names[i]);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
    }
}
