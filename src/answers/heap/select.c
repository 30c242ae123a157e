/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/select.h"

#include "answers/heap/heap.h"
#include "base/pattern.h"
#include "heap/memory.h"
#include "heap/text.h"

#include <string.h>

static const struct arg select_args[] = {
    {"--class", 0, ARG_LIST, offsetof(struct heap_options, class), "CLASS",
     "instances of this class (* for any characters)"},
    {"--object", 0, ARG_TEXT, offsetof(struct heap_options, object), "OBJECT",
     "the object at this address"},
    {"--package", 0, ARG_LIST, offsetof(struct heap_options, package), "PACKAGE",
     "instances of the package's classes"},
    {"--loader", 0, ARG_TEXT, offsetof(struct heap_options, loader), "OBJECT",
     "this class loader, its classes and their instances (0: the boot loader's)"},
    {0},
};

static const struct arg_set select_set = {"Which objects", select_args};
const struct arg_set *const heap_select_sets[] = {&select_set, &heap_common_set, &heap_retained_set,
                                                  &heap_index_set, NULL};

static const struct arg exclude_args[] = {
    {"--exclude", 0, ARG_LIST, offsetof(struct heap_options, exclude), "KINDS",
     "do not follow these references: soft, weak, final, phantom; or none (default: all four)"},
    {0},
};

static const struct arg_set exclude_set = {"The path", exclude_args};
const struct arg_set *const heap_paths_sets[] = {
    &select_set, &exclude_set, &heap_common_set, &heap_retained_set, &heap_index_set, NULL};

/*
 * Returns whether a class matches the pattern, a binary name in which '*' stands for any
 * characters. As in other patterns, = may precede a name that is meant as a whole.
 */
static bool heap_class_matches(const struct heap_class *c, const char *pattern)
{
    return strcmp(c->name, pattern) == 0 || ((strchr(pattern, '*') || *pattern == '=') &&
                                             pattern_match(pattern, c->name, strlen(c->name)));
}

void heap_selection_release(struct heap_selection *s)
{
    heap_memory_free(s->bits);
    s->bits = NULL;
}

static void take(struct heap_selection *s, uint64_t i)
{
    if (s->bits[i / 64] >> (i % 64) & 1)
        return;
    s->bits[i / 64] |= UINT64_C(1) << (i % 64);
    s->count++;
}

static bool in_package(const struct heap_class *c, const char *package)
{
    size_t n = strlen(package);
    return strncmp(c->name, package, n) == 0 && c->name[n] == '.';
}

/* Marks the classes that match one name of a list, or the class loader if `name` is NULL. */
static size_t mark_classes(const struct heap_call *c, const char *name, uint64_t loader_id,
                           bool *wanted)
{
    const struct heap_dump *d = c->heap->dump;
    size_t found = 0;
    for (size_t k = 0; k < d->classes.len; k++) {
        const struct heap_class *class = &d->classes.data[k];
        bool matches = !name                 ? class->record && class->loader_id == loader_id
                       : c->options->package ? in_package(class, name)
                                             : heap_class_matches(class, name);
        wanted[k] |= matches;
        found += matches;
    }
    return found;
}

/*
 * Marks the instances of the classes of a list of names, or of a loader, and the latter's class
 * objects.
 */
static int by_classes(const struct heap_call *c, struct heap_selection *s, uint64_t loader_id)
{
    const struct heap *h = c->heap;
    const struct heap_options *o = c->options;
    size_t n = h->dump->classes.len;
    _cleanup_free_ bool *wanted = calloc(n + 1, sizeof(bool));
    const char *names = o->class ? o->class : o->package;
    _cleanup_free_ char *copy = names ? strdup(names) : NULL;
    if (!wanted || (names && !copy))
        return answer_refuse(c->answer, NULL, "objects", strerror(ENOMEM));
    if (!names && !mark_classes(c, NULL, loader_id, wanted))
        return answer_refuse(c->answer, s->what, "this matches no class of the dump", NULL);
    /* A name may have commas, such as that of a proxy of several interfaces. */
    bool whole = names && mark_classes(c, names, 0, wanted);
    for (char *rest = copy, *one; copy && !whole && (one = strsep(&rest, ","));) {
        one += strspn(one, " ");
        if (!mark_classes(c, one, loader_id, wanted))
            return answer_refuse(c->answer, *one ? one : names, "this matches no class of the dump",
                                 NULL);
    }
    for (size_t k = 0; o->loader && k < n; k++) {
        uint64_t mirror =
            wanted[k] ? heap_ids_find(&h->ids, h->dump->classes.data[k].id) : HEAP_NONE;
        if (mirror != HEAP_NONE)
            take(s, mirror);
    }
    for (uint64_t i = 0; i < h->n; i++) {
        if (wanted[heap_class_of(h, i)] && !heap_is_agents(h, i))
            take(s, i);
    }
    return 0;
}

/* Refuses two ways to choose the objects, of which one would be ignored. */
static bool is_chosen_once(const struct heap_call *c)
{
    const char *operand = c->count ? c->operands[0] : NULL;

    const struct {
        const char *flag, *value;
    } ways[] = {{operand, operand},
                {"--class", c->options->class},
                {"--object", c->options->object},
                {"--package", c->options->package},
                {"--loader", c->options->loader}};

    const char *first = NULL;
    for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
        if (ways[w].value && first) {
            char why[200];
            snprintf(why, sizeof(why), "cannot be combined with %s", first);
            answer_refuse(c->answer, ways[w].flag, why, NULL);
            return false;
        }
        first = ways[w].value ? ways[w].flag : first;
    }
    return true;
}

int heap_select(const struct heap_call *c, struct heap_selection *ret)
{
    if (!is_chosen_once(c))
        return 2;
    struct heap_options o = *c->options;
    struct heap_selection s = {.bits = heap_memory(c->heap->n / 8 + 8)};
    const char *operand = c->count ? c->operands[0] : NULL;
    uint64_t i, loader = 0;
    int status = 0;
    if (!s.bits)
        return answer_refuse(c->answer, NULL, "objects", strerror(ENOMEM));
    if (operand && strncmp(operand, "0x", 2) == 0)
        o.object = operand;
    else if (operand)
        o.class = operand;
    struct heap_call call = *c;
    call.options = &o;
    const char *what = o.object ? o.object : o.class ? o.class : o.package ? o.package : o.loader;
    snprintf(s.what, sizeof(s.what), "%s", what ? what : "");
    if (!what) {
        answer_refuse(c->answer, "heap", "which objects?",
                      "name a class, an address, --package or --loader");
        status = 2;
    } else if (o.object) {
        status = heap_object_named(c, o.object, &i);
        if (!status && i < c->heap->n)
            take(&s, i);
    } else if (o.loader && strcmp(o.loader, "0") != 0) {
        status = heap_object_named(c, o.loader, &i);
        if (!status && i < c->heap->n) {
            take(&s, i);
            loader = heap_id(c->heap, i);
            status = by_classes(&call, &s, loader);
        }
    } else {
        status = by_classes(&call, &s, 0);
    }
    if (!status && !s.count) {
        bool one = o.class && !strpbrk(o.class, "*,") && !o.object;
        answer_note(c->answer,
                    one ? "%s has no instances in this dump."
                        : "The classes of %s have no instances in this dump.",
                    s.what);
        c->answer->nothing = true;
    }
    if (status)
        heap_selection_release(&s);
    else
        *ret = s;
    return status;
}
