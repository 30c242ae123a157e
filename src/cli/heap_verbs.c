/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap_verbs.h"

const struct command heap_verbs[] = {
    {
        .name = "heap histogram",
        .run = cmd_heap_histogram,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "count the objects of each class",
        .description = "One row a class: how many objects, and the bytes they take in the VM.",
        .examples = "  jvmscope heap histogram app.hprof\n",
        .sets = heap_histogram_sets,
    },
    {0},
};
