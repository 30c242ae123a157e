/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of `jvmscope heap` whose answers the command shows and the page's server sends: a row
 * and a file for each verb, or for a few similar ones. A verb's file holds its options, its help
 * and its answer.
 */
#pragma once

#include "answers/answer.h"
#include "heap/heap.h"
#include "options/command.h"

struct heap_options {
    bool json, retained, strong, rebuild, all;
    const char *output, *index, *class, *object, *package, *loader, *children, *exclude, *sort,
        *sql, *find;
    uint64_t limit, memory, dump;
    uint64_t patience; /* time limit of a query in ns; 0: none */
};

/*
 * One question about a heap: the verb's operands after the file, and what receives the answer. heap
 * is NULL for a verb that can do without the index (command.heap_survey) when there is none.
 */
struct heap_call {
    struct heap *heap;
    const struct heap_dump *dump;
    const struct heap_options *options;
    char **operands;
    int count;
    struct answer *answer;
};

/*
 * A verb's file defines its row, `const struct command heap_verb_NAME`, and verb_list.h lists it.
 */
#define VERB(name) extern const struct command heap_verb_##name;
#include "answers/heap/verb_list.h"
#undef VERB

#define HEAP_ONE_FILE .operands = "FILE", .min_operands = 1, .max_operands = 1

/* The least --memory. The command itself needs as much. */
#define HEAP_MEMORY_LEAST (16 << 20)

/* each fills a struct heap_options; heap_retained_set: for verbs that show retained sizes */
extern const struct arg_set heap_common_set, heap_index_set, heap_retained_set;
/* lists of sets that several verbs have; heap_plain_sets: of those without retained sizes */
extern const struct arg_set *const heap_paths_sets[],
    *const heap_select_sets[], *const heap_plain_sets[], *const heap_sets[];

/*
 * Asks the question of a verb, and adds its answer to the call's. Returns 0, the exit status after
 * answer_refuse, or a negative errno: -ENOENT for an unknown verb.
 */
int heap_ask(const char *verb, const struct heap_call *c);
/*
 * Returns the number of rows of a table: --limit, or all in a file for programs, or what fits on a
 * screen.
 */
uint64_t heap_rows(const struct heap_options *o, uint64_t on_screen, uint64_t in_file);
/* Adds a note about damage in a dump that is shown nevertheless. */
void heap_note_damage(struct answer *a, const struct heap_dump *d);
/*
 * Adds classes as a table "classes". sort: "retained", "objects" or "class", of which only the
 * first letter counts; otherwise, and for NULL, by shallow size. retained: whether retained sizes
 * are known.
 */
void heap_histogram_table(struct answer *a, const struct heap_dump *d, const char *sort,
                          uint64_t limit, bool retained, const char *title);
/* Adds the largest objects by retained size, at most `limit`, as a table "dominators". */
void heap_top_table(struct answer *a, const struct heap *h, uint64_t limit, const char *title);
/* Adds what holds much more than the rest: sentences, and a table "suspects" for programs. */
void heap_suspects(struct answer *a, const struct heap *h);
/* Adds what a report contains in addition to the summary. */
void heap_report_sections(const struct heap_call *c);
/*
 * Adds how many objects, bytes and retained bytes each class has in two dumps, in tables of at most
 * `limit` rows. Returns 0 or -ENOMEM.
 */
int heap_compare(struct answer *a, const struct heap *before, const struct heap *now,
                 uint64_t limit) must_check;
