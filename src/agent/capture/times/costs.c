/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what the probes of cpu=times cost (report.h). */
#include "agent/capture/times/methods.h"
#include "agent/capture/times/state.h"
#include "agent/common/fault.h"
#include "agent/vm/vm.h"
#include "base/clock.h"

#define CALIBRATION        500 /* calls in a round */
#define CALIBRATION_NS     (15 * NS_PER_MS)
#define CALIBRATION_PASSES 3
/* after this many saves in a row without an improvement, the costs are final */
#define SAVES_ALIKE 2

/*
 * Amounts of work with which the clock is calibrated: from nothing to about 25 ns. Beyond that the
 * reading grows linearly.
 */
static const int curve_steps[TIMES_CURVE] = {0, 1, 2, 4, 8, 16, 32};

static struct {
    jclass probes;
    struct times_context *context;        /* where the measured calls count; NULL: none yet */
    struct times_point best[TIMES_CURVE]; /* measurements; negative: none yet */
    double best_call, best_count;         /* with a loop around the call */
    unsigned saves_alike;                 /* saves since the last improvement of a measurement */
} costs;

/*
 * Returns the best of the rounds that fit into a time limit, in nanoseconds per call, because that
 * round was disturbed least. Negative on failure.
 */
static double best_round(JNIEnv *jni, const char *name, int32_t number, int steps, uint64_t for_ns,
                         double *ret_seen)
{
    jmethodID run = (*jni)->GetStaticMethodID(jni, costs.probes, name, "(III)J");
    uint64_t best = UINT32_MAX, best_seen = UINT32_MAX, end = now_ns() + for_ns;
    for (int i = 0; run && (i == 0 || now_ns() < end); i++) {
        jlong answer = (*jni)->CallStaticLongMethod(jni, costs.probes, run, (jint)number,
                                                    (jint)CALIBRATION, (jint)steps);
        if ((*jni)->ExceptionCheck(jni)) {
            run = NULL;
            break;
        }
        best = MIN(best, (uint64_t)answer & UINT32_MAX);
        best_seen = MIN(best_seen, (uint64_t)answer >> 32);
    }
    vm_clear_exception(jni);
    if (ret_seen)
        *ret_seen = (double)best_seen / CALIBRATION;
    return run ? (double)best / CALIBRATION : -1;
}

/* Keeps the better of two measurements. Returns whether the difference is significant. */
static bool improve(double *best, double found)
{
    bool better = found >= 0 && (*best < 0 || found < 0.98 * *best);
    if (found >= 0 && (*best < 0 || found < *best))
        *best = found;
    return better;
}

/* Makes one pass over all measurements. Returns whether any of them improved. */
static bool calibrate_pass(JNIEnv *jni)
{
    int32_t number = cpu_times.costs.calibration;
    bool better = improve(&costs.best_count,
                          best_round(jni, "calibrateCount", number, 0, CALIBRATION_NS / 4, NULL));
    if (!cpu_times.elapsed)
        return improve(&costs.best_call,
                       best_round(jni, "calibrate", number, 0, CALIBRATION_NS, NULL)) ||
               better;
    for (int i = 0; i < TIMES_CURVE; i++) {
        double seen = -1, alone = best_round(jni, "calibrateWork", number, curve_steps[i],
                                             CALIBRATION_NS / 8, NULL);
        double whole =
            best_round(jni, "calibrateTimed", number, curve_steps[i], CALIBRATION_NS / 4, &seen);
        better |= improve(&costs.best[i].true_ns, alone);
        better |= improve(&costs.best[i].seen_ns, seen);
        if (i == 0)
            better |= improve(&costs.best_call, whole);
    }
    return better;
}

/*
 * Builds the curve of report.h from the best measurements. Points that noise has put out of order
 * are dropped.
 */
static void make_curve(struct times_report_costs *c)
{
    c->points = 0;
    for (int i = 0; cpu_times.elapsed && i < TIMES_CURVE; i++) {
        const struct times_point *p = &costs.best[i];
        const struct times_point *last = c->points ? &c->curve[c->points - 1] : NULL;
        if (p->true_ns >= 0 && p->seen_ns >= 0 &&
            (!last || (p->true_ns > last->true_ns && p->seen_ns > last->seen_ns)))
            c->curve[c->points++] = *p;
    }
    c->count_ns = MAX(0, costs.best_count);
    c->call_ns = MAX(0, costs.best_call - (cpu_times.elapsed ? MAX(0, costs.best[0].true_ns) : 0));
}

/*
 * Measures what the probes of a call cost, and keeps the best value found at the start or later,
 * because the JIT compiles the loops at a time of its own choosing. It uses a separate context, so
 * that its node is not affected by other calls. Returns false after a pass that improves nothing,
 * which is then the last one.
 */
static bool calibrate(JNIEnv *jni, int passes)
{
    bool better = false;
    jmethodID show = (*jni)->GetStaticMethodID(jni, costs.probes, "show", "(J)J");
    pthread_mutex_lock(&cpu_times.lock);
    if (!costs.context)
        costs.context = times_context_take(&cpu_times.tree, false);
    pthread_mutex_unlock(&cpu_times.lock);
    if (show && costs.context) {
        costs.context->thread = THREAD_UNKNOWN;
        times_threads_measuring(true);
        jlong before =
            (*jni)->CallStaticLongMethod(jni, costs.probes, show, (jlong)(uintptr_t)costs.context);
        vm_clear_exception(jni);
        for (int pass = 0; pass < passes && (better = calibrate_pass(jni)); pass++)
            ;
        (*jni)->CallStaticLongMethod(jni, costs.probes, show, before);
        times_threads_measuring(false);
    }
    fault_burn("measure");
    vm_clear_exception(jni);
    make_curve(&cpu_times.costs);
    return better;
}

int times_costs_begin(jclass probes)
{
    static const struct str none = {"", 0}, name = {"<calibration>", 13};
    int64_t n = times_method_add(none, name, none, none, 0);
    costs.probes = probes;
    cpu_times.costs = (struct times_report_costs){.calibration = (int32_t)n};
    costs.context = NULL;
    costs.best_call = costs.best_count = -1;
    costs.saves_alike = 0;
    for (int i = 0; i < TIMES_CURVE; i++)
        costs.best[i] = (struct times_point){-1, -1};
    return n < 0 ? (int)n : 0;
}

void times_costs_leave_tree(void)
{
    costs.context = NULL;
}

void times_costs_measure(JNIEnv *jni)
{
    calibrate(jni, CALIBRATION_PASSES);
}

void times_costs_refine(JNIEnv *jni)
{
    if (costs.saves_alike < SAVES_ALIKE)
        costs.saves_alike = calibrate(jni, 1) ? 0 : costs.saves_alike + 1;
}
