// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import javax.servlet.AsyncContext;
import javax.servlet.AsyncEvent;
import javax.servlet.AsyncListener;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Jetty 9 with one servlet, synchronous and not: a folder that it does not use, rounds, paths. */
public class Jetty9 {
    /** Answers in place of the thread that did not answer in time. */
    static class Refuses implements AsyncListener {
        @Override
        public void onTimeout(AsyncEvent event) throws IOException {
            ((HttpServletResponse) event.getAsyncContext().getResponse()).setStatus(504);
            event.getAsyncContext().getResponse().getWriter().print("answer");
            Asks.handlerEnd = System.nanoTime();
            event.getAsyncContext().complete();
        }

        @Override
        public void onComplete(AsyncEvent event) {
        }

        @Override
        public void onError(AsyncEvent event) {
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
        }
    }

    public static class Truth extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException, ServletException {
            boolean again = request.getAttribute("again") != null;
            if (!again)
                Asks.handlerStart = System.nanoTime();
            String way = request.getRequestURI().split("/")[1];
            if (way.equals("fail"))
                throw new ServletException("asked for");
            if (way.equals("missing")) {
                response.sendError(404);
            } else if (way.startsWith("unanswered")) {
                AsyncContext context = request.startAsync();
                context.setTimeout(100);
                if (way.endsWith("-refused"))
                    context.addListener(new Refuses());
                if (way.endsWith("-queued"))
                    Asks.reports.submit(() -> Asks.nap("none"));
                return;
            } else if (way.equals("cancelled")) {
                response.setStatus(Asks.giveUp() ? 503 : 200);
                response.getWriter().print("answer");
            } else if (way.startsWith("async") || way.equals("dispatch") && !again) {
                AsyncContext context = request.startAsync();
                request.setAttribute("again", true);
                Asks.pool.execute(() -> {
                    Asks.serve(way, "executor");
                    if (way.equals("dispatch")) {
                        context.dispatch();
                        return;
                    }
                    try {
                        context.getResponse().getWriter().print("answer");
                    } catch (IOException e) {
                        throw new IllegalStateException(e);
                    }
                    Asks.handlerEnd = System.nanoTime();
                    context.complete();
                });
                return;
            } else {
                Asks.serve(way, again ? "async" : "entry");
                response.getWriter().print("answer");
            }
            Asks.handlerEnd = System.nanoTime();
        }
    }

    public static void main(String[] args) throws Exception {
        Server server = new Server(0);
        ServletContextHandler context = new ServletContextHandler();
        ServletHolder holder = new ServletHolder(new Truth());
        holder.setAsyncSupported(true);
        context.addServlet(holder, "/*");
        server.setHandler(context);
        server.start();
        Asks.all(((ServerConnector) server.getConnectors()[0]).getLocalPort(), args[1], args[2]);
        server.stop();
    }
}
