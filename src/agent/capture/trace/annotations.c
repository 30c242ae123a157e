/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/annotations.h"

#include "base/dotted.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/nearest.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ANNOTATIONS_MAX = 4096 };

static struct {
    pthread_mutex_t lock;
    struct map known;  /* by the hashes of their descriptors */
    VEC(char *) names; /* "pkg.Outer$Name" */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

void trace_annotation_add(struct str descriptor)
{
    bool added = false;
    if (descriptor.len < 3)
        return;
    pthread_mutex_lock(&seen.lock);
    if (seen.names.len < ANNOTATIONS_MAX)
        (void)!map_at(&seen.known, hash_bytes(descriptor.data, descriptor.len), 0, &added);
    char *name = added ? strndup(descriptor.data + 1, descriptor.len - 2) : NULL;
    if (name) {
        dotted_in_place(name, strlen(name));
        if (vec_push(&seen.names, name) < 0)
            free(name);
    }
    pthread_mutex_unlock(&seen.lock);
}

/* Returns the name without its package and its outer class. */
static const char *simple(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *dollar = strrchr(dot ? dot : name, '$');
    return dollar && dollar[1] ? dollar + 1 : dot ? dot + 1 : name;
}

void trace_annotation_put_similar(const char *wanted, struct buf *why)
{
    struct nearest nearest = {.word = simple(wanted)};
    const char *best = NULL;
    bool exact = false;
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < seen.names.len && !exact; i++) {
        const char *name = seen.names.data[i];
        exact = strcmp(simple(name), nearest.word) == 0;
        if (exact || nearest_try(&nearest, simple(name)))
            best = name;
    }
    if (best)
        buf_printf(why, "; there is @%s", best);
    pthread_mutex_unlock(&seen.lock);
}

void trace_annotations_clear(void)
{
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < seen.names.len; i++)
        free(seen.names.data[i]);
    vec_release(&seen.names);
    map_release(&seen.known);
    pthread_mutex_unlock(&seen.lock);
}
