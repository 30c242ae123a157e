// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.util.*;

/**
 * Probed CLASS,... PACK...: for each pack defines its classes and runs main of those named; then
 * prints what the probes counted, by method: hits/entered/left/objects.
 */
public class Probed extends ClassLoader {
    final Map<String, byte[]> classes = new HashMap<>();

    Probed(String file) throws IOException {
        super(Probed.class.getClassLoader());
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(file)))) {
            for (;;) {
                byte[] b = new byte[in.readInt()];
                in.readFully(b);
                classes.put(name(b), b);
            }
        } catch (EOFException e) {
            return;
        }
    }

    static String name(byte[] b) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(b));
        in.skipBytes(8);
        Object[] pool = new Object[in.readUnsignedShort()];
        for (int i = 1; i < pool.length; i++)
            switch (in.readByte()) {
            case 1: pool[i] = in.readUTF(); break;
            case 3:
            case 4:
            case 9:
            case 10:
            case 11:
            case 12:
            case 17:
            case 18:
                in.skipBytes(4);
                break;
            case 5: case 6: in.skipBytes(8); i++; break;
            case 7: pool[i] = in.readUnsignedShort(); break;
            case 15: in.skipBytes(3); break;
            default: in.skipBytes(2);
            }
        in.skipBytes(2);
        return ((String) pool[(Integer) pool[in.readUnsignedShort()]]).replace('/', '.');
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] b = classes.get(name);
        if (b == null)
            throw new ClassNotFoundException(name);
        return defineClass(name, b, 0, b.length);
    }

    public static void main(String[] a) throws Exception {
        for (int i = 1; i < a.length; i++) {
            Probed loader = new Probed(a[i]);
            for (String name : a[0].split(","))
                loader.loadClass(name)
                        .getMethod("main", String[].class)
                        .invoke(null, (Object) new String[0]);
            System.out.println("counts " + JvmscopeTestProbe.take());
        }
    }
}
