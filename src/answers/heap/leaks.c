/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap leaks`: explains in sentences what holds much more than the rest, by which path it is held,
 * and what accumulates there.
 */
#include "answers/heap/accumulation.h"
#include "answers/heap/heap.h"
#include "answers/heap/paths.h"
#include "answers/heap/value.h"

#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * A suspect holds a tenth of the heap and at least 2 MiB; with lower limits the VM's own tables
 * would be reported in a small program.
 */
enum { MIN_SHARE = 10, MIN_BYTES = 2 << 20, MAX_SUSPECTS = 16, MAX_SPLITS = 8, SHOWN_STEPS = 14 };

struct suspect {
    /* count > 1: this many instances of a class, of which holder is the largest */
    uint64_t holder, bytes, count;
};

struct finder {
    const struct heap *h;
    uint64_t least;
    int32_t thread, loader; /* class numbers */
    struct suspect found[MAX_SUSPECTS];
    size_t n;
};

/*
 * Returns whether an object is structural. Roots, threads, class loaders and classes hold
 * everything that the program consists of, which is not a leak.
 */
static bool is_structure(const struct finder *f, uint64_t i)
{
    const struct heap_dump *d = f->h->dump;
    if (i >= f->h->n)
        return true;
    int32_t class = heap_class_of(f->h, i);
    return class == d->class_class ||
           (f->thread != HEAP_NO_CLASS && heap_class_is(d, class, f->thread)) ||
           (f->loader != HEAP_NO_CLASS && heap_class_is(d, class, f->loader));
}

/*
 * Returns whether an object is a list in which a class loader keeps its classes: the nearest
 * thread, loader or class above it is a loader. A program's own collection of classes or loaders is
 * not such a list, and may be a leak.
 */
static bool is_list_of_loader(const struct finder *f, uint64_t i)
{
    uint64_t first, count;
    heap_children(f->h, i, &first, &count);
    if (!count || heap_class_of(f->h, heap_child(f->h, first)) != f->h->dump->class_class)
        return false;
    while (!is_structure(f, i))
        i = heap_idom(f->h, i);
    return i < f->h->n && f->loader != HEAP_NO_CLASS &&
           heap_class_is(f->h->dump, heap_class_of(f->h, i), f->loader);
}

static void add_suspect(struct finder *f, struct suspect s)
{
    if (f->n < MAX_SUSPECTS)
        f->found[f->n++] = s;
}

/*
 * Returns whether siblings in the tree have different classes, which makes them parts of something
 * and not elements of a collection.
 */
static bool differ(const struct heap *h, uint64_t first, uint64_t count)
{
    for (uint64_t k = 1; k < count; k++) {
        if (heap_class_of(h, heap_child(h, first + k)) != heap_class_of(h, heap_child(h, first)))
            return true;
    }
    return false;
}

/*
 * Descends from an object that keeps much, as long as one child keeps nearly all of it. The holder
 * is the last class, thread or loader on the way. Where several objects keep much, each of them is
 * examined, unless they are simply elements.
 */
static void split(struct finder *f, uint64_t node, unsigned depth)
{
    const struct heap *h = f->h;
    uint64_t holder = node, at = node, first, count;
    for (heap_children(h, at, &first, &count); count;
         heap_children_near(h, at, first, &first, &count)) {
        uint64_t child = heap_child(h, first);
        if (heap_retained(h, child) < f->least ||
            heap_retained(h, child) / 9 < heap_retained(h, at) / 10)
            break;
        at = child;
        holder = is_structure(f, at) ? at : holder;
    }
    uint64_t large = 0;
    while (large < count && heap_retained(h, heap_child(h, first + large)) >= f->least)
        large++;
    bool parts = large && (is_structure(f, at) || is_structure(f, heap_child(h, first)) ||
                           differ(h, first, large));
    bool classes = count && is_structure(f, heap_child(h, first));
    bool own = !is_structure(f, at) && !is_list_of_loader(f, at);
    size_t before = f->n;
    if (parts && depth < MAX_SPLITS) {
        for (uint64_t k = 0; k < large; k++)
            split(f, heap_child(h, first + k), depth + 1);
        /* Loaders of many small classes are not suspects, but a collection of such loaders is. */
        if (f->n == before && classes && own)
            add_suspect(f, (struct suspect){holder, heap_retained(h, holder), 1});
        return;
    }
    classes = classes && !large && !own;
    if (!classes && !(is_structure(f, at) && !large && at == holder))
        add_suspect(f, (struct suspect){holder, heap_retained(h, holder), 1});
}

/* Groups the topmost objects by class, because many small ones may be a suspect together. */
static void find_groups(struct finder *f)
{
    const struct heap *h = f->h;
    uint64_t first, count;
    heap_children(h, h->n, &first, &count);
    struct suspect *groups = calloc(h->dump->classes.len + 1, sizeof(*groups));
    for (uint64_t k = 0; groups && k < count; k++) {
        uint64_t child = heap_child(h, first + k), bytes = heap_retained(h, child);
        struct suspect *g = &groups[heap_class_of(h, child)];
        if (bytes >= f->least)
            continue; /* a single object */
        if (!g->count++)
            g->holder = child; /* the largest, because they are sorted */
        g->bytes += bytes;
    }
    for (size_t k = 0; groups && k < h->dump->classes.len; k++) {
        if (groups[k].count && groups[k].bytes >= f->least && (int32_t)k != h->dump->class_class)
            add_suspect(f, groups[k]);
    }
    free(groups);
}

static int by_bytes(const void *a, const void *b)
{
    const struct suspect *x = a, *y = b;
    return x->bytes < y->bytes   ? 1
           : x->bytes > y->bytes ? -1
                                 : (x->holder > y->holder) - (x->holder < y->holder);
}

static void find_suspects(struct finder *f)
{
    uint64_t first, count;
    heap_children(f->h, f->h->n, &first, &count);
    for (uint64_t k = 0; k < count && heap_retained(f->h, heap_child(f->h, first + k)) >= f->least;
         k++)
        split(f, heap_child(f->h, first + k), 0);
    find_groups(f);
    qsort(f->found, f->n, sizeof(f->found[0]), by_bytes);
}

/* Describes the shortest path from a GC root in one line; the middle of a long path is left out. */
static void describe_path(const struct heap *h, uint64_t i, struct buf *b)
{
    const struct heap_path_starts starts = heap_path_starts_of(h);
    VEC(uint64_t) way = {0};
    for (uint64_t at = i, n = 0; at < h->n && n < 1000; at = heap_path(h, at), n++) {
        if (vec_push(&way, at) < 0)
            break;
    }
    way.len = way.len ? heap_path_start(&starts, way.data, way.len) + 1 : 0;
    for (size_t k = way.len; k-- > 0;) {
        if (way.len > SHOWN_STEPS && k == way.len - SHOWN_STEPS / 2) {
            buf_printf(b, " -> ... %zu steps ...", way.len - SHOWN_STEPS);
            k = SHOWN_STEPS / 2;
            continue;
        }
        if (k + 1 == way.len) {
            /* A class lives as long as its loader, so a local that refers to it holds nothing. */
            if (!heap_is_class_of_program(h, way.data[k]))
                heap_root_kinds(h, way.data[k], b);
            /*
             * removes " class" from "system class", because the word follows in the sentence;
             * without a root there is no kind
             */
            if (str_ends_in((struct str){(const char *)b->data, b->len}, " class"))
                b->len -= strlen(" class");
            if (b->len)
                buf_u8(b, ' ');
        } else {
            buf_string(b, " -> ");
            heap_link_name(h, way.data[k + 1], way.data[k], b);
            buf_u8(b, ' ');
        }
        heap_describe_short(h, way.data[k], b);
    }
    vec_release(&way);
}

/*
 * Ends a line of the explanation, which becomes a note of the answer and a line of the whole text.
 */
static void end_line(struct answer *a, struct buf *line, struct buf *text)
{
    answer_note(a, "%s", buf_str(line));
    buf_printf(text, "%s%s", text->len ? "\n" : "", buf_str(line));
    buf_clear(line);
}

static void explain(struct answer *a, const struct heap *h, size_t number, const struct suspect *s,
                    const struct accumulation *c, const char *path, struct buf *text)
{
    _cleanup_(buf_release) struct buf who = BUF(1 << 20), where = BUF(1 << 20), out = BUF(4 << 20);
    char size[24], each[24];
    uint64_t all = heap_retained(h, h->n);
    double share = all ? 100.0 * (double)s->bytes / (double)all : 0;
    heap_describe(h, s->holder, &who);
    heap_describe(h, c->place, &where);
    buf_printf(&out, "Suspect %zu: ", number);
    if (s->count > 1)
        buf_printf(&out,
                   "%" PRIu64 " instances of %s keep %s (%.1f %% of the heap); the largest is %s.",
                   s->count, heap_class_name(h, s->holder), format_size(size, s->bytes), share,
                   buf_str(&who));
    else
        buf_printf(&out, "%s keeps %s (%.1f %% of the heap).", buf_str(&who),
                   format_size(size, s->bytes), share);
    end_line(a, &out, text);
    buf_printf(&out, "  It is held through: %s", path);
    end_line(a, &out, text);
    const char *class = c->class == HEAP_NO_CLASS ? NULL : h->dump->classes.data[c->class].name;
    bool accumulation = c->count > 1 && class;
    const char *loaded = c->loaded == HEAP_NO_CLASS ? NULL : h->dump->classes.data[c->loaded].name;
    if (c->links)
        buf_printf(&out, "  The objects are a chain of %" PRIu64 " %s that begins at %s",
                   c->links + 1, heap_class_name(h, c->place), buf_str(&where));
    else if (accumulation)
        buf_printf(&out, "  The objects accumulate in %s", buf_str(&where));
    else
        buf_printf(&out, "  Most of it is %s itself (%s)", buf_str(&where),
                   format_size(size, heap_shallow(h, c->place)));
    if (accumulation && c->links) {
        buf_u8(&out, ';');
        end_line(a, &out, text);
        buf_string(&out, "  it carries");
    } else if (accumulation) {
        buf_u8(&out, ':');
    }
    if (accumulation)
        buf_printf(&out, " %" PRIu64 " %s%s, %s each on average, %s together", c->count,
                   c->versions ? "versions of class " : "", class,
                   format_size(each, c->bytes / c->count), format_size(size, c->bytes));
    if (accumulation && loaded)
        buf_printf(&out, ", which keep class %s", loaded);
    if (accumulation && c->loaders > 1)
        buf_printf(&out, ", loaded by %" PRIu64 " class loaders%s", c->loaders,
                   c->loaders == c->count ? ", one each" : "");
    buf_u8(&out, '.');
    end_line(a, &out, text);
}

static void suspect_row(struct answer *a, const struct heap *h, const struct suspect *s,
                        const struct accumulation *c, const char *path, const char *text)
{
    uint64_t all = heap_retained(h, h->n);
    answer_number(a, heap_id(h, s->holder));
    answer_text(a, heap_class_name(h, s->holder));
    heap_answer_value(a, h, s->holder);
    answer_number(a, s->count);
    answer_number(a, s->bytes);
    answer_real(a, all ? 100.0 * (double)s->bytes / (double)all : 0);
    answer_number(a, heap_id(h, c->place));
    answer_text(a, heap_class_name(h, c->place));
    answer_number(a, c->links ? c->links + 1 : 0);
    answer_text(a, c->class == HEAP_NO_CLASS ? NULL : h->dump->classes.data[c->class].name);
    answer_number(a, c->count);
    answer_number(a, c->loaders);
    answer_text(a, path);
    answer_text(a, text);
}

void heap_suspects(struct answer *a, const struct heap *h)
{
    static const struct answer_column columns[] = {
        {"object", NULL, ANSWER_ID},      {"class", NULL, ANSWER_TEXT},
        {"value", NULL, ANSWER_TEXT},     {"instances", NULL, ANSWER_COUNT},
        {"retained", NULL, ANSWER_BYTES}, {"percent", NULL, ANSWER_PERCENT},
        {"accumulator", NULL, ANSWER_ID}, {"accumulatorClass", NULL, ANSWER_TEXT},
        {"chain", NULL, ANSWER_COUNT},    {"accumulates", NULL, ANSWER_TEXT},
        {"count", NULL, ANSWER_COUNT},    {"loaders", NULL, ANSWER_COUNT},
        {"path", NULL, ANSWER_TEXT},      {"text", NULL, ANSWER_TEXT}};
    struct finder f = {.h = h,
                       .least = MAX(heap_retained(h, h->n) / MIN_SHARE, (uint64_t)MIN_BYTES),
                       .thread = heap_dump_class_named(h->dump, "java.lang.Thread"),
                       .loader = heap_dump_class_named(h->dump, "java.lang.ClassLoader")};
    struct accumulation accumulations[MAX_SUSPECTS];
    struct buf paths[MAX_SUSPECTS], texts[MAX_SUSPECTS];
    find_suspects(&f);
    if (!f.n && h->dump->cut)
        answer_note(a, "In the part of the dump that could be read, nothing holds a tenth of the "
                       "heap; the rest is unknown.");
    else if (!f.n)
        answer_note(a, "No suspects: nothing holds a tenth of the heap and 2 MiB or more.");
    for (size_t i = 0; i < f.n; i++) {
        paths[i] = BUF(1 << 20);
        texts[i] = BUF(1 << 20);
        accumulations[i] = heap_accumulation(h, f.found[i].holder);
        describe_path(h, f.found[i].count > 1 ? f.found[i].holder : accumulations[i].place,
                      &paths[i]);
        explain(a, h, i + 1, &f.found[i], &accumulations[i], buf_str(&paths[i]), &texts[i]);
    }
    answer_table(a, "suspects", NULL, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < f.n; i++) {
        suspect_row(a, h, &f.found[i], &accumulations[i], buf_str(&paths[i]), buf_str(&texts[i]));
        buf_release(&paths[i]);
        buf_release(&texts[i]);
    }
}

static int heap_answer_leaks(const struct heap_call *c)
{
    heap_suspects(c->answer, c->heap);
    return 0;
}

const struct command heap_verb_leaks = {
    .name = "heap leaks",
    .heap_answer = heap_answer_leaks,
    HEAP_ONE_FILE,
    .summary = "find objects that retain much more than others, and the paths that hold them",
    .description = "Lists suspects: objects, or the instances of a class, that retain at least a "
                   "tenth of the heap and at least 2 MiB.",
    .examples = "  jvmscope heap leaks app.hprof\n",
    .sets = heap_sets,
};
