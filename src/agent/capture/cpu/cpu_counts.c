/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/cpu/cpu.h"

#include "agent/output/dictionary.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    struct map counts; /* trace serial -> samples; 0 stands for stacks that could not be walked */
    uint64_t total;
    struct dictionary *dictionary;
    struct map off; /* serials of threads for which a front end has switched sampling off */
    bool all_off;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool cpu_counts_keep(void *context, const struct sample *s)
{
    return false;
}

static void count(uint32_t trace, uint32_t weight)
{
    pthread_mutex_lock(&state.lock);
    uint64_t *n = map_at(&state.counts, trace, 0, NULL);
    if (n) {
        *n += weight;
        state.total += weight;
    }
    pthread_mutex_unlock(&state.lock);
}

void cpu_counts_count_kept(void *context, const struct sample *s)
{
    JNIEnv *jni = context;
    if (state.all_off || (state.off.len && map_get(&state.off, s->serial)))
        return;
    uint32_t trace =
        s->n < 0 ? 0
                 : dictionary_trace(state.dictionary, jni, s->frames, (uint32_t)s->n, s->serial);
    atomic_store(s->mark, trace);
    count(trace, s->weight);
}

void cpu_counts_count_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                                  uint32_t weight)
{
    if (!state.all_off && !(state.off.len && map_get(&state.off, serial)))
        count((uint32_t)mark, weight);
}

bool cpu_counts_count_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight)
{
    count((uint32_t)mark, weight);
    return true;
}

static int by_count(const void *a, const void *b)
{
    const struct hprof_sample *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->trace > y->trace) - (x->trace < y->trace);
}

static void write_text(struct hprof_text *out, const struct hprof_sample *rows, uint32_t n,
                       double cutoff)
{
    enum hprof_ranked kind = cpu.wall ? HPROF_RANKED_WALL : HPROF_RANKED_SAMPLES;
    double accumulated = 0;
    hprof_text_ranked_begin(out, kind, state.total, time(NULL));
    for (uint32_t i = 0; i < n; i++) {
        double self = (double)rows[i].count / (double)state.total;
        if (self < cutoff)
            break;
        accumulated += self;
        const char *name = rows[i].trace == TRACE_EMPTY
                               ? "<no stack>"
                               : dictionary_trace_method(state.dictionary, rows[i].trace);
        hprof_text_ranked(out, kind, i + 1, self * 100, accumulated * 100, rows[i].count,
                          rows[i].trace, name);
    }
    hprof_text_ranked_end(out, kind);
}

static void write_binary(struct session *s, const struct hprof_sample *rows, uint32_t n,
                         double cutoff)
{
    uint32_t kept = 0;
    while (kept < n && (double)rows[kept].count >= cutoff * (double)state.total)
        kept++;
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    hprof_cpu_samples(&s->out.binary, state.total, rows, kept);
    pthread_mutex_unlock(&s->out.lock);
}

static void write_samples(struct session *s, double cutoff)
{
    uint32_t n = 0;
    struct hprof_sample *rows = calloc(state.counts.len + 1, sizeof(*rows));
    uint64_t trace, samples;
    if (!rows)
        return;
    for (size_t i = 0; map_next(&state.counts, &i, &trace, &samples);)
        rows[n++] = (struct hprof_sample){
            samples, trace ? (uint32_t)trace : dictionary_empty_trace(state.dictionary)};
    qsort(rows, n, sizeof(*rows), by_count);
    if (s->out.format->text) {
        struct hprof_text text;
        struct buf bytes;
        out_section_open(&text, &bytes);
        write_text(&text, rows, n, cutoff);
        out_section_close(&s->out, &text, &bytes);
    } else {
        write_binary(s, rows, n, cutoff);
    }
    free(rows);
}

static void clear(void)
{
    map_clear(&state.counts);
    state.total = 0;
}

void cpu_counts_dump(struct session *s)
{
    pthread_mutex_lock(&state.lock);
    write_samples(s, s->options.v[OPT_CUTOFF].fraction);
    clear();
    pthread_mutex_unlock(&state.lock);
}

/*
 * Carries out CONTROL: clears the samples, or switches sampling on or off, for all threads or for
 * one given by its object's id.
 */
static void control(struct session *s, const struct hprof_request *r)
{
    bool off = r->control == HPROF_CONTROL_SAMPLING_OFF;
    uint32_t serial = dictionary_thread_of_object(r->object);
    if (r->control == HPROF_CONTROL_CLEAR_SAMPLES)
        clear();
    if (r->control != HPROF_CONTROL_SAMPLING_ON && !off)
        return;
    if (!r->object) {
        state.all_off = off;
        map_clear(&state.off);
    } else if (!off) {
        map_remove(&state.off, serial);
    } else if (serial && map_put(&state.off, serial, 1) < 0) {
        session_message(s, "cpu: no memory to leave a thread out");
    }
}

void cpu_counts_request(struct session *s, const struct hprof_request *r)
{
    pthread_mutex_lock(&state.lock);
    if (r->command == HPROF_CMD_CPU_SAMPLES)
        write_samples(s, r->cutoff);
    else
        control(s, r);
    pthread_mutex_unlock(&state.lock);
}

void cpu_counts_start(struct session *s)
{
    state.dictionary = s->out.dictionary;
    state.total = 0;
}

void cpu_counts_release(void)
{
    map_release(&state.counts);
    map_release(&state.off);
    state.all_off = false;
    state.dictionary = NULL;
}
