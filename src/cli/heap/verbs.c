/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/verbs.h"

#include <errno.h>
#include <string.h>

#define ONE_FILE .operands = "FILE", .min_operands = 1, .max_operands = 1

const struct arg_set *const heap_sets[] = {&heap_common_set, &heap_index_set, NULL};

int heap_answer_verb(const char *verb, const struct heap_call *c)
{
    for (const struct command *h = heap_verbs; h->name; h++) {
        if (h->heap_answer && strcmp(command_word(h), verb) == 0)
            return h->heap_answer(c);
    }
    return -ENOENT;
}

/* Opens the index, runs the verb and shows its page. */
static int run_verb(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *const[]){&o, &o, &o, &o}, argc, argv, &operands, &status))
        return status;
    _cleanup_(heap_freep) struct heap *h = NULL;
    status = heap_open_index(&h, operands.list[0], &o);
    if (status)
        return status;
    _cleanup_(page_release) struct page p = {.title = operands.list[0]};
    heap_note_damage(&p, h->dump);
    const struct heap_call call = {h, &o, operands.list + 1, operands.count - 1, &p};
    status = self->heap_answer(&call);
    return status ? status : heap_answer(&p, &o);
}

const struct command heap_verbs[] = {
    {
        .name = "heap dump",
        .run = cmd_heap_dump,
        .operands = "PID",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "have a running VM write its heap into a file",
        .description = "The VM's own dumper writes, while the program stands still: the objects "
                       "that are reachable, or all. A VM "
                       "that cannot write the output itself (another user's, one in a container, "
                       "one with a /tmp of its own) writes "
                       "into its own /tmp; the file is fetched from there, with the rights of the "
                       "VM's user, and removed. The dump is "
                       "readable by its owner alone.",
        .examples =
            "  jvmscope heap dump 4711                                     heap-4711.hprof\n"
            "  jvmscope heap dump --all -o before.hprof 4711\n",
        .sets = heap_take_sets,
    },
    {
        .name = "heap summary",
        .run = run_verb,
        .heap_answer = heap_answer_summary,
        ONE_FILE,
        .summary = "say what a dump is, its roots and its biggest objects",
        .description = "Builds the index beside the dump when there is none; with it every other "
                       "verb answers at once.",
        .examples = "  jvmscope heap summary app.hprof\n"
                    "  jvmscope heap summary -o report.html app.hprof              with suspects, "
                    "consumers and the tree to open\n",
        .sets = heap_sets,
    },
    {
        .name = "heap histogram",
        .run = cmd_heap_histogram,
        .heap_answer = heap_answer_histogram,
        ONE_FILE,
        .summary = "count the objects of each class",
        .description = "One row a class: how many objects, and the bytes they take in the VM.",
        .examples = "  jvmscope heap histogram app.hprof\n"
                    "  jvmscope heap histogram --retained --sort retained app.hprof\n",
        .sets = heap_histogram_sets,
    },
    {
        .name = "heap dominators",
        .run = run_verb,
        .heap_answer = heap_answer_dominators,
        ONE_FILE,
        .summary = "rank all objects by what they retain",
        .description = "An object retains what would be freed if it went: all that is reachable "
                       "through it alone.",
        .examples =
            "  jvmscope heap dominators app.hprof                          the largest objects\n"
            "  jvmscope heap dominators --children 0x7f01a8 app.hprof      what one of them "
            "retains\n"
            "  jvmscope heap dominators --children root app.hprof          the top of the tree\n",
        .sets = heap_dominators_sets,
    },
    {
        .name = "heap retained",
        .run = run_verb,
        .heap_answer = heap_answer_retained,
        .operands = "FILE [CLASS|OBJECT]",
        .min_operands = 1,
        .max_operands = 2,
        .summary = "say what would be freed if a set of objects went",
        .description = "The set is a class, an object, a package or a class loader; the answer is "
                       "exact for the set as a whole.",
        .examples = "  jvmscope heap retained app.hprof java.lang.String\n"
                    "  jvmscope heap retained --package com.example app.hprof\n",
        .sets = heap_select_sets,
    },
    {
        .name = "heap paths",
        .run = run_verb,
        .heap_answer = heap_answer_paths,
        .operands = "FILE [CLASS|OBJECT]",
        .min_operands = 1,
        .max_operands = 2,
        .summary = "show why an object is held: the shortest path from a GC root",
        .description = "Paths lead over strong references unless there is none. For a class the "
                       "paths of its instances are merged.",
        .examples = "  jvmscope heap paths app.hprof 0x7f01a8\n"
                    "  jvmscope heap paths app.hprof com.example.Session\n",
        .sets = heap_paths_sets,
    },
    {
        .name = "heap leaks",
        .run = run_verb,
        .heap_answer = heap_answer_leaks,
        ONE_FILE,
        .summary = "name what holds much more than the rest, and through which path",
        .description = "Suspects hold a tenth of the heap and 2 MiB or more.",
        .examples = "  jvmscope heap leaks app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap objects",
        .run = run_verb,
        .heap_answer = heap_answer_objects,
        .operands = "FILE [CLASS|OBJECT]",
        .min_operands = 1,
        .max_operands = 2,
        .summary = "take an object apart, or list the objects of a class",
        .description = "Of one object: its fields or elements, and who refers to it.",
        .examples = "  jvmscope heap objects app.hprof 0x7f01a8\n"
                    "  jvmscope heap objects --limit 10 app.hprof java.lang.Thread\n",
        .sets = heap_select_sets,
    },
    {
        .name = "heap query",
        .run = run_verb,
        .heap_answer = heap_answer_query,
        .operands = "FILE [SELECT]",
        .min_operands = 1,
        .max_operands = 2,
        .summary = "ask a heap in SQL",
        .description =
            "Tables: *objects*, *classes*, *fields*, *refs*, *strings*, *retained* (all that a "
            "holder retains), *roots*, and every "
            "class by its name in double quotes, with the fields of its instances as columns, "
            "those of its subclasses "
            "included. They are read in place by SQLite: joins, aggregates and its functions work. "
            "An address (0x7f01a8) leads "
            "straight to its row; *reachable* is strong, weak (over soft, weak, final or phantom "
            "references alone) or null. Without a SELECT the tables are listed.",
        .examples = "  jvmscope heap query app.hprof 'SELECT class, count(*), sum(shallow) FROM "
                    "objects GROUP BY class ORDER BY 3 DESC'\n"
                    "  jvmscope heap query app.hprof 'SELECT value, count(*) FROM strings GROUP BY "
                    "value ORDER BY 2 DESC LIMIT 20'\n"
                    "  jvmscope heap query app.hprof 'SELECT object, size, threshold FROM "
                    "\"java.util.HashMap\" WHERE size > 1000'\n"
                    "  jvmscope heap query app.hprof 'SELECT class, sum(shallow) FROM retained "
                    "WHERE holder = 0x7f01a8 GROUP BY 1'\n",
        .sets = heap_query_sets,
    },
    {
        .name = "heap strings",
        .run = run_verb,
        .heap_answer = heap_answer_strings,
        ONE_FILE,
        .summary = "find texts that are there more than once, or strings with a text in them",
        .description = "Of each text that several strings have: how many, and what one copy of it "
                       "would save. *--find* lists strings instead.",
        .examples = "  jvmscope heap strings app.hprof\n"
                    "  jvmscope heap strings --find password app.hprof\n",
        .sets = heap_strings_sets,
    },
    {
        .name = "heap collections",
        .run = run_verb,
        .heap_answer = heap_answer_collections,
        ONE_FILE,
        .summary = "say how full the collections are, and how maps spread their keys",
        .description = "One row a class of the JDK's collections and those derived from them: "
                       "empty ones, slots that nothing uses, entries that "
                       "share a slot with another.",
        .examples = "  jvmscope heap collections app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap arrays",
        .run = run_verb,
        .heap_answer = heap_answer_arrays,
        ONE_FILE,
        .summary = "find arrays that are empty, constant, sparse or oversized",
        .description = "Constant: every element is the same. Sparse: three quarters of the "
                       "elements are null. Oversized: the end, half of it or "
                       "more, is null or zero.",
        .examples = "  jvmscope heap arrays app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap references",
        .run = run_verb,
        .heap_answer = heap_answer_references,
        ONE_FILE,
        .summary =
            "show what soft, weak, final and phantom references hold, and the finalizer's queue",
        .description = "Of each kind: how many references, how many of them cleared, and what "
                       "nothing else holds.",
        .examples = "  jvmscope heap references app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap classes",
        .run = run_verb,
        .heap_answer = heap_answer_classes,
        ONE_FILE,
        .summary = "list the class loaders, and classes that several of them loaded",
        .description = "A loader retains its classes and their static fields; the row counts what "
                       "instances of its classes retain.",
        .examples = "  jvmscope heap classes app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap components",
        .run = run_verb,
        .heap_answer = heap_answer_components,
        ONE_FILE,
        .summary = "say what packages and class loaders retain",
        .description = "A package, or the classes of a loader, retain what would be freed if their "
                       "instances went.",
        .examples = "  jvmscope heap components app.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap unreachable",
        .run = run_verb,
        .heap_answer = heap_answer_unreachable,
        ONE_FILE,
        .summary = "count the objects that no GC root leads to",
        .description = "Of a dump with *--all*, or one that was not made of live objects alone: "
                       "the garbage, by class.",
        .examples = "  jvmscope heap unreachable all.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap diff",
        .run = cmd_heap_diff,
        .operands = "OLD NEW",
        .min_operands = 2,
        .max_operands = 2,
        .summary = "say which classes grew from one dump to another",
        .description = "Objects, bytes and retained sizes by class, those that grew most first: "
                       "the program's classes by what "
                       "they retain, then all classes by size and by what they retain.",
        .examples = "  jvmscope heap diff before.hprof after.hprof\n",
        .sets = heap_sets,
    },
    {
        .name = "heap threads",
        .run = run_verb,
        .heap_answer = heap_answer_threads,
        ONE_FILE,
        .summary = "show the threads, their stacks, and what each and its locals retain",
        .description = "One row a thread, by retained size; then the stacks with the objects that "
                       "their frames hold.",
        .examples = "  jvmscope heap threads app.hprof\n",
        .sets = heap_sets,
    },
    {0},
};
