/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records collections from the lines of the log. Lines that belong to one collection have its
 * number; a line with the tag gc alone usually ends it. Concurrent collectors interleave the lines
 * of several collections.
 */
#include "agent/capture/alarms/alarms.h"
#include "agent/capture/vm/vm.h"
#include "agent/vm/counters.h"

#include <stdio.h>
#include <string.h>

enum { OPEN_MAX = 8, COLLECTORS = 3 };

#define QUIET_NS (5 * NS_PER_SECOND) /* ends a collection whose last line is missing */

struct open_collection {
    bool used, has_heap, no_before;
    bool undone; /* a marking that G1 prepared and then found unnecessary: it collects nothing */
    struct collection c;
    uint64_t phase_ns; /* where the next phase of the pause begins */
    uint64_t heap_ns, before, after, capacity;
};

static struct {
    struct open_collection open[OPEN_MAX];
    char trigger[64]; /* Shenandoah's reason, which it logs before the collection has a number */
    const int64_t *invocations[COLLECTORS];
    uint64_t counted_before, pauses, pauses_lost;
} all;

void collections_reset(void)
{
    memset(&all, 0, sizeof(all));
}

void collection_put(const struct collection *c)
{
    struct jfr_event e;
    struct jfr_writer *w = vm_activity.jfr;
    uint64_t name = jfr_define_name(w, JFR_POOL_GC_NAME, c->name);
    uint64_t cause = c->cause[0] ? jfr_define_name(w, JFR_POOL_GC_CAUSE, c->cause) : 0;
    if (!jfr_begin(w, JFR_GARBAGE_COLLECTION, 0, &e))
        return;
    jfr_put_time(&e, c->start_ns);
    jfr_put_long(&e, (int64_t)(c->end_ns - MIN(c->start_ns, c->end_ns)));
    jfr_put_int(&e, (int32_t)c->id);
    jfr_put_long(&e, (int64_t)name);
    jfr_put_long(&e, (int64_t)cause);
    jfr_put_long(&e, (int64_t)c->pauses_ns);
    jfr_put_long(&e, (int64_t)c->longest_ns);
    jfr_commit(&e);
}

void collection_put_heap(uint32_t id, uint64_t ns, const char *when, uint64_t used,
                         uint64_t capacity)
{
    struct jfr_event e;
    struct jfr_writer *w = vm_activity.jfr;
    uint64_t name = jfr_define_name(w, JFR_POOL_GC_WHEN, when);
    if (!jfr_begin(w, JFR_GC_HEAP_SUMMARY, 0, &e))
        return;
    jfr_put_time(&e, ns);
    jfr_put_int(&e, (int32_t)id);
    jfr_put_long(&e, (int64_t)name);
    jfr_put_long(&e, 0); /* start address of the heap region, which is not recorded */
    jfr_put_long(&e, 0);
    jfr_put_long(&e, (int64_t)capacity);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, (int64_t)used);
    jfr_commit(&e);
}

void collection_put_phase(uint32_t type, uint32_t id, uint64_t start_ns, uint64_t duration_ns,
                          const char *name, size_t len)
{
    if (type == JFR_GC_PHASE_PAUSE)
        alarm_pause(start_ns, duration_ns);
    struct jfr_event e;
    if (!jfr_begin(vm_activity.jfr, type, len + 64, &e))
        return;
    jfr_put_time(&e, start_ns);
    jfr_put_long(&e, (int64_t)duration_ns);
    jfr_put_long(&e, 0);
    jfr_put_int(&e, (int32_t)id);
    jfr_put_string_n(&e, name, len);
    jfr_commit(&e);
}

static void end(struct open_collection *o)
{
    if (!o->used)
        return;
    o->used = false;
    if (o->has_heap && !o->no_before)
        collection_put_heap(o->c.id, o->c.start_ns, "Before GC", o->before, o->capacity);
    if (o->has_heap)
        collection_put_heap(o->c.id, o->heap_ns, "After GC", o->after, o->capacity);
    if (!o->undone)
        collection_put(&o->c);
}

static struct open_collection *collection_of(uint32_t id, uint64_t start_ns)
{
    struct open_collection *oldest = &all.open[0];
    for (int i = 0; i < OPEN_MAX; i++) {
        struct open_collection *o = &all.open[i];
        if (o->used && o->c.id == id)
            return o;
        if (!o->used || (oldest->used && o->c.start_ns < oldest->c.start_ns))
            oldest = o;
    }
    end(oldest);
    *oldest = (struct open_collection){.used = true,
                                       .c = {.id = id, .start_ns = start_ns, .end_ns = start_ns},
                                       .phase_ns = start_ns};
    snprintf(oldest->c.name, sizeof(oldest->c.name), "%s", "GC");
    snprintf(oldest->c.cause, sizeof(oldest->c.cause), "%s", all.trigger);
    all.trigger[0] = 0;
    return oldest;
}

/*
 * Returns JFR's name for the collector that wrote this line, or NULL when another line of the same
 * collection shows which one it is.
 */
static const char *name_of(const struct log_gc *g)
{
    static const struct {
        const char *begin, *name;
    } names[] = {
        {"Garbage Collection", "Z"},       {"Minor Collection", "ZGC Minor"},
        {"Major Collection", "ZGC Major"}, {"Concurrent reset", "Shenandoah"},
        {"Pause Init Mark", "Shenandoah"}, {"Pause Degenerated", "Shenandoah"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (log_text_starts(g->name, names[i].begin))
            return names[i].name;
    if (log_text_starts(g->name, "Pause Full") ||
        log_text_starts(g->name, "Concurrent Mark Cycle") ||
        log_text_starts(g->name, "Concurrent Cycle") ||
        log_text_starts(g->name, "Pause Initial Mark"))
        return gc_name(true);
    return log_text_starts(g->name, "Pause Young") || log_text_starts(g->name, "Pause Mixed")
               ? gc_name(false)
               : NULL;
}

/* Returns whether a line with the tag gc alone is the last one of its collection. */
static bool ends_here(const struct log_gc *g)
{
    static const char *const ends[] = {
        "Pause Young",           "Pause Full",       "Pause Mixed",           "Garbage Collection",
        "Minor Collection",      "Major Collection", "Concurrent Mark Cycle", "Concurrent Cycle",
        "Concurrent Undo Cycle", "Concurrent Reset"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (log_text_starts(g->name, ends[i]))
            return g->has_duration || g->has_heap;
    return false;
}

/*
 * The first line of a collection that has the heap gives its use before and after. Shenandoah
 * writes one after marking, when only regions without live objects have been freed, and another one
 * after evacuation: the first gives the heap before the collection, the last one the heap after it.
 * Since JDK 26 the regions are freed before the first line, so no line gives the heap before the
 * collection.
 */
static void note_heap(struct open_collection *o, const struct log_gc *g, uint64_t ns)
{
    bool cleanup = log_text_starts(g->name, "Concurrent cleanup");
    if (o->has_heap && !cleanup)
        return;
    if (!o->has_heap) {
        o->before = g->before;
        o->no_before = cleanup && vm.version > 25;
    }
    o->has_heap = true;
    o->after = g->after;
    o->capacity = g->capacity;
    o->heap_ns = ns;
}

static void on_pause(struct open_collection *o, const struct log_gc *g, uint64_t start)
{
    all.pauses++;
    o->c.pauses_ns += g->duration_ns;
    o->c.longest_ns = MAX(o->c.longest_ns, g->duration_ns);
    collection_put_phase(JFR_GC_PHASE_PAUSE, o->c.id, start, g->duration_ns, g->name.data,
                         g->name.len);
}

static void on_line(const struct log_line *line, const struct log_gc *g)
{
    uint64_t start = line->ns - MIN(g->duration_ns, line->ns);
    bool starts = log_text_is(line->tags, "gc,start"), phase = log_text_is(line->tags, "gc,phases");
    struct open_collection *o = collection_of(g->id, start);
    const char *name = name_of(g);
    o->c.end_ns = MAX(o->c.end_ns, line->ns);
    o->undone = o->undone || log_text_starts(g->name, "Concurrent Undo Cycle");
    if (name && (strcmp(o->c.name, "GC") == 0 || log_text_starts(g->name, "Pause Full")))
        snprintf(o->c.name, sizeof(o->c.name), "%s", name);
    if (g->cause.len)
        log_text_copy(o->c.cause, sizeof(o->c.cause), g->cause);
    if (starts) {
        o->phase_ns = line->ns;
        return;
    }
    if (!g->has_duration && !g->has_heap)
        return;
    if (log_text_starts(g->name, "Pause ")) {
        if (g->has_duration)
            on_pause(o, g, start);
    } else if (log_text_starts(g->name, "Concurrent ")) {
        /* A whole cycle of G1 counts as one collection. */
        if (g->has_duration && !ends_here(g))
            collection_put_phase(JFR_GC_PHASE_CONCURRENT, g->id, start, g->duration_ns,
                                 g->name.data, g->name.len);
    } else if (phase && g->has_duration && !g->has_heap) {
        collection_put_phase(JFR_GC_PHASE_PAUSE_LEVEL_1, g->id, o->phase_ns, g->duration_ns,
                             g->name.data, g->name.len);
        o->phase_ns += g->duration_ns;
    }
    /* ZGC's "Young Generation" is a part of a collection, which has a line of its own later. */
    if (g->has_heap && !phase)
        note_heap(o, g, line->ns);
    if (log_text_is(line->tags, "gc") && ends_here(g))
        end(o);
}

/*
 * Takes Shenandoah's reason for a collection without its figures, so that equal reasons are equal:
 * "Free (91266K) is below minimum threshold (13107K)" and "Learning 1 of 5. Free ..." become "Free
 * is below minimum threshold" and "Learning".
 */
static void note_trigger(struct log_text why)
{
    size_t n = 0;
    for (size_t i = 0; i < why.len && n < sizeof(all.trigger) - 1; i++) {
        char c = why.data[i];
        char next = i + 1 < why.len ? why.data[i + 1] : 0;
        const char *close = NULL;
        if (c == '(' && next >= '0' && next <= '9')
            close = memchr(why.data + i, ')', why.len - i);
        if (close) {
            i = (size_t)(close - why.data);
            n -= n && all.trigger[n - 1] == ' ';
            continue;
        }
        if ((c == '.' && (next == ' ' || !next)) || (c == ' ' && next >= '0' && next <= '9'))
            break;
        all.trigger[n++] = c;
    }
    all.trigger[n] = 0;
}

void collections_line(const struct log_line *line)
{
    struct log_gc g;
    if (log_gc_read(line->text, &g))
        on_line(line, &g);
    else if (log_text_starts(line->text, "Trigger: "))
        note_trigger((struct log_text){line->text.data + 9, line->text.len - 9});
}

/*
 * Returns whether a later collection has begun. Shenandoah begins one only after the previous one
 * has ended.
 */
static bool followed(const struct open_collection *o)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (all.open[i].used && all.open[i].c.id > o->c.id && all.open[i].c.start_ns >= o->c.end_ns)
            return true;
    return false;
}

void collections_idle(uint64_t now, bool at_end)
{
    for (int i = 0; i < OPEN_MAX; i++) {
        struct open_collection *o = &all.open[i];
        if (o->used && (at_end || now > o->c.end_ns + QUIET_NS ||
                        (strcmp(o->c.name, "Shenandoah") == 0 && followed(o))))
            end(o);
    }
}

/* ---- whether the log has all of them ---- */

uint64_t collections_counted(void)
{
    uint64_t n = 0;
    for (int i = 0; i < COLLECTORS; i++)
        n += (uint64_t)counter_value(all.invocations[i]);
    return n - all.counted_before;
}

/*
 * All collectors but Shenandoah count each pause once; ZGC of JDK 11 counts none. A pause that
 * begins while this is called is counted too.
 */
void collections_count(void)
{
    for (int i = 0; i < COLLECTORS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "sun.gc.collector.%d.invocations", i);
        all.invocations[i] = strcmp(gc_name(true), "Shenandoah") == 0 ? NULL : counter_number(name);
    }
    all.counted_before = all.pauses = all.pauses_lost = 0;
    all.counted_before = collections_counted();
}

void collections_compare(struct jfr_writer *w, uint64_t counted, uint64_t may_arrive)
{
    uint64_t seen = all.pauses + all.pauses_lost + may_arrive, n = counted - MIN(counted, seen);
    all.pauses_lost += n;
    jfr_lose_since(w, LOSS_VM_PAUSES, n);
}
