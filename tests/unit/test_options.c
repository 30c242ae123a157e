/* SPDX-License-Identifier: Apache-2.0 */
#include "options/names.h"
#include "options/options.h"
#include "options/signature.h"

#include "tests.h"

#include <string.h>

static void normalizes(const char *list, const char *want)
{
    char text[256];
    snprintf(text, sizeof(text), "%s", list);
    option_list_normalize(text, ':');
    assert_string_equal(text, want);
}

static void lists_have_one_form(void **state)
{
    normalizes("a.B.c", "a.B.c");
    normalizes("a.B.c,d.E::f", "a.B.c:d.E.f");
    normalizes("a.B.c ;  d.E", "a.B.c:d.E");
    normalizes("a.B.c: d.E ,f.G", "a.B.c:d.E:f.G");
    normalizes("implements a.B , a.C", "implements a.B:a.C");
    normalizes("a.B.c( int , String [] ),d.E", "a.B.c(int,String[]):d.E");
    normalizes("a.B.c(java.util.Map<String, List<int[]>> , ..)", "a.B.c(java.util.Map,..)");
    normalizes("a.B.c(String...), a.B.d(...)", "a.B.c(String[]):a.B.d(..)");
    normalizes("a.B.c(ILjava/lang/String;)V;d", "a.B.c(ILjava/lang/String;)V:d");
    normalizes("a.B.c(int x, long y)", "a.B.c(int x,long y)");
    normalizes("a.B.c(int", "a.B.c(int");
    normalizes("", "");
    normalizes("a.B.c,,d.E", "a.B.c:d.E");
    normalizes(", a.B.c(int);;d.E , , f.G,", "a.B.c(int):d.E:f.G");
    normalizes(",;", ":");
    normalizes(" a.B.c(int) ", "a.B.c(int)");
    normalizes(" a.B.c (int), d.E (..) ", "a.B.c(int):d.E(..)");
    normalizes("a.B.two words", "a.B.two words");
}

static bool matches(const char *parameters, const char *descriptor)
{
    char text[256];
    snprintf(text, sizeof(text), "%s", parameters);
    option_list_normalize(text, ':');
    assert_null(signature_fault(text, strlen(text)));
    return signature_matches(text, strlen(text), (struct str){descriptor, strlen(descriptor)});
}

static void parameters_match_as_java_writes_them(void **state)
{
    static const char *const every = "(ZBCSIJFDLjava/lang/String;[[J[Ljava/util/Map$Entry;)V";
    assert_true(matches("()", "()V"));
    assert_false(matches("()", "(I)V"));
    assert_true(matches("(int)", "(I)J"));
    assert_false(matches("(int)", "()I"));
    assert_false(matches("(int)", "(II)I"));
    assert_false(matches("(int, int)", "(I)I"));
    assert_false(matches("(int)", "(J)I"));
    assert_false(matches("(int)", "([I)I"));
    assert_true(matches("(boolean, byte, char, short, int, long, float, double, String, long[][], "
                        "Map.Entry[])",
                        every));
    assert_true(matches("(..)", every) && matches("(..)", "()V"));
    assert_true(matches("(boolean, ..)", every) && matches("(.., Entry[])", every));
    assert_true(matches("(.., String, ..)", every));
    assert_false(matches("(.., Integer, ..)", every));
    assert_false(matches("(int, ..)", every));
    assert_true(matches("(String)", "(Ljava/lang/String;)V"));
    assert_true(matches("(java.lang.String)", "(Ljava/lang/String;)V"));
    assert_true(matches("(lang.String)", "(Ljava/lang/String;)V"));
    assert_false(matches("(ing)", "(Ljava/lang/String;)V"));
    assert_false(matches("(String)", "([Ljava/lang/String;)V"));
    assert_true(matches("(String...)", "([Ljava/lang/String;)V"));
    assert_true(matches("(List<String>, int)", "(Ljava/util/List;I)V"));
    assert_true(matches("(java.util.Map$Entry)", "(Ljava/util/Map$Entry;)V"));
    assert_true(matches("(java.util.Map.Entry)", "(Ljava/util/Map$Entry;)V"));
    assert_true(matches("(*)", "(I)V"));
    assert_true(matches("(*, *)", "(I[J)V"));
    assert_false(matches("(*)", "()V"));
    assert_true(matches("(java.util.*)", "(Ljava/util/List;)V"));
    assert_true(matches("(L*t)", "(Ljava/util/List;)V"));
    assert_true(matches("(I)V", "(I)V"));
    assert_false(matches("(I)V", "(I)J"));
    assert_false(matches("(I)", "(I)V")); /* a class named I */
    assert_true(matches("(I)", "(Lp/I;)V"));
}

static void malformed_descriptors_match_nothing(void **state)
{
    static const char *const all[] = {"", "(", "I", "(I", "(L", "(Lx", "([", "(V)V", "(?)V", "()"};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        assert_false(matches("(int)", all[i]));
        (void)matches("(.., int, ..)", all[i]);
    }
}

static void wrong_parameters_are_told(void **state)
{
    static const char *const wrong[] = {"(",       "(int",      "(int,)", "(,int)",
                                        "(int x)", "(int)V",    "(I)",    "(Ljava/lang/String;)",
                                        "(int))",  "(int)(I)V", "(.)",    "(a..b)",
                                        "([]",     "([])",      "(I)X",   "(Ljava.lang.String;)V",
                                        "()",      "(int[)",    "(a/b)"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        bool right = strcmp(wrong[i], "(I)") == 0 || strcmp(wrong[i], "()") == 0;
        const char *fault = signature_fault(wrong[i], strlen(wrong[i]));
        if (right != !fault)
            fail_msg("%s: %s", wrong[i], fault ? fault : "no fault");
    }
}

static void methods_are_written_as_in_java(void **state)
{
    static const struct {
        const char *name, *descriptor, *want;
    } rows[] = {{"add", "([BLjava/lang/String;)I", "int add(byte[], java.lang.String)"},
                {"run", "()V", "void run()"},
                {"f", "[[D", "double[][] f"},
                {"", "Ljava/util/Map$Entry;", "java.util.Map$Entry"},
                {"x", "(", "x ("},
                {"x", "(I)", "x (I)"},
                {"x", "nonsense", "x nonsense"}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf b = BUF(256);
        signature_put(&b, rows[i].name, rows[i].descriptor);
        assert_string_equal(buf_str(&b), rows[i].want);
        buf_release(&b);
    }
    struct buf b = BUF(256);
    signature_put_parameters(&b, "(IJ[Lp/C;)V");
    assert_string_equal(buf_str(&b), "(int, long, p.C[])");
    buf_release(&b);
}

/* A comma in an agent's option separates options, but not between the types of a method. */
static void commas_between_types_end_no_option(void **state)
{
    struct options o = {0};
    struct buf why = BUF(4096);
    assert_int_equal(
        options_parse(&o, "trace=a.B.c(int,long),exclude=a.B.d(int\\,int):e.F,format=r", &why), 0);
    assert_string_equal(o.v[OPT_TRACE].text, "a.B.c(int,long)");
    assert_string_equal(o.v[OPT_EXCLUDE].text, "a.B.d(int,int):e.F");
    options_release(&o);
    assert_int_equal(options_parse(&o, "trace=a.B.c(int,format=r", &why), -EINVAL);
    assert_string_equal(buf_str(&why), "trace=a.B.c(int,format=r: the parenthesis after the name "
                                       "is not closed");
    buf_release(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_have_one_form),
        cmocka_unit_test(parameters_match_as_java_writes_them),
        cmocka_unit_test(malformed_descriptors_match_nothing),
        cmocka_unit_test(wrong_parameters_are_told),
        cmocka_unit_test(methods_are_written_as_in_java),
        cmocka_unit_test(commas_between_types_end_no_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
