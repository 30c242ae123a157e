// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * Known objects, compared field by field with the heap dump that the agent
 * tests/agents/jvmpi_dump.c read.
 */
public class JvmpiDump {
    static native long ask(String what, Object o, String className, String field, long n);

    static native void hold(Object o);

    static native long held(Object o);

    interface Marked {
        long MARK = 0x1122334455667788L;
        Object[] SHARED = {"of the interface", null};
    }

    interface Deeper extends Marked {
        int MARK = 99;
        String NAME = new String("deeper");
    }

    abstract static class Base implements Marked {
        static int counter = -5;
        private int hidden = 0x01020304;
        byte b = -1;
        Object up;
        static Object baseStatic = new int[] {7};
    }

    static class Middle extends Base implements Deeper, Comparable<Middle> {
        short s = (short) 0x8899;
        char c = '\uabcd';
        private int hidden = 42;
        long l = Long.MIN_VALUE + 3;

        public int compareTo(Middle other) {
            return 0;
        }
    }

    static class Leaf extends Middle implements Runnable {
        float f = -1.25f;
        double d = Math.PI;
        boolean z = true;
        String text = "leaf";
        Object[] array;
        Leaf self;
        static float staticFloat = 2.5f;
        static double staticDouble = -0.125;
        static boolean staticTrue = true;
        static byte staticByte = -7;
        static char staticChar = 'x';
        static short staticShort = -300;
        static long staticLong = 1L << 40;
        static Leaf staticLeaf;
        final int last = 1;

        public void run() {
        }
    }

    /** Instances are never made. */
    static class Unmade extends Leaf {
        long more;
        byte one;
    }

    static class Empty {
    }

    static int failures, checks;

    static void check(String what, long got, long wanted) {
        checks++;
        if (got != wanted) {
            System.out.println("WRONG " + what + " is " + Long.toHexString(got) + ", not "
                               + Long.toHexString(wanted));
            failures++;
        }
    }

    static long id(Object o) {
        return o == null ? 0 : ask("id", o, null, null, 0);
    }

    static long bits(Class<?> type, Object value) {
        if (type == boolean.class)
            return (Boolean) value ? 1 : 0;
        if (type == byte.class)
            return (Byte) value & 0xff;
        if (type == char.class)
            return (Character) value;
        if (type == short.class)
            return (Short) value & 0xffff;
        if (type == int.class)
            return (Integer) value & 0xffffffffL;
        if (type == long.class)
            return (Long) value;
        if (type == float.class)
            return Float.floatToRawIntBits((Float) value) & 0xffffffffL;
        if (type == double.class)
            return Double.doubleToRawLongBits((Double) value);
        return id(value);
    }

    static int kind(Class<?> type) {
        Class<?>[] kinds = {boolean.class, char.class,  float.class, double.class,
                            byte.class,    short.class, int.class,   long.class};
        for (int i = 0; i < kinds.length; i++)
            if (kinds[i] == type)
                return 4 + i;
        return -1;
    }

    static void compareFields(Object o, Class<?> of, boolean statics, int level) throws Exception {
        for (Field f : of.getDeclaredFields()) {
            if (Modifier.isStatic(f.getModifiers()) != statics)
                continue;
            if (f.getName().equals("checks"))
                continue; // it changes
            f.setAccessible(true);
            boolean left = level == 1 && f.getType().isPrimitive();
            check(of.getName() + "." + f.getName(),
                  ask("value", statics ? of : o, of.getName(), f.getName(), 0),
                  left ? -888888 : bits(f.getType(), f.get(statics ? null : o)));
        }
    }

    static void compareClass(Class<?> c, int level) throws Exception {
        check(c + " type", ask("type", c, null, null, 0), 0x20);
        check(c + " super", ask("pointer", c, null, null, 0),
              id(c.isInterface() ? null : c.getSuperclass()));
        check(c + " loader", ask("pointer", c, null, null, 1), id(c.getClassLoader()));
        check(c + " signers", ask("pointer", c, null, null, 2), id(c.getSigners()));
        if (c.getClassLoader() != null)
            check(c + " domain", ask("pointer", c, null, null, 3), id(c.getProtectionDomain()));
        Class<?>[] interfaces = c.getInterfaces();
        for (int i = 0; i < interfaces.length; i++)
            check(c + " interface " + i, ask("interface", c, null, null, i), id(interfaces[i]));
        check(c + " interfaces", ask("interface", c, null, null, interfaces.length), -1);
        compareFields(null, c, true, level);
    }

    static void compare(Object o, int level) throws Exception {
        Class<?> c = o.getClass();
        if (c.isArray()) {
            Class<?> of = c.getComponentType();
            int n = Array.getLength(o);
            check(c + " length", ask("length", o, null, null, 0), n);
            if (of.isPrimitive()) {
                check(c + " type", ask("type", o, null, null, 0), 0x23);
                check(c + " kind", ask("kind", o, null, null, 0), kind(of));
                check(c + " bytes", ask("record length", o, null, null, 0) > 14 ? 1 : 0,
                      n > 0 && level == 2 ? 1 : 0);
            } else {
                check(c + " type", ask("type", o, null, null, 0), 0x22);
                check(c + " element class", ask("element class", o, null, null, 0), id(of));
            }
            for (int i = 0; i < n; i++)
                if (level == 2 || !of.isPrimitive())
                    check(c + " " + i, ask("element", o, null, null, i), bits(of, Array.get(o, i)));
            return;
        }
        check(c + " instance", ask("type", o, null, null, 0), 0x21);
        check(c + " class", ask("class", o, null, null, 0), id(c));
        for (Class<?> of = c; of != null && of.getName().startsWith("JvmpiDump");
             of = of.getSuperclass())
            compareFields(o, of, false, level);
    }

    static List<Object> objects() {
        List<Object> all = new ArrayList<Object>();
        if (Marked.SHARED.length + Deeper.NAME.length() == 0) // initialised
            return null;
        Leaf leaf = new Leaf();
        leaf.self = leaf;
        leaf.up = new Middle();
        leaf.array = new Object[] {leaf, null, "text", new int[0], new Object[2][3]};
        Leaf.staticLeaf = leaf;
        all.add(leaf);
        all.add(leaf.up);
        all.add(leaf.array);
        all.add(leaf.array[4]);
        all.add(new boolean[] {true, false, true});
        all.add(new byte[] {1, -2, 3});
        all.add(new char[] {'a', '\u1234'});
        all.add(new short[] {-1, 258});
        all.add(new int[] {0x01020304, -1});
        all.add(new long[] {0x0102030405060708L, -1});
        all.add(new float[] {1.5f, Float.NaN});
        all.add(new double[] {-0.0, 1e300});
        all.add(new String[] {"x"});
        all.add(new Class<?>[] {int.class, void.class, String[].class, JvmpiDump.class,
                                Unmade.class});
        all.add(new int[2][2]);
        all.add(new Empty());
        all.add(new byte[100000]);
        return all;
    }

    static void level(int level, List<Object> all) throws Exception {
        check("answer", ask("dump", all.get(0), null, null, level), 0);
        check("faults", ask("faults", null, null, null, 0), 0);
        int is = (int) ask("level", null, null, null, 0);
        check("level", is, level < 0 ? 2 : level);
        check("traces", ask("traces", null, null, null, 0) >= 3 ? 1 : 0, 1);
        for (Object o : all)
            compare(o, is);
        Class<?>[] classes = {JvmpiDump.class, Leaf.class,   Middle.class, Base.class,
                              Marked.class,    Deeper.class, Unmade.class, Empty.class};
        for (Class<?> c : classes)
            compareClass(c, is);
        for (Class<?> c : new Class<?>[] {int.class, void.class, int[].class, String[].class,
                                          Runnable.class, String.class})
            check(c + "", ask("type", c, null, null, 0), 0x20);
        check("leaves", ask("instances", Leaf.class, null, null, 0), 1);
        check("middles", ask("instances", Middle.class, null, null, 0), 1);
        check("unmade", ask("instances", Unmade.class, null, null, 0), 0);
        if (is == 2)
            for (Object o : all)
                check("object dump of " + o.getClass(),
                      ask("same as object dump", o, null, null, 0), 1);
        if (is == 2)
            for (int i = 1; i < classes.length; i++) // of JvmpiDump itself statics change
                check("object dump of " + classes[i],
                      ask("same as object dump", classes[i], null, null, 0), 1);
        System.out.println("level " + level + " " + checks + " checks, " + failures + " wrong");
    }

    static void roots(Object local, Object global, Object used) {
        check("java frame", ask("root", local, "JvmpiDump", null, 3) > 0 ? 1 : 0, 1);
        check("jni local", ask("root", ((List<?>) local).get(0), "JvmpiDump", null, 2) > 0 ? 1 : 0,
              1);
        check("jni global", ask("root", global, null, null, 1), 1);
        check("jni reference", held(global), 1);
        check("monitor", ask("root", used, null, null, 7), 1);
        check("thread", ask("root", Thread.currentThread(), null, null, 6), 1);
        for (int type : new int[] {1, 2, 3, 4, 5, 6, 7, 255})
            System.out.println("roots " + type + " "
                               + ask("roots of type", null, null, null, type));
    }

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("jvmpidump");
        final List<Object> all = objects();
        final Object global = new Empty(), used = new Empty();
        Class.forName("JvmpiDump$Unmade");
        hold(global);
        final Object[] other = {null};
        Thread waiter = new Thread() {
            public void run() {
                synchronized (used) {
                    other[0] = used;
                    try {
                        Thread.sleep(100000);
                    } catch (InterruptedException end) {
                        return;
                    }
                }
            }
        };
        waiter.start();
        while (other[0] == null)
            Thread.sleep(1);
        level(2, all);
        roots(all, global, used);
        level(1, all);
        level(-1, all);
        sizes();
        waiter.interrupt();
        System.out.println("done " + failures);
    }

    static void sizes() {
        // by the class's instances, or by its fields alone: 16 bytes of header or 12, then what
        // javac's order does not change
        long object = ask("size", Object.class, null, null, 0),
             empty = ask("size", Empty.class, null, null, 0);
        check("size of Empty", empty, object);
        long leaf = ask("size", Leaf.class, null, null, 0),
             unmade = ask("size", Unmade.class, null, null, 0);
        check("size of Unmade", unmade > leaf && unmade <= leaf + 16 && unmade % 8 == 0 ? 1 : 0, 1);
        check("size of int[]", ask("size", int[].class, null, null, 0), 0);
    }
}
