/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU samples that were thinned to stay within the budget of a recording: those that were kept also
 * stand for the others, so the sums are estimates. The agent writes such a sample as several equal
 * events, one after the other, because that is what other readers of flight recordings understand.
 * It does so as well where it was late, and stands for the intervals since the sample before; these
 * samples are not chosen at random, and alone they make no estimates.
 */
#include "profile/load_jfr.h"

#include <string.h>

void load_loss(struct reading *r, const struct rec_row *row)
{
    struct rec_event e;
    r->p->lost_any = true;
    rec_row_event(row, &e);
    r->thinned.any |= rec_long(&e.object, "oneOf", 0) > 1 &&
                      strcmp(rec_string(&e.object, "what", ""), "CPU samples") == 0;
}

void load_thinned(struct reading *r, const struct load_same *of)
{
    struct load_thinned *t = &r->thinned;
    uint64_t time_ns = (uint64_t)MAX(of->start_ns - r->start_ns, INT64_C(0));
    if (time_ns < r->how.from_ns || (r->how.to_ns && time_ns >= r->how.to_ns))
        return;
    bool goes_on = t->run && t->of.start_ns == of->start_ns && t->of.thread == of->thread;
    uint64_t before = goes_on ? t->run : 1;
    t->repeated++;
    t->squares += 2 * (double)before; /* (before + 1)^2 - before^2, less 1 */
    t->run = before + 1;
    t->of = *of;
}

void load_settle_thinned(const struct load_thinned *t, struct profile_series *series)
{
    double whole = t->any ? (double)profile_series_weight(series) : 0;
    if (whole <= (double)t->repeated)
        return;
    series->kept_share = 1 - (double)t->repeated / whole;
    series->kept_squares = 1 + t->squares / whole;
}
