/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/heap.h"

#include <errno.h>
#include <string.h>

static const struct arg common_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct heap_options, json), NULL, "print JSON"},
    {"--output", 'o', ARG_TEXT, offsetof(struct heap_options, output), "FILE",
     "write a page of HTML (.html) or JSON (.json)"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct heap_options, limit), "N",
     "rows of each table (as text 12 to 100; in JSON and files all, or the first 100 to 100,000); "
     "a table that is cut says how many rows more there are"},
    {"--dump", 0, ARG_COUNT, offsetof(struct heap_options, dump), "N",
     "which dump of a file with several, counted from 1 (the last)"},
    {0},
};

const struct arg_set heap_common_set = {"What is shown", common_args};

static const struct arg index_args[] = {
    {"--index", 0, ARG_TEXT, offsetof(struct heap_options, index), "FILE",
     "where to keep the index (the dump's name with .heapidx)"},
    {"--rebuild", 0, ARG_FLAG, offsetof(struct heap_options, rebuild), NULL,
     "build the index anew"},
    {"--memory", 0, ARG_SIZE, offsetof(struct heap_options, memory), "SIZE",
     "how much anonymous memory building the index may use; the rest goes to unlinked files in "
     "/var/tmp",
     .min = HEAP_MEMORY_LEAST},
    {0},
};

static const struct arg retained_args[] = {
    {"--strong", 0, ARG_FLAG, offsetof(struct heap_options, strong), NULL,
     "count only what strong references retain (Eclipse MAT counts the others too)"},
    {0},
};

const struct arg_set heap_index_set = {"The index", index_args};
const struct arg_set heap_retained_set = {"Retained sizes", retained_args};

const struct arg_set *const heap_plain_sets[] = {&heap_common_set, &heap_index_set, NULL};
const struct arg_set *const heap_sets[] = {&heap_common_set, &heap_retained_set, &heap_index_set,
                                           NULL};

static const struct command *const verbs[] = {
#define VERB(name) &heap_verb_##name,
#include "answers/heap/verb_list.h"
#undef VERB
    NULL,
};

int heap_ask(const char *verb, const struct heap_call *c)
{
    for (const struct command *const *v = verbs; *v; v++) {
        if (strcmp((*v)->name + strlen("heap "), verb) == 0)
            return (*v)->heap_answer(c);
    }
    return -ENOENT;
}

uint64_t heap_rows(const struct heap_options *o, uint64_t on_screen, uint64_t in_file)
{
    return o->limit ? o->limit : o->json || o->output ? in_file : on_screen;
}

void heap_note_damage(struct answer *a, const struct heap_dump *d)
{
    if (d->cut && d->garbage_at >= d->len)
        answer_note(a,
                    "PARTIAL: the file is damaged or cut short, or something else follows, after "
                    "byte %llu of the dump; what could be read is shown.",
                    (unsigned long long)d->len);
    else if (d->cut)
        answer_note(a,
                    "PARTIAL: the dump is cut short or damaged at byte %llu of %llu; what could be "
                    "read is shown.",
                    (unsigned long long)d->garbage_at, (unsigned long long)d->len);
    if (d->dumps > 1)
        answer_note(a, "The file holds %u dumps; this is number %u (--dump N).", d->dumps,
                    d->chosen + 1);
}
