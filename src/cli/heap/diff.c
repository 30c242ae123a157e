/* SPDX-License-Identifier: Apache-2.0 */
/* `heap diff OLD NEW` (answers/heap/compare.c). */
#include "cli/commands.h"
#include "cli/heap/heap.h"
#include "cli/replaced.h"

#include <string.h>

static int cmd_heap_diff(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    if (o.index) {
        complain("--index", "not for diff: each dump has an index of its own next to it", NULL);
        return 2;
    }
    if (o.output && complain_of_input(o.output, operands.list, 2))
        return 2;
    if (o.output && !replaced_check(o.output, NULL))
        return 2;
    _cleanup_(heap_freep) struct heap *before = NULL, *now = NULL;
    status = heap_open_index(&before, operands.list[0], &o);
    if (!status)
        status = heap_open_index(&now, operands.list[1], &o);
    if (status)
        return status;
    _cleanup_(buf_release) struct buf title = BUF(1 << 16);
    buf_printf(&title, "%s, compared with %s", operands.list[1], operands.list[0]);
    _cleanup_(answer_release) struct answer a = {.title = buf_str(&title)};
    heap_note_damage(&a, before->dump);
    heap_note_damage(&a, now->dump);
    int r = heap_compare(&a, before, now, heap_rows(&o, 25, UINT64_MAX));
    return r < 0 ? complain_errno(NULL, "diff", r) : heap_show(&a, &o);
}

const struct command heap_verb_diff = {
    .name = "heap diff",
    .run = cmd_heap_diff,
    .operands = "OLD NEW",
    .min_operands = 2,
    .max_operands = 2,
    .summary = "show which classes grew from one dump to another",
    .description = "Prints how the objects, bytes and retained sizes of each class changed, those "
                   "that grew most first: the program's own classes by what they retain, then all "
                   "classes by size and by what they retain.",
    .examples = "  jvmscope heap diff before.hprof after.hprof\n",
    .sets = heap_sets,
};
