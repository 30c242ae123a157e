/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap paths`: why an object is alive, from a GC root downwards; for many objects their merged
 * paths.
 */
#include "answers/heap/paths.h"

#include "answers/heap/accumulation.h"
#include "answers/heap/heap.h"
#include "answers/heap/select.h"
#include "answers/heap/threads.h"
#include "base/parse.h"
#include "heap/memory.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PATH_ROWS = 400, MAX_MERGED = 20000, MAX_DEPTH = 4096, SHOWN_DEPTH = 200 };

const struct heap_root_name heap_root_names[HEAP_ROOT_KINDS] = {
    {HPROF_ROOT_STICKY_CLASS, "system class"},   {HPROF_ROOT_JNI_GLOBAL, "JNI global"},
    {HPROF_ROOT_JNI_LOCAL, "JNI local"},         {HPROF_ROOT_JAVA_FRAME, "local variable"},
    {HPROF_ROOT_NATIVE_STACK, "native stack"},   {HPROF_ROOT_THREAD_OBJECT, "thread"},
    {HPROF_ROOT_MONITOR_USED, "monitor in use"}, {HPROF_ROOT_THREAD_BLOCK, "thread block"}};

size_t heap_root_kind(uint8_t tag)
{
    size_t k = 0;
    while (k < HEAP_ROOT_KINDS && heap_root_names[k].tag != tag)
        k++;
    return k;
}

const char *heap_root_name(uint8_t tag)
{
    size_t k = heap_root_kind(tag);
    return k < HEAP_ROOT_KINDS ? heap_root_names[k].name : "root";
}

void heap_root_kinds(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t id = heap_id(h, i);
    uint8_t last = 0;
    size_t low = 0, high = h->dump->roots.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (h->dump->roots.data[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < h->dump->roots.len && h->dump->roots.data[low].id == id; low++) {
        if (h->dump->roots.data[low].tag == last)
            continue;
        buf_printf(b, "%s%s", last ? ", " : "", heap_root_name(h->dump->roots.data[low].tag));
        heap_root_place(h, &h->dump->roots.data[low], b);
        last = h->dump->roots.data[low].tag;
    }
}

bool heap_is_class_of_program(const struct heap *h, uint64_t i)
{
    const struct heap_dump *d = h->dump;
    int32_t class =
        heap_class_of(h, i) == d->class_class ? heap_dump_class(d, heap_id(h, i)) : HEAP_NO_CLASS;
    return class != HEAP_NO_CLASS && heap_is_program_class(&d->classes.data[class]);
}

struct heap_path_starts heap_path_starts_of(const struct heap *h)
{
    return (struct heap_path_starts){h, heap_dump_class_named(h->dump, "java.lang.Thread"),
                                     heap_dump_class_named(h->dump, "java.lang.ClassLoader")};
}

static bool is_a(const struct heap *h, uint64_t i, int32_t base)
{
    return base != HEAP_NO_CLASS && heap_class_is(h->dump, heap_class_of(h, i), base);
}

size_t heap_path_start(const struct heap_path_starts *s, const uint64_t *way, size_t n)
{
    const struct heap *h = s->h;
    for (size_t k = n; k-- > 0;) {
        if (heap_is_class_of_program(h, way[k]))
            return k;
        /*
         * What a thread or an object of the program holds belongs to it, except for a thread's
         * class loader.
         */
        bool thread = is_a(h, way[k], s->thread), to_loader = k && is_a(h, way[k - 1], s->loader);
        bool program = heap_is_program_class(&h->dump->classes.data[heap_class_of(h, way[k])]);
        if ((thread && !to_loader) || (program && !is_a(h, way[k], s->loader)))
            break;
    }
    return n - 1;
}

/* Writes what holds the first object of a shown path. */
static void start_kind(const struct heap *h, uint64_t i, struct buf *b)
{
    /* A class lives as long as its loader, so a local that refers to it holds nothing. */
    if (heap_is_class_of_program(h, i))
        buf_string(b, "class of the program");
    else
        heap_root_kinds(h, i, b);
}

/*
 * Reads the kinds of Reference whose referents are not followed, as a set; NULL stands for all.
 * Returns the part of the list that is none of them, or that "none" does not allow, or NULL.
 */
static const char *read_excluded(const char *list, unsigned *ret)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } names[] = {{"soft", 1u << HEAP_SOFT},
                 {"weak", 1u << HEAP_WEAK},
                 {"final", 1u << HEAP_FINAL},
                 {"phantom", 1u << HEAP_PHANTOM},
                 {"none", 0}};

    bool none = false, several = list && list[strcspn(list, ",")];
    *ret = list ? 0 : 1u << HEAP_SOFT | 1u << HEAP_WEAK | 1u << HEAP_FINAL | 1u << HEAP_PHANTOM;
    for (const char *p = list; p; p += strcspn(p, ","), p = *p ? p + 1 : NULL) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ","), k = 0;
        while (k < ARRAY_SIZE(names) &&
               (strlen(names[k].name) != n || memcmp(names[k].name, p, n) != 0))
            k++;
        none |= k < ARRAY_SIZE(names) && !names[k].kinds;
        if (k == ARRAY_SIZE(names) || (none && several))
            return p;
        *ret |= names[k].kinds;
    }
    return NULL;
}

/* A separate breadth-first search, for exclusions that the index does not cover. */
static int search_path(const struct heap *h, uint64_t goal, unsigned exclude, uint64_t **ret)
{
    const uint64_t n = h->n;
    uint64_t *before = heap_memory((n + 1) * 8);
    VEC(uint64_t) queue = {0};
    int error = before ? 0 : -ENOMEM;
    for (size_t r = 0; r < h->dump->roots.len && !error; r++) {
        uint64_t at = heap_ids_find(&h->ids, h->dump->roots.data[r].id);
        if (at != HEAP_NONE && !before[at]) {
            before[at] = n + 1;
            error = vec_push(&queue, at);
        }
    }
    for (size_t head = 0; head < queue.len && !error && !before[goal]; head++) {
        struct hprof_item item;
        struct heap_refs refs;
        uint64_t id, from = queue.data[head];
        if (!heap_item(h, from, &item))
            continue;
        heap_refs_begin(&refs, h->dump, &item);
        while (heap_refs_next(&refs, &id) && !error) {
            uint64_t to = heap_ids_find(&h->ids, id);
            if (to == HEAP_NONE || before[to] ||
                (refs.weak && exclude >> refs.class->reference & 1))
                continue;
            before[to] = from + 1;
            error = vec_push(&queue, to);
        }
    }
    vec_release(&queue);
    if (error)
        heap_memory_free(before);
    else
        *ret = before;
    return error;
}

static uint64_t step_back(const struct heap *h, const uint64_t *before, uint64_t i)
{
    if (!before)
        return heap_path(h, i);
    return before[i] ? before[i] - 1 : HEAP_NONE;
}

static const struct answer_column path_columns[] = {
    {"via", "through", ANSWER_TEXT},      {"object", "object", ANSWER_ID},
    {"shallow", "shallow", ANSWER_BYTES}, {"retained", "retained", ANSWER_BYTES},
    {"class", "class", ANSWER_TEXT},      {"value", "value", ANSWER_TEXT}};

static void path_row(struct answer *a, const struct heap *h, uint64_t from, uint64_t i)
{
    _cleanup_(buf_release) struct buf link = BUF(1 << 16);
    if (from >= h->n)
        start_kind(h, i, &link);
    else
        heap_link_name(h, from, i, &link);
    answer_text(a, buf_str(&link));
    answer_number(a, heap_id(h, i));
    answer_number(a, heap_shallow(h, i));
    answer_number(a, heap_retained(h, i));
    answer_text(a, heap_class_name(h, i));
    heap_answer_value(a, h, i);
}

static int one_path(const struct heap_call *c, uint64_t goal, unsigned exclude)
{
    const struct heap *h = c->heap;
    uint64_t *before = NULL, length = 0;
    bool weak = h->path_weak[goal / 8] >> (goal % 8) & 1;
    /*
     * The index knows the paths that exclude all kinds, and the paths of objects that are held only
     * weakly.
     */
    if (c->options->exclude && search_path(h, goal, exclude, &before) < 0)
        return answer_refuse(c->answer, NULL, "paths", strerror(ENOMEM));
    if (!c->options->exclude && weak)
        answer_note(c->answer, "Held by soft, weak, final or phantom references alone.");
    VEC(uint64_t) way = {0};
    uint64_t i = goal;
    for (; i < h->n && length <= h->n; i = step_back(h, before, i), length++) {
        if (length < MAX_PATH_ROWS && vec_push(&way, i) < 0)
            break;
    }
    bool reached = i == h->n;
    if (reached && length == way.len) {
        const struct heap_path_starts starts = heap_path_starts_of(h);
        size_t start = heap_path_start(&starts, way.data, way.len);
        /* For a class itself, the whole path shows what keeps it alive. */
        if (start)
            length = way.len = start + 1;
    }
    if (!reached)
        answer_note(c->answer, "No path from a GC root: %s.",
                    heap_idom(h, goal) == HEAP_NONE ? "the object is garbage"
                                                    : "but for the references left out");
    else if (length > way.len)
        answer_note(c->answer, "The path has %s; the last %zu are shown.",
                    COUNT_TEXT(length, "steps"), way.len);
    answer_fact(c->answer, "length", "steps", ANSWER_COUNT, reached ? length : 0);
    answer_table(c->answer, "path", NULL, path_columns, ARRAY_SIZE(path_columns));
    for (size_t k = reached ? way.len : 0; k-- > 0;)
        path_row(c->answer, h,
                 k + 1 < way.len    ? way.data[k + 1]
                 : length > way.len ? step_back(h, before, way.data[k])
                                    : h->n,
                 way.data[k]);
    vec_release(&way);
    heap_memory_free(before);
    return 0;
}

/*
 * A node of the merged paths: an object, the number of selected objects below it, and their size.
 */
struct merged {
    uint64_t object, parent, count, bytes;
};

static int by_parent(const void *a, const void *b)
{
    const struct merged *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

/*
 * Makes paths begin at those of the program's classes that are reachable only through the VM's
 * bookkeeping. Such a class becomes a row of the first level, and its count and bytes are
 * subtracted from the rows above it.
 */
static int begin_at_classes(const struct heap *h, const struct map *index, struct merged *rows,
                            size_t n)
{
    const struct heap_path_starts starts = heap_path_starts_of(h);
    VEC(uint64_t) way = {0};
    int error = 0;
    for (size_t k = 0; k < n && !error; k++) {
        if (!heap_is_class_of_program(h, rows[k].object))
            continue;
        way.len = 0;
        for (uint64_t at = rows[k].object; at < h->n && way.len < MAX_DEPTH && !error;
             at = heap_path(h, at))
            error = vec_push(&way, at);
        if (error || heap_path_start(&starts, way.data, way.len) != 0)
            continue;
        rows[k].parent = h->n;
        for (size_t up = 1; up < way.len; up++) {
            const uint64_t *row = map_get(index, way.data[up]);
            if (!row || *row >= n)
                continue;
            /* Below a path that was cut off at MAX_DEPTH, more is counted than above it. */
            rows[*row].count -= MIN(rows[*row].count, rows[k].count);
            rows[*row].bytes -= MIN(rows[*row].bytes, rows[k].bytes);
        }
    }
    vec_release(&way);
    return error;
}

struct merging {
    const struct heap *h;
    struct answer *answer;
    const struct merged *rows;
    size_t n;
    uint64_t left, least, cut; /* cut: rows beyond the limit */
    uint64_t seldom;           /* rows of less than `least` objects */
    bool too_deep;
};

static void merged_row(struct merging *m, uint64_t parent, const struct merged *row, unsigned depth)
{
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    for (unsigned d = 0; d < depth; d++)
        buf_string(&text, "  ");
    if (parent < m->h->n)
        heap_link_name(m->h, parent, row->object, &text);
    else
        start_kind(m->h, row->object, &text);
    buf_string(&text, ": ");
    heap_describe(m->h, row->object, &text);
    answer_number(m->answer, depth);
    answer_number(m->answer, row->count);
    answer_number(m->answer, row->bytes);
    answer_text(m->answer, buf_str(&text));
}

/*
 * Writes the tree in pre-order, with the children of each node sorted by count, and counts the rows
 * beyond the limit. The recursion is limited by cutting the tree at a depth.
 */
static void show_merged(struct merging *m, uint64_t parent, unsigned depth)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->rows[middle].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->n && m->rows[low].parent == parent; low++) {
        const struct merged *row = &m->rows[low];
        if (row->count < m->least) {
            /* What led only to classes at which paths begin (begin_at_classes) is no branch. */
            m->seldom += row->count > 0;
            continue;
        }
        bool shown = m->left > 0;
        if (shown)
            merged_row(m, parent, row, depth);
        m->left -= shown;
        m->cut += !shown;
        if (depth < SHOWN_DEPTH)
            show_merged(m, row->object, depth + 1);
        else
            m->too_deep = m->too_deep || shown;
    }
}

static int merged_paths(const struct heap_call *c, const struct heap_selection *s)
{
    static const struct answer_column columns[] = {{"depth", NULL, ANSWER_COUNT},
                                                   {"objects", "objects", ANSWER_COUNT},
                                                   {"bytes", "bytes", ANSWER_BYTES},
                                                   {"path", "path", ANSWER_TEXT}};
    const struct heap *h = c->heap;
    struct map index = {0};
    VEC(struct merged) rows = {0};
    uint64_t every = s->count / MAX_MERGED + 1, seen = 0, taken = 0, cut = 0;
    bool classes = false; /* for class objects, the whole path shows what keeps them alive */
    int error = 0;
    for (uint64_t i = 0; i < h->n && !error; i++) {
        if (!(s->bits[i / 64] >> (i % 64) & 1) || seen++ % every || heap_path(h, i) == HEAP_NONE)
            continue;
        uint64_t size = heap_shallow(h, i), at = i;
        classes = classes || heap_class_of(h, i) == h->dump->class_class;
        taken++;
        for (int depth = 0; at < h->n && depth < MAX_DEPTH && !error;
             depth++, at = heap_path(h, at)) {
            bool added;
            uint64_t *row = map_at(&index, at, rows.len, &added);
            struct merged new = {at, heap_path(h, at), 0, 0};
            error = !row ? -ENOMEM : added ? vec_push(&rows, new) : 0;
            if (!error && *row < rows.len) {
                rows.data[*row].count++;
                rows.data[*row].bytes += size;
            }
        }
        cut += at < h->n;
    }
    if (!error && !classes)
        error = begin_at_classes(h, &index, rows.data, rows.len);
    if (!error) {
        if (rows.len)
            qsort(rows.data, rows.len, sizeof(struct merged), by_parent);
        if (every > 1)
            answer_note(c->answer,
                        "Paths of a sample: %" PRIu64 " of %" PRIu64 " objects, one in %" PRIu64
                        ".",
                        taken, s->count, every);
        if (cut)
            answer_note(c->answer,
                        "Paths longer than %d steps: %" PRIu64 " of %" PRIu64
                        "; these objects are counted on the last %d steps of their path alone.",
                        MAX_DEPTH, cut, taken, MAX_DEPTH);
        answer_fact(c->answer, "objects", "objects", ANSWER_COUNT, s->count);
        answer_table(c->answer, "paths", "Shortest paths from GC roots, merged", columns,
                     ARRAY_SIZE(columns));
        c->answer->blocks.data[c->answer->blocks.len - 1].nested = true;
        struct merging m = {h,
                            c->answer,
                            rows.data,
                            rows.len,
                            heap_rows(c->options, 60, 2000),
                            MAX(taken / 100, (uint64_t)1),
                            0,
                            0,
                            false};
        show_merged(&m, h->n, 0);
        answer_left(c->answer, m.cut, 0);
        if (m.seldom)
            answer_note(c->answer,
                        "Branches of fewer than %" PRIu64 " objects are not shown: %" PRIu64 ".",
                        m.least, m.seldom);
        if (m.too_deep)
            answer_note(c->answer, "Steps after the first %d of a path are not shown.",
                        SHOWN_DEPTH + 1);
    }
    vec_release(&rows);
    map_release(&index);
    return error ? answer_refuse(c->answer, NULL, "paths", strerror(-error)) : 0;
}

/*
 * Refuses an option that has no effect on merged paths, which come from the index and show no
 * retained sizes. Returns the exit status.
 */
static int refuse_for_several(const struct heap_call *c, const struct heap_selection *s,
                              const char *flag)
{
    char what[96];
    snprintf(what, sizeof(what),
             "has no effect on the paths of several objects; %" PRIu64 " are chosen", s->count);
    answer_refuse(c->answer, flag, what, "name one of them by its address");
    return 2;
}

static int heap_answer_paths(const struct heap_call *c)
{
    struct heap_selection s;
    unsigned exclude;
    const char *wrong = read_excluded(c->options->exclude, &exclude);
    if (wrong) {
        _cleanup_free_ char *word = strndup(wrong, strcspn(wrong, ","));
        answer_refuse(c->answer, "--exclude", word && *word ? word : "empty",
                      "allowed: soft, weak, final, phantom; or none alone");
        return 2;
    }
    int status = heap_select(c, &s);
    if (status)
        return status;
    uint64_t only = 0;
    while (s.count == 1 && !(s.bits[only / 64] >> (only % 64) & 1))
        only = s.bits[only / 64] ? only + 1 : (only / 64 + 1) * 64;
    const char *flag = c->options->exclude ? "--exclude" : c->options->strong ? "--strong" : NULL;
    if (flag && s.count > 1)
        status = refuse_for_several(c, &s, flag);
    else
        status = s.count == 1 ? one_path(c, only, exclude) : merged_paths(c, &s);
    heap_selection_release(&s);
    return status;
}

const struct command heap_verb_paths = {
    .name = "heap paths",
    .heap_answer = heap_answer_paths,
    .operands = "FILE [CLASS|OBJECT]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "show why an object is held: the shortest path from a GC root",
    .description = "Prints the shortest path from a GC root, over strong references if there is "
                   "such a path. It begins at a class of the program where only the VM's own "
                   "references, such as those of a class loader, lead to that class. For a class, "
                   "the paths of its instances are merged.",
    .examples = "  jvmscope heap paths app.hprof 0x7f01a8\n"
                "  jvmscope heap paths app.hprof com.example.Session\n",
    .sets = heap_paths_sets,
};
