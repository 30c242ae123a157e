/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope threads deadlocks FILE. */
#include "cli/threads/threads.h"

#include "analysis/deadlock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/losses.h"

#include <stdio.h>

int threads_deadlocks(struct thread_view *v)
{
    struct deadlocks d;
    int r = deadlocks_find(v->t, &d);
    if (r < 0)
        return complain_errno(v->path, "cannot analyse", r);
    _cleanup_(buf_release) struct buf b = BUF(64 << 20);
    struct json j = {.out = &b};
    bool looked = v->t->instrumented != TL_NONE;
    json_begin_object(&j);
    json_key_bool(&j, "looked", looked);
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any, &j);
    json_key_array(&j, "deadlocks");
    for (size_t i = 0; i < d.list.len; i++) {
        char at[24];
        json_begin_object(&j);
        json_key_u64(&j, "formed_ns", d.list.data[i].formed_ns);
        json_key_array(&j, "cycle");
        if (!v->options->json)
            printf("deadlock of %zu threads, formed at %s:\n", d.list.data[i].waits.len,
                   format_duration(at, d.list.data[i].formed_ns));
        for (size_t k = 0; k < d.list.data[i].waits.len; k++) {
            uint32_t node = d.list.data[i].waits.data[k];
            const struct tl_context *c = tl_context_of(v->t, node);
            const char *class_name = tl_object_class(v->t, c->object);
            json_begin_object(&j);
            json_key(&j, "thread");
            json_thread(&j, v->t, tl_node(v->t, node).thread);
            json_key_string(&j, "waits_for", class_name);
            json_key(&j, "owned_by");
            json_thread(&j, v->t, c->other);
            json_key(&j, "frames");
            json_frames(&j, v->t, c->stack);
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
    if (!v->options->json && d.list.len == 0)
        puts(looked ? "no deadlock at the end of the recording"
                    : "not known: this recording does not show who owns locks "
                      "(record with --threads or --deadlocks)");
    deadlocks_release(&d);
    return v->options->json ? json_print(&b) : 0;
}
