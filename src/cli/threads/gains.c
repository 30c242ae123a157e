/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/threads/gains.h"

#include <errno.h>
#include <string.h>

/* Computes the path of the selected part. Without an end there is none: no lock has a share then.
 */
static int gains_of_path(struct thread_view *v, struct gains *g, struct holds *h)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct holds of_part = {0};
    uint64_t whole;
    int r = -ENOEXEC;
    if (v->options->from_ns || v->options->to_ns)
        r = thread_view_part(v, &g->view, &whole, &why);
    if (r < 0 && r != -ENOEXEC)
        return r;
    struct timeline *t = g->view.t;
    r = g->view.separate ? holds_collect(t, NULL, NULL, &of_part) : 0;
    if (r == 0)
        r = critical_path(t, &g->view.range, &g->path);
    if (r == 0)
        r = path_lock_shares(t, &g->path, g->view.separate ? &of_part : h, &g->shares);
    holds_release(&of_part);
    return r;
}

int gains_of(struct thread_view *v, const struct stats_filter *held, struct gains *g)
{
    struct holds h = {0};
    *g = (struct gains){.view = *v};
    int r = holds_collect(v->t, NULL, NULL, &h);
    if (r == 0)
        r = hold_stats(v->t, &h, held, &g->holds);
    if (r == 0)
        r = gains_of_path(v, g, &h);
    holds_release(&h);
    return r;
}

void gains_release(struct gains *g)
{
    if (g->view.separate)
        thread_view_release(&g->view);
    critical_path_release(&g->path);
    vec_release(&g->shares.rows);
    vec_release(&g->holds.rows);
    vec_release(&g->unknown.rows);
}

/* Returns whether two timelines' strings, which stand for classes, are equal. */
static bool is_class(const struct gains *g, uint32_t string, const struct thread_view *v,
                     uint32_t class)
{
    return g->view.separate ? strcmp(tl_string(g->view.t, string), tl_string(v->t, class)) == 0
                            : string == class;
}

const struct tl_share *gains_share(const struct gains *g, const struct thread_view *v,
                                   uint32_t class)
{
    for (size_t i = 0; i < g->shares.rows.len; i++)
        if (is_class(g, g->shares.rows.data[i].class, v, class))
            return &g->shares.rows.data[i];
    return NULL;
}

const struct tl_unowned *gains_unknown(const struct gains *g, const struct thread_view *v,
                                       uint32_t class)
{
    for (size_t i = 0; i < g->unknown.rows.len; i++)
        if (is_class(g, g->unknown.rows.data[i].class, v, class))
            return &g->unknown.rows.data[i];
    return NULL;
}

static bool of_class(const struct timeline *t, uint32_t object, void *arg)
{
    return t->objects[object].class == *(const uint32_t *)arg;
}

uint64_t gains_if(const struct gains *g, const struct tl_share *share, double factor,
                  bool *ret_inferred)
{
    uint32_t class = share->class;
    struct what_if w = {.lock = of_class, .lock_arg = &class, .factor = factor};
    struct what_if_answer a;
    if (what_if(g->view.t, &g->view.range, &w, &a) < 0)
        return 0;
    *ret_inferred |= share->inferred || a.ends_inferred;
    return a.before > a.answer ? a.before - a.answer : 0;
}
