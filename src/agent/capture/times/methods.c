/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/times/methods.h"

#include "agent/capture/times/tree.h"
#include "agent/stacks/names.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct row {
    uint32_t class_name, name, descriptor, source, access;
    jmethodID id;     /* NULL until it is requested */
    const char *mark; /* NULL: its calls are counted and timed */
    bool reported;    /* the mark has been reported */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below */
static struct strpool strings;
static VEC(struct row) methods;
static struct map index_of; /* hash of (class, name, descriptor) -> number */

static bool is_small(const struct row *row)
{
    return row->mark && strcmp(row->mark, TIMES_SMALL) == 0;
}

static int64_t find_or_add(struct row row)
{
    if (methods.len == TIMES_METHODS)
        return -ENOMEM;
    uint64_t key = hash_u64(hash_u64((uint64_t)row.class_name << 32 | row.name) + row.descriptor);
    for (;; key++) {
        bool added;
        uint64_t *at = map_at(&index_of, key, methods.len, &added);
        if (!at)
            return -ENOMEM;
        if (added) {
            int r = vec_push(&methods, row);
            return r < 0 ? r : (int64_t)methods.len - 1;
        }
        const struct row *existing = &methods.data[*at];
        if (existing->class_name == row.class_name && existing->name == row.name &&
            existing->descriptor == row.descriptor)
            return (int64_t)*at;
    }
}

int64_t times_method_add(struct str class_name, struct str name, struct str descriptor,
                         struct str source, uint32_t access)
{
    pthread_mutex_lock(&lock);
    int64_t c = strpool_add(&strings, class_name.data, class_name.len),
            n = strpool_add(&strings, name.data, name.len);
    int64_t d = strpool_add(&strings, descriptor.data, descriptor.len),
            s = strpool_add(&strings, source.data, source.len);
    int64_t r = c < 0 || n < 0 || d < 0 || s < 0 ? -ENOMEM : 0;
    if (r == 0)
        r = find_or_add((struct row){(uint32_t)c, (uint32_t)n, (uint32_t)d, (uint32_t)s, access,
                                     NULL, NULL, false});
    pthread_mutex_unlock(&lock);
    return r;
}

static jmethodID name_row(const struct row *row)
{
    struct str source = strpool_get(&strings, row->source);
    struct method m = {
        .class_name = strpool_get(&strings, row->class_name).data,
        .name = strpool_get(&strings, row->name).data,
        .descriptor = strpool_get(&strings, row->descriptor).data,
        .source = source.len ? source.data : NULL,
        .modifiers = row->access,
    };
    return names_add(&m);
}

jmethodID times_method_id(int64_t number)
{
    pthread_mutex_lock(&lock);
    jmethodID id = NULL;
    if (number >= 0 && (size_t)number < methods.len) {
        struct row *row = &methods.data[number];
        id = row->id ? row->id : (row->id = name_row(row));
    }
    pthread_mutex_unlock(&lock);
    if (number < 0) {
        const struct method m = {.class_name = number == TIMES_BEYOND   ? "<beyond the limit>"
                                               : number == TIMES_UNREAD ? "<unread>"
                                                                        : "<outside>",
                                 .name = number == TIMES_UNREAD ? "cpuTime" : "",
                                 .descriptor = "()V"};
        id = names_add(&m);
    }
    return id;
}

uint32_t times_method_count(void)
{
    pthread_mutex_lock(&lock);
    uint32_t n = 0;
    for (size_t i = 0; i < methods.len; i++)
        n += !methods.data[i].mark || is_small(&methods.data[i]);
    pthread_mutex_unlock(&lock);
    return n;
}

void times_method_mark(int64_t number, const char *why)
{
    pthread_mutex_lock(&lock);
    if (number >= 0 && (size_t)number < methods.len) {
        struct row *row = &methods.data[number];
        row->reported = row->reported && row->mark == why;
        row->mark = why;
    }
    pthread_mutex_unlock(&lock);
}

bool times_method_is_small(int64_t number)
{
    pthread_mutex_lock(&lock);
    bool is = number >= 0 && (size_t)number < methods.len && is_small(&methods.data[number]);
    pthread_mutex_unlock(&lock);
    return is;
}

bool times_method_next_mark(uint32_t *at, const char **ret_why)
{
    pthread_mutex_lock(&lock);
    uint32_t i = *at;
    while (i < methods.len && (!methods.data[i].mark || methods.data[i].reported))
        i++;
    bool found = i < methods.len;
    if (found) {
        methods.data[i].reported = true;
        *ret_why = methods.data[i].mark;
        *at = i;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void times_methods_forget(void)
{
    pthread_mutex_lock(&lock);
    strpool_release(&strings);
    vec_release(&methods);
    map_release(&index_of);
    pthread_mutex_unlock(&lock);
}
