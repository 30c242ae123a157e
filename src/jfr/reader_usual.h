/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reader_usual.c and reader_stacks.c share: looking up what the ids of constants stand for.
 * Its functions begin with usual_.
 */
#pragma once

#include "jfr/reader_internal.h"

/* The object whose id a field holds, before it is looked up. */
struct reference {
    struct rec_chunk *chunk;
    struct type *type;
    uint64_t id;
};

/*
 * Returns what an id was decoded to before in this chunk, or NULL if it was not, or if the type is
 * not the usual one.
 */
static inline const void *usual_decoded(const struct type *t, enum usual usual, uint64_t id)
{
    if (t->usual != usual)
        return NULL;
    const struct constant *c = constant_of(t, id);
    return likely(c && c->decoded == t->round) ? c->what : NULL;
}

/*
 * Returns what an id of this type was decoded to in an earlier chunk, or NULL. It is probably the
 * same in this chunk. That must be checked, but the check costs less than a search among all known
 * ones. Only for what is valid as long as the recording: classes, methods, numbers of texts.
 */
static inline const void *usual_before(const struct type *t, uint64_t id)
{
    const struct constant *c = constant_of(t, id);
    return c ? c->what : NULL;
}

/*
 * Stores what an id was decoded to, for this chunk. When out of memory it is decoded again later.
 */
void usual_remember(struct type *t, uint64_t id, const void *what);

/*
 * Stores the id in the field at `path`, without looking it up, because most ids are already
 * decoded. Returns false when the object has no such field, or the field does not hold the ids of
 * such constants.
 */
bool usual_reference(const struct rec_object *o, const char *path, enum usual usual,
                     struct reference *ret);
/*
 * Looks up the object of a reference, whose chunk may be changed to an earlier one. *ret_raw: it is
 * a stack with the writer's own method numbers. Returns false when the object is not defined.
 */
bool usual_resolve(struct reference *ref, struct rec_object *ret, bool *ret_raw);
/*
 * Returns the text of the field at `path`, interned in the recording; NULL when the field has none
 * or memory runs out.
 */
const char *usual_text_at(const struct rec_object *o, const char *path);
/*
 * Returns the method of a reference, never NULL: a method that is not defined has a name that says
 * so.
 */
const struct rec_method *usual_method(struct reference ref);
/*
 * Returns the stack of a reference, which is valid as long as its chunk; NULL when it is not
 * defined or damaged, or memory runs out.
 */
const struct rec_stack *usual_stack(struct reference ref);
