/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of a recording that is always on (budget=). Once a second this capture reads what the
 * recording costs (session/own_cost.h), and decides what the other captures leave out
 * (session/budget.h).
 */
#include "agent/session/budget.h"

#include "agent/capture/alloc/sites.h"
#include "agent/capture/requests/requests.h"
#include "agent/common/rounds.h"
#include "agent/sampler/sampler.h"
#include "agent/session/own_cost.h"
#include "agent/session/session.h"
#include "base/clock.h"

#include <string.h>

/* ---- what is left out ---- */

static void set_stacks(unsigned level)
{
    atomic_store(&budget_stacks_of, UINT32_C(1) << 4 * level);
}

static void set_waits(unsigned level)
{
    atomic_store(&budget_waits_of, UINT32_C(1) << 2 * level);
}

static void set_wakes(unsigned level)
{
    atomic_store(&budget_wakes_of, UINT32_C(1) << 2 * level);
}

static void set_times(unsigned level)
{
    atomic_store(&budget_times_of, UINT32_C(1) << 8 * level);
}

static void set_samples(unsigned level)
{
    sampler_keep_one_of(UINT32_C(1) << level);
}

/*
 * The reductions in the order in which they are applied: data that costs most and shows least is
 * reduced first. Each level leaves out more than the one before.
 */
static const struct reduction {
    const char *what;
    unsigned levels, bits; /* one in 2^(level * bits) is kept */
    double least; /* the part is reduced only if it costs at least this share of the budget */
    enum own_cost_part part;
    void (*set)(unsigned level);
    bool (*can)(void); /* NULL: always */
} reductions[] = {
    {"rounds of the agent", 3, 1, 0.25, OWN_THREADS, rounds_keep},
    {"stacks of short waits", 1, 4, 0.25, OWN_WAITS, set_stacks},
    {"sampled allocations", 4, 2, 0.25, OWN_ALLOCATIONS, alloc_samples_reduce},
    {"CPU samples", 4, 1, 0.25, OWN_SAMPLES, set_samples, sampler_can_thin},
    {"details of requests", 4, 2, 0.25, OWN_REQUESTS, requests_reduce},
    {"wake-ups", 4, 2, 0.25, OWN_WAITS, set_wakes},
    {"short waits", 4, 2, 0.25, OWN_WAITS, set_waits},
    {"times of short parks", 1, 8, 0.25, OWN_WAITS, set_times},
    {"requests", 4, 2, 1, OWN_REQUESTS, requests_count_fewer},
};

enum { REDUCTIONS = ARRAY_SIZE(reductions), PATIENCE = 10, PATIENCE_MAX = 600 };

/*
 * LEAST_CPU: a process that uses hardly any CPU time is treated as if it used this share of a
 * processor.
 */
enum { LEAST_CPU = 10 /* percent */, CREDIT_SECONDS = 5 };

#define CREDIT_START_NS (10 * (int64_t)NS_PER_MS)

static const struct jfr_type budget_type = {
    .name = "jvmscope.Budget",
    .label = "Budget Decision",
    .category = "jvmscope",
    .description =
        "The share of one kind of data that is recorded from now on to stay within the budget",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"what", "What", "java.lang.String"},
                         {"oneOf", "One Kept of Every", "int",
                          .description = "One in this many is kept, chosen at random; 1 means all"},
                         {"cost", "Cost", "long", JFR_NANOS,
                          .description = "CPU time of the recorder in the previous second"},
                         {"allowed", "Allowed", "long", JFR_NANOS,
                          .description = "CPU time that the budget allows in this second"}),
};

/*
 * The costs of single seconds are noisy, because few calls are measured. What to reduce is
 * therefore decided by means in which the last MEAN_SECONDS seconds have most of the weight, or the
 * last FEW_SECONDS if at least MANY calls were measured in a second.
 */
enum { MEAN_SECONDS = 16, FEW_SECONDS = 4, MANY = 16 };

/*
 * Callbacks that are called less often than this in a second are not reduced: together they cost
 * less than a thousandth of a processor, and too few of them are measured to know the cost.
 */
enum { RARE = 100 };

static struct {
    struct jfr_writer *jfr;
    uint32_t type;
    double share;
    uint64_t checked_ns;
    struct own_cost before;
    double part_means[OWN_PARTS], allowed_mean; /* ns per second */
    double call_means[COST_CALLBACKS];          /* calls per second */
    uint64_t measured[COST_CALLBACKS];
    unsigned checks;              /* number of checks so far */
    uint64_t cost_ns, allowed_ns; /* of the last second */
    uint64_t over_seconds, changes;
    int64_t credit_ns;   /* the unused part of the budget; negative when it is exceeded */
    uint64_t process_ns; /* CPU time of the process in the last second */
    unsigned levels[REDUCTIONS];
    uint64_t since_ns[REDUCTIONS]; /* when the level was set */
    unsigned order[64], reduced;   /* order: the kinds of the levels that are in force, the latest
                                    * last; reduced: their number */
    unsigned seconds_within;       /* how many seconds the budget has been kept */
    unsigned patience;             /* how many of these seconds undo a reduction */
    uint64_t back_ns;              /* when a reduction was last undone */
} budget;

static void put_event(unsigned i, uint64_t now)
{
    struct jfr_event e;
    if (!jfr_begin(budget.jfr, budget.type, 128, &e))
        return;
    jfr_put_time(&e, now);
    jfr_put_string(&e, reductions[i].what);
    jfr_put_int(&e, (int32_t)(UINT32_C(1) << budget.levels[i] * reductions[i].bits));
    jfr_put_long(&e, (int64_t)budget.cost_ns);
    jfr_put_long(&e, (int64_t)budget.allowed_ns);
    jfr_commit(&e);
}

static void set_level(unsigned i, unsigned level, uint64_t now)
{
    budget.levels[i] = level;
    reductions[i].set(level);
    budget.since_ns[i] = now_ns();
    budget.changes++;
    put_event(i, now);
}

static bool is_rare(enum own_cost_part part)
{
    return part >= OWN_WAITS && budget.call_means[part - OWN_WAITS] < RARE;
}

/*
 * Returns the first reduction whose calls cost enough to matter, or REDUCTIONS if there is none.
 * The cost of the agent's own threads does not lead to leaving data out, because that would not
 * reduce it.
 */
static unsigned next_reduction(void)
{
    for (unsigned i = 0; i < REDUCTIONS; i++)
        if (budget.levels[i] < reductions[i].levels &&
            (!reductions[i].can || reductions[i].can()) && !is_rare(reductions[i].part) &&
            budget.part_means[reductions[i].part] > reductions[i].least * budget.allowed_mean)
            return i;
    return REDUCTIONS;
}

static void add_level(unsigned i, uint64_t now)
{
    budget.order[budget.reduced++] = i;
    set_level(i, budget.levels[i] + 1, now);
}

/*
 * Reduces what is recorded, and returns whether something was reduced. One level per second would
 * be too slow: a level is assumed to save half of what its part costs, and as many are added as
 * seem to be needed.
 */
static bool reduce(uint64_t now)
{
    unsigned i = next_reduction();
    if (i == REDUCTIONS)
        return false;
    budget.seconds_within = 0;
    if (budget.back_ns && now - budget.back_ns < 60 * NS_PER_SECOND)
        budget.patience = MIN(2 * budget.patience, (unsigned)PATIENCE_MAX);
    double cost = (double)budget.cost_ns;
    do {
        double *part = &budget.part_means[reductions[i].part];
        add_level(i, now);
        *part /= 2;
        cost -= *part;
        i = next_reduction();
    } while (i < REDUCTIONS && cost > (double)budget.allowed_ns);
    return true;
}

/* Returns whether the last reduction could be undone at a cost that does not matter. */
static bool is_needless(void)
{
    if (!budget.reduced)
        return false;
    const struct reduction *r = &reductions[budget.order[budget.reduced - 1]];
    return budget.part_means[r->part] * (1 << r->bits) < r->least * budget.allowed_mean;
}

static void undo_reduction(uint64_t now)
{
    if (!budget.reduced || ++budget.seconds_within < budget.patience)
        return;
    unsigned i = budget.order[--budget.reduced];
    budget.seconds_within = 0;
    budget.back_ns = now;
    set_level(i, budget.levels[i] - 1, now);
}

static void add_to_mean(double *mean, double value, unsigned seconds)
{
    *mean += (value - *mean) / MIN(budget.checks, seconds);
}

static unsigned mean_seconds(enum own_cost_part part)
{
    bool few = part >= OWN_WAITS && budget.call_means[part - OWN_WAITS] < MANY * BUDGET_MEASURED_OF;
    return few ? MEAN_SECONDS : FEW_SECONDS;
}

static void check(uint64_t now)
{
    struct own_cost all;
    budget_measure_rate();
    own_cost_read(&all);
    uint64_t process = all.process_ns - budget.before.process_ns;
    budget.cost_ns = 0;
    budget.checks++;
    for (int i = 0; i < OWN_PARTS; i++) {
        uint64_t ns = all.parts[i] - MIN(budget.before.parts[i], all.parts[i]);
        budget.cost_ns += ns;
        add_to_mean(&budget.part_means[i], (double)ns, mean_seconds((enum own_cost_part)i));
    }
    uint64_t least = (now - budget.checked_ns) * LEAST_CPU / 100;
    budget.allowed_ns = (uint64_t)(budget.share * (double)MAX(process, least));
    for (int i = 0; i < COST_CALLBACKS; i++) {
        uint64_t measured = atomic_load(&budget_calls_measured[i]);
        add_to_mean(&budget.call_means[i],
                    (double)(measured - budget.measured[i]) * BUDGET_MEASURED_OF, MEAN_SECONDS);
        budget.measured[i] = measured;
    }
    add_to_mean(&budget.allowed_mean, (double)budget.allowed_ns, FEW_SECONDS);
    budget.before = all;
    budget.process_ns = process;
    budget.checked_ns = now;
    /*
     * The unused budget of a few seconds may be spent later, because the start costs more than the
     * time after it.
     */
    int64_t allowed = (int64_t)budget.allowed_ns,
            most = MAX(CREDIT_SECONDS * allowed, CREDIT_START_NS);
    budget.credit_ns = MIN(budget.credit_ns + allowed - (int64_t)budget.cost_ns, most);
    bool is_over = budget.credit_ns < 0;
    if (is_over) {
        budget.credit_ns = 0;
        budget.over_seconds++;
        if (reduce(now))
            return;
    }
    if (is_needless() || (!is_over && budget.cost_ns < budget.allowed_ns / 2))
        undo_reduction(now);
    else
        budget.seconds_within = 0;
}

/* ---- the capture ---- */

static bool wanted(const struct options *o)
{
    return option_always(o);
}

static int load(struct session *s, struct buf *why)
{
    budget.jfr = s->out.jfr;
    return jfr_declare(s->out.jfr, &budget_type, 1, &budget.type);
}

static void keep_all(void)
{
    for (unsigned i = 0; i < REDUCTIONS; i++)
        if (budget.levels[i])
            reductions[i].set(budget.levels[i] = 0);
    budget.reduced = 0;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    budget.share = s->options.v[OPT_BUDGET].fraction;
    budget.checked_ns = now_ns();
    budget.cost_ns = budget.allowed_ns = budget.over_seconds = budget.changes = 0;
    budget.seconds_within = 0;
    memset(budget.part_means, 0, sizeof(budget.part_means));
    memset(budget.call_means, 0, sizeof(budget.call_means));
    for (int i = 0; i < COST_CALLBACKS; i++)
        budget.measured[i] = atomic_load(&budget_calls_measured[i]);
    budget.allowed_mean = 0;
    budget.checks = 0;
    budget.credit_ns = CREDIT_START_NS;
    budget.back_ns = 0;
    budget.patience = PATIENCE;
    budget_measure_clock();
    own_cost_read(&budget.before);
    return 0;
}

/* Measures the first rate of the clock. Calls that were measured before count as no time. */
static void later(struct session *s, JNIEnv *jni)
{
    if (budget_rate_is_known())
        return;
    nanosleep(&(struct timespec){.tv_nsec = BUDGET_RATE_NS}, NULL);
    budget_measure_rate();
}

static void flush(struct session *s, JNIEnv *jni)
{
    uint64_t now = now_ns();
    if (now - budget.checked_ns >= NS_PER_SECOND - NS_PER_SECOND / 20)
        check(now);
}

static void restate(struct session *s, JNIEnv *jni)
{
    for (unsigned i = 0; i < REDUCTIONS; i++)
        if (budget.levels[i])
            put_event(i, now_ns());
}

static void stop(struct session *s, JNIEnv *jni)
{
    keep_all();
}

static void status(struct session *s, struct buf *out)
{
    /* Of the CPU time of which the budget is a share: of at least a tenth of a processor. */
    double used =
        budget.allowed_ns ? (double)budget.cost_ns * budget.share / (double)budget.allowed_ns : 0;
    buf_printf(out, "budget.share %.6g\nbudget.used %.6g\n", budget.share, used);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"cost_ns", budget.cost_ns},
                {"allowed_ns", budget.allowed_ns},
                {"changes", budget.changes},
                {"over_seconds", budget.over_seconds}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "budget.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    for (unsigned i = 0; i < REDUCTIONS; i++)
        if (budget.levels[i])
            buf_printf(out, "budget.%u.what %s\nbudget.%u.one_of %u\nbudget.%u.since_ms %llu\n",
                       i + 1, reductions[i].what, i + 1,
                       1u << budget.levels[i] * reductions[i].bits, i + 1,
                       (unsigned long long)clock_wall_ms(budget.since_ns[i]));
}

const struct capture capture_budget = {
    .name = "budget",
    .options = OPTION_BIT(OPT_BUDGET),
    .records_only = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .later = later,
    .stop = stop,
    .flush = flush,
    .restate = restate,
    .status = status,
};
