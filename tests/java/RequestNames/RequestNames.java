// SPDX-License-Identifier: Apache-2.0
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/**
 * So many requests of as many names; then so many class loaders whose classes handle requests,
 * fail and leave tasks, and are dropped.
 */
public class RequestNames {
    static long answered;

    static final class Servlet extends HttpServlet {
        protected void answer() {
            answered++;
        }

        void ask(HttpServletRequest request) {
            service(request, null);
        }
    }

    static final class Path implements HttpServletRequest {
        int n;

        public String getMethod() {
            return "GET";
        }

        /** Letters only, which are not folded. */
        public String getRequestURI() {
            StringBuilder s = new StringBuilder("/shop/<b>&\u0007/");
            for (int left = n, i = 0; i < 5; i++, left /= 26)
                s.append((char) ('a' + left % 26));
            return s.toString();
        }
    }

    static final class Refused extends RuntimeException {
    }

    /** Named by the option. */
    static final class Shop {
        static void order() {
            throw new Refused();
        }
    }

    /** What each loader loads anew. */
    public static final class Loaded implements Runnable {
        public void run() {
            new OwnServlet().ask(new Path());
            try {
                Shop.order();
            } catch (Refused e) {
                answered++;
            }
        }
    }

    static final class OwnServlet extends HttpServlet {
        protected void answer() {
            // A stage that never runs, and a task that does.
            new CompletableFuture<String>().thenApply(x -> x + answered);
            ExecutorService pool = Executors.newSingleThreadExecutor();
            pool.execute(() -> answered++);
            pool.shutdown();
        }

        void ask(HttpServletRequest request) {
            service(request, null);
        }
    }

    static WeakReference<ClassLoader> run(URL[] path) throws Exception {
        ClassLoader loader =
                new URLClassLoader(path, RequestNames.class.getClassLoader().getParent());
        ((Runnable) loader.loadClass("RequestNames$Loaded").getConstructor().newInstance()).run();
        return new WeakReference<>(loader);
    }

    public static void main(String[] args) throws Exception {
        int requests = Integer.parseInt(args[0]), loaders = Integer.parseInt(args[1]), dropped = 0;
        Servlet servlet = new Servlet();
        Path path = new Path();
        for (path.n = 0; path.n < requests; path.n++)
            servlet.ask(path);
        URL[] here = {RequestNames.class.getProtectionDomain().getCodeSource().getLocation()};
        List<WeakReference<ClassLoader>> loaded = new ArrayList<>();
        for (int i = 0; i < loaders; i++)
            loaded.add(run(here));
        for (int i = 0; i < 100 && dropped < loaders; i++) {
            System.gc();
            Thread.sleep(10);
            dropped = 0;
            for (WeakReference<ClassLoader> l : loaded)
                dropped += l.get() == null ? 1 : 0;
        }
        System.out.println("dropped " + dropped);
    }
}
