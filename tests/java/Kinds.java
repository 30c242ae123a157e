// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** Calls with values of kinds that conditions compare by what is printed of them. */
public class Kinds {
    static class Holder {
        Optional<String> some = Optional.of("x"), none = Optional.empty();
        List<String> list = Arrays.asList("a", "b");
        char letter = '\'';
        Character boxed = '\n';
    }

    static int letter(char c) {
        return c;
    }

    static Object boxed(Object o) {
        return o;
    }

    static String text(String s) {
        return s;
    }

    static Object optional(Optional<?> o) {
        return o;
    }

    static int held(Holder h, int n) {
        return n; // logged
    }

    static double real(double d) {
        return d;
    }

    static char[] letters(char[] c) {
        return c;
    }

    public static void main(String[] args) {
        for (char c : new char[] {'a', '"', '\'', '\\', '\n', '\u00e9'})
            letter(c);
        for (Object o : new Object[] {'a', 'b', "a", 5})
            boxed(o);
        for (String s : new String[] {"q\"uo\\te", "tab\tline\n", "\u00fc \ud83d\ude00", "'"})
            text(s);
        for (Optional<?> o : Arrays.asList(Optional.of("x"), Optional.of(5), Optional.empty()))
            optional(o);
        held(new Holder(), 1);
        for (double d : new double[] {100, 1e7, 1e15, 1e16, 1e300, -0.0, 0.001, 1e-5, 0.1, 4.9e-324})
            real(d);
        letters(new char[] {'a', '\'', '"', '\n'});
    }
}
