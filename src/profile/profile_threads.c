/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profile.h"

#include <stdlib.h>

static int mark_thread(void *threads, const struct profile_sample *s)
{
    ((uint8_t *)threads)[s->thread] = 1;
    return 0;
}

size_t profile_view_threads(const struct profile_view *v)
{
    const struct profile *p = v->profile;
    bool without_idle = v->metric == PROFILE_WALL && v->filter.without_idle;
    _cleanup_free_ uint8_t *threads = calloc(p->threads.len + 1, 1);
    size_t n = 0;
    if (!threads)
        return 0;
    /* Samples of other metrics may have been merged by stack, over all threads. */
    if (without_idle)
        profile_view_each(v, mark_thread, threads);
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        bool has = without_idle ? threads[i] : t->metrics >> v->metric & 1;
        n += has && profile_text(p, t->name).len;
    }
    return n;
}
