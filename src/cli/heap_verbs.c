/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap_verbs.h"

#define ONE_FILE .operands = "FILE", .min_operands = 1, .max_operands = 1

const struct command heap_verbs[] = {
    {
        .name = "heap summary",
        .run = cmd_heap_summary,
        ONE_FILE,
        .summary = "say what a dump is, its roots and its biggest objects",
        .description = "Builds the index beside the dump when there is none; with it every other verb answers at once.",
        .examples = "  jvmscope heap summary app.hprof\n",
        .sets = heap_summary_sets,
    },
    {
        .name = "heap histogram",
        .run = cmd_heap_histogram,
        ONE_FILE,
        .summary = "count the objects of each class",
        .description = "One row a class: how many objects, and the bytes they take in the VM.",
        .examples = "  jvmscope heap histogram app.hprof\n",
        .sets = heap_histogram_sets,
    },
    {
        .name = "heap dominators",
        .run = cmd_heap_dominators,
        ONE_FILE,
        .summary = "rank all objects by what they retain",
        .description = "An object retains what would be freed if it went: all that is reachable through it alone.",
        .examples = "  jvmscope heap dominators app.hprof                          the largest objects\n"
                    "  jvmscope heap dominators --children 0x7f01a8 app.hprof      what one of them retains\n"
                    "  jvmscope heap dominators --children root app.hprof          the top of the tree\n",
        .sets = heap_dominators_sets,
    },
    {0},
};
