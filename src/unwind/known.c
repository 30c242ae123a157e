/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/known.h"

#include "unwind/internal.h"

#include <stdlib.h>
#include <string.h>

/* The data of a known stack, one after the other. */
struct parts {
    uint64_t *word;
    struct compilation *code;
    uint64_t *method;
    uint16_t *at; /* distances of the words from the lowest possible one, in words */
};

static struct parts parts_of(const struct known_stack *k)
{
    struct parts p;
    p.word = k->data;
    p.code = (struct compilation *)(void *)(p.word + k->words);
    p.method = (uint64_t *)(void *)(p.code + k->codes);
    p.at = (uint16_t *)(void *)(p.method + k->methods);
    return p;
}

/*
 * Returns the lowest address that is read: the return address of the call that left Java may be
 * just below the stack pointer.
 */
static uint64_t lowest(const struct walk_start *start)
{
    return start->sp - 8;
}

/* Words of the calling thread's own stack, above its stack pointer, are always mapped. */
static uint64_t word_at(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

bool known_stack_own_start(const struct walker *w, const void *env, struct walk_start *ret)
{
    const struct hotspot_layout *l = &w->layout;
    uint64_t thread = (uint64_t)(uintptr_t)env - (uint64_t)w->env_offset,
             anchor = thread + (uint64_t)l->thread_anchor;
    *ret = (struct walk_start){
        .sp = word_at(anchor + (uint64_t)l->anchor_sp),
        .pc = word_at(anchor + (uint64_t)l->anchor_pc),
        .fp = l->anchor_fp == LAYOUT_NONE ? 0 : word_at(anchor + (uint64_t)l->anchor_fp),
        .base = word_at(thread + (uint64_t)l->thread_stack_base)};
    return ret->sp != 0 && ret->sp < ret->base;
}

bool known_stack_keep(struct known_stack *k, const struct walk_words *words)
{
    k->start = (struct walk_start){0};
    if (words->n == 0 || words->n > WALK_WORDS_MAX)
        return false;
    uint64_t low = lowest(&words->start);
    for (uint32_t i = 0; i < words->n; i++)
        if ((words->at[i] - low) / 8 > UINT16_MAX || (words->at[i] - low) % 8)
            return false;
    size_t bytes = words->n * (sizeof(uint64_t) + sizeof(uint16_t)) +
                   words->codes * sizeof(*words->code) + words->methods * sizeof(*words->method);
    if (bytes > k->room) {
        free(k->data);
        k->data = malloc(bytes);
        k->room = k->data ? (uint32_t)bytes : 0;
        if (!k->data)
            return false;
    }
    k->words = (uint16_t)words->n;
    k->codes = (uint16_t)words->codes;
    k->methods = (uint16_t)words->methods;
    struct parts p = parts_of(k);
    for (uint32_t i = 0; i < words->n; i++) {
        p.word[i] = words->word[i];
        p.at[i] = (uint16_t)((words->at[i] - low) / 8);
    }
    memcpy(p.code, words->code, words->codes * sizeof(*p.code));
    memcpy(p.method, words->method, words->methods * sizeof(*p.method));
    k->start = words->start;
    return true;
}

/*
 * Returns whether a compilation is still at its place. A freed one leaves its header behind when
 * another is put further up in its memory, so its block must be in use as well.
 */
static bool code_holds_still(const struct walker *w, const struct compilation *of)
{
    const struct hotspot_layout *l = &w->layout;
    uint8_t used;
    return load_u8(&w->memory, of->blob - (uint64_t)l->sizeof_block + (uint64_t)l->block_used,
                   &used) &&
           used && site_compilation_holds(l, &w->memory, of);
}

/* Returns whether the method of an interpreted frame is the one with an id. */
static bool method_is(const struct walker *w, uint64_t id, uint32_t epoch)
{
    uint64_t method = walk_id_method(id);
    struct known_method m;
    if (!known_method_find(w->known, &w->layout, &w->memory, method, epoch, &m)) {
        if (!known_method_read(&w->layout, &w->memory, method, &m))
            return false;
        known_method_note(w->known, epoch, &m);
    }
    return m.check == walk_id_check(id);
}

bool known_stack_is(const struct walker *w, const struct known_stack *k,
                    const struct walk_start *start)
{
    if (!k->start.sp || k->start.sp != start->sp || k->start.pc != start->pc ||
        k->start.fp != start->fp || k->start.base != start->base)
        return false;
    struct parts p = parts_of(k);
    uint64_t low = lowest(start);
    for (uint32_t i = 0; i < k->words; i++)
        if (word_at(low + 8 * (uint64_t)p.at[i]) != p.word[i])
            return false;
    for (uint32_t i = 0; i < k->codes; i++)
        if (!code_holds_still(w, &p.code[i]))
            return false;
    uint32_t epoch = k->methods ? unloads_epoch(&w->unloads, &w->memory) : 0;
    for (uint32_t i = 0; i < k->methods; i++)
        if (!method_is(w, p.method[i], epoch))
            return false;
    return true;
}

void known_stack_release(struct known_stack *k)
{
    free(k->data);
    *k = (struct known_stack){0};
}
