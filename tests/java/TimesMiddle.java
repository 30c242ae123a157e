// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Does what its input says, one word in a line: "enter" calls one level deeper, "leave" returns
 * from it, a number calls inner so often.
 */
public class TimesMiddle {
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    static int sink;

    static int inner(int x) {
        for (int i = 0; i < 3; i++)
            x = x * 31 + i;
        return x;
    }

    static void work(int n) {
        for (int i = 0; i < n; i++)
            sink = inner(sink);
    }

    static void level(int depth) throws Exception {
        System.out.println("in " + depth);
        for (String line; (line = IN.readLine()) != null && !line.equals("leave");) {
            if (line.equals("enter"))
                level(depth + 1);
            else
                work(Integer.parseInt(line));
            System.out.println("done " + line);
        }
    }

    public static void main(String[] args) throws Exception {
        level(0);
        System.out.println("end");
    }
}
