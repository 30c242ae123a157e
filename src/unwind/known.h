/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognizes a stack of the calling thread without walking it. Programs often reach the same places
 * again, in loops. Then the words on the stack that a walk reads, and the code to which they point,
 * are those of an earlier walk, and comparing them takes a tenth of a walk's time. Nothing is
 * assumed about what the thread did meanwhile, because the result of a walk depends on exactly
 * these words and this code: each word is read at a place that follows from the words before it, so
 * a new walk would take the same steps.
 */
#pragma once

#include "unwind/walk.h"

/* A stack as it was when it was walked. Zeroed: none. Used by one thread. */
struct known_stack {
    struct walk_start start;
    uint16_t words, codes, methods;
    uint32_t room; /* bytes of data */
    void *data;
};

/*
 * Stores where the calling thread, whose JNIEnv is env, left Java. Returns false if the thread runs
 * no Java.
 */
bool known_stack_own_start(const struct walker *w, const void *env, struct walk_start *ret);
/*
 * Keeps a stack that the calling thread has just walked, without loss. Returns false, and keeps
 * none, if it has too many words or memory is exhausted.
 */
bool known_stack_keep(struct known_stack *k, const struct walk_words *words);
/* Returns whether the calling thread, which left Java at `start`, has this stack now. */
bool known_stack_is(const struct walker *w, const struct known_stack *k,
                    const struct walk_start *start);
/* Forgets the stack and frees what it holds. */
void known_stack_release(struct known_stack *k);
