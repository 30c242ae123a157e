// SPDX-License-Identifier: Apache-2.0
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.support.StaticWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** A controller of Spring on Jetty 9. */
public class Spring4 {
    @Controller
    @RequestMapping("/shop/v2")
    public static class Shop {
        @RequestMapping("/carts/{owner}/items/{item}")
        @ResponseBody
        public String item(@PathVariable("owner") String owner, @PathVariable("item") String item) {
            return owner;
        }

        @RequestMapping("/refused/{item}")
        @ResponseBody
        public String refused(@PathVariable("item") String item) {
            throw new IllegalStateException("asked for");
        }
    }

    public static void main(String[] args) throws Exception {
        StaticWebApplicationContext beans = new StaticWebApplicationContext();
        beans.registerSingleton("mapping", RequestMappingHandlerMapping.class);
        beans.registerSingleton("adapter", RequestMappingHandlerAdapter.class);
        beans.registerSingleton("shop", Shop.class);
        Server server = new Server(0);
        ServletContextHandler context = new ServletContextHandler(server, "/eu");
        context.addServlet(new ServletHolder(new DispatcherServlet(beans)), "/*");
        server.start();
        Gets.all(((ServerConnector) server.getConnectors()[0]).getLocalPort(),
                 "/eu/shop/v2/carts/ann/items/", "/eu/shop/v2/carts/bob/items/",
                 "/eu/shop/v2/refused/", "/eu/nowhere/");
        server.stop();
    }
}
