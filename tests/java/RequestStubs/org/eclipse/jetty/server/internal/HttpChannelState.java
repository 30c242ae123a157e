// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.server.internal;

import java.util.concurrent.CountDownLatch;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpURI;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.Callback;

public class HttpChannelState {
    final CountDownLatch done = new CountDownLatch(1);
    int status = 200;

    class ChannelRequest implements Request {
        private final String method, path, trace;

        ChannelRequest(String method, String path, String trace) {
            this.method = method;
            this.path = path;
            this.trace = trace;
        }

        @Override
        public String getMethod() {
            return method;
        }

        @Override
        public HttpURI getHttpURI() {
            return () -> path;
        }

        @Override
        public HttpFields getHeaders() {
            return name -> name.equals("traceparent") ? trace : null;
        }
    }

    class ChannelResponse implements Response {
        @Override
        public void setStatus(int code) {
            status = code;
        }
    }

    class ChannelCallback implements Callback {
        @Override
        public void succeeded() {
            done.countDown();
        }

        @Override
        public void failed(Throwable t) {
            done.countDown();
        }
    }

    /** One request, until it has been answered. */
    public static void request(Server server, String method, String path, String trace)
            throws Exception {
        HttpChannelState s = new HttpChannelState();
        server.handle(s.new ChannelRequest(method, path, trace), s.new ChannelResponse(),
                      s.new ChannelCallback());
        s.done.await();
    }
}
