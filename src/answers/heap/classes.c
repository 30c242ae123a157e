/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap classes`: class loaders, and classes that several of them have loaded. `heap components`:
 * what packages and loaders retain.
 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"
#include "heap/memory.h"

#include <stdlib.h>
#include <string.h>

/* Classes grouped by a number. */
struct group {
    const char *name;
    uint64_t object; /* a class loader, or HEAP_NONE */
    uint64_t classes, objects, bytes, retained;
};

struct grouping {
    VEC(struct group) groups;
    int32_t *of_class; /* class number -> group; -1: none */
    /*
     * Maps the object that stands for a class to its group, because static fields belong to the
     * group too. Empty where such objects belong to java.lang.Class.
     */
    struct map of_class_object;
};

static void grouping_release(struct grouping *g)
{
    vec_release(&g->groups);
    map_release(&g->of_class_object);
    free(g->of_class);
    g->of_class = NULL;
}

static int32_t add_to_group(struct grouping *g, struct map *known, uint64_t key, struct group new)
{
    bool added;
    uint64_t *row = map_at(known, key, g->groups.len, &added);
    if (!row || (added && vec_push(&g->groups, new) < 0))
        return -1;
    return (int32_t)*row;
}

static int32_t group_of(const struct grouping *g, const struct heap *h, uint64_t i)
{
    int32_t class_number = heap_class_of(h, i);
    const uint64_t *own =
        class_number == h->dump->class_class ? map_get(&g->of_class_object, i) : NULL;
    return own ? (int32_t)*own : g->of_class[class_number];
}

static void count_class(struct grouping *g, size_t k, const struct heap_class *c, int32_t row)
{
    g->of_class[k] = row;
    if (row < 0 || (size_t)row >= g->groups.len)
        return;
    g->groups.data[row].classes += c->record != NULL;
    g->groups.data[row].objects += c->objects;
    g->groups.data[row].bytes += c->bytes;
}

static int by_loader(struct answer *a, const struct heap *h, struct grouping *ret)
{
    const struct heap_dump *d = h->dump;
    struct map known = {0};
    int error = 0;
    ret->of_class = calloc(d->classes.len + 1, sizeof(int32_t));
    for (size_t k = 0; ret->of_class && k < d->classes.len; k++) {
        const struct heap_class *c = &d->classes.data[k];
        uint64_t loader = c->loader_id ? heap_ids_find(&h->ids, c->loader_id) : HEAP_NONE;
        struct group new = {.name = "<boot loader>", .object = loader};
        if (loader != HEAP_NONE)
            new.name = heap_class_name(h, loader);
        int32_t row = add_to_group(ret, &known, c->loader_id, new);
        count_class(ret, k, c, row);
        uint64_t object = c->record && !c->made ? heap_ids_find(&h->ids, c->id) : HEAP_NONE;
        if (row < 0 || object == HEAP_NONE)
            continue;
        error = error ? error : map_put(&ret->of_class_object, object, (uint64_t)row);
    }
    map_release(&known);
    return ret->of_class ? error : -ENOMEM;
}

/*
 * Returns the length of "com.shop" in com.shop.cart.Line[]: at most `parts` components of the
 * package name.
 */
static size_t package_len(const char *name, int parts)
{
    size_t len = 0;
    for (const char *dot = strchr(name, '.'); dot && parts; dot = strchr(dot + 1, '.'), parts--)
        len = (size_t)(dot - name);
    return len;
}

static int by_package(struct answer *a, const struct heap *h, struct grouping *ret)
{
    const struct heap_dump *d = h->dump;
    struct map known = {0};
    ret->of_class = calloc(d->classes.len + 1, sizeof(int32_t));
    for (size_t k = 0; ret->of_class && k < d->classes.len; k++) {
        const struct heap_class *c = &d->classes.data[k];
        size_t len = package_len(c->name, 2);
        int64_t number = strpool_add(&h->dump->names, c->name, len);
        bool none = number < 0 || !len;
        const char *name =
            none ? (strstr(c->name, "[]") && c->type ? "<primitive arrays>" : "<no package>")
                 : strpool_get(&h->dump->names, (uint64_t)number).data;
        count_class(ret, k, c,
                    add_to_group(ret, &known, (uint64_t)(uintptr_t)name,
                                 (struct group){name, HEAP_NONE, 0, 0, 0, 0}));
    }
    map_release(&known);
    return ret->of_class ? 0 : -ENOMEM;
}

struct step {
    uint64_t node, at, end;
};

/*
 * Computes what each group's instances retain together: the objects that no other instance of the
 * group dominates. Walks the whole dominator tree once.
 */
static int sum_groups(const struct heap *h, struct grouping *g)
{
    VEC(struct step) way = {0};
    _cleanup_free_ uint64_t *above = calloc(g->groups.len + 1, sizeof(uint64_t));
    uint64_t first, count;
    int error = above ? 0 : -ENOMEM;
    heap_children(h, h->n, &first, &count);
    for (struct step s = {h->n, first, first + count}; !error;) {
        if (s.at == s.end) {
            int32_t own = s.node < h->n ? group_of(g, h, s.node) : -1;
            if (own >= 0)
                above[own]--;
            if (!way.len)
                break;
            s = way.data[--way.len];
            continue;
        }
        uint64_t child = heap_child(h, s.at++);
        int32_t group = group_of(g, h, child);
        if (group >= 0 && (size_t)group < g->groups.len && !above[group])
            g->groups.data[group].retained += heap_retained(h, child);
        if (heap_retained(h, child) == heap_shallow(h, child))
            continue; /* nothing is below it */
        heap_children_near(h, child, first, &first, &count);
        if (!count)
            continue;
        if (group >= 0)
            above[group]++;
        error = vec_push(&way, s);
        s = (struct step){child, first, first + count};
    }
    vec_release(&way);
    return error;
}

static int by_retained(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->retained != y->retained)
        return x->retained < y->retained ? 1 : -1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static void show_groups(const struct heap_call *c, struct grouping *g, const char *key,
                        const char *title, bool loaders)
{
    static const struct answer_column columns[] = {
        {"name", "name", ANSWER_TEXT, true},  {"object", NULL, ANSWER_ID},
        {"classes", "classes", ANSWER_COUNT}, {"objects", "objects", ANSWER_COUNT},
        {"shallow", "shallow", ANSWER_BYTES}, {"retained", "retained", ANSWER_BYTES},
        {"percent", "share", ANSWER_PERCENT}};
    static const struct answer_column loader_columns[] = {
        {"name", "loader", ANSWER_TEXT, true}, {"object", "object", ANSWER_ID},
        {"classes", "classes", ANSWER_COUNT},  {"objects", "objects", ANSWER_COUNT},
        {"shallow", "shallow", ANSWER_BYTES},  {"retained", "retained", ANSWER_BYTES},
        {"percent", "share", ANSWER_PERCENT}};
    uint64_t all = heap_retained(c->heap, c->heap->n);
    if (g->groups.len)
        qsort(g->groups.data, g->groups.len, sizeof(struct group), by_retained);
    answer_table(c->answer, key, title, loaders ? loader_columns : columns, ARRAY_SIZE(columns));
    c->answer->blocks.data[c->answer->blocks.len - 1].chart = true;
    uint64_t limit = heap_rows(c->options, 25, UINT64_MAX);
    for (size_t k = 0; k < g->groups.len && k < limit; k++) {
        const struct group *one = &g->groups.data[k];
        answer_text(c->answer, one->name);
        if (one->object == HEAP_NONE)
            answer_null(c->answer);
        else
            answer_number(c->answer, heap_id(c->heap, one->object));
        answer_number(c->answer, one->classes);
        answer_number(c->answer, one->objects);
        answer_number(c->answer, one->bytes);
        answer_number(c->answer, one->retained);
        answer_real(c->answer, all ? 100.0 * (double)one->retained / (double)all : 0);
    }
    answer_left(c->answer, g->groups.len, limit);
}

static int answer_groups(const struct heap_call *c,
                         int (*make)(struct answer *, const struct heap *, struct grouping *),
                         const char *key, const char *title)
{
    struct grouping g = {0};
    int error = make(c->answer, c->heap, &g);
    if (!error)
        error = sum_groups(c->heap, &g);
    if (!error)
        show_groups(c, &g, key, title, make == by_loader);
    grouping_release(&g);
    return error ? answer_refuse(c->answer, NULL, key, strerror(-error)) : 0;
}

static int heap_answer_components(const struct heap_call *c)
{
    int status = answer_groups(c, by_package, "packages", "What packages retain");
    return status
               ? status
               : answer_groups(c, by_loader, "loaders", "What the classes of class loaders retain");
}

static int by_name_and_size(const void *a, const void *b)
{
    const struct heap_class *x = *(const struct heap_class *const *)a,
                            *y = *(const struct heap_class *const *)b;
    int order = strcmp(x->name, y->name);
    return order                        ? order
           : x->retained != y->retained ? (x->retained < y->retained ? 1 : -1)
           : x->id < y->id              ? -1
                                        : x->id > y->id;
}

static int heap_answer_classes(const struct heap_call *c)
{
    static const struct answer_column columns[] = {
        {"object", "object", ANSWER_ID},      {"class", "class", ANSWER_TEXT, true},
        {"loader", "loader", ANSWER_ID},      {"loaderClass", "of class", ANSWER_TEXT},
        {"objects", "objects", ANSWER_COUNT}, {"retained", "retained", ANSWER_BYTES}};
    const struct heap *h = c->heap;
    const struct heap_dump *d = h->dump;
    _cleanup_free_ const struct heap_class **sorted = calloc(d->classes.len + 1, sizeof(*sorted));
    size_t n = 0;
    int status = answer_groups(c, by_loader, "loaders", NULL);
    if (status || !sorted)
        return status ? status : answer_refuse(c->answer, "classes", strerror(ENOMEM), NULL);
    for (size_t k = 0; k < d->classes.len; k++) {
        if (d->classes.data[k].record && !d->classes.data[k].made)
            sorted[n++] = &d->classes.data[k];
    }
    qsort(sorted, n, sizeof(*sorted), by_name_and_size);
    answer_table(c->answer, "duplicates", "Classes of one name from several loaders", columns,
                 ARRAY_SIZE(columns));
    uint64_t limit = heap_rows(c->options, 40, UINT64_MAX), rows = 0;
    for (size_t k = 0; k < n; k++) {
        bool twin = (k && strcmp(sorted[k - 1]->name, sorted[k]->name) == 0) ||
                    (k + 1 < n && strcmp(sorted[k + 1]->name, sorted[k]->name) == 0);
        if (!twin || rows++ >= limit)
            continue;
        uint64_t loader =
            sorted[k]->loader_id ? heap_ids_find(&h->ids, sorted[k]->loader_id) : HEAP_NONE;
        answer_number(c->answer, sorted[k]->id);
        answer_text(c->answer, sorted[k]->name);
        answer_number(c->answer, sorted[k]->loader_id);
        answer_text(c->answer, loader == HEAP_NONE ? "<boot loader>" : heap_class_name(h, loader));
        answer_number(c->answer, sorted[k]->objects);
        /* The class retains what its static fields hold, even without an instance. */
        uint64_t object = heap_ids_find(&h->ids, sorted[k]->id);
        uint64_t of_class = object == HEAP_NONE ? 0 : heap_retained(h, object);
        answer_number(c->answer, MAX(sorted[k]->retained, of_class));
    }
    answer_left(c->answer, rows, limit);
    return 0;
}

const struct command heap_verb_classes = {
    .name = "heap classes",
    .heap_answer = heap_answer_classes,
    HEAP_ONE_FILE,
    .summary = "list the class loaders, and classes that several of them loaded",
    .description = "Prints a row for each class loader. A loader retains its classes and their "
                   "static fields; the row also counts what the instances of its classes retain.",
    .examples = "  jvmscope heap classes app.hprof\n",
    .sets = heap_sets,
};

const struct command heap_verb_components = {
    .name = "heap components",
    .heap_answer = heap_answer_components,
    HEAP_ONE_FILE,
    .summary = "show what packages and class loaders retain",
    .description = "A package, or the classes of a loader, retain what would be freed if their "
                   "instances were gone.",
    .examples = "  jvmscope heap components app.hprof\n",
    .sets = heap_sets,
};
