// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;

/**
 * An ordinary class and two hidden ones run the same code, and an ordinary and a hidden one other
 * code: once, or with an argument for each line of standard input.
 */
public class HiddenWork {
    static int total;
    int other;

    public static class Adds implements Runnable {
        @Override
        public void run() {
            total += 1; // adds
        }
    }

    public static class Idle implements Runnable {
        @Override
        public void run() {
            Thread.yield(); // idle
        }
    }

    static Runnable hide(Class<?> c) throws Exception {
        try (InputStream in = HiddenWork.class.getResourceAsStream(c.getName() + ".class")) {
            MethodHandles.Lookup lookup = MethodHandles.lookup().defineHiddenClass(in.readAllBytes(), true,
                    MethodHandles.Lookup.ClassOption.NESTMATE);
            return (Runnable) lookup.lookupClass().getDeclaredConstructor().newInstance();
        }
    }

    static void setOther() {
        new HiddenWork().other = 1; // other
    }

    public static void main(String[] args) throws Exception {
        Runnable[] all = {new Adds(), hide(Adds.class), hide(Adds.class), new Idle(), hide(Idle.class)};
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        if (args.length > 0)
            System.out.println("ready");
        while (args.length == 0 || in.readLine() != null) {
            setOther();
            for (Runnable r : all)
                r.run();
            System.out.println("done");
            if (args.length == 0)
                return;
        }
    }
}
