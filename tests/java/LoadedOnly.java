// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads its class Work in new class loaders of two classes, links it in those of one of them only,
 * and lets all be unloaded. Arguments: LOADED LINKED.
 */
public class LoadedOnly {
    public static class Work { }

    static class Loading extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass("LoadedOnly$Work", bytes, 0, bytes.length);
        }
    }

    static class Linking extends Loading { }

    public static void main(String[] args) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = LoadedOnly.class.getResourceAsStream("LoadedOnly$Work.class")) {
            for (int b; (b = in.read()) >= 0;)
                out.write(b);
        }
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            Loading loader = new Loading();
            loader.define(out.toByteArray());
            loaders.add(new WeakReference<>(loader));
        }
        for (int i = Integer.parseInt(args[1]); i > 0; i--) {
            Linking loader = new Linking();
            loader.define(out.toByteArray()).getDeclaredConstructor().newInstance();
            loaders.add(new WeakReference<>(loader));
        }
        long last = System.nanoTime() + 10_000_000_000L, gone;
        do {
            System.gc();
            gone = loaders.stream().filter(r -> r.get() == null).count();
        } while (gone < loaders.size() && System.nanoTime() < last);
        System.out.println("unloaded " + gone + " of " + loaders.size());
    }
}
