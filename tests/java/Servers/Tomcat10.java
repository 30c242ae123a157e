// SPDX-License-Identifier: Apache-2.0
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** Tomcat 10 with one servlet, synchronous and not: folder for its files, rounds, paths. */
public class Tomcat10 {
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
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(args[0]);
        tomcat.setPort(0);
        tomcat.getConnector();
        Context context = tomcat.addContext("", new File(args[0]).getAbsolutePath());
        Tomcat.addServlet(context, "truth", new Truth()).setAsyncSupported(true);
        context.addServletMappingDecoded("/*", "truth");
        tomcat.start();
        Asks.all(tomcat.getConnector().getLocalPort(), args[1], args[2]);
        tomcat.stop();
    }
}
