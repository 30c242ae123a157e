/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the samples of each recording twice: as profiles do, by fields whose positions are
 * determined once for each chunk, and event by event with each field by its name.
 *
 *     profile_twice FILE...           prints the number of samples
 *     profile_twice --damage N FILE   also reads the file with one byte changed, and a truncated
 *                                     copy, at N positions
 *
 * If the results differ it says so and exits with 1.
 */
#include "base/file.h"
#include "base/hash.h"
#include "base/map.h"
#include "jfr/reader.h"
#include "profile/frame_role.h"
#include "profile/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The types whose events are the samples of a metric, one for one and in the same order. */
static const struct source {
    const char *type, *weight; /* NULL means a weight of 1, "" the duration */
    enum profile_metric metric;
} sources[] = {
    {"jdk.ExecutionSample", NULL, PROFILE_CPU},
    {"jvmscope.WallSample", "samples", PROFILE_WALL},
    {"jdk.ObjectAllocationSample", "weight", PROFILE_ALLOCATION},
    {"jdk.JavaMonitorEnter", "", PROFILE_LOCK},
};

/* Recordings with samples of other kinds too are not compared. */
static const struct rec_select others[] = {{"jdk.CPUTimeSample", 0},
                                           {"jvmscope.UnattributedSample", 0},
                                           {"jvmscope.AllocationSite", 0},
                                           {0}};

static bool has_others(struct recording *r)
{
    struct rec_event e;
    bool some = recording_select(r, others) < 0 || recording_next(r, &e) > 0;
    recording_rewind(r);
    return some;
}

static bool same_text(struct str a, const char *b)
{
    return str_is(a, b ? b : "");
}

static bool same_stack(const struct profile *p, uint32_t node, const struct rec_stack *s)
{
    uint32_t ours = s ? frame_role_probe_frames(s) : 0;
    if (s && s->n && ours == s->n)
        return true;
    for (uint32_t i = ours; s && i < s->n; i++) {
        if (!node)
            return false;
        const struct rec_frame *want = &s->frames[i];
        const struct profile_frame *have = profile_node_frame(p, node);
        const struct profile_method *m = &p->methods.data[have->method];
        int32_t line = want->line < 0 || want->line >= PROFILE_LINES ? 0 : want->line;
        if (have->line != line || !same_text(profile_text(p, m->name), want->method->name) ||
            !same_text(profile_text(p, m->signature), want->method->descriptor) ||
            !same_text(profile_text(p, m->class_name),
                       want->method->class ? want->method->class->name : ""))
            return false;
        node = p->nodes.data[node].parent;
    }
    return s && s->truncated ? node && !p->nodes.data[node].parent : !node;
}

static bool same_sample(const struct profile *p, const struct profile_sample *have,
                        const struct rec_event *e, const struct source *source, int64_t start_ns)
{
    const struct rec_object *o = &e->object;
    const struct rec_stack *s = rec_stack(o, "stackTrace");
    const struct rec_thread *t = rec_thread(o, "sampledThread");
    if (!t)
        t = rec_thread(o, "eventThread");
    const struct profile_thread *thread = &p->threads.data[have->thread];
    uint64_t id = !t ? UINT64_MAX : (uint64_t)(t->java_id > 0 ? t->java_id : t->os_id);
    int64_t weight = !source->weight   ? 1
                     : *source->weight ? rec_long(o, source->weight, *source->weight == 's')
                                       : e->duration_ns;
    return have->time_ns == (uint64_t)MAX(e->start_ns - start_ns, 0) &&
           have->weight == (uint64_t)weight && thread->id == id && same_stack(p, have->node, s);
}

/* Returns the number of samples of a metric that both have, or -1 when they differ. */
static int64_t compare(const struct profile *p, struct recording *r, const struct source *source)
{
    const struct rec_select wanted[] = {{source->type, 1}, {0}};
    struct rec_info info;
    struct rec_event e;
    size_t n = 0;
    if (recording_select(r, wanted) < 0)
        return -1;
    recording_rewind(r);
    recording_info(r, &info);
    for (; recording_next(r, &e) > 0; n++) {
        if (n >= p->series[source->metric].samples.len ||
            !same_sample(p, &p->series[source->metric].samples.data[n], &e, source, info.start_ns))
            return -1;
    }
    return n == p->series[source->metric].samples.len || !n ? (int64_t)n : -1;
}

/*
 * Returns hashes that are equal for equal stacks of two profiles, although each profile numbers
 * stacks and threads in the order in which it met them.
 */
static uint64_t *hash_stacks(const struct profile *p)
{
    uint64_t *hashes = calloc(p->nodes.len, sizeof(*hashes));
    for (uint32_t i = 1; hashes && i < p->nodes.len; i++) {
        const struct profile_frame *f = profile_node_frame(p, i);
        const struct profile_method *m = &p->methods.data[f->method];
        struct str label = profile_text(p, m->label), signature = profile_text(p, m->signature);
        hashes[i] = hash_u64(
            hashes[p->nodes.data[i].parent] ^ hash_bytes(label.data, label.len) ^
            hash_u64(hash_bytes(signature.data, signature.len) ^ (uint64_t)f->line << 8 ^ f->kind));
    }
    return hashes;
}

/*
 * Adds the weights of samples, multiplied by `times`, by stack and, if requested, by thread and
 * cell of time.
 */
static bool add_weights(struct map *to, const struct profile *p,
                        const struct profile_samples *samples, bool threads, uint64_t cell_ns,
                        uint64_t by)
{
    uint64_t *hashes = hash_stacks(p);
    bool added = hashes != NULL;
    for (size_t i = 0; added && i < samples->len; i++) {
        const struct profile_sample *s = &samples->data[i];
        uint64_t key = hashes[s->node];
        if (threads)
            key = hash_u64(key ^ p->threads.data[s->thread].id);
        if (cell_ns)
            key = hash_u64(key ^ s->time_ns / cell_ns);
        uint64_t *at = map_at(to, key, 0, NULL);
        added = at != NULL;
        if (at)
            *at += by * s->weight;
    }
    free(hashes);
    return added;
}

static bool is_balanced(struct map *m)
{
    uint64_t key, value;
    bool zero = true;
    for (size_t i = 0; map_next(m, &i, &key, &value);)
        zero = zero && value == 0;
    map_release(m);
    return zero;
}

/* Returns whether merged samples have the weights of the single ones. */
static bool same_weights(const struct profile *single, const struct profile *sums,
                         enum load_detail detail)
{
    bool same = single->nodes.len == sums->nodes.len && single->threads.len == sums->threads.len &&
                single->duration_ns == sums->duration_ns && single->lost_any == sums->lost_any;
    for (int m = 0; same && m < PROFILE_METRICS; m++) {
        const struct profile_series *of = &single->series[m], *to = &sums->series[m];
        struct map weights = {0}, merged = {0};
        bool threads = detail != LOAD_SUMS && !to->threads_merged;
        same = add_weights(&weights, single, &of->samples, threads, to->cell_ns, 1) &&
               add_weights(&weights, sums, &to->samples, threads, to->cell_ns, UINT64_MAX) &&
               (of->samples.len > 0) == (to->samples.len > 0) && to->samples.len <= of->samples.len;
        if (same && to->merged.len)
            same = add_weights(&merged, single, &of->samples, false, to->merged_cell_ns, 1) &&
                   add_weights(&merged, sums, &to->merged, false, to->merged_cell_ns, UINT64_MAX);
        /* Both maps are released. */
        same = is_balanced(&weights) && same;
        same = is_balanced(&merged) && same;
    }
    return same;
}

static bool has_same_sums(const struct load *l, enum load_detail detail)
{
    struct buf text = BUF(4096);
    struct load again = *l;
    again.profile = profile_new();
    again.detail = detail;
    again.why = &text;
    bool same = load_jfr(&again) == 0 && same_weights(l->profile, again.profile, detail) &&
                text.len == l->why->len && memcmp(buf_str(&text), buf_str(l->why), text.len) == 0;
    profile_free(again.profile);
    buf_release(&text);
    return same;
}

static int64_t read_twice(const uint8_t *bytes, size_t len, const char *name)
{
    struct buf text = BUF(4096);
    struct load l = {
        .profile = profile_new(), .data = bytes, .len = len, .path = name, .why = &text};
    struct recording *r = NULL;
    const char *why;
    int64_t samples = 0;
    int opened = recording_open_bytes(&r, bytes, len, &why), loaded = load_jfr(&l);
    if ((opened < 0) != (loaded < 0))
        samples = -1;
    bool is_compared = opened == 0 && loaded == 0 && !has_others(r);
    for (size_t i = 0; i < ARRAY_SIZE(sources) && is_compared && samples >= 0; i++) {
        int64_t n = compare(l.profile, r, &sources[i]);
        samples = n < 0 ? n : samples + n;
    }
    for (enum load_detail d = LOAD_SUMS; is_compared && samples >= 0 && d <= LOAD_CELLS; d++)
        if (!has_same_sums(&l, d))
            samples = -1;
    if (samples < 0)
        printf("%s: the two ways of reading differ\n", name);
    recording_close(r);
    profile_free(l.profile);
    buf_release(&text);
    return samples;
}

static int read_damaged(const uint8_t *bytes, size_t len, size_t places, const char *name)
{
    uint8_t *copy = malloc(len);
    bool same = copy != NULL;
    for (size_t i = 0; i < places && same; i++) {
        size_t at = len / places * i + i * 7 % 64;
        at = MIN(at, len - 1);
        memcpy(copy, bytes, len);
        copy[at] = (uint8_t)~copy[at];
        same = read_twice(copy, len, name) >= 0 && read_twice(bytes, at, name) >= 0;
        if (!same)
            printf("%s: damaged or cut at byte %zu\n", name, at);
    }
    free(copy);
    return same ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool damage = argc == 4 && strcmp(argv[1], "--damage") == 0;
    int64_t all = 0;
    int status = 0;
    for (int i = damage ? 3 : 1; i < argc && status == 0; i++) {
        uint8_t *bytes;
        size_t len;
        if (file_read_path(argv[i], SIZE_MAX / 2, &bytes, &len))
            return 2;
        if (damage) {
            status = read_damaged(bytes, len, strtoul(argv[2], NULL, 10), argv[i]);
        } else {
            int64_t n = read_twice(bytes, len, argv[i]);
            status = n < 0;
            all += n;
        }
        free(bytes);
    }
    printf("%lld samples\n", (long long)all);
    return status;
}
