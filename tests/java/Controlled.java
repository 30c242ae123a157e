// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** A thread to be controlled; each line of input prints what it did last. */
public class Controlled {
    static volatile int result, rounds;
    static volatile String name, thrown = "nothing";
    static volatile boolean interrupted;
    static volatile Object[] kept = {"first", new IllegalStateException()};

    static int work(int n) {
        int doubled = n * 2;
        int sum = add(doubled, 1);
        return sum;
    }

    static int add(int a, int b) {
        int c = a + b;
        return c;
    }

    static String named() {
        return Renamed.name();
    }

    enum Color {
        RED, GREEN {
        }
    }

    static volatile Object painted;

    /** Local variables with names that members of the command's JSON have, too. */
    static void paint(String name, Color id) {
        Object value = id;
        painted = value;
    }

    static class Renamed {
        static String name() {
            return "one";
        }
    }

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(() -> {
            while (true) {
                try {
                    result = work(7);
                    name = named();
                    paint("door", Color.GREEN);
                    rounds++;
                    Thread.sleep(2);
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (Throwable t) {
                    thrown = t.getClass().getName();
                    return;
                }
            }
        }, "the worker");
        worker.setDaemon(true);
        worker.start();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
            System.out.println(result + " " + name + " " + rounds + " " + interrupted + " " + thrown);
        }
    }
}
