/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of allocation sites: the sections SITES, ALLOC SITES and HEAP SUMMARY, and notes on their
 * accuracy.
 */
#include "agent/capture/alloc/sites_rows.h"
#include "agent/capture/monitors/monitors.h"
#include "agent/output/dictionary.h"
#include "base/parse.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Rounds an estimate to the digits that its error supports. The result is at most `allocated`. */
static uint64_t reported_with(double value, double error, uint64_t allocated)
{
    uint64_t step = 1;
    while ((double)step * 10 <= error)
        step *= 10;
    return MIN((sites_rounded(value) + step / 2) / step * step, allocated);
}

static struct hprof_site site_record(struct session *s, const struct site_row *r)
{
    char name[1024];
    const char *class = sites_class_of(r->site);
    monitors_source_name(class, name, sizeof(name));
    return (struct hprof_site){
        .array = class[0] == '[' ? (uint8_t)hprof_type_of_descriptor(class[1]) : 0,
        .class_serial = dictionary_class(s->out.dictionary, name, 0),
        .trace = r->trace,
        .live_bytes = sites_rounded(r->live.bytes),
        .live_objects = sites_rounded(r->live.objects),
        .alloc_bytes = sites_rounded(r->allocated.bytes),
        .alloc_objects = sites_rounded(r->allocated.objects)};
}

/*
 * Writes which live figures of the table are estimates, and how accurate they are. This follows the
 * table, because its columns are fixed.
 */
static void write_text_errors(struct hprof_text *t, const struct site_rows *r, size_t n)
{
    double below = 0;
    unsigned rows = 0;
    if (sites_error_of_all(r) < 0.5)
        return;
    hprof_text_live_errors_begin(t);
    for (size_t i = 0; i < n; i++) {
        struct estimate error = r->rows.data[i].error;
        if (error.objects >= 0.5)
            hprof_text_live_error(t, (uint32_t)i + 1, sites_rounded(error.bytes),
                                  sites_rounded(error.objects));
    }
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct site_row *row = &r->rows.data[i];
        rows += row->live.bytes > 0 && sites_certain_bytes(row) <= 0;
        below += sites_certain_bytes(row) <= 0 ? row->live.bytes : 0;
    }
    hprof_text_live_errors_end(t, rows, sites_rounded(below), sites_rounded(sites_error_of_all(r)));
}

/* Writes how much the rows after the first n have. */
static void write_left_out(struct hprof_text *t, const struct site_rows *r, size_t n)
{
    struct estimate sum = {0};
    uint64_t sites = 0;
    for (size_t i = n; i < r->rows.len; i++) {
        if (r->rows.data[i].allocated.bytes <= 0)
            continue;
        sites++;
        sum.objects += r->rows.data[i].allocated.objects;
        sum.bytes += r->rows.data[i].allocated.bytes;
    }
    hprof_text_left_out(t, sites, sites_rounded(sum.bytes), sites_rounded(sum.objects));
}

static void write_text(struct session *s, const struct site_rows *r, size_t n,
                       const struct hprof_heap_totals *all)
{
    struct hprof_text t;
    struct buf bytes;
    double accumulated = 0;
    char name[1024];
    out_section_open(&t, &bytes);
    hprof_text_sites_begin(&t, r->by_allocation ? "allocated bytes" : "live bytes", time(NULL));
    for (size_t i = 0; i < n; i++) {
        struct hprof_site site = site_record(s, &r->rows.data[i]);
        struct estimate error = r->rows.data[i].error;
        double self = r->by_allocation ? (double)site.alloc_bytes / (double)MAX(all->alloc_bytes, 1)
                                       : (double)site.live_bytes / (double)MAX(all->live_bytes, 1);
        accumulated += self;
        monitors_source_name(sites_class_of(r->rows.data[i].site), name, sizeof(name));
        hprof_text_site(
            &t, &(struct hprof_text_site){
                    (uint32_t)i + 1, site.trace, 100 * self, 100 * accumulated,
                    reported_with(r->rows.data[i].live.bytes, error.bytes, site.alloc_bytes),
                    reported_with(r->rows.data[i].live.objects, error.objects, site.alloc_objects),
                    site.alloc_bytes, site.alloc_objects, name});
    }
    hprof_text_sites_end(&t);
    write_left_out(&t, r, n);
    write_text_errors(&t, r, n);
    if (r->estimated.objects >= 0.5)
        hprof_text_not_counted(&t, sites_rounded(r->estimated.bytes),
                               sites_rounded(r->estimated.objects));
    else if (site_table.exact && !site_table.interval)
        hprof_text_not_counted(&t, 0, 0);
    out_section_close(&s->out, &t, &bytes);
}

static void write_binary(struct session *s, const struct site_rows *r, unsigned flags,
                         double cutoff, size_t n, const struct hprof_heap_totals *all)
{
    struct hprof_site *sites = calloc(n + 1, sizeof(*sites));
    if (!sites)
        return;
    for (size_t i = 0; i < n; i++)
        sites[i] = site_record(s, &r->rows.data[i]);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    hprof_alloc_sites(&s->out.binary, (uint16_t)flags, (float)cutoff, all, sites, (uint32_t)n);
    pthread_mutex_unlock(&s->out.lock);
    free(sites);
}

/* Describes the accuracy of the figures. */
static void report_errors(struct session *s, const struct site_rows *r,
                          const struct hprof_heap_totals *all)
{
    char text[512];
    bool lost = sites_warn_of_losses(s);
    const char *allocated = lost ? "allocated as counted" : "allocated exact";
    double bytes = (double)MAX(all->alloc_bytes, 1), live = (double)MAX(all->live_bytes, 1);
    char more[160] = "", error[80] = "exact, every object was followed";
    if (site_table.exact && sites_error_of_all(r) >= 0.5)
        snprintf(error, sizeof(error), "estimated from %s, standard error of live bytes %.2f %%",
                 COUNT_TEXT(site_table.live.len, "followed objects"),
                 MIN(100 * sites_error_of_all(r) / live, 100));
    if (r->estimated.bytes > 0)
        snprintf(more, sizeof(more),
                 "; in addition, the VM and code that is not changed allocated about %.0f bytes in "
                 "%.0f objects",
                 r->estimated.bytes, r->estimated.objects);
    if (site_table.all)
        snprintf(
            text, sizeof(text),
            "%s; objects followed from their allocation: %zu still alive, %llu not followed; what "
            "the VM itself and code that is not changed allocate is not counted",
            site_table.collected && !lost ? "exact" : allocated, site_table.live.len,
            (unsigned long long)site_table.not_followed);
    else if (site_table.exact)
        snprintf(text, sizeof(text), "%s, live %s%s", allocated, error, more);
    else
        snprintf(text, sizeof(text), "estimated from %s, standard error of all bytes %.2f %%%s",
                 COUNT_TEXT(site_table.samples, "samples"),
                 100 * sites_square_root(site_table.variance_bytes) / bytes,
                 vm.version < 25 ? ", including unused ends of allocation buffers" : "");
    /* of other options, what shows the recording states the accuracy as well */
    if (option_is(&s->options, OPT_HEAP, "sites") || option_is(&s->options, OPT_HEAP, "all"))
        session_message(s, "heap=sites: %s", text);
    if (!site_table.collected)
        session_warn(
            s, "heap=sites: live figures are as of the VM's last collection and may count objects "
               "that nothing reaches: "
               "the VM ended without shutdown hooks, or its collector does not collect on request");
    if (option_on(&s->options, OPT_VERBOSE) && !vm.attached)
        fprintf(stderr, " (%s)", text);
}

/* Returns the address that a weak reference holds. JDK 9 marks such references in the low bits. */
static uint64_t address_of(jweak weak)
{
    const uint64_t *at = (const uint64_t *)((uintptr_t)weak & ~(uintptr_t)7);
    return at ? *at : 0;
}

int sites_traces(struct session *s, JNIEnv *jni, struct map *ret)
{
    struct jfr_frame frames[SITE_DEPTH_MAX];
    int error = 0;
    /* Checks that the collector moves objects: the address of such a young object then changes. */
    jbyteArray young = (*jni)->NewByteArray(jni, 8);
    jweak watched = young ? (*jni)->NewWeakGlobalRef(jni, young) : NULL;
    uint64_t before = address_of(watched);
    pthread_mutex_lock(&site_table.lock);
    uint32_t *serials = calloc(site_table.sites.len + 1, sizeof(*serials));
    size_t n = site_table.sites.len;
    for (size_t i = 0; i < site_table.live.len && !error; i++) {
        uint64_t address = address_of(site_table.live.data[i].object);
        if (address)
            error = map_put(ret, address, site_table.live.data[i].site);
    }
    pthread_mutex_unlock(&site_table.lock);
    if (!error && (!before || before != address_of(watched)))
        error = -EAGAIN;
    for (size_t i = 0; i < n && serials && !error; i++) {
        uint32_t thread, depth = sites_frames_of((uint32_t)i, frames, &thread);
        serials[i] = dictionary_trace(s->out.dictionary, jni, frames, depth, thread);
    }
    uint64_t address, site;
    for (size_t i = 0; serials && !error && map_next(ret, &i, &address, &site);)
        *map_get(ret, address) = site < n ? serials[site] : 0;
    free(serials);
    if (watched)
        (*jni)->DeleteWeakGlobalRef(jni, watched);
    if (young)
        (*jni)->DeleteLocalRef(jni, young);
    vm_clear_exception(jni);
    return error;
}

static double order_bytes(const struct site_rows *r, size_t i)
{
    return r->by_allocation ? r->rows.data[i].allocated.bytes
                            : sites_certain_bytes(&r->rows.data[i]);
}

/*
 * Moves the rows that a report lists to the front, in their order, and returns their number: those
 * whose live or allocated bytes reach the cutoff. A site that allocates much and keeps nothing is
 * listed too.
 */
static size_t choose_rows(struct site_rows *r, double cutoff, const struct hprof_heap_totals *all)
{
    double whole = (double)(r->by_allocation ? all->alloc_bytes : all->live_bytes);
    size_t kept = 0;
    for (size_t i = 0; i < r->rows.len; i++) {
        struct site_row row = r->rows.data[i];
        double bytes = row.allocated.bytes;
        if (bytes > 0 &&
            (order_bytes(r, i) >= cutoff * whole || bytes >= cutoff * (double)all->alloc_bytes)) {
            r->rows.data[i] = r->rows.data[kept];
            r->rows.data[kept++] = row;
        }
    }
    return kept;
}

static void write_report(struct session *s, JNIEnv *jni, unsigned flags, double cutoff,
                         sites_settle *settle)
{
    struct site_rows r = {.collected = true};
    int error = sites_take_rows(jni, flags, settle, &r);
    if (!error && !s->out.format->events)
        error = sites_merge_rows(s, jni, &r);
    sites_know_errors(&r);
    struct hprof_heap_totals all = sites_totals(&r);
    sites_sort(&r);
    size_t kept = choose_rows(&r, cutoff, &all);
    if (error)
        session_message(s, "heap=sites: no memory for a report");
    else if (s->out.format->events)
        sites_write_recording(s, jni, &r, false, &(uint64_t){0});
    else if (s->out.format->text)
        write_text(s, &r, kept, &all);
    else
        write_binary(s, &r, flags, cutoff, kept, &all);
    if (!error)
        report_errors(s, &r, &all);
    vec_release(&r.rows);
}

void sites_dump(struct session *s, JNIEnv *jni, sites_settle *settle)
{
    /* If only allocations are requested, sites without live objects are listed too. */
    bool live = s->options.v[OPT_HEAP].text || s->options.v[OPT_LIVE].text;
    write_report(s, jni, live ? 0 : HPROF_SITES_BY_ALLOCATION, s->options.v[OPT_CUTOFF].fraction,
                 settle);
}

uint64_t sites_save(struct session *s, JNIEnv *jni, sites_settle *settle, bool *ret_all)
{
    struct site_rows r = {0};
    uint64_t events = 0;
    *ret_all = sites_take_rows(jni, 0, settle, &r) == 0;
    if (*ret_all)
        *ret_all = sites_write_recording(s, jni, &r, true, &events);
    vec_release(&r.rows);
    return events;
}

static void summarize(struct session *s, JNIEnv *jni, sites_settle *settle)
{
    struct site_rows r = {.collected = true};
    int error = sites_take_rows(jni, 0, settle, &r);
    struct hprof_heap_totals all = sites_totals(&r);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    if (!error && s->out.format->records)
        hprof_heap_summary(&s->out.binary, &all);
    pthread_mutex_unlock(&s->out.lock);
    vec_release(&r.rows);
}

void sites_request(struct session *s, JNIEnv *jni, const struct hprof_request *r,
                   sites_settle *settle)
{
    if (r->command == HPROF_CMD_ALLOC_SITES)
        write_report(s, jni, r->flags, (double)r->cutoff, settle);
    else if (r->command == HPROF_CMD_HEAP_SUMMARY)
        summarize(s, jni, settle);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_ON)
        sites_set_depth(s->options.v[OPT_DEPTH].number);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_OFF)
        sites_set_depth(0);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH &&
             site_table.depth)
        sites_set_depth(r->depth);
}
