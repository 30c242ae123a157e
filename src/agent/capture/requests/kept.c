/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which details are kept. While requests are few, the details of all of them are written at
 * once; when they are many, those of a random sample. The works of all other requests are kept in
 * the record of their request until it ends; then they are written if it is one of the slowest of
 * its name in this minute, and otherwise counted.
 */
#include "agent/capture/requests/follow.h"

#include "agent/session/budget.h"
#include "base/hash.h"
#include "base/seqlock.h"

/*
 * The details of all requests are kept until BURST more requests than RATE per second have arrived,
 * and from then on those of a sample of RATE requests per second. An hour therefore takes less than
 * 200 MB, however many requests there are.
 */
enum { RATE = 300, BURST = 100000, FULL = BURST / 2 };

/*
 * Until then the details of at most this many requests per second are written, because the file
 * cannot grow faster. A fifth of them may arrive at once, before the rate is known.
 */
enum { FULL_RATE = 30000 };

/*
 * Allows the details of n requests. If more requests arrive before the next call, up to n more are
 * kept, with a probability that falls with the number that is left.
 */
static void allow_now(int64_t n)
{
    atomic_store(&follow.now_most, 2 * n);
    atomic_store(&follow.now_left, 2 * n);
}

/* the level of reduction; each level keeps a fourth as many details */
static _Atomic unsigned reduced;

void requests_reduce(unsigned level)
{
    atomic_store(&reduced, level);
}

static unsigned fewer;

static void choose_anew(void)
{
    atomic_store(&follow.choice, fewer ? budget_random() << 6 | 2 * fewer : 0);
}

void requests_count_fewer(unsigned level)
{
    fewer = level;
    choose_anew();
}

uint32_t follow_weight(void)
{
    return UINT32_C(1) << (atomic_load_explicit(&follow.choice, memory_order_relaxed) &
                           CHOICE_BITS);
}

void follow_kept_start(void)
{
    for (size_t i = 0; i < DRAWS; i++)
        follow.draws[i * DRAW_WORDS] = budget_random();
    follow.allowance = BURST;
    follow.share = 0x10000;
    allow_now(FULL_RATE / 5);
    follow.flushed_ns = now_ns();
    follow.flushed_begun = 0;
}

enum request_kept follow_choose(uint64_t id, uint32_t *ret_one_of)
{
    uint64_t chance = /* of 2^32: the probability */
        (uint64_t)atomic_load_explicit(&follow.share, memory_order_relaxed) << 16;
    int64_t left = atomic_load_explicit(&follow.now_left, memory_order_relaxed),
            most = atomic_load_explicit(&follow.now_most, memory_order_relaxed);
    for (; left < most / 2 && chance > 4; most /= 2)
        chance /= 4;
    if ((hash_u64(id) & UINT32_MAX) >= chance || left <= 0 ||
        atomic_fetch_sub_explicit(&follow.now_left, 1, memory_order_relaxed) <= 0)
        return KEPT_NOT;
    *ret_one_of = (uint32_t)MIN(((UINT64_C(1) << 32) + chance / 2) / chance, UINT32_MAX);
    return chance >> 32 ? KEPT_ALL : KEPT_SAMPLE;
}

void requests_budget_details(uint64_t now)
{
    uint64_t ns = now - follow.flushed_ns, begun = atomic_load(&follow.begun),
             n = begun - follow.flushed_begun;
    if (ns < NS_PER_SECOND / 20)
        return;
    int64_t left = atomic_load(&follow.allowance), more = (int64_t)(RATE * ns / NS_PER_SECOND);
    if (left < BURST)
        atomic_fetch_add(&follow.allowance, MIN(more, BURST - left));
    unsigned less = 2 * atomic_load(&reduced);
    uint64_t rate = (uint64_t)(left > FULL ? FULL_RATE : RATE) >> less;
    uint64_t share = n ? rate * ns / NS_PER_SECOND * 0x10000 / n : 0x10000;
    atomic_store(&follow.share, (uint32_t)MIN(share, UINT64_C(0x10000)));
    allow_now((int64_t)(left > FULL ? FULL_RATE / 5 : RATE) >> less);
    follow.flushed_ns = now;
    follow.flushed_begun = begun;
    choose_anew();
}

void follow_set_kept(uint64_t id, bool kept)
{
    uint64_t bit = UINT64_C(1) << (id & 63);
    _Atomic uint64_t *word = &follow.late[(id & (LATE - 1)) >> 6];
    if (kept)
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    else if (atomic_load_explicit(word, memory_order_relaxed) & bit)
        atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

bool follow_was_kept(uint64_t id)
{
    return atomic_load(&follow.late[(id & (LATE - 1)) >> 6]) >> (id & 63) & 1;
}

void follow_put(uint64_t id, const struct piece *p)
{
    if (p->is_child)
        requests_put_child(id, &p->child);
    else
        requests_put_work(id, &p->work);
}

bool follow_is_kept(uint64_t token)
{
    const struct request *r = follow_request(token);
    bool kept = r && r->kept != KEPT_NOT;
    return kept && seqlock_stamp_holds(&r->token, token);
}

void follow_keep(uint64_t token, const struct piece *p)
{
    struct request *r = follow_request(token);
    bool write = false;
    if (r) {
        follow_lock(r);
        if (atomic_load(&r->token) != token)
            r = (follow_unlock(r), NULL);
    }
    if (!r) {
        write = follow_was_kept(TOKEN_ID(token));
    } else {
        write = r->kept != KEPT_NOT;
        if (!write && r->n_pieces < PIECES)
            r->pieces[r->n_pieces] = *p;
        if (!write)
            r->n_pieces++;
        follow_unlock(r);
    }
    if (write)
        follow_put(TOKEN_ID(token), p);
}
