// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Links a class whose verification calls the program: while the VM holds the lock of a class that
 * is linked, its loader calls marker(), whose METHOD_ENTRY the agent (tests/agents/jvmpi_switch.c)
 * handles by enabling events.
 */
public class JvmpiSwitch {
    static class Base { }
    static class Derived extends Base { }

    /** The verifier asks the loader for both classes, because a Derived is returned for a Base. */
    public static class Verified {
        static Base of(Derived d) {
            return d;
        }
    }

    static class Loader extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("JvmpiSwitch$"))
                return super.loadClass(name, resolve);
            if (name.equals("JvmpiSwitch$Base"))
                marker();
            Class<?> there = findLoadedClass(name);
            byte[] code = there == null ? read(name) : null;
            return there != null ? there : defineClass(name, code, 0, code.length);
        }
    }

    static byte[] read(String name) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] some = new byte[4096];
        try (InputStream in = JvmpiSwitch.class.getResourceAsStream(name + ".class")) {
            for (int n; (n = in.read(some)) > 0; )
                out.write(some, 0, n);
        } catch (java.io.IOException e) {
            throw new RuntimeException(e);
        }
        return out.toByteArray();
    }

    static void marker() {
    }

    /** Its code is changed while it runs. */
    static void held() {
        methods(true);
    }

    static native boolean switched();

    static native void methods(boolean on);

    static native void report();

    static volatile Object kept;

    /** A method of its own: the code of main is not changed while it runs. */
    static void allocate() {
        for (int i = 0; i < 100; i++)
            kept = new int[i];
    }

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("jvmpiswitch");
        Class.forName("JvmpiSwitch$Verified", true, new Loader());
        while (!switched())
            Thread.sleep(1);
        allocate();
        methods(false);
        held();
        report();
    }
}
