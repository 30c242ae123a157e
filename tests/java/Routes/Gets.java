// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;

/** Asks for each path five times, with another number at its end each time. */
final class Gets {
    private Gets() {
    }

    static void all(int port, String... paths) throws IOException {
        for (int i = 0; i < 5; i++) {
            for (String path : paths) {
                HttpURLConnection c =
                        (HttpURLConnection) new URL("http://127.0.0.1:" + port + path + (1000 + i))
                                .openConnection();
                int status = c.getResponseCode();
                try (InputStream in = status < 400 ? c.getInputStream() : c.getErrorStream()) {
                    while (in != null && in.read() >= 0) {
                    }
                }
            }
        }
    }
}
