// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.Session;
import org.apache.catalina.session.StandardSession;
import org.apache.catalina.startup.Tomcat;

/**
 * Tomcat 9 or 10 on loopback, which files are asked of by four threads, and which keeps sessions.
 * Arguments: FOLDER REQUESTS.
 */
public class ServesFiles {
    static Tomcat tomcat;

    public static void main(String[] args) throws Exception {
        int requests = Integer.parseInt(args[1]);
        Context context = serve(new File(args[0]));
        int port = tomcat.getConnector().getLocalPort();
        Thread[] clients = new Thread[4];
        long[] bytes = new long[clients.length];
        for (int t = 0; t < clients.length; t++) {
            int me = t;
            clients[t] = new Thread(() -> {
                for (int i = 0; i < requests / clients.length; i++)
                    bytes[me] += get(port, i % 55);
            });
            clients[t].start();
        }
        for (int i = 0; i < 2000; i++) {
            Session s = context.getManager().createSession(null);
            ((StandardSession) s)
                    .setAttribute("cart", new String[] {"item " + i, "item " + (i + 1)});
        }
        for (Thread t : clients)
            t.join();
        System.out.println("bytes " + (bytes[0] + bytes[1] + bytes[2] + bytes[3]));
    }

    /** Units of UnderLoad: requests. Arguments: FOLDER CLIENTS. */
    public static Runnable[] units(String[] args) throws Exception {
        serve(new File(args[0]));
        int port = tomcat.getConnector().getLocalPort();
        Runnable[] units = new Runnable[Integer.parseInt(args[1])];
        for (int t = 0; t < units.length; t++)
            units[t] = new Runnable() {
                int page;

                @Override
                public void run() {
                    get(port, page++ % 55);
                }
            };
        return units;
    }

    static Context serve(File folder) throws Exception {
        new File(folder, "pages").mkdirs();
        for (int i = 0; i < 50; i++)
            Files.write(new File(folder, "pages/" + i + ".txt").toPath(), new byte[100 * (i + 1)]);
        tomcat = new Tomcat();
        tomcat.setBaseDir(folder.getPath());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", new File(folder, "pages").getPath());
        Tomcat.addServlet(context, "default", "org.apache.catalina.servlets.DefaultServlet");
        context.addServletMappingDecoded("/", "default");
        tomcat.start();
        return context;
    }

    /** Every eleventh page is missing. */
    static long get(int port, int page) {
        try {
            HttpURLConnection c =
                    (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/" + page + ".txt")
                            .openConnection();
            long n = 0;
            try (InputStream in =
                         c.getResponseCode() == 200 ? c.getInputStream() : c.getErrorStream()) {
                byte[] buffer = new byte[8192];
                for (int got; (got = in.read(buffer)) >= 0;)
                    n += got;
            }
            return n;
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }
}
