// SPDX-License-Identifier: Apache-2.0
package okhttp3.internal.connection;

import java.io.IOException;
import java.util.concurrent.Executor;
import okhttp3.Callback;
import okhttp3.Request;
import okhttp3.Response;

/** As in OkHttp 4, with its names: a response comes after 3 ms, or not at all. */
public final class RealCall {
    private final Executor executor;
    private final Request originalRequest;

    public RealCall(Executor executor, Request originalRequest) {
        this.executor = executor;
        this.originalRequest = originalRequest;
    }

    public void enqueue(Callback responseCallback) {
        executor.execute(() -> {
            try {
                responseCallback.onResponse(getResponseWithInterceptorChain$okhttp());
            } catch (IOException e) {
                responseCallback.onFailure(e);
            }
        });
    }

    public Response getResponseWithInterceptorChain$okhttp() throws IOException {
        try {
            Thread.sleep(3);
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        if (originalRequest.url().host().equals("nowhere"))
            throw new java.net.ConnectException();
        return new Response();
    }
}
