// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.server;

import java.util.function.BiConsumer;
import org.eclipse.jetty.util.Callback;

/**
 * Calls the program's handler, which succeeds or fails by the callback, also later and from
 * another thread.
 */
public class Server {
    private final BiConsumer<Response, Callback> handler;

    public Server(BiConsumer<Response, Callback> handler) {
        this.handler = handler;
    }

    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        handler.accept(response, callback);
        return true;
    }
}
