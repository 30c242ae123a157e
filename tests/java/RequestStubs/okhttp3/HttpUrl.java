// SPDX-License-Identifier: Apache-2.0
package okhttp3;

public final class HttpUrl {
    private final String host;

    HttpUrl(String host) {
        this.host = host;
    }

    public String host() {
        return host;
    }
}
