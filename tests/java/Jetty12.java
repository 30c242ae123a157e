// SPDX-License-Identifier: Apache-2.0
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * Jetty 12 with one handler, which answers at once or later: a folder that it does not use, rounds,
 * paths.
 */
public class Jetty12 {
    static final class Truth extends Handler.Abstract {
        @Override
        public boolean handle(Request request, Response response, Callback callback)
                throws Exception {
            Asks.handlerStart = System.nanoTime();
            String way = request.getHttpURI().getPath().split("/")[1];
            if (way.equals("fail"))
                throw new IllegalStateException("asked for");
            if (way.equals("missing")) {
                Asks.handlerEnd = System.nanoTime();
                Response.writeError(request, response, callback, 404);
            } else if (way.startsWith("async")) {
                Asks.pool.execute(() -> {
                    Asks.serve(way, "executor");
                    answer(response, callback);
                });
            } else {
                Asks.serve(way, "entry");
                answer(response, callback);
            }
            return true;
        }

        static void answer(Response response, Callback callback) {
            Asks.handlerEnd = System.nanoTime();
            response.write(true, StandardCharsets.UTF_8.encode("answer"), callback);
        }
    }

    public static void main(String[] args) throws Exception {
        Server server = new Server(0);
        server.setHandler(new Truth());
        server.start();
        Asks.all(((ServerConnector) server.getConnectors()[0]).getLocalPort(), args[1], args[2]);
        server.stop();
        System.exit(0);
    }
}
