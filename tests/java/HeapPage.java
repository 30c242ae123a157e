// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Writes a heap dump of sessions that accumulate in a map. They contain text that is markup unless
 * a page escapes it.
 */
public class HeapPage {
    static final class Session {
        final String user;
        final byte[] buffer = new byte[20_000];
        final List<Object> log = new ArrayList<>();

        Session(int number) {
            user = "<img src=x onerror=\"document.title='owned'\">" + number;
            log.add(user);
        }
    }

    static final Map<String, Session> SESSIONS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 300; i++)
            SESSIONS.put("user" + i, new Session(i));
        ManagementFactory.getPlatformMXBeans(com.sun.management.HotSpotDiagnosticMXBean.class)
                .get(0)
                .dumpHeap(args[0], true);
    }
}
