/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/dictionary.h"

#include "agent/stacks/class_watch.h"
#include "agent/stacks/names.h"
#include "base/arena.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The ranges of numbers that the original HPROF uses: a number shows what kind of thing it
 * identifies.
 */
#define OBJECT_FIRST UINT64_C(0x50000000)
#define FRAME_FIRST  UINT64_C(0x70000001)
#define STRING_FIRST UINT64_C(0xa0000001)

enum { NAME_MAX_BYTES = 2048 };

struct frame_key {
    const struct method *method; /* NULL once it has been dropped */
    uint64_t line;
};

/* A class in the binary output whose unloading has not been written yet. */
struct reported_class {
    uint64_t key;     /* index into class_times */
    uint32_t serial;  /* its serial number in the output */
    uint32_t watched; /* the serial of class_watch.h; 0: only the name is known */
    const char *name; /* dotted, without an array's brackets */
};

struct dictionary {
    struct out *out;
    bool lines, threads, empty_reported;
    bool no_threads; /* cpu=old has no THREAD lines */
    struct strpool strings, classes;
    struct strpool frames;   /* struct frame_key */
    struct strpool traces;   /* uint32_t thread, then frame numbers */
    struct strpool titles;   /* the values that dictionary_trace_method returned */
    struct map thread_known; /* serial numbers that have been written */
    struct map class_times;  /* hash of a class's id and name -> how often it was unloaded */
    VEC(struct reported_class) reported_classes;
    /*
     * reported_classes.len and class_watch_unload_count() when unloaded classes were last searched
     */
    size_t seen_reported;
    uint64_t seen_unloads;
    struct arena arena; /* names of reported_classes */
};

static const struct method unknown_method = {
    .class_name = "<Unknown Class>", .name = "<Unknown Method>", .descriptor = "()V"};

/* Marks where the agent itself called into Java. */
static const struct method own_method = {
    .class_name = "", .name = "[jvmscope]", .descriptor = "()V", .code = true};

struct dictionary *dictionary_new(struct out *out, const struct options *o)
{
    struct dictionary *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->out = out;
    d->lines = option_on(o, OPT_LINENO);
    d->threads = option_on(o, OPT_THREAD);
    d->no_threads = option_is(o, OPT_CPU, "old");
    if (out->format->records)
        hprof_trace(&out->binary, TRACE_EMPTY, 0, NULL, 0);
    return d;
}

void dictionary_free(struct dictionary *d)
{
    if (!d)
        return;
    strpool_release(&d->strings);
    strpool_release(&d->classes);
    strpool_release(&d->frames);
    strpool_release(&d->traces);
    strpool_release(&d->titles);
    map_release(&d->thread_known);
    map_release(&d->class_times);
    vec_release(&d->reported_classes);
    arena_release(&d->arena);
    free(d);
}

uint64_t dictionary_thread_object(uint32_t serial)
{
    return OBJECT_FIRST + serial - THREAD_UNKNOWN;
}

uint32_t dictionary_thread_of_object(uint64_t object)
{
    return object > OBJECT_FIRST && object < OBJECT_FIRST + (UINT64_C(1) << 28)
               ? (uint32_t)(object - OBJECT_FIRST) + THREAD_UNKNOWN
               : 0;
}

static uint64_t string_id(struct dictionary *d, const char *s)
{
    size_t known = d->strings.strings.len, len = strlen(s);
    int64_t number = strpool_add(&d->strings, s, len);
    if (number < 0)
        return 0;
    if ((size_t)number == known)
        hprof_utf8(&d->out->binary, STRING_FIRST + (uint64_t)number, s, len);
    return STRING_FIRST + (uint64_t)number;
}

/*
 * Returns the serial number of a class, and writes its record when it is new. java: it is a class,
 * not a library; watched: as in struct reported_class.
 */
static uint32_t class_serial(struct dictionary *d, const char *name, uint64_t id, bool java,
                             uint32_t watched)
{
    struct {
        uint64_t id, times;
        char name[NAME_MAX_BYTES];
    } key = {.id = id};

    names_dotted(name, key.name, sizeof(key.name));
    size_t len = strlen(key.name);
    uint64_t hash = hash_bytes(key.name, len) ^ hash_u64(id);
    const uint64_t *times = map_get(&d->class_times, hash);
    key.times = times ? *times : 0;
    size_t known = d->classes.strings.len;
    int64_t number =
        strpool_add(&d->classes, (const char *)&key, offsetof(__typeof__(key), name) + len);
    if (number < 0)
        return 0;
    uint32_t serial = CLASS_FIRST + (uint32_t)number;
    if ((size_t)number < known)
        return serial;
    hprof_load_class(&d->out->binary, serial, id, TRACE_EMPTY, string_id(d, key.name));
    while (len > 2 && memcmp(key.name + len - 2, "[]", 2) == 0)
        len -= 2;
    struct reported_class reported = {hash, serial, watched, arena_copy(&d->arena, key.name, len)};
    if (java && (!reported.name || vec_push(&d->reported_classes, reported) < 0))
        return 0;
    return serial;
}

static bool is_gone(const struct reported_class *c)
{
    return c->watched ? class_watch_is_unloaded(c->watched) : class_watch_none_left(c->name);
}

void dictionary_unloaded(struct dictionary *d)
{
    if (!d->out->format->records)
        return;
    pthread_mutex_lock(&d->out->lock);
    uint64_t unloads = class_watch_unload_count();
    if (unloads != d->seen_unloads || d->reported_classes.len > d->seen_reported) {
        size_t left = 0;
        out_stamp(d->out);
        for (size_t i = 0; i < d->reported_classes.len; i++) {
            struct reported_class c = d->reported_classes.data[i];
            uint64_t *times = is_gone(&c) ? map_at(&d->class_times, c.key, 0, NULL) : NULL;
            if (times) {
                ++*times;
                hprof_unload_class(&d->out->binary, c.serial);
            } else {
                d->reported_classes.data[left++] = c;
            }
        }
        d->reported_classes.len = d->seen_reported = left;
        d->seen_unloads = unloads;
    }
    pthread_mutex_unlock(&d->out->lock);
}

static const struct frame_key *frame_of(const struct dictionary *d, uint32_t number)
{
    return (const struct frame_key *)(const void *)strpool_get(&d->frames, number).data;
}

static int32_t shown_line(const struct frame_key *key)
{
    if (key->method && key->method->native)
        return HPROF_LINE_NATIVE;
    return key->line ? (int32_t)key->line : HPROF_LINE_UNKNOWN;
}

static void method_title(const struct method *m, char *to, size_t size)
{
    names_dotted(m->class_name, to, size);
    size_t len = strlen(to);
    snprintf(to + len, size - len, "%s%s", len ? "." : "", m->name);
}

static void write_frame(struct dictionary *d, uint32_t number)
{
    const struct frame_key *key = frame_of(d, number);
    const struct method *m = key->method ? key->method : &unknown_method;
    /* The class id is a number of our own: names.h distinguishes classes of the same name. */
    uint32_t watched = m->class_serial < UNWATCHED_CLASS_FIRST ? m->class_serial : 0;
    uint64_t id = (UINT64_C(1) << 40) + m->class_serial;
    uint32_t class = class_serial(d, m->class_name, id, key->method && !m->code, watched);
    uint64_t name = string_id(d, m->name), descriptor = string_id(d, m->descriptor);
    uint64_t source = m->source ? string_id(d, m->source) : 0;
    hprof_frame(&d->out->binary, FRAME_FIRST + number, name, descriptor, source, class,
                shown_line(key));
}

static int64_t frame_number(struct dictionary *d, const struct method *m, const struct jfr_frame *f)
{
    struct frame_key key = {.method = m};
    if (key.method && d->lines)
        key.line = names_method_line(key.method, f->bci);
    size_t known = d->frames.strings.len;
    int64_t number = strpool_add(&d->frames, (const char *)&key, sizeof(key));
    if (number >= 0 && (size_t)number == known && d->out->format->records)
        write_frame(d, (uint32_t)number);
    return number;
}

static void write_trace(struct dictionary *d, uint32_t serial, const uint32_t *key, uint32_t n)
{
    struct out *out = d->out;
    if (out->format->records) {
        uint64_t ids[64], *all = n <= ARRAY_SIZE(ids) ? ids : malloc(n * sizeof(*all));
        for (uint32_t i = 0; all && i < n; i++)
            all[i] = FRAME_FIRST + key[1 + i];
        if (all)
            hprof_trace(&out->binary, serial, key[0], all, n);
        if (all != ids)
            free(all);
        return;
    }
    hprof_text_trace(&out->text, serial, key[0]);
    for (uint32_t i = 0; i < n; i++) {
        const struct frame_key *f = frame_of(d, key[1 + i]);
        const struct method *m = f->method ? f->method : &unknown_method;
        char title[NAME_MAX_BYTES];
        method_title(m, title, sizeof(title));
        hprof_text_frame(&out->text, title, m->source, shown_line(f));
    }
    if (n == 0)
        hprof_text_trace_empty(&out->text);
}

uint32_t dictionary_empty_trace(struct dictionary *d)
{
    pthread_mutex_lock(&d->out->lock);
    if (d->out->format->text && !d->empty_reported) {
        hprof_text_trace(&d->out->text, TRACE_EMPTY, 0);
        hprof_text_trace_empty(&d->out->text);
    }
    d->empty_reported = true;
    pthread_mutex_unlock(&d->out->lock);
    return TRACE_EMPTY;
}

/* Like frame_role_is_of_agent of profile/frame_role.h. */
static bool is_of_own_library(const struct method *m)
{
    char function[NAME_MAX_BYTES];
    if (!m || !m->code)
        return false;
    int len = snprintf(function, sizeof(function), "%s.", m->class_name);
    return generated_name_is_agents_library(function, MIN((size_t)len, sizeof(function) - 1));
}

static bool is_of_vms_library(const struct method *m)
{
    return m && m->code && strcmp(m->class_name, "libjvm.so") == 0;
}

/*
 * Returns how many of the top frames belong to a probe of ours and to the code that it called, or
 * to a function of ours that the VM called (*ret_callback); the same rule as in
 * profile/frame_role.h.
 */
static uint32_t own_frames(JNIEnv *jni, const struct jfr_frame *frames, uint32_t n,
                           bool *ret_callback)
{
    bool by_vm = false;
    *ret_callback = false;
    for (uint32_t i = n; i-- > 0;) {
        const struct method *m = names_method(jni, (jmethodID)(uintptr_t)frames[i].method);
        *ret_callback = by_vm && is_of_own_library(m);
        if (*ret_callback || (m && generated_name_is_agents(m->class_name, strlen(m->class_name))))
            return i + 1;
        by_vm = is_of_vms_library(m);
    }
    return 0;
}

uint32_t dictionary_trace(struct dictionary *d, JNIEnv *jni, const struct jfr_frame *frames,
                          uint32_t n, uint32_t thread)
{
    if (!n)
        return dictionary_empty_trace(d);
    uint32_t few[65], *key = n < ARRAY_SIZE(few) ? few : malloc((n + 1) * sizeof(*key));
    if (!key)
        return 0;
    pthread_mutex_lock(&d->out->lock);
    out_stamp(d->out);
    key[0] = d->threads ? thread : 0;
    int64_t number = 0;
    bool callback;
    uint32_t own = own_frames(jni, frames, n, &callback), shown = 0;
    frames += own;
    n -= own;
    if (callback) {
        number = frame_number(d, &own_method, &(struct jfr_frame){.bci = -1});
        key[++shown] = (uint32_t)number;
    }
    for (uint32_t i = 0; i < n && number >= 0; i++) {
        const struct method *m = names_method(jni, (jmethodID)(uintptr_t)frames[i].method);
        if (is_of_own_library(m))
            continue;
        number = frame_number(d, m, &frames[i]);
        key[1 + shown++] = (uint32_t)number;
    }
    n = shown;
    if (!n) {
        number = frame_number(d, &own_method, &(struct jfr_frame){.bci = -1});
        key[++n] = (uint32_t)number;
    }
    size_t known = d->traces.strings.len;
    if (number >= 0)
        number = strpool_add(&d->traces, (const char *)key, (n + 1) * sizeof(*key));
    uint32_t serial = number < 0 ? 0 : TRACE_EMPTY + 1 + (uint32_t)number;
    if (serial && (size_t)number == known)
        write_trace(d, serial, key, n);
    pthread_mutex_unlock(&d->out->lock);
    if (key != few)
        free(key);
    return serial;
}

const char *dictionary_trace_method(struct dictionary *d, uint32_t trace)
{
    pthread_mutex_lock(&d->out->lock);
    const char *title = "";
    struct str key = trace > TRACE_EMPTY ? strpool_get(&d->traces, trace - TRACE_EMPTY - 1)
                                         : (struct str){"", 0};
    if (key.len > sizeof(uint32_t)) {
        uint32_t number;
        memcpy(&number, key.data + sizeof(number), sizeof(number));
        const struct frame_key *f = frame_of(d, number);
        char text[NAME_MAX_BYTES];
        method_title(f->method ? f->method : &unknown_method, text, sizeof(text));
        int64_t kept = strpool_add(&d->titles, text, strlen(text));
        if (kept >= 0)
            title = strpool_get(&d->titles, (uint64_t)kept).data;
    }
    pthread_mutex_unlock(&d->out->lock);
    return title;
}

uint32_t dictionary_class(struct dictionary *d, const char *name, uint64_t class_id)
{
    pthread_mutex_lock(&d->out->lock);
    uint32_t serial = class_serial(d, name, class_id, true, 0);
    pthread_mutex_unlock(&d->out->lock);
    return serial;
}

void dictionary_thread_start(struct dictionary *d, const struct thread *t)
{
    uint32_t serial = t->serial;
    if (d->no_threads)
        return;
    pthread_mutex_lock(&d->out->lock);
    bool added = false;
    if (map_at(&d->thread_known, serial, 1, &added) && added) {
        out_stamp(d->out);
        uint64_t object = dictionary_thread_object(serial);
        const char *name = t->name ? t->name : "";
        const char *group = t->group ? t->group : "";
        if (d->out->format->text)
            hprof_text_thread_start(&d->out->text, object, serial, name, group);
        else
            hprof_start_thread(&d->out->binary, serial, object, TRACE_EMPTY, string_id(d, name),
                               string_id(d, group),
                               string_id(d, t->parent_group ? t->parent_group : ""));
    }
    pthread_mutex_unlock(&d->out->lock);
}

void dictionary_thread_end(struct dictionary *d, const struct thread *t)
{
    pthread_mutex_lock(&d->out->lock);
    if (map_remove(&d->thread_known, t->serial)) {
        out_stamp(d->out);
        if (d->out->format->text)
            hprof_text_thread_end(&d->out->text, t->serial);
        else
            hprof_end_thread(&d->out->binary, t->serial);
    }
    pthread_mutex_unlock(&d->out->lock);
}
