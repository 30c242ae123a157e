/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vm/vm.h"

void vm_key_text(const struct vm_view *w, struct json *j, const char *key, uint32_t text)
{
    json_key_string(j, key, text == VM_NONE ? NULL : vm_activity_text(&w->v, text));
}

uint64_t vm_since_start(const struct vm_view *w, int64_t ns)
{
    return (uint64_t)MAX(ns - w->v.start_ns, INT64_C(0));
}

static void safepoint_json(const struct vm_view *w, const struct vm_safepoint *s, struct json *j)
{
    json_begin_object(j);
    json_key_u64(j, "at_ns", vm_since_start(w, s->start_ns));
    json_key_u64(j, "time_ns", s->total_ns);
    json_key_u64(j, "way_ns", s->sync_ns);
    vm_key_text(w, j, "operation", s->operation);
    vm_key_text(w, j, "late_thread", s->late_thread);
    const struct vm_frame *f = vm_late_frame(w, s);
    vm_key_text(w, j, "late_method", f ? f->method : VM_NONE);
    json_key_u64(j, "late_line", f ? f->line : 0);
    json_key_array(j, "late_stack");
    for (uint32_t i = 0; i < s->late_n; i++, f++) {
        json_begin_object(j);
        vm_key_text(w, j, "method", f->method);
        json_key_u64(j, "line", f->line);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void listed_json(const struct vm_view *w, const char *key, const uint32_t *list, size_t n,
                        struct json *j)
{
    json_key_array(j, key);
    for (size_t i = 0; i < MIN(n, w->limit); i++)
        safepoint_json(w, &w->v.safepoints.data[list[i]], j);
    json_end_array(j);
}

static void safepoints_json(const struct vm_view *w, struct json *j)
{
    json_key_object(j, "safepoints");
    json_key_u64(j, "count", w->totals.count);
    json_key_u64(j, "time_ns", w->totals.time_ns);
    json_key_u64(j, "way_ns", w->totals.sync_ns);
    json_key_bool(j, "time_known", vm_stops_known(w));
    json_key_u64(j, "least_way_ns", w->v.safepoint_least_ns);
    json_key_u64(j, "each_known", w->v.safepoints.len);
    json_key_array(j, "operations");
    for (size_t i = 0; i < w->operations.len; i++) {
        const struct vm_group *g = &w->operations.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "operation", g->name);
        json_key_u64(j, "count", g->n);
        json_key_u64(j, "time_ns", g->total_ns);
        json_key_u64(j, "way_ns", g->sync_ns);
        json_key_u64(j, "longest_ns", g->longest_ns);
        json_key_u64(j, "longest_way_ns", g->longest_sync_ns);
        json_end_object(j);
    }
    json_end_array(j);
    listed_json(w, "longest", w->longest.data, w->longest.len, j);
    listed_json(w, "late", w->late.data, w->late.len, j);
    json_end_object(j);
}

static void collections_json(const struct vm_view *w, struct json *j)
{
    json_key_object(j, "collections");
    json_key_u64(j, "count", w->v.collections.len);
    json_key_u64(j, "pauses", w->v.pauses.len);
    json_key_u64(j, "pause_ns", w->pause_ns);
    json_key_u64(j, "longest_pause_ns", w->pause_longest_ns);
    json_key_u64(j, "allocated_bytes", w->allocated);
    json_key_string(j, "heap_note", w->heap_note);
    const struct vm_figure *old = &w->v.figures[VM_OLD_GENERATION];
    json_key(j, "old_generation_grown_bytes");
    if (old->n)
        json_u64(j, old->grown);
    else
        json_null(j);
    json_key_array(j, "causes");
    for (size_t i = 0; i < w->collections.len; i++) {
        const struct vm_group *g = &w->collections.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "collector", g->name);
        vm_key_text(w, j, "cause", g->cause);
        json_key_u64(j, "count", g->n);
        json_key_u64(j, "pause_ns", g->total_ns);
        json_key_u64(j, "longest_pause_ns", g->longest_ns);
        json_key(j, "freed_bytes");
        if (g->with_heap)
            json_u64(j, g->freed);
        else
            json_null(j);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "kinds");
    for (size_t i = 0; i < w->pauses.len; i++) {
        const struct vm_group *g = &w->pauses.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "pause", g->name);
        json_key_u64(j, "count", g->n);
        json_key_u64(j, "pause_ns", g->total_ns);
        json_key_u64(j, "longest_pause_ns", g->longest_ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "phases");
    for (size_t i = 0; i < w->phases.len; i++) {
        const struct vm_group *g = &w->phases.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "phase", g->name);
        json_key_bool(j, "concurrent", g->concurrent);
        json_key_u64(j, "count", g->n);
        json_key_u64(j, "time_ns", g->total_ns);
        json_key_u64(j, "longest_ns", g->longest_ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "list");
    for (size_t i = 0; i < w->v.collections.len; i++) {
        const struct vm_collection *c = &w->v.collections.data[i];
        json_begin_object(j);
        json_key_u64(j, "id", c->id);
        json_key_u64(j, "at_ns", vm_since_start(w, c->start_ns));
        json_key_u64(j, "duration_ns", c->duration_ns);
        json_key_u64(j, "pause_ns", c->pauses_ns);
        json_key_u64(j, "longest_pause_ns", c->longest_ns);
        vm_key_text(w, j, "collector", c->name);
        vm_key_text(w, j, "cause", c->cause);
        if (c->has_heap)
            json_key_u64(j, "before_bytes", c->before);
        if (c->has_heap || c->no_before) {
            json_key_u64(j, "after_bytes", c->after);
            json_key_u64(j, "capacity_bytes", c->capacity);
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

void vm_view_json(const struct vm_view *w, struct json *j)
{
    json_key_u64(j, "duration_ns", w->window_ns);
    safepoints_json(w, j);
    collections_json(w, j);
    vm_view_process_json(w, j);
}
