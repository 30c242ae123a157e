// SPDX-License-Identifier: Apache-2.0
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.function.IntSupplier;

/** Creates n objects of each class by methods that the JIT replaces, and by lambdas. */
public class Replaced {
    static class Built {
        long a, b;
    }

    static class Cloned implements Cloneable {
        long a, b;

        Object copy() throws CloneNotSupportedException {
            return super.clone();
        }
    }

    static class Element {}

    static class Item {}

    static volatile Object last;

    static void lambdas(int n) {
        for (int i = 0; i < n; i++) {
            int k = i;
            IntSupplier s = () -> k;
            last = s;
        }
    }

    static void built(int n) throws Throwable {
        MethodHandle h =
                MethodHandles.lookup()
                        .findConstructor(Built.class, MethodType.methodType(void.class));
        for (int i = 0; i < n; i++)
            last = (Built) h.invokeExact();
    }

    static void cloned(int n) throws Exception {
        Cloned c = new Cloned();
        for (int i = 1; i < n; i++)
            last = c.copy();
    }

    static void copies(int n) {
        Element[] e = {new Element()};
        for (int i = 1; i < n; i++)
            last = Arrays.copyOf(e, 2);
    }

    static void items(int n) {
        for (int i = 0; i < n; i++)
            last = Array.newInstance(Item.class, 2);
    }

    public static void main(String[] args) throws Throwable {
        int n = Integer.parseInt(args[0]);
        lambdas(n);
        built(n);
        cloned(n);
        copies(n);
        items(n);
        System.out.println("done");
    }
}
