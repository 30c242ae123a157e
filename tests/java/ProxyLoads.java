// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Proxy;

/** Makes a proxy of an interface of its own, and calls it. */
public class ProxyLoads {
    interface Speaks {
        int speak();
    }

    public static void main(String[] args) {
        Speaks s = (Speaks) Proxy.newProxyInstance(ProxyLoads.class.getClassLoader(),
                                                   new Class<?>[] {Speaks.class},
                                                   (proxy, method, arguments) -> 4);
        System.out.println(s.speak());
    }
}
