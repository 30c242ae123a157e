/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/verbs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const struct arg_set *const heap_sets[] = {&heap_common_set, &heap_index_set, NULL};

int heap_answer_verb(const char *verb, const struct heap_call *c)
{
    COMMAND_EACH(h, heap_verbs) {
        if (h->heap_answer && strcmp(command_word(h), verb) == 0)
            return h->heap_answer(c);
    }
    return -ENOENT;
}

int heap_run_verb(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    const char *file = operands.list[0];
    if (operands.count > 1 && access(file, F_OK) < 0 && access(operands.list[1], F_OK) == 0) {
        complain(file, "no such file", "the heap dump comes first, then what is asked about");
        return 2;
    }
    _cleanup_(heap_freep) struct heap *h = NULL;
    status = heap_open_index(&h, operands.list[0], &o);
    if (status)
        return status;
    _cleanup_(page_release) struct page p = {.title = operands.list[0]};
    heap_note_damage(&p, h->dump);
    const struct heap_call call = {h, &o, operands.list + 1, operands.count - 1, &p};
    status = self->heap_answer(&call);
    if (p.refusal)
        complain(NULL, p.refusal, NULL);
    return status ? status : heap_answer(&p, &o);
}

const struct command *const heap_verbs[] = {
#define VERB(name) &heap_verb_##name,
#include "cli/heap/verb_list.h"
#undef VERB
    NULL,
};

const struct command command_heap = {
    .name = "heap",
    .verbs = heap_verbs,
    .summary = "show what a heap dump holds, and why",
    .related = "inspect serve report",
    .description =
        "Use it to find out why memory fills up: what holds it, and since when. *heap dump* "
        "makes a dump of a running VM; the other verbs read dumps of any HotSpot, also those of "
        "*jmap* and of *-XX:+HeapDumpOnOutOfMemoryError*. The first one that reads a dump makes an "
        "index next to it.\n\n"
        "Taking a dump stops the program, for a tenth to a quarter of a second for each million "
        "objects.",
};
