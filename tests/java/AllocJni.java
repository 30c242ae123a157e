// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Objects that no `new` of the program makes: by every function of JNI, by reflection, clone and
 * deserialization, in several threads. Says how many, "CLASS METHOD OBJECTS". Arguments: LIBRARY N
 * THREADS.
 */
public class AllocJni {
    static class Plain {
        final int a;

        Plain(int a) {
            this.a = a;
        }
    }

    static class Throws {
        Throws(int i) {
            if (i % 2 == 0) {
                throw new IllegalStateException();
            }
        }
    }

    static class Called {
    }

    static class Reflected {
        static Reflected instance() {
            return new Reflected();
        }
    }

    static class Stored implements Serializable {
        private static final long serialVersionUID = 1;
        final long[] numbers = {1, 2, 3};
        Stored next;
    }

    static class Cloned implements Cloneable {
        Object copy() throws CloneNotSupportedException {
            return clone();
        }
    }

    static class Inner {
    }

    /** The first one's making initializes the class, which makes another class's the same way. */
    static class Bare {
        static final Object FIRST = bare(Inner.class);
    }

    static volatile Object sink;
    static Object unsafe;
    static Method bare;
    static MethodHandle bareHandle;

    static native void objects(Class<?> plain, Class<?> failing, int n);

    static native void arrays(Class<?> plain, int n);

    static native void strings(int n);

    static native void calls(int n);

    static Object made() {
        return new Called();
    }

    static void reflection(int n) throws Exception {
        Constructor<Reflected> c = Reflected.class.getDeclaredConstructor();
        Method m = Reflected.class.getDeclaredMethod("instance");
        for (int i = 0; i < n; i++) {
            sink = c.newInstance();
            sink = m.invoke(null);
        }
    }

    static void cloning(int n) throws Exception {
        Cloned c = new Cloned();
        int[][] matrix = new int[2][];
        for (int i = 0; i < n; i++) {
            sink = c.copy();
            sink = matrix.clone();
        }
    }

    static void storing(int n) throws Exception {
        Stored s = new Stored();
        s.next = new Stored();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(s);
        }
        for (int i = 0; i < n; i++) {
            try (ObjectInputStream in =
                         new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
                sink = in.readObject();
            }
        }
    }

    /** sun.misc.Unsafe.allocateInstance, which no constructor follows. */
    static Object bare(Class<?> c) {
        try {
            return bare.invoke(unsafe, c);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    static void findBare() throws Exception {
        Class<?> c = Class.forName("sun.misc.Unsafe");
        Field f = c.getDeclaredField("theUnsafe");
        f.setAccessible(true);
        unsafe = f.get(null);
        bare = c.getMethod("allocateInstance", Class.class);
        bareHandle = MethodHandles.lookup().unreflect(bare).bindTo(unsafe);
    }

    static void bareObjects(int n) throws Exception {
        for (int i = 0; i < n; i++) {
            sink = bare(Bare.class);
            try {
                sink = bareHandle.invoke(Bare.class);
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }
    }

    static void truth(String name, String method, long objects) {
        System.out.println(name + " " + method + " " + objects);
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        findBare();
        int n = Integer.parseInt(args[1]), threads = Integer.parseInt(args[2]);
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            Thread thread = new Thread(() -> {
                try {
                    objects(Plain.class, Throws.class, n);
                    arrays(Plain.class, n);
                    strings(n);
                    calls(n);
                    reflection(n);
                    cloning(n);
                    bareObjects(n);
                    storing(n / 10);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread t : all) {
            t.join();
        }
        long k = (long) n * threads;
        truth("AllocJni$Plain", "objects", 4 * k);
        truth("AllocJni$Throws", "objects", k);
        truth("AllocJni$Plain[]", "arrays", k);
        for (String type : "boolean byte char short int long float double".split(" ")) {
            truth(type + "[]", "arrays", k);
        }
        truth("java.lang.String", "strings", 2 * k);
        truth("AllocJni$Called", "made", k);
        truth("AllocJni$Reflected", "*", 2 * k);
        truth("AllocJni$Cloned", "copy", k);
        truth("AllocJni$Cloned", "cloning", threads);
        truth("int[][]", "cloning", k + threads);
        truth("AllocJni$Bare", "*", 2 * k);
        truth("AllocJni$Inner", "*", 1);
        truth("AllocJni$Stored", "*", 2 * (n / 10) * (long) threads + 2 * threads);
    }
}
