/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are recognized instead of walked. The thread, its stack, a compilation and a Method
 * are artificial.
 */
#include "unwind/internal.h"
#include "unwind/known.h"

#include "tests.h"

#include <string.h>

enum { STACK_WORDS = 64, SP = 8, WORDS = 5 };

static uint64_t thread[4]; /* sp, pc and fp of the anchor; the end of the stack */
static uint64_t stack[STACK_WORDS];
static uint64_t blob[4]; /* the header of its block, the compilation's method and id */
static uint64_t method[8], constant[8], pool[2], holder[2], symbol[2];
static struct walker walker;

static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void set_up_vm(void)
{
    struct hotspot_layout *l = &walker.layout;
    walker.memory = process_memory;
    walker.env_offset = 0;
    walker.known = known_methods_new();
    assert_non_null(walker.known);
    l->thread_anchor = l->anchor_sp = 0;
    l->anchor_pc = 8;
    l->anchor_fp = 16;
    l->thread_stack_base = 24;
    l->sizeof_block = 8;
    l->block_used = 0;
    l->nm_method = 0;
    l->nm_compile_id = 8;
    l->method_const = l->pool_holder = l->klass_name = 0;
    l->const_pool = 0;
    l->const_size = 8;
    l->const_code_size = 16;
    l->sizeof_const_method = 24;
}

/* Sets everything up as it is when the stack is walked. */
static void set_up(void)
{
    for (int i = 0; i < STACK_WORDS; i++)
        stack[i] = 1000 + (uint64_t)i;
    thread[0] = address(&stack[SP]);
    thread[1] = 77;
    thread[2] = address(&stack[SP + 2]);
    thread[3] = address(&stack[STACK_WORDS]);
    blob[0] = 1;
    blob[1] = address(method);
    blob[2] = 42;
    method[0] = address(constant);
    constant[0] = address(pool);
    constant[1] = 8;
    constant[2] = 4;
    pool[0] = address(holder);
    holder[0] = address(symbol);
    symbol[0] = 5 << 16;
}

static const int noted[WORDS] = {SP - 1, SP, SP + 3, SP + 9, STACK_WORDS - 1};

static struct known_stack keep(void)
{
    struct known_stack k = {0};
    struct walk_words w = {.n = WORDS, .codes = 1, .methods = 1};
    struct method_parts parts;
    assert_true(known_stack_own_start(&walker, thread, &w.start));
    for (int i = 0; i < WORDS; i++) {
        w.at[i] = address(&stack[noted[i]]);
        w.word[i] = stack[noted[i]];
    }
    assert_true(
        site_read_compilation(&walker.layout, &walker.memory, address(&blob[1]), &w.code[0]));
    assert_true(method_parts(&walker.layout, &walker.memory, address(method), &parts));
    w.method[0] = walk_id_of_method(address(method), method_parts_check(&parts));
    assert_true(known_stack_keep(&k, &w));
    return k;
}

static bool is(const struct known_stack *k)
{
    struct walk_start start;
    return known_stack_own_start(&walker, thread, &start) && known_stack_is(&walker, k, &start);
}

static void every_word_and_all_code_must_be_the_same(void **state)
{
    set_up_vm();
    set_up();
    struct known_stack k = keep();
    /* The same values at another address are another stack. */
    static uint64_t other_constant[8], other_pool[2], other_holder[2];
    memcpy(other_constant, constant, sizeof(constant));
    memcpy(other_pool, pool, sizeof(pool));
    memcpy(other_holder, holder, sizeof(holder));

    const struct {
        uint64_t *at, to;
    } others[] = {
        {&thread[0], thread[0] + 8},
        {&thread[1], thread[1] + 1},
        {&thread[2], thread[2] + 8},
        {&thread[3], thread[3] - 8},
        {&blob[0], 0}, /* the block is free */
        {&blob[1], blob[1] + 8},
        {&blob[2], blob[2] + 1},
        {&method[0], address(other_constant)},
        {&constant[0], address(other_pool)},
        {&pool[0], address(other_holder)},
    };

    assert_true(is(&k));
    for (int i = 0; i < WORDS; i++) {
        stack[noted[i]]++;
        assert_false(is(&k));
        set_up();
        assert_true(is(&k));
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        *others[i].at = others[i].to;
        assert_false(is(&k));
        set_up();
        assert_true(is(&k));
    }
    /* Changes of words that no walk has read do not matter. */
    for (int i = 0; i < STACK_WORDS; i++) {
        bool read = false;
        for (int n = 0; n < WORDS; n++)
            read = read || noted[n] == i;
        stack[i] += !read;
    }
    assert_true(is(&k));
    known_stack_release(&k);
    assert_false(is(&k));
    known_methods_free(walker.known);
}

static void words_are_kept_as_the_walk_has_read_them(void **state)
{
    set_up_vm();
    set_up();
    struct known_stack k = {0};
    struct walk_words w = {.n = 1, .at = {address(&stack[SP])}, .word = {stack[SP]}};
    assert_true(known_stack_own_start(&walker, thread, &w.start));
    stack[SP]++; /* the VM has replaced it since */
    assert_true(known_stack_keep(&k, &w));
    assert_false(is(&k));
    stack[SP]--;
    assert_true(is(&k));
    known_stack_release(&k);
    known_methods_free(walker.known);
}

static void what_cannot_be_kept_is_not(void **state)
{
    set_up_vm();
    set_up();
    struct known_stack k = keep();
    struct walk_words w = {.n = WALK_WORDS_MAX + 1};
    assert_true(known_stack_own_start(&walker, thread, &w.start));
    assert_false(known_stack_keep(&k, &w)); /* too many */
    assert_false(is(&k));
    w.n = 0;
    assert_false(known_stack_keep(&k, &w)); /* the stack was not walked */
    w.n = 1;
    w.at[0] = w.start.sp + (1 << 20);
    assert_false(known_stack_keep(&k, &w)); /* too far up */
    assert_false(is(&k));
    /* A longer stack takes the place of a shorter one, and the other way round. */
    for (w.n = 1; w.n <= WALK_WORDS_MAX; w.n += 37) {
        for (uint32_t i = 0; i < w.n; i++) {
            w.at[i] = address(&stack[SP + i % 50]);
            w.word[i] = stack[SP + i % 50];
        }
        assert_true(known_stack_keep(&k, &w) && is(&k));
    }
    w.n = 2;
    assert_true(known_stack_keep(&k, &w) && is(&k));
    thread[0] = 0; /* it runs no Java */
    assert_false(is(&k));
    known_stack_release(&k);
    known_methods_free(walker.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_and_all_code_must_be_the_same),
        cmocka_unit_test(words_are_kept_as_the_walk_has_read_them),
        cmocka_unit_test(what_cannot_be_kept_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
