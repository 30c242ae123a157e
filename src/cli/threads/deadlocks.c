/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope threads deadlocks FILE. */
#include "cli/threads/threads.h"

#include "analysis/deadlock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/losses.h"
#include "options/options.h"

#include <stdio.h>

/* What a recording does not show about threads that wait when it ends. */
struct unjudged {
    bool locks;        /* the owners of locks of java.util.concurrent are not recorded */
    uint64_t waiting;  /* threads that wait for one */
    uint64_t monitors; /* threads that wait for a monitor whose owner is unknown */
};

/* Reports that there is no deadlock, and what is not known. */
static void print_none(const struct unjudged *u)
{
    if (!u->locks)
        puts("no deadlock at the end of the recording");
    else if (!u->waiting)
        puts("no deadlock of monitors at the end of the recording; who owns locks of "
             "java.util.concurrent is recorded with --deadlocks");
    else
        printf("no deadlock of monitors at the end of the recording; threads that wait for locks "
               "of java.util.concurrent, whose owners are recorded with --deadlocks: %llu\n",
               (unsigned long long)u->waiting);
}

/*
 * Reports what else may be deadlocked. of_locks: a deadlock with locks of java.util.concurrent was
 * found, whose owners were recorded because it existed when the recording began.
 */
static void print_unjudged(const struct unjudged *u, bool of_locks)
{
    if (u->monitors)
        printf("%s %s for monitors whose owners are unknown, so deadlocks of these are not found "
               "(record with --deadlocks)\n",
               COUNT_TEXT(u->monitors, "threads"), u->monitors == 1 ? "waits" : "wait");
    if (!u->locks)
        return;
    printf("not examined: %sdeadlocks with locks of java.util.concurrent, whose owners are "
           "recorded with --deadlocks",
           of_locks ? "later " : "");
    if (u->waiting)
        printf("; threads that wait for one: %llu", (unsigned long long)u->waiting);
    putchar('\n');
}

static void print_rest(bool looked, const struct unjudged *u, bool found, bool of_locks)
{
    if (!looked && !found)
        puts("not known: this recording does not show who owns locks "
             "(record with --threads or --deadlocks)");
    else if (found || u->monitors)
        print_unjudged(u, of_locks);
    else
        print_none(u);
}

/* Returns whether a thread of a deadlock waits for a lock of java.util.concurrent. */
static bool is_of_locks(const struct timeline *t, const struct deadlock *d)
{
    for (size_t i = 0; i < d->waits.len; i++) {
        uint32_t object = tl_context_of(t, d->waits.data[i])->object;
        if (object != TL_NONE && t->objects[object].flags & TL_OBJECT_LOCK)
            return true;
    }
    return false;
}

int threads_deadlocks(struct thread_view *v)
{
    struct deadlocks d;
    int r = deadlocks_find(v->t, &d);
    if (r < 0)
        return complain_errno(v->path, "cannot analyse", r);
    _cleanup_(buf_release) struct buf b = BUF(64 << 20);
    struct json j = {.out = &b};
    bool looked = v->t->instrumented != TL_NONE;
    bool locks = looked && contents_requested(v->path, OPT_DEADLOCK);
    /* deadlock=y examined these waits when they were recorded */
    const struct unjudged u = {.locks = !locks,
                               .waiting = deadlocks_waiting_for_locks(v->t),
                               .monitors = locks ? 0 : v->t->owners_unknown};
    json_begin_object(&j);
    json_key_bool(&j, "looked", looked);
    json_key_bool(&j, "looked_at_locks", locks);
    json_key_u64(&j, "waiting_for_locks", u.waiting);
    json_key_u64(&j, "owner_unknown", u.monitors);
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any || v->t->cut_at, &j);
    json_key_array(&j, "deadlocks");
    bool of_locks = false;
    for (size_t i = 0; i < d.list.len; i++) {
        char at[24];
        bool before = d.list.data[i].formed_ns == 0 && v->t->began_before;
        of_locks |= is_of_locks(v->t, &d.list.data[i]);
        json_begin_object(&j);
        json_key_u64(&j, "formed_ns", d.list.data[i].formed_ns);
        json_key_bool(&j, "formed_before", before);
        json_key_array(&j, "cycle");
        if (!v->options->json)
            printf("deadlock of %zu threads, formed %s%s:\n", d.list.data[i].waits.len,
                   before ? "before the recording began" : "at ",
                   before ? "" : format_duration(at, d.list.data[i].formed_ns));
        for (size_t k = 0; k < d.list.data[i].waits.len; k++) {
            uint32_t node = d.list.data[i].waits.data[k];
            const struct tl_context *c = tl_context_of(v->t, node);
            const char *class_name = tl_object_class(v->t, c->object);
            json_begin_object(&j);
            json_key(&j, "thread");
            threads_json_thread(&j, v->t, tl_node(v->t, node).thread);
            json_key_string(&j, "waits_for", class_name);
            json_key(&j, "owned_by");
            threads_json_thread(&j, v->t, c->other);
            json_key(&j, "frames");
            threads_json_frames(&j, v->t, c->stack);
            json_end_object(&j);
            if (v->options->json)
                continue;
            printf("  %s waits for %s owned by %s\n",
                   tl_thread_name(v->t, tl_node(v->t, node).thread), class_name ? class_name : "?",
                   tl_thread_name(v->t, c->other));
            for (uint32_t f = 0; c->stack != TL_NONE && f < v->t->stacks[c->stack].len; f++) {
                const struct tl_frame *frame = &v->t->frames[v->t->stacks[c->stack].first + f];
                printf(frame->line ? "      at %s:%u\n" : "      at %s\n",
                       tl_string(v->t, frame->method), frame->line);
            }
        }
        json_end_array(&j);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    if (!v->options->json)
        print_rest(looked, &u, d.list.len > 0, of_locks);
    deadlocks_release(&d);
    return v->options->json ? threads_json_print(&b) : 0;
}
