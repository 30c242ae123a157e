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

static void wrong_parameters_are_reported(void **state)
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

/* Parses valid options. The caller releases the result. */
static struct options parsed(const char *text)
{
    struct options o = {0};
    struct buf why = BUF(4096);
    if (options_parse(&o, text, &why) != 0)
        fail_msg("%s: %s", text, buf_str(&why));
    buf_release(&why);
    return o;
}

static bool is_chosen(const struct options *o, enum option which)
{
    const char *text = o->v[which].text;
    return text && strcmp(text, "n") != 0;
}

/* Returns whether always=y accepts an option of the table. Writes the words that request it. */
static bool ask_for(enum option which, char *ret, size_t size)
{
    const struct option_row *row = &option_table[which];
    const char *refused = row->always_refuses ? row->always_refuses : "",
               *value = row->kind == OPTION_YES_NO ? "y" : row->bare;
    if (row->kind == OPTION_WORD) { /* the last word that is not refused */
        value = NULL;
        for (const char *at = row->values; *at; at += strcspn(at, "|"), at += *at == '|')
            if (!option_has_word(refused, at, strcspn(at, "|")))
                value = at;
    }
    if (strcmp(refused, "*") == 0 || (value && option_has_word(refused, value, strlen(value))))
        return false;
    value = value ? value : row->separator == ';' ? "a.B:12 {x}" : "a.B.c";
    snprintf(ret, size, "always=y,%s=%.*s%s", row->name, (int)strcspn(value, "|"), value,
             which == OPT_PARK ? ",monitor=y" : "");
    return true;
}

/* Every capture of the table replaces the ones that --always records by default. */
static void always_records_what_is_chosen(void **state)
{
    int chosen = 0;
    struct options o = parsed("always=y");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].gives)
            assert_int_equal(is_chosen(&o, (enum option)i), option_table[i].always_value != NULL);
    options_release(&o);
    for (int i = 0; i < OPTION_COUNT; i++) {
        char text[80];
        if (!option_table[i].gives || !ask_for((enum option)i, text, sizeof(text)))
            continue;
        o = parsed(text);
        assert_true(is_chosen(&o, (enum option)i));
        if (i != OPT_ALLOC && is_chosen(&o, OPT_ALLOC))
            fail_msg("%s: allocations too", text);
        if (i != OPT_REQUESTS && i != OPT_CPU && is_chosen(&o, OPT_CPU))
            fail_msg("%s: samples too", text);
        options_release(&o);
        chosen++;
    }
    assert_in_range(chosen, 10, OPTION_COUNT);
    o = parsed("always=y,threads=n");
    assert_false(is_chosen(&o, OPT_THREADS));
    assert_true(is_chosen(&o, OPT_ALLOC));
    options_release(&o);
}

static void heap_is_recorded_when_nothing_is_chosen(void **state)
{
    static const struct {
        const char *text, *heap;
    } rows[] = {{"depth=8", "all"}, {"monitor=n", "all"},     {"monitor=y", NULL},
                {"format=r", NULL}, {"log=a.B:12 {x}", NULL}, {"cpu=samples", NULL},
                {"always=y", NULL}, {"alloc=sampled", NULL}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct options o = parsed(rows[i].text);
        const char *heap = o.v[OPT_HEAP].text;
        if (rows[i].heap ? !heap || strcmp(heap, rows[i].heap) != 0 : heap != NULL)
            fail_msg("%s: heap=%s", rows[i].text, heap ? heap : "n");
        options_release(&o);
    }
}

static void always_refuses_what_counts_from_the_beginning(void **state)
{
    static const char *const rows[][2] = {{"cpu=samples,cpu=times", "cpu=times"},
                                          {"cpu=wall", "cpu=wall"},
                                          {"heap=all", "heap"},
                                          {"heap=dump", "heap=dump"},
                                          {"alloc=exact", "alloc=exact"},
                                          {"live=exact", "live"},
                                          {"cover=y", "cover"},
                                          {"exceptions=counts", "exceptions"},
                                          {"net=h:1", "net=h:1"},
                                          {"duration=5s", "duration=5s"},
                                          {"jfr=default", "jfr"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct options o = {0};
        char text[80], want[200];
        struct buf why = BUF(4096);
        snprintf(text, sizeof(text), "always=y,%s", rows[i][0]);
        snprintf(want, sizeof(want), "keeps the last minutes: %s ", rows[i][1]);
        assert_int_equal(options_parse(&o, text, &why), -EINVAL);
        if (!strstr(buf_str(&why), want))
            fail_msg("%s: %s", text, buf_str(&why));
        buf_release(&why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_have_one_form),
        cmocka_unit_test(parameters_match_as_java_writes_them),
        cmocka_unit_test(malformed_descriptors_match_nothing),
        cmocka_unit_test(wrong_parameters_are_reported),
        cmocka_unit_test(methods_are_written_as_in_java),
        cmocka_unit_test(commas_between_types_end_no_option),
        cmocka_unit_test(always_records_what_is_chosen),
        cmocka_unit_test(heap_is_recorded_when_nothing_is_chosen),
        cmocka_unit_test(always_refuses_what_counts_from_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
