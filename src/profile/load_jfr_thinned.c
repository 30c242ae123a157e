/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that were thinned to stay within the budget of a recording: those that were kept also
 * stand for the others, so the sums are estimates. The agent writes such a sample as several equal
 * events, one after the other, because that is what other readers of flight recordings understand.
 */
#include "profile/load_jfr.h"

/*
 * A sample of a sampler that was late stands for several ticks as well. The sums are called
 * estimates if that makes their variance so much larger than that of samples which are all there.
 */
#define THINNED_LEAST 1.5

void load_thinned(struct reading *r, enum kind kind, const struct load_same *of, uint64_t weight,
                  bool again)
{
    struct load_thinned *t = &r->thinned[kind];
    uint64_t time_ns = (uint64_t)MAX(of->start_ns - r->start_ns, INT64_C(0));
    if (time_ns < r->how.from_ns || (r->how.to_ns && time_ns >= r->how.to_ns))
        return;
    bool goes_on = t->run && t->of.start_ns == of->start_ns && t->of.thread == of->thread;
    uint64_t before = again ? (goes_on ? t->run : 1) : 0;
    t->repeated += weight - (before == 0);
    t->squares += (double)weight * (double)(weight - 1 + 2 * before);
    t->run = before + weight;
    t->of = *of;
}

void load_settle_thinned(const struct load_thinned *t, struct profile_series *series)
{
    double whole = 0;
    for (size_t i = 0; i < series->samples.len; i++)
        whole += (double)series->samples.data[i].weight;
    if (t->squares < (THINNED_LEAST - 1) * whole || whole <= (double)t->repeated)
        return;
    series->kept_share = 1 - (double)t->repeated / whole;
    series->kept_squares = 1 + t->squares / whole;
}
