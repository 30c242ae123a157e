/* SPDX-License-Identifier: Apache-2.0 */
/* Native walks and names in this process, with known callers. */
#include "base/clock.h"
#include "tests.h"
#include "unwind/cfi.h"
#include "unwind/internal.h"
#include "unwind/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { FRAMES = 64 };

static struct native_cache_entry cache[NATIVE_CACHE_SIZE];
static struct walker walker;
static struct walk_frame frames[FRAMES];
static unsigned count;
static struct walk_end end;
static struct sigaction guards[2];

static void on_signal(int number, siginfo_t *info, void *context)
{
    count = walk_stack(&walker, context, NULL, WALK_WITH_NATIVE, frames, FRAMES, &end);
}

static int set_up(void **state)
{
    static struct hotspot_layout layout;
    walker = (struct walker){.arch = &ARCH_HERE, .native_cache = cache};
    walker.layout = layout;
    walker.code.layout = &walker.layout;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    if (memory_guard_init() < 0)
        return -1;
    sigaction(SIGSEGV, NULL, &guards[0]);
    sigaction(SIGBUS, NULL, &guards[1]);
    return sigaction(SIGUSR1, &action, NULL) < 0 || !modules_refresh();
}

/* cmocka installs its own handlers before each test. */
static void guard(void)
{
    sigaction(SIGSEGV, &guards[0], NULL);
    sigaction(SIGBUS, &guards[1], NULL);
}

/* Finds a function of libc itself, because a sanitizer puts others before it. */
static uint64_t libc_function(const char *name)
{
    return (uint64_t)(uintptr_t)dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
}

static bool has(const char *name)
{
    struct symbols *s = symbols_new();
    bool found = false;
    for (unsigned i = 0; i < count; i++) {
        struct symbol_place p;
        found = found || (symbols_find(s, walk_id_pc(frames[i].id) - 1, &p) == 0 && p.name &&
                          strcmp(p.name, name) == 0);
    }
    symbols_free(s);
    return found;
}

__attribute__((noinline)) static int callback_of_sort(const void *a, const void *b)
{
    if (count == 0)
        raise(SIGUSR1);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int sorts_numbers(int n)
{
    int numbers[50];
    for (int i = 0; i < 50; i++)
        numbers[i] = (i * 7 + n) % 50;
    qsort(numbers, 50, sizeof(int), callback_of_sort);
    return numbers[n % 50];
}

static void walks_through_libc(void **state)
{
    guard();
    count = 0;
    assert_int_equal(sorts_numbers(3), 3);
    assert_true(count > 4);
    assert_int_equal(end.status, WALK_COMPLETE);
    assert_false(end.recovered);
    /* The stack leads from raise through qsort, inside libc, back to main and its caller. */
    assert_true(has("callback_of_sort"));
    assert_true(has("sorts_numbers"));
    assert_true(has("walks_through_libc"));
    assert_true(has("main"));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(frames[i].kind, WALK_NATIVE);
}

static void depth_is_kept(void **state)
{
    guard();
    static struct walk_frame few[3];
    ucontext_t context;
    getcontext(&context);
    assert_int_equal(walk_stack(&walker, &context, NULL, WALK_WITH_NATIVE, few, 3, &end), 3);
    assert_int_equal(end.status, WALK_DEPTH);
}

static void a_wild_context_ends_the_walk(void **state)
{
    guard();
    ucontext_t context;
    uint64_t faults = memory_guard_faults();
    getcontext(&context);
    const uint64_t wild[] = {
        0, 8, 0x123456789abcdef0, UINT64_MAX, UINT64_MAX - 7, (uint64_t)(uintptr_t)&on_signal};
    for (unsigned i = 0; i < ARRAY_SIZE(wild); i++)
        for (unsigned j = 0; j < ARRAY_SIZE(wild); j++) {
            ucontext_t c = context;
            c.uc_mcontext.gregs[REG_RIP] = (greg_t)wild[i];
            c.uc_mcontext.gregs[REG_RSP] = (greg_t)wild[j];
            c.uc_mcontext.gregs[REG_RBP] = (greg_t)wild[(i + j) % ARRAY_SIZE(wild)];
            unsigned n = walk_stack(&walker, &c, NULL, WALK_WITH_NATIVE, frames, FRAMES, &end);
            assert_true(n <= FRAMES);
            assert_true(end.status == WALK_BROKEN || end.status == WALK_FAULT);
        }
    assert_true(memory_guard_faults() > faults);
}

/*
 * Every address of libc's functions has a rule that the reader understands, except for a few
 * functions in assembly.
 */
static void rules_of_libc(void **state)
{
    guard();
    const struct module *m = module_find(modules_current(), libc_function("qsort"));
    unsigned found = 0, all = 0;
    assert_non_null(m);
    static const char *const names[] = {"qsort",          "malloc",      "free",     "printf",
                                        "memcpy",         "getaddrinfo", "regexec",  "strtod",
                                        "pthread_create", "fopen",       "vfprintf", "execvp",
                                        "realloc",        "glob",        "scandir"};
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        uint64_t at = libc_function(names[i]);
        for (unsigned k = 0; at && k < 200; k++) {
            struct cfi_rule rule;
            all++;
            found += cfi_find(walker.arch, &process_memory, m, at + k, &rule);
        }
    }
    assert_true(all > 2000);
    assert_true(found * 100 >= all * 95);
}

static void broken_tables_end(void **state)
{
    guard();
    /* A header that points at itself, cycles, and huge counts must give false in bounded time. */
    uint32_t words[64];
    struct module m = {.begin = 0,
                       .end = UINT64_MAX,
                       .eh_frame_hdr = (uint64_t)(uintptr_t)words,
                       .eh_frame_size = sizeof(words)};
    uint64_t seed = 1, start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    struct cfi_rule rule;
    for (unsigned n = 0; n < 20000; n++) {
        for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            words[i] = (uint32_t)(seed >> 33) & (n & 1 ? 0xff : 0xffff);
        }
        words[0] = 0x3b031b01;
        words[2] = 4;
        words[3] = 0;
        words[4] = 44;
        words[11] = 60; /* the description's length, then the distance back to the common part */
        words[12] = 16 + (n % 5) * 4;
        (void)cfi_find(&ARCH_HERE, &process_memory, &m, m.eh_frame_hdr + n % 100, &rule);
    }
    assert_true(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < 20 * NS_PER_SECOND);
}

static void names_of_addresses(void **state)
{
    struct symbols *s = symbols_new();
    struct symbol_place p;
    assert_int_equal(symbols_find(s, (uint64_t)(uintptr_t)&sorts_numbers + 3, &p), 0);
    assert_string_equal(p.name, "sorts_numbers");
    assert_int_equal(p.offset, 3);
    assert_int_equal(symbols_find(s, libc_function("qsort"), &p), 0);
    assert_true(strncmp(p.library, "libc", 4) == 0);
    assert_string_equal(p.name, "qsort");
    assert_int_equal(symbols_find(s, 16, &p), 0);
    assert_null(p.name);
    assert_string_equal(p.library, "");
    symbols_free(s);
    symbols_free(NULL);
}

/* The first searches in a library are made without order, later ones in sorted symbols. */
static void names_stay_the_same(void **state)
{
    enum { N = 50 };

    struct symbols *s = symbols_new();
    struct symbol_place first[N], p;
    uint64_t from = libc_function("qsort");
    unsigned different = 0;
    for (unsigned pass = 0; pass < 3; pass++)
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(symbols_find(s, from + 40 * i, pass ? &p : &first[i]), 0);
            if (pass) {
                assert_ptr_equal(p.name, first[i].name);
                assert_int_equal(p.offset, first[i].offset);
            }
            different += pass == 0 && i > 0 && first[i].name != first[i - 1].name;
        }
    assert_true(different > 1);
    symbols_free(s);
}

static void plain_names(void **state)
{
    static const char *const pairs[][2] = {
        {"_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread",
         "JavaCalls::call_helper"},
        {"_ZL17jni_invoke_staticP7JNIEnv_P9JavaValueP8_jobject11JNICallTypeP10_jmethodID",
         "jni_invoke_static"},
        {"_ZNK15ImageFileReader12get_resourceEjPh", "ImageFileReader::get_resource"},
        {"_ZN6ThreadC2Ev", "Thread::Thread"},
        {"_Z4mainv", "main"},
        {"qsort", "qsort"},
        {"_ZN3", "_ZN3"},
        {"_Z", "_Z"},
        {"_ZNSt6vectorIiE4pushEv", "_ZNSt6vectorIiE4pushEv"},
        {"_Z99short", "_Z99short"},
    };
    char text[128], few[8];
    for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++)
        assert_string_equal(symbols_plain_name(pairs[i][0], text, sizeof(text)), pairs[i][1]);
    assert_string_equal(symbols_plain_name("_ZN9JavaCalls4callEv", few, sizeof(few)), "JavaCal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_through_libc),
        cmocka_unit_test(depth_is_kept),
        cmocka_unit_test(a_wild_context_ends_the_walk),
        cmocka_unit_test(rules_of_libc),
        cmocka_unit_test(broken_tables_end),
        cmocka_unit_test(names_of_addresses),
        cmocka_unit_test(names_stay_the_same),
        cmocka_unit_test(plain_names),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
