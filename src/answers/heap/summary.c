/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/heap.h"
#include "answers/heap/paths.h"
#include "answers/heap/value.h"

#include <string.h>
#include <strings.h>
#include <time.h>

static void add_shape(struct answer *a, const struct heap_dump *d)
{
    const struct heap_shape *s = &d->shape;
    char text[200];
    snprintf(text, sizeof(text),
             "header %u bytes%s, array header %u, references %u, alignment %u, class objects %u "
             "and statics",
             s->header, s->header == 8 && d->header.id_size == 8 ? " (compact)" : "",
             s->array_header, s->reference, s->alignment, s->mirror_base);
    answer_fact_text(a, "sizeRule", "sizes", text);
    if (s->assumed)
        answer_fact_text(a, "sizeRuleSource", "  how known",
                         "assumed: ids of this dump are not addresses, or neighbours do not agree");
    else {
        snprintf(
            text, sizeof(text),
            "%llu neighbours in memory compared: %.1f %% lie exactly as far apart as the rule says",
            (unsigned long long)s->tried,
            s->tried ? 100.0 * (double)s->agreed / (double)s->tried : 0);
        answer_fact_text(a, "sizeRuleSource", "  how known", text);
    }
}

static void add_properties(struct answer *a, const struct heap *h)
{
    static const struct answer_column columns[] = {{"root", "kind of root", ANSWER_TEXT},
                                                   {"count", "count", ANSWER_COUNT}};

    uint64_t counts[HEAP_ROOT_KINDS + 1] = {0};
    for (size_t i = 0; i < h->dump->roots.len; i++)
        counts[heap_root_kind(h->dump->roots.data[i].tag)]++;
    answer_table(a, "roots", "GC roots", columns, ARRAY_SIZE(columns));
    for (size_t k = 0; k <= HEAP_ROOT_KINDS; k++) {
        if (!counts[k])
            continue;
        answer_text(a, k < HEAP_ROOT_KINDS ? heap_root_names[k].name : "other");
        answer_number(a, counts[k]);
    }
}

static void add_times(struct answer *a, const struct heap *h)
{
    const struct heap_build_times *t = &h->times;
    char text[256];
    snprintf(
        text, sizeof(text),
        "%.2f s (%.2f s of CPU time): objects %.2f, addresses %.2f, references %.2f, search %.2f, "
        "dominators %.2f, retained %.2f",
        t->total, t->cpu, t->survey, t->ids, t->references, t->search, t->dominators, t->retained);
    answer_fact_text(a, "indexTimes", h->built ? "index built in" : "index was built in", text);
    answer_fact(a, "indexBytes", "index", ANSWER_BYTES, h->index_bytes);
    answer_fact(a, "indexMemory", "  memory, at most", ANSWER_BYTES, t->peak_bytes);
    if (t->spilled)
        answer_fact(a, "indexSpilled", "  room in files", ANSWER_BYTES, t->spilled);
    snprintf(text, sizeof(text), "%.1f bytes of index, %.1f bytes of memory",
             h->n ? (double)h->index_bytes / (double)h->n : 0,
             h->n ? (double)t->peak_bytes / (double)h->n : 0);
    answer_fact_text(a, "indexPerObject", "  per object", text);
}

/* Adds facts about the dump. */
static void heap_summary_facts(struct answer *a, const struct heap *h)
{
    const struct heap_dump *d = h->dump;
    char text[64] = "?";
    time_t seconds = (time_t)(d->header.time_ms / 1000);
    struct tm tm;
    uint64_t classes = 0, loaders = 0;
    int32_t loader = heap_dump_class_named(d, "java.lang.ClassLoader");
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    for (size_t i = 0; i < d->classes.len; i++) {
        classes += d->classes.data[i].record != NULL;
        if (loader != HEAP_NO_CLASS && heap_class_is(d, (int32_t)i, loader))
            loaders += d->classes.data[i].objects;
    }
    answer_fact_text(a, "written", "written", text);
    answer_fact(a, "file", "file", ANSWER_BYTES, d->len);
    answer_fact(a, "idSize", "id size", ANSWER_COUNT, d->header.id_size);
    answer_fact(a, "objects", "objects", ANSWER_COUNT, h->n);
    answer_fact(a, "bytes", "  bytes", ANSWER_BYTES, d->bytes);
    answer_fact(a, "reachable", "reachable objects", ANSWER_COUNT, h->reachable);
    answer_fact(a, "reachableBytes", "  bytes", ANSWER_BYTES, heap_retained(h, h->n));
    answer_fact(a, "classes", "classes", ANSWER_COUNT, classes);
    answer_fact(a, "loaders", "class loaders", ANSWER_COUNT, loaders);
    answer_fact_text(
        a, "weakReferences", "weak references",
        h->strong ? "retain nothing (--strong)"
                  : "retain what nothing else holds, as in Eclipse MAT (--strong: they do not)");
    add_shape(a, d);
}

static int heap_answer_summary(const struct heap_call *c)
{
    heap_summary_facts(c->answer, c->heap);
    add_times(c->answer, c->heap);
    add_properties(c->answer, c->heap);
    heap_top_table(c->answer, c->heap, heap_rows(c->options, 12, 100), "Biggest objects");
    const char *extension = c->options->output ? strrchr(c->options->output, '.') : NULL;
    if (extension && strcasecmp(extension, ".html") == 0)
        heap_report_sections(c);
    return 0;
}

const struct command heap_verb_summary = {
    .name = "heap summary",
    .heap_answer = heap_answer_summary,
    HEAP_ONE_FILE,
    .summary = "describe a dump, its roots and its largest objects",
    .description = "Builds the index next to the dump when there is none; with it every other "
                   "verb answers at once.",
    .examples = "  jvmscope heap summary app.hprof\n"
                "  jvmscope heap summary -o report.html app.hprof              a page with the "
                "suspects, the largest objects and the tree\n",
    .sets = heap_sets,
};
