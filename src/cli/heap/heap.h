/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `jvmscope heap` share: options, opening a dump, answering. */
#pragma once

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/heap/page.h"
#include "heap/heap.h"

struct heap_options {
    bool json, retained, strong, rebuild, all;
    const char *output, *index, *class, *object, *package, *loader, *children, *exclude, *sort,
        *sql, *find;
    uint64_t limit, memory, dump;
    uint64_t patience; /* time limit of a query in ns; 0: none */
};

/*
 * One question about a heap: the verb's operands after the file, and the page that receives the
 * answer.
 */
struct heap_call {
    struct heap *heap;
    const struct heap_options *options;
    char **operands;
    int count;
    struct page *page;
};

/* both fill a struct heap_options */
extern const struct arg_set heap_common_set, heap_index_set;

/* Opens a dump and counts everything in it. Returns 0, or the exit status after a complaint. */
int heap_open_dump(struct heap_dump **ret, const char *path, const struct heap_options *o);
/*
 * Opens the index of a dump, building it with a progress display when there is none. Returns 0, or
 * the exit status after a complaint.
 */
int heap_open_index(struct heap **ret, const char *path, const struct heap_options *o);
/*
 * Returns the number of rows of a table: --limit, or all in a file for programs, or what fits on a
 * screen.
 */
uint64_t heap_rows(const struct heap_options *o, uint64_t on_screen, uint64_t in_file);
/* Adds classes as a table "classes". sort: only its first letter counts; NULL: by shallow size. */
void heap_histogram_table(struct page *p, const struct heap_dump *d, const char *sort,
                          uint64_t limit, bool retained, const char *title);
/* Adds facts about the dump. */
void heap_summary_facts(struct page *p, const struct heap *h);
/* Adds the largest objects by retained size as a table "dominators". */
void heap_top_table(struct page *p, const struct heap *h, uint64_t limit, const char *title);
/* Adds what holds much more than the rest: sentences, and a table "suspects" for programs. */
void heap_suspects(struct page *p, const struct heap *h);
/* Shows the page as the options request. Returns the exit status. */
int heap_answer(const struct page *p, const struct heap_options *o);
/* Returns a description of why a dump could not be read. */
const char *heap_why(int error);
/* Adds a note about damage in a dump that is shown nevertheless. */
void heap_note_damage(struct page *p, const struct heap_dump *d);
