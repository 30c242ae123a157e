// SPDX-License-Identifier: Apache-2.0
import java.util.Collections;
import java.util.Set;
import javax.ws.rs.GET;
import javax.ws.rs.Path;
import javax.ws.rs.PathParam;
import javax.ws.rs.core.Application;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.jboss.resteasy.plugins.server.servlet.HttpServletDispatcher;

/** A resource of JAX-RS on Jetty 9. */
public class Resteasy3 {
    @Path("shop/v2/")
    public static class Shop {
        @GET
        @Path("/carts/{owner}/items/{item: [0-9]+}")
        public String item(@PathParam("owner") String owner, @PathParam("item") String item) {
            return owner;
        }

        @GET
        @Path("refused/{item}")
        public String refused(@PathParam("item") String item) {
            throw new IllegalStateException("asked for");
        }
    }

    public static class All extends Application {
        @Override
        public Set<Class<?>> getClasses() {
            return Collections.singleton(Shop.class);
        }
    }

    public static void main(String[] args) throws Exception {
        Server server = new Server(0);
        ServletContextHandler context = new ServletContextHandler(server, "/");
        ServletHolder holder = new ServletHolder(new HttpServletDispatcher());
        holder.setInitParameter("javax.ws.rs.Application", All.class.getName());
        context.addServlet(holder, "/*");
        server.start();
        Gets.all(((ServerConnector) server.getConnectors()[0]).getLocalPort(),
                 "/shop/v2/carts/ann/items/", "/shop/v2/carts/bob/items/", "/shop/v2/refused/",
                 "/nowhere/");
        server.stop();
    }
}
