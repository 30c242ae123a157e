/* SPDX-License-Identifier: Apache-2.0 */
/* What recordings of exact allocation contain beyond weights: sites with live bytes. */
#include "base/parse.h"
#include "cli/report.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int report_filter_init(struct profile_view *v, const struct profile *p, enum profile_metric metric,
                       const struct profile_filter *filter)
{
    *v = (struct profile_view){0};
    int r = profile_view_init(v, p, metric, filter);
    return r == -ENODATA ? 0 : r;
}

bool report_passes(const struct profile_view *v, uint32_t node, const uint32_t *thread)
{
    return (!v->node_counts || v->node_counts[node]) &&
           (!thread || !v->thread_counts || v->thread_counts[*thread]);
}

static const struct profile *sorted; /* of by_bytes */

/*
 * Returns the live bytes by which a site is ranked: 0 for an estimate that is below its own error.
 */
static uint64_t certain_bytes(const struct profile_site *s)
{
    return s->live_bytes < s->live_bytes_error ? 0 : s->live_bytes;
}

static int by_bytes(const void *a, const void *b)
{
    const struct profile_site *x = &sorted->sites.data[*(const uint32_t *)a],
                              *y = &sorted->sites.data[*(const uint32_t *)b];
    if (certain_bytes(x) != certain_bytes(y))
        return certain_bytes(x) < certain_bytes(y) ? 1 : -1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x > y) - (x < y);
}

/*
 * Returns the sites that the filter selects, by live bytes, then by bytes, or NULL when out of
 * memory.
 */
static uint32_t *ranked_sites(const struct profile *p, const struct profile_filter *filter,
                              size_t *ret_n)
{
    uint32_t *order = calloc(p->sites.len + 1, sizeof(*order));
    size_t n = 0;
    struct profile_view v;
    if (!order || report_filter_init(&v, p, PROFILE_ALLOCATION, filter) < 0) {
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < p->sites.len; i++)
        if (report_passes(&v, p->sites.data[i].node, NULL))
            order[n++] = (uint32_t)i;
    profile_view_release(&v);
    sorted = p;
    if (n)
        qsort(order, n, sizeof(*order), by_bytes);
    *ret_n = n;
    return order;
}

static void site_frame(const struct profile *p, uint32_t node, struct buf *to)
{
    if (!node) {
        buf_string(to, "[no Java stack]");
        return;
    }
    const struct profile_frame *f = profile_node_frame(p, node);
    struct str label = profile_text(p, p->methods.data[f->method].label);
    buf_bytes(to, label.data, label.len);
    if (f->line > 0)
        buf_printf(to, ":%d", f->line);
}

/* Prints a live figure with the digits that its error allows, "<N" when it is below its error. */
static void print_live(uint64_t value, uint64_t error, uint64_t allocated, bool below)
{
    char text[32];
    uint64_t step = 1;
    while (step * 10 <= error)
        step *= 10;
    if (below)
        snprintf(text, sizeof(text), "<%" PRIu64, (error + step - 1) / step * step);
    else
        snprintf(text, sizeof(text), "%" PRIu64,
                 MIN((value + step / 2) / step * step, MAX(value, allocated)));
    printf("%12s", text);
}

/* Explains the live figures of these sites where they are not plain counts. */
static void print_live_notes(const struct profile *p, const uint32_t *order, size_t n)
{
    size_t below = 0, errors = 0, uncollected = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct profile_site *s = &p->sites.data[order[i]];
        bool is_below = s->live_bytes_error && !certain_bytes(s);
        errors += s->live_bytes_error != 0;
        below += is_below;
        bytes += is_below ? s->live_bytes : 0;
        uncollected += s->uncollected;
    }
    if (errors)
        printf(" live figures of %s are estimates: +- is the standard error of live bytes, "
               "the others are exact\n",
               COUNT_TEXT(errors, "sites"));
    if (profile_may_share_places(p))
        printf(" a place to which several stacks lead is counted, and its count is divided among "
               "them by an estimate, with a standard error of at most %s\n",
               PARTS_ERROR);
    if (below)
        printf(" < fewer live bytes than their standard error: %s, about %s in all\n",
               COUNT_TEXT(below, "sites"), COUNT_TEXT(bytes, "live bytes"));
    if (uncollected)
        printf(" live figures are as of the VM's last collection and may count objects that "
               "nothing reaches\n");
}

static void print_sites(const struct profile *p, const uint32_t *order, size_t n, size_t limit)
{
    size_t unknown = 0;
    puts("\n Allocation sites\n"
         "  live bytes          +-     objects   allocated     objects  class and site");
    for (size_t i = 0; i < MIN(n, limit); i++) {
        const struct profile_site *s = &p->sites.data[order[i]];
        struct buf frame = BUF(65536);
        site_frame(p, s->node, &frame);
        bool below = s->live_bytes_error && !certain_bytes(s);
        if (s->live_known) {
            print_live(s->live_bytes, s->live_bytes_error, s->bytes, below);
            printf("%12.0" PRIu64, s->live_bytes_error);
            print_live(s->live_objects, s->live_objects_error, s->objects, below);
        } else {
            printf("%12s%12s%12s", "-", "", "-");
        }
        printf("%12" PRIu64 "%12" PRIu64 " %c", s->bytes, s->objects, s->estimated ? '~' : ' ');
        unknown += !s->live_known;
        print_text(stdout, profile_text(p, s->class_name));
        printf("  ");
        print_text(stdout, (struct str){buf_str(&frame), frame.len});
        putchar('\n');
        buf_release(&frame);
    }
    print_left_out(n, limit, "sites");
    print_live_notes(p, order, n);
    if (unknown)
        printf(" - the recording ended before a collection showed what lives\n");
    for (size_t i = 0; i < n; i++)
        if (p->sites.data[order[i]].estimated) {
            printf(" ~ by the VM or code that is not changed: estimated from samples\n");
            break;
        }
}

static void json_sites(struct json *j, const struct profile *p, const uint32_t *order, size_t n)
{
    struct buf frame = BUF(65536);
    json_key_array(j, "sites");
    for (size_t i = 0; i < n; i++) {
        const struct profile_site *s = &p->sites.data[order[i]];
        struct str class_name = profile_text(p, s->class_name);
        json_begin_object(j);
        json_key_string_n(j, "class", class_name.data, class_name.len);
        json_key_array(j, "trace");
        for (uint32_t node = s->node; node; node = p->nodes.data[node].parent) {
            buf_clear(&frame);
            site_frame(p, node, &frame);
            json_string_n(j, buf_str(&frame), frame.len);
        }
        json_end_array(j);

        const struct {
            const char *key;
            uint64_t value;
        } counts[] = {{"objects", s->objects},
                      {"bytes", s->bytes},
                      {"live_objects", s->live_objects},
                      {"live_bytes", s->live_bytes}};

        for (size_t k = 0; k < (s->live_known ? 4 : 2); k++)
            json_key_u64(j, counts[k].key, counts[k].value);
        if (s->live_known && s->live_bytes_error) {
            json_key_u64(j, "live_objects_error", s->live_objects_error);
            json_key_u64(j, "live_bytes_error", s->live_bytes_error);
        }
        if (s->uncollected) {
            json_key_bool(j, "collected", false);
        }
        if (!s->live_known) {
            json_key(j, counts[2].key);
            json_null(j);
            json_key(j, counts[3].key);
            json_null(j);
        }
        if (s->estimated) {
            json_key_bool(j, "estimated", true);
        }
        json_end_object(j);
    }
    json_end_array(j);
    buf_release(&frame);
}

int report_sites_print(const struct profile *p, const struct profile_filter *filter, size_t limit)
{
    size_t n;
    _cleanup_free_ uint32_t *order = ranked_sites(p, filter, &n);
    if (!order)
        return -ENOMEM;
    print_sites(p, order, n, limit);
    return 0;
}

int report_sites_json(struct json *j, const struct profile *p, const struct profile_filter *filter)
{
    size_t n;
    _cleanup_free_ uint32_t *order = ranked_sites(p, filter, &n);
    if (!order)
        return -ENOMEM;
    json_sites(j, p, order, n);
    return 0;
}
