/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/monitors/sites.h"

#include "agent/capture/monitors/monitors.h"
#include "agent/output/dictionary.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"
#include "agent/vm/shown_class.h"
#include "base/strpool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1024, MAX_SITES = 1 << 16 };

/* The counts of one class, stack and thread. Rows are stored in order of arrival and never move. */
struct site {
    _Atomic uint64_t count, ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    uint32_t depth;
    bool by_thread;
    /* struct key_head and frames; the number of a key is also that of its site */
    struct strpool keys;
    struct strpool classes; /* JVM descriptors */
    struct site *list;      /* MAX_SITES of them; keys.strings.len are in use */
    _Atomic uint64_t entered, lost;
} sites;

struct key_head {
    uint32_t class, thread;
};

struct frame {
    uint64_t method;
    int64_t bci;
};

int monitor_sites_init(const struct options *o)
{
    sites.list = calloc(MAX_SITES, sizeof(*sites.list));
    sites.depth = (uint32_t)MIN(o->v[OPT_DEPTH].number, MAX_DEPTH);
    sites.by_thread = option_on(o, OPT_THREAD);
    return sites.list ? 0 : -ENOMEM;
}

void monitor_sites_release(void)
{
    free(sites.list);
    strpool_release(&sites.keys);
    strpool_release(&sites.classes);
    memset(&sites, 0, sizeof(sites));
}

int64_t monitor_sites_class(JNIEnv *jni, jobject object)
{
    jclass class = (*jni)->GetObjectClass(jni, object);
    _cleanup_free_ char *signature = class ? shown_class_signature(class) : NULL;
    int64_t number = -1;
    if (signature) {
        pthread_mutex_lock(&lock);
        number = strpool_add(&sites.classes, signature, strlen(signature));
        pthread_mutex_unlock(&lock);
    }
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
    return number < 0 ? -1 : number;
}

uint32_t monitors_site(JNIEnv *jni, jobject monitor, const struct thread *self, jint skip)
{
    struct {
        struct key_head head;
        struct frame frames[MAX_DEPTH];
    } key;

    jvmtiFrameInfo found[MAX_DEPTH + MONITORS_SKIP_MAX], *frames = found + skip;
    jint n = 0;
    int64_t class = monitor_sites_class(jni, monitor), site = -1;
    if (class < 0)
        return 0;
    if (sites.depth)
        n = MAX(own_stack(jni, found, (jint)sites.depth + skip) - skip, 0);
    key.head = (struct key_head){(uint32_t) class, sites.by_thread ? self->serial : 0};
    for (jint i = 0; i < n; i++) {
        /* The names are read now, while the class of the method cannot be unloaded. */
        names_method(jni, frames[i].method);
        key.frames[i] = (struct frame){(uint64_t)(uintptr_t)frames[i].method, frames[i].location};
    }
    pthread_mutex_lock(&lock);
    size_t len = sizeof(key.head) + (size_t)n * sizeof(*key.frames);
    site = strpool_find(&sites.keys, (const char *)&key, len);
    if (site < 0 && sites.keys.strings.len < MAX_SITES)
        site = strpool_add(&sites.keys, (const char *)&key, len);
    pthread_mutex_unlock(&lock);
    return site < 0 ? 0 : (uint32_t)site + 1;
}

void monitor_sites_add(uint32_t site, bool count, uint64_t ns)
{
    if (!site) {
        sites.lost += count;
        return;
    }
    atomic_fetch_add_explicit(&sites.list[site - 1].count, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&sites.list[site - 1].ns, ns, memory_order_relaxed);
    sites.entered += count;
}

void monitors_blocked(uint32_t site, uint64_t ns)
{
    monitor_sites_add(site, true, ns);
}

/* A row of MONITOR TIME. */
struct ranked {
    uint64_t ns, count;
    uint32_t trace, class;
};

static int by_time(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1)
                          : (x->trace > y->trace) - (x->trace < y->trace);
}

/* Takes the counts of a site and returns its trace; the site's counters restart at zero. */
static struct ranked take_site(struct session *s, JNIEnv *jni, size_t i)
{
    pthread_mutex_lock(&lock);
    struct str key = strpool_get(&sites.keys, i); /* its bytes do not move */
    pthread_mutex_unlock(&lock);
    struct key_head head;
    memcpy(&head, key.data, sizeof(head));
    struct ranked row = {.class = head.class};
    row.ns = atomic_exchange(&sites.list[i].ns, 0);
    row.count = atomic_exchange(&sites.list[i].count, 0);
    if (!row.count && !row.ns)
        return row;
    struct jfr_frame frames[MAX_DEPTH];
    uint32_t n = (uint32_t)((key.len - sizeof(head)) / sizeof(struct frame));
    for (uint32_t f = 0; f < n; f++) {
        struct frame at;
        memcpy(&at, key.data + sizeof(head) + f * sizeof(at), sizeof(at));
        frames[f] = (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci};
    }
    row.trace = dictionary_trace(s->out.dictionary, jni, frames, n, head.thread);
    return row;
}

void monitors_source_name(const char *descriptor, char *to, size_t size)
{
    size_t dims = strspn(descriptor, "["), len;
    static const char *const primitives[] = {"Zboolean", "Cchar",  "Ffloat", "Ddouble",
                                             "Bbyte",    "Sshort", "Iint",   "Jlong"};
    const char *element = descriptor + dims;
    if (*element == 'L') {
        names_dotted(element + 1, to, size);
        len = strlen(to);
        len -= len && to[len - 1] == ';';
    } else {
        len = 0;
        for (size_t i = 0; i < ARRAY_SIZE(primitives); i++)
            if (primitives[i][0] == *element)
                len = (size_t)snprintf(to, size, "%s", primitives[i] + 1);
    }
    for (; dims && len + 3 <= size; dims--, len += 2)
        memcpy(to + len, "[]", 2);
    to[len] = '\0';
}

static void write_times(struct session *s, struct ranked *rows, size_t n)
{
    enum { NAME = 1024 };

    uint64_t total = 0, sum = 0;
    char name[NAME];
    for (size_t i = 0; i < n; i++)
        total += rows[i].ns;
    pthread_mutex_lock(&s->out.lock);
    hprof_text_ranked_begin(&s->out.text, HPROF_RANKED_MONITORS,
                            (total + NS_PER_MS / 2) / NS_PER_MS, time(NULL));
    for (size_t i = 0; i < n && total; i++) {
        double self = (double)rows[i].ns / (double)total;
        if (self < s->options.v[OPT_CUTOFF].fraction)
            break;
        sum += rows[i].ns;
        monitors_source_name(strpool_get(&sites.classes, rows[i].class).data, name, sizeof(name));
        hprof_text_ranked(&s->out.text, HPROF_RANKED_MONITORS, (uint32_t)i + 1, 100 * self,
                          100 * (double)sum / (double)total, rows[i].count, rows[i].trace, name);
    }
    hprof_text_ranked_end(&s->out.text, HPROF_RANKED_MONITORS);
    pthread_mutex_unlock(&s->out.lock);
}

void monitor_sites_write(struct session *s, JNIEnv *jni)
{
    pthread_mutex_lock(&lock);
    size_t n = sites.keys.strings.len, kept = 0;
    pthread_mutex_unlock(&lock);
    struct ranked *rows = calloc(n + 1, sizeof(*rows));
    if (!rows) {
        session_message(s, "monitor=y: no memory for a dump");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        rows[kept] = take_site(s, jni, i);
        /* a wait that an earlier dump has counted has time alone */
        kept += rows[kept].count || rows[kept].ns;
    }
    qsort(rows, kept, sizeof(*rows), by_time);
    write_times(s, rows, kept);
    free(rows);
}

const char *monitor_sites_class_name(uint32_t class)
{
    return strpool_get(&sites.classes, class).data;
}

uint64_t monitor_sites_entered(void)
{
    return sites.entered;
}

uint64_t monitor_sites_lost(void)
{
    return sites.lost;
}
